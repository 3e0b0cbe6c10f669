//! Writing a bundle: the whole file or none.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::limits::{ENTRIES, FACTS_BYTES, LOG_BYTES, MANIFEST_BYTES, MANIFEST_VALUES, RECORDS, ROOT_BYTES};
use super::manifest::{Manifest, Record, SCHEMA, values};
use super::names::{clean, is_component, is_plain, is_question};
use super::{Bundle, BundleError};
use crate::host::{Answer, FILE_LIMIT};

impl Bundle {
    /// Writes the bundle to `path`, readable by this user only. It appears there whole or not at all, whatever fails
    /// on the way.
    ///
    /// # Errors
    /// It cannot be written there, the place is taken and `overwrite` is not set, or the logs are over the limits.
    pub fn write(&self, path: &Path, overwrite: bool) -> Result<(), BundleError> {
        let place = path.to_string_lossy();
        if let Ok(meta) = fs::symlink_metadata(path) {
            if !meta.is_file() {
                let mend = "choose a path where no device, directory or link is";
                return Err(BundleError::input(&place, "is there and is no regular file", mend));
            }
            if !overwrite {
                return Err(BundleError::input(&place, "exists", "choose another name or allow overwriting"));
            }
        }
        self.check(&place)?;
        let failed = |error: io::Error| BundleError::writing(path, &error);
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let staged = Staged::new(directory).map_err(failed)?;
        self.encode(staged.file()).and_then(|()| staged.file().sync_all()).map_err(failed)?;
        staged.publish(directory, path, overwrite).map_err(failed)?;
        // The name is on disk only when the directory is. Some file systems cannot do this; the file is whole anyway.
        if let Ok(directory) = File::open(directory) {
            let _ = directory.sync_all();
        }
        Ok(())
    }

    /// Writes the bundle's bytes: the same for the same bundle. What no bundle can carry is left out with a note in
    /// the manifest; see [`super::limits`].
    ///
    /// # Errors
    /// The writer's.
    pub fn encode(&self, out: impl Write) -> io::Result<()> {
        let (manifest, files) = self.split();
        let json = serde_json::to_vec_pretty(&manifest)?;
        let json = if json.len() as u64 > MANIFEST_BYTES { serde_json::to_vec(&manifest)? } else { json };
        let gzip = GzEncoder::new(BufWriter::with_capacity(1 << 16, out), Compression::default());
        let mut archive = tar::Builder::new(gzip);
        append(&mut archive, "manifest.json", &json)?;
        for (path, bytes) in files {
            append(&mut archive, &format!("root{path}"), bytes)?;
        }
        for log in &self.logs {
            append(&mut archive, &format!("logs/{}", log.name), &log.bytes)?;
        }
        if let Some(facts) = &self.facts_json {
            append(&mut archive, "facts.json", facts.as_bytes())?;
        }
        archive.into_inner()?.finish()?.flush()
    }

    /// What the caller could have known not to fit.
    fn check(&self, place: &str) -> Result<(), BundleError> {
        let logs: u64 = self.logs.iter().map(|log| log.bytes.len() as u64).sum();
        let what = if logs > LOG_BYTES {
            format!("logs of {} MiB are over the limit of {} MiB", logs >> 20, LOG_BYTES >> 20)
        } else if self.logs.len() > ENTRIES / 2 {
            format!("{} logs are over the limit of {}", self.logs.len(), ENTRIES / 2)
        } else if self.facts_json.as_ref().is_some_and(|facts| facts.len() as u64 > FACTS_BYTES) {
            format!("facts are over the limit of {} MiB", FACTS_BYTES >> 20)
        } else if let Some(log) = self.logs.iter().find(|log| !is_component(&log.name)) {
            format!("no log can be named {:?}", log.name)
        } else {
            return Ok(());
        };
        Err(BundleError::input(place, what, "pass fewer or shorter logs"))
    }

    /// The manifest, and the files that go beside it.
    fn split(&self) -> (Manifest, Vec<(&str, &[u8])>) {
        let mut files = Vec::new();
        let mut answers = Vec::new();
        let mut bytes_left = ROOT_BYTES;
        // Half of what a reader takes for the answers, a quarter for the redactions, the rest for what is small.
        let mut room = Room::of(2);
        let (mut odd, mut many) = (0usize, 0usize);
        let most = ENTRIES.saturating_sub(self.logs.len() + 2);
        // Processes last: there may be any number of them, and the host matters more than the last of them.
        let (processes, host): (Vec<_>, Vec<_>) =
            self.tape.answers.iter().partition(|((path, _), _)| is_process(path));
        for ((path, question), answer) in host.into_iter().chain(processes) {
            match answer {
                Ok(Answer::Bytes(bytes)) if is_question(path) && is_plain(&path[1..]) => {
                    let size = bytes.len() as u64;
                    if size > FILE_LIMIT || size > bytes_left || files.len() == most {
                        many += 1;
                    } else {
                        bytes_left -= size;
                        files.push((path.as_str(), bytes.as_slice()));
                    }
                }
                _ => match Record::of(path, *question, answer) {
                    None => odd += 1,
                    Some(record) if room.takes(&record) => answers.push(record),
                    Some(_) => many += 1,
                },
            }
        }
        let mut notes: Vec<String> =
            self.notes.iter().map(|note| note.replace(char::is_control, " ")).collect();
        if odd > 0 {
            notes.push(format!(
                "{odd} answers have names or contents that a bundle cannot carry; they were left out"
            ));
        }
        if many > 0 {
            notes
                .push(format!("{many} answers did not fit into a bundle and were left out, processes first"));
        }
        let mut room = Room::of(4);
        let all = self.redactions.iter();
        let redacted: Vec<_> = all.filter(|r| clean(&r.place) && room.takes(r)).cloned().collect();
        if redacted.len() < self.redactions.len() {
            notes.push(format!("{} more redactions are not listed", self.redactions.len() - redacted.len()));
        }
        let text = |text: &str| text.replace(char::is_control, " ");
        let (program, created) = (text(&self.program), text(&self.created));
        (Manifest { schema: SCHEMA.to_owned(), program, created, notes, redacted, answers }, files)
    }
}

/// What is left of the limits of the manifest.
struct Room {
    bytes: usize,
    values: usize,
    records: usize,
}

impl Room {
    /// The limits, divided.
    fn of(part: usize) -> Self {
        let bytes = usize::try_from(MANIFEST_BYTES).unwrap_or(usize::MAX) / part;
        Self { bytes, values: MANIFEST_VALUES / part, records: RECORDS }
    }

    /// Whether one more fits; then it is taken off.
    fn takes(&mut self, record: &impl serde::Serialize) -> bool {
        let Ok(json) = serde_json::to_vec(record) else { return false };
        let values = values(&json) + 1;
        if json.len() >= self.bytes || values > self.values || self.records == 0 {
            return false;
        }
        self.bytes -= json.len() + 1;
        self.values -= values;
        self.records -= 1;
        true
    }
}

fn is_process(path: &str) -> bool {
    path.strip_prefix("/proc/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn append(archive: &mut tar::Builder<impl Write>, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, name, bytes)
}

/// The file before it has its name.
enum Staged {
    /// It has none at all, so that even a kill leaves nothing.
    Nameless(File),
    /// The file system cannot do that: a temporary one, removed on error.
    Named(tempfile::NamedTempFile),
}

impl Staged {
    fn new(directory: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) if Path::new("/proc/self/fd").exists() => Ok(Self::Nameless(File::from(fd))),
            Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                Self::named(directory)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// O_EXCL and 0600 are tempfile's own.
    fn named(directory: &Path) -> io::Result<Self> {
        let file =
            tempfile::Builder::new().prefix(".vramwarden-").suffix(".partial").tempfile_in(directory)?;
        Ok(Self::Named(file))
    }

    fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    fn publish(self, directory: &Path, path: &Path, overwrite: bool) -> io::Result<()> {
        match self {
            Self::Named(file) if overwrite => file.persist(path).map(drop).map_err(|error| error.error),
            Self::Named(file) => file.persist_noclobber(path).map(drop).map_err(|error| error.error),
            Self::Nameless(file) => {
                use std::os::fd::AsRawFd;
                let nameless = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                let link = |to: &Path| rustix::fs::linkat(CWD, &nameless, CWD, to, AtFlags::SYMLINK_FOLLOW);
                if !overwrite {
                    return Ok(link(path)?);
                }
                // No call links over an existing name: a name of our own first, then the rename.
                let own = tempfile::Builder::new()
                    .prefix(".vramwarden-")
                    .make_in(directory, |own| Ok(link(own)?))?
                    .into_temp_path();
                fs::rename(&own, path)?;
                // It has moved; nothing is left to remove.
                own.keep().map(drop).map_err(|error| error.error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_kind_of_unfinished_file_is_published_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b");
        let names = || fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect::<Vec<_>>();
        for staged in [Staged::new, Staged::named] {
            drop(staged(dir.path()).unwrap());
            assert!(names().is_empty());
            staged(dir.path()).unwrap().publish(dir.path(), &path, false).unwrap();
            let taken = staged(dir.path()).unwrap().publish(dir.path(), &path, false).unwrap_err();
            assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
            staged(dir.path()).unwrap().publish(dir.path(), &path, true).unwrap();
            assert_eq!(names(), ["b"]);
            fs::remove_file(&path).unwrap();
        }
    }
}
