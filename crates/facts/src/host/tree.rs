//! A host's files under a directory.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::{FILE_LIMIT, Host, Kind, Refusal, Stat};

/// Answers from the files under a directory. Links are resolved under it too, so a recorded tree cannot lead outside.
pub struct Tree {
    base: OwnedFd,
    live: bool,
}

/// Why a directory cannot serve as root.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}; --root takes a directory that holds the host's proc and sys")]
pub struct TreeError {
    path: PathBuf,
    why: String,
}

impl Tree {
    /// This machine.
    ///
    /// # Errors
    /// `/` cannot be opened.
    pub fn live() -> Result<Self, TreeError> {
        Self::open(Path::new("/"), true)
    }

    /// The tree under `root`.
    ///
    /// # Errors
    /// `root` is no directory, or cannot be opened.
    pub fn under(root: &Path) -> Result<Self, TreeError> {
        Self::open(root, false)
    }

    fn open(root: &Path, live: bool) -> Result<Self, TreeError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let base = rustix::fs::open(root, flags, Mode::empty())
            .map_err(|errno| TreeError { path: root.to_owned(), why: errno.to_string() })?;
        Ok(Self { base, live })
    }

    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = match path.trim_start_matches('/') {
            "" => ".",
            rest => rest,
        };
        let flags = flags | OFlags::CLOEXEC;
        if self.live {
            return rustix::fs::openat(&self.base, relative, flags, Mode::empty());
        }
        // IN_ROOT: an absolute or `..` link of a recorded tree stays inside it.
        rustix::fs::openat2(&self.base, relative, flags, Mode::empty(), ResolveFlags::IN_ROOT)
    }
}

fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::SRCH => Refusal::Absent,
        Errno::ACCESS | Errno::PERM => Refusal::Denied,
        other => Refusal::Failed(other.to_string()),
    }
}

impl Host for Tree {
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        // NONBLOCK and the look at the type: a FIFO in a recorded tree must not block the reader.
        let file = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).map_err(refusal)?;
        let stat = rustix::fs::fstat(&file).map_err(refusal)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Refusal::Failed("not a regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        std::fs::File::from(file).take(FILE_LIMIT + 1).read_to_end(&mut bytes).map_err(|error| {
            error
                .raw_os_error()
                .map_or_else(|| Refusal::Failed(error.to_string()), |n| refusal(Errno::from_raw_os_error(n)))
        })?;
        if bytes.len() as u64 > FILE_LIMIT {
            return Err(Refusal::Failed(format!("larger than {} MiB", FILE_LIMIT >> 20)));
        }
        Ok(bytes)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        let directory = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(refusal)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(directory).map_err(refusal)? {
            let entry = entry.map_err(refusal)?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.sort();
        Ok(names)
    }

    fn link(&self, path: &str) -> Result<String, Refusal> {
        let link = self.open_at(path, OFlags::PATH | OFlags::NOFOLLOW).map_err(refusal)?;
        let target = rustix::fs::readlinkat(&link, "", Vec::new()).map_err(refusal)?;
        Ok(target.to_string_lossy().into_owned())
    }

    fn links(&self, path: &str, prefix: &str) -> Result<Vec<(String, String)>, Refusal> {
        // Relative to the directory: a host has thousands of open files, and each path would be walked anew.
        let directory = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(refusal)?;
        let mut links = Vec::new();
        let mut target = Vec::new();
        for entry in rustix::fs::Dir::read_from(&directory).map_err(refusal)? {
            let entry = entry.map_err(refusal)?;
            let Ok(link) = rustix::fs::readlinkat(&directory, entry.file_name(), target) else {
                target = Vec::new();
                continue;
            };
            if link.as_bytes().starts_with(prefix.as_bytes())
                && let Ok(name) = entry.file_name().to_str()
            {
                links.push((name.to_owned(), link.to_string_lossy().into_owned()));
            }
            target = link.into_bytes();
        }
        links.sort();
        Ok(links)
    }

    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        let file = self.open_at(path, OFlags::PATH).map_err(refusal)?;
        let stat = rustix::fs::statat(&file, "", AtFlags::EMPTY_PATH).map_err(refusal)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::CharacterDevice => Kind::CharDevice,
            _ => Kind::Other,
        };
        let granted = (self.live && kind == Kind::CharDevice).then(|| {
            // access(2) looks at the node's bits and access list only: it does not open the device.
            let path = path.trim_start_matches('/');
            rustix::fs::accessat(&self.base, path, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS)
                .is_ok()
        });
        Ok(Stat { kind, mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid, granted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_recorded_tree_cannot_lead_outside_nor_block() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("sys")).unwrap();
        std::fs::write(dir.path().join("sys/a"), "1\n").unwrap();
        symlink("/sys/a", dir.path().join("absolute")).unwrap();
        symlink("../../../../../etc/passwd", dir.path().join("sys/up")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let tree = Tree::under(dir.path()).unwrap();
        assert_eq!(tree.text("/absolute").as_deref(), Ok("1"));
        assert_eq!(tree.read("/sys/up"), Err(Refusal::Absent));
        assert_eq!(tree.read("/pipe"), Err(Refusal::Failed("not a regular file".to_owned())));
        assert_eq!(tree.link("/absolute").as_deref(), Ok("/sys/a"));
        assert_eq!(tree.link("/sys/a").map_err(|_| ()), Err(()));
        assert_eq!(tree.list("/").unwrap(), ["absolute", "pipe", "sys"]);
        assert_eq!(tree.stat("/sys/a").unwrap().kind, Kind::File);
    }

    #[test]
    fn a_tape_answers_as_the_tree_did() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "x").unwrap();
        let tree = Tree::under(dir.path()).unwrap();
        let recorder = super::super::Recorder::new(&tree);
        let answers = (recorder.read("/a"), recorder.read("/b"), recorder.list("/"), recorder.stat("/a"));
        let tape = recorder.into_tape();
        assert_eq!(answers, (tape.read("/a"), tape.read("/b"), tape.list("/"), tape.stat("/a")));
        assert_eq!(tape.read("/never-asked"), Err(Refusal::Absent));
    }
}
