//! Reading a bundle that anybody may have made: as a stream, nothing extracted, refused at the first thing that is
//! not what we write.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::GzDecoder;
use tar::EntryType;

use super::error::printable;
use super::limits::{
    ENTRIES, FACTS_BYTES, LOG_BYTES, MANIFEST_BYTES, PATH_BYTES, RECORDS, ROOT_BYTES, SKIPPED_BYTES,
    STREAM_BYTES,
};
use super::manifest::{Bad, Manifest};
use super::names::{is_component, is_plain};
use super::{Bundle, BundleError, BundleLog};
use crate::host::{Answer, FILE_LIMIT, Question, Refusal};

const AGAIN: &str = "make it again with `vramwarden bundle FILE.tgz`";
const COPY: &str = "copy it again, or make it again with `vramwarden bundle FILE.tgz`";
const SHORTER: &str = "make it again with fewer or shorter logs";

impl Bundle {
    /// Reads a bundle from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no bundle that [`super::limits`] allow.
    pub fn read(path: &Path) -> Result<Self, BundleError> {
        let file = std::fs::File::open(path).map_err(|error| BundleError::reading(path, &error))?;
        if file.metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(BundleError::reading(path, &io::ErrorKind::IsADirectory.into()));
        }
        Self::decode(file, &path.to_string_lossy())
    }

    /// Reads a bundle from a stream; `place` names it in errors.
    ///
    /// # Errors
    /// As [`Bundle::read`].
    pub fn decode(input: impl Read, place: &str) -> Result<Self, BundleError> {
        let state = State::default();
        let source = Source { inner: input, state: &state };
        let stream =
            Stream { inner: GzDecoder::new(BufReader::new(source)), left: STREAM_BYTES, state: &state };
        let mut archive = tar::Archive::new(stream);
        let outcome = members(&mut archive, &state).and_then(|reading| {
            // The checksum stands after the archive's end.
            if !state.ended.get() {
                let rest = io::copy(&mut archive.into_inner().take(SKIPPED_BYTES + 1), &mut io::sink());
                if rest.map_err(|error| state.explain(&error))? > SKIPPED_BYTES {
                    return Err(bad("data follows the end of the archive", AGAIN));
                }
            }
            if reading.begun {
                Ok(reading.bundle)
            } else {
                Err(bad("holds no manifest.json, so it is no bundle", AGAIN))
            }
        });
        outcome.map_err(|trouble| match state.failed.take() {
            Some(error) => BundleError::reading(Path::new(place), &error),
            None => BundleError::input(place, trouble.0, trouble.1),
        })
    }
}

/// What is wrong, and the mend.
struct Trouble(String, &'static str);

fn bad(what: impl Into<String>, mend: &'static str) -> Trouble {
    Trouble(what.into(), mend)
}

/// What happened below the archive reader, whose errors do not tell.
#[derive(Default)]
struct State {
    /// The input itself failed.
    failed: RefCell<Option<io::Error>>,
    /// Nothing has been decompressed yet.
    begun: Cell<bool>,
    /// More was decompressed than a bundle may hold.
    over: Cell<bool>,
    /// The decompressed stream came to its end.
    ended: Cell<bool>,
}

impl State {
    fn explain(&self, error: &io::Error) -> Trouble {
        if self.over.get() {
            bad(format!("holds more than {} MiB", STREAM_BYTES >> 20), SHORTER)
        } else if !self.begun.get() {
            bad("is not gzip-compressed, so it is no bundle", "give a file that `vramwarden bundle` wrote")
        } else if self.ended.get() || error.kind() == io::ErrorKind::UnexpectedEof {
            bad("is cut short", COPY)
        } else {
            bad(format!("is damaged: {}", printable(&error.to_string())), COPY)
        }
    }
}

struct Source<'a, R> {
    inner: R,
    state: &'a State,
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buf).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let copy = error.raw_os_error().map_or_else(
                    || io::Error::new(error.kind(), error.to_string()),
                    io::Error::from_raw_os_error,
                );
                self.state.failed.replace(Some(copy));
            }
        })
    }
}

struct Stream<'a, R> {
    inner: R,
    left: u64,
    state: &'a State,
}

impl<R: Read> Read for Stream<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buf.is_empty() {
            self.state.over.set(true);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.inner.read(&mut buf[..room])?;
        self.left -= n as u64;
        self.state.begun.set(true);
        if n == 0 && !buf.is_empty() {
            self.state.ended.set(true);
        }
        Ok(n)
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reading {
    bundle: Bundle,
    begun: bool,
    root: u64,
    logs: u64,
    seen: HashSet<String>,
}

fn members<R: Read>(archive: &mut tar::Archive<Stream<'_, R>>, state: &State) -> Result<Reading, Trouble> {
    let mut reading = Reading::default();
    let mut long: Option<Vec<u8>> = None;
    let mut count = 0usize;
    // Raw: the crate's own handling of long names reads them whole, however long.
    for entry in archive.entries().map_err(|error| state.explain(&error))?.raw(true) {
        let mut entry = entry.map_err(|error| state.explain(&error))?;
        count += 1;
        if count > 2 * ENTRIES || reading.seen.len() > ENTRIES {
            return Err(bad(format!("holds more than {ENTRIES} files"), SHORTER));
        }
        let size = entry.size();
        let what = match entry.header().entry_type() {
            EntryType::Regular => None,
            EntryType::GNULongName if size <= PATH_BYTES as u64 + 1 => {
                let mut name = contents(&mut entry, size, state)?;
                while name.last() == Some(&0) {
                    name.pop();
                }
                long = Some(name);
                continue;
            }
            EntryType::XHeader if size <= 4 * PATH_BYTES as u64 => {
                if let Some(path) = pax_path(&contents(&mut entry, size, state)?)? {
                    long = Some(path);
                }
                continue;
            }
            EntryType::XGlobalHeader if size <= 4 * PATH_BYTES as u64 => continue,
            EntryType::Directory if size == 0 => {
                long = None;
                continue;
            }
            EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader => {
                Some("a name without end")
            }
            EntryType::Link => Some("a hard link"),
            EntryType::Symlink => Some("a symbolic link"),
            EntryType::Char | EntryType::Block => Some("a device"),
            EntryType::Fifo => Some("a pipe"),
            EntryType::GNUSparse => Some("a sparse file"),
            _ => Some("something that is no file"),
        };
        let name = long.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let shown = printable(&String::from_utf8_lossy(&name));
        if let Some(what) = what {
            return Err(bad(format!("member {shown:?} is {what}"), AGAIN));
        }
        let name = String::from_utf8(name)
            .ok()
            .filter(|name| is_plain(name))
            .ok_or_else(|| bad(format!("member {shown:?} is no plain path below the bundle"), AGAIN))?;
        if !reading.seen.insert(name.clone()) {
            return Err(bad(format!("member {shown:?} is there twice"), AGAIN));
        }
        reading.member(&name, &mut entry, size, state)?;
    }
    if state.ended.get() {
        let what = if count == 0 { "is empty" } else { "is cut short" };
        return Err(bad(what, COPY));
    }
    Ok(reading)
}

/// The path a pax header gives the next member; the keys that change what a member is are refused.
fn pax_path(header: &[u8]) -> Result<Option<Vec<u8>>, Trouble> {
    let mut path = None;
    for extension in tar::PaxExtensions::new(header) {
        let extension = extension.map_err(|_| bad("a pax header is malformed", AGAIN))?;
        match extension.key_bytes() {
            b"path" => path = Some(extension.value_bytes().to_vec()),
            key if key == b"size" || key == b"linkpath" || key.starts_with(b"GNU.sparse") => {
                return Err(bad("a pax header changes a member's size or kind", AGAIN));
            }
            _ => {}
        }
    }
    Ok(path)
}

/// A member's bytes. `size` has been checked against a limit.
fn contents(entry: &mut impl Read, size: u64, state: &State) -> Result<Vec<u8>, Trouble> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let n = entry.read_to_end(&mut bytes).map_err(|error| state.explain(&error))?;
    if n as u64 == size { Ok(bytes) } else { Err(bad("is cut short", COPY)) }
}

impl Reading {
    fn member(&mut self, name: &str, entry: &mut impl Read, size: u64, state: &State) -> Result<(), Trouble> {
        let over = |limit: u64| {
            bad(format!("{} is over the limit of {} MiB", printable(name), limit >> 20), SHORTER)
        };
        if name == "manifest.json" {
            if size > MANIFEST_BYTES {
                return Err(over(MANIFEST_BYTES));
            }
            return self.begin(manifest(contents(entry, size, state)?)?);
        }
        if !self.begun {
            return Err(bad("does not begin with manifest.json, so it is no bundle", AGAIN));
        }
        if let Some(path) = name.strip_prefix("root/") {
            if size > FILE_LIMIT {
                return Err(over(FILE_LIMIT));
            }
            self.root += size;
            if self.root > ROOT_BYTES {
                return Err(bad(format!("root/ is over the limit of {} MiB", ROOT_BYTES >> 20), AGAIN));
            }
            let bytes = contents(entry, size, state)?;
            self.answer(format!("/{path}"), Question::Read, Ok(Answer::Bytes(bytes)))?;
        } else if let Some(log) = name.strip_prefix("logs/").filter(|log| is_component(log)) {
            self.logs = self.logs.saturating_add(size);
            if self.logs > LOG_BYTES {
                return Err(bad(format!("logs/ is over the limit of {} MiB", LOG_BYTES >> 20), SHORTER));
            }
            let bytes = contents(entry, size, state)?;
            self.bundle.logs.push(BundleLog { name: log.to_owned(), bytes });
        } else if name == "facts.json" {
            if size > FACTS_BYTES {
                return Err(over(FACTS_BYTES));
            }
            let text = String::from_utf8(contents(entry, size, state)?);
            self.bundle.facts_json = Some(text.map_err(|_| bad("facts.json is not UTF-8", AGAIN))?);
        } else if size > SKIPPED_BYTES {
            // A later bundle/1 may hold more; what is unknown is passed over, but not for long.
            return Err(over(SKIPPED_BYTES));
        }
        Ok(())
    }

    /// What the manifest says, at once: its own form takes more memory than the tape.
    fn begin(&mut self, manifest: Manifest) -> Result<(), Trouble> {
        for record in manifest.answers {
            let shown = printable(&record.path);
            let Some((path, question, answer)) = record.into_answer() else {
                return Err(bad(format!("manifest.json: the record of {shown:?} is malformed"), AGAIN));
            };
            self.answer(path, question, answer)?;
        }
        self.bundle.program = manifest.program;
        self.bundle.created = manifest.created;
        self.bundle.redactions = manifest.redacted;
        self.bundle.notes = manifest.notes;
        self.begun = true;
        Ok(())
    }

    fn answer(
        &mut self,
        path: String,
        question: Question,
        answer: Result<Answer, Refusal>,
    ) -> Result<(), Trouble> {
        let shown = printable(&path);
        match self.bundle.tape.answers.insert((path, question), answer) {
            None => Ok(()),
            Some(_) => Err(bad(format!("{shown:?} is answered twice"), AGAIN)),
        }
    }
}

fn manifest(json: Vec<u8>) -> Result<Manifest, Trouble> {
    Manifest::parse(&json).map_err(|why| match why {
        Bad::Shape(what) => bad(format!("manifest.json: {}", printable(&what)), AGAIN),
        Bad::Large => bad(format!("manifest.json holds more than {RECORDS} records"), AGAIN),
        Bad::Schema(schema) if schema.starts_with("vramwarden.bundle/") => bad(
            format!("is a {} and this program reads {}", printable(&schema), super::SCHEMA),
            "use the version that wrote it, or newer",
        ),
        Bad::Schema(schema) => bad(
            format!("manifest.json states {:?}, not {}", printable(&schema), super::SCHEMA),
            "give a file that `vramwarden bundle` wrote",
        ),
    })
}
