//! The few operations on files that a change is made of.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RawMode, ResolveFlags, Uid, XattrFlags,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The largest file that is changed.
const LIMIT: u64 = 1 << 20;

/// What the kernel calls sysfs (statfs(2)).
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// A file as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present {
    /// What it holds.
    pub content: String,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing, nor its directory.
    NoDirectory,
    /// Nothing.
    Absent,
    /// A regular file.
    File(Present),
}

/// An operation that failed.
#[derive(Debug)]
pub struct Fault {
    /// Where.
    pub path: String,
    /// Why.
    pub error: io::Error,
}

impl Fault {
    fn new(path: &str, error: impl Into<io::Error>) -> Self {
        Self { path: path.to_owned(), error: error.into() }
    }

    /// Whether the user may not.
    pub fn denied(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.error)
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        if fault.error.kind() == io::ErrorKind::InvalidData {
            return Self::Input(fault.to_string());
        }
        let mend = if fault.denied() { "; run it as root (sudo)" } else { "" };
        Self::Environment(format!("{fault}{mend}"))
    }
}

/// Files below a root, changed one operation at a time: an interruption falls between two of them. Paths are absolute,
/// as on the host.
pub trait Disk {
    /// What stands at `path`, which is no link.
    fn look(&self, path: &str) -> Result<Look, Fault>;
    /// The path that `path` leads to when its last part is a link.
    fn follow(&self, path: &str) -> Result<String, Fault>;
    /// Whether the file takes a value by being written to, and cannot be replaced.
    fn direct(&self, path: &str) -> bool;
    /// Makes a directory; one that is there is no error.
    fn make_directory(&mut self, path: &str, mode: u32) -> Result<(), Fault>;
    /// Writes the file that is to stand at `path` under its temporary name, and waits until it is on the disk.
    /// Without a mode and an owner the file at `path` lends its own.
    fn stage(&mut self, path: &str, content: &str, like: Option<&Present>) -> Result<(), Fault>;
    /// Gives the staged file its name.
    fn publish(&mut self, path: &str) -> Result<(), Fault>;
    /// Removes what was staged for `path`; nothing there is no error.
    fn unstage(&mut self, path: &str) -> Result<(), Fault>;
    /// Removes a file; nothing there is no error.
    fn remove(&mut self, path: &str) -> Result<(), Fault>;
    /// Removes a directory, unless something is in it.
    fn remove_directory(&mut self, path: &str) -> Result<(), Fault>;
    /// Waits until the names in the directory are on the disk.
    fn sync_directory(&mut self, path: &str) -> Result<(), Fault>;
    /// Writes a value to a file of sysfs.
    fn overwrite(&mut self, path: &str, content: &str) -> Result<(), Fault>;
}

/// Directory and name.
pub fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(split) => split,
        None => ("/", path),
    }
}

/// The name under which the file for `name` is written first. Neither modprobe nor a boot loader reads it.
pub fn temporary(name: &str) -> String {
    format!(".vramwarden.{name}.new")
}

/// The files of this machine, or below a directory that links cannot lead out of.
pub struct Root {
    base: OwnedFd,
    live: bool,
}

impl Root {
    /// `None`: this machine.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub fn open(root: Option<&Path>) -> Result<Self, Fault> {
        let path = root.unwrap_or(Path::new("/"));
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let base = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|errno| Fault::new(&path.to_string_lossy(), errno))?;
        Ok(Self { base, live: root.is_none() })
    }

    fn directory(&self, path: &str) -> Result<OwnedFd, Errno> {
        let relative = match path.trim_start_matches('/') {
            "" => ".",
            rest => rest,
        };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        if self.live {
            return rustix::fs::openat(&self.base, relative, flags, Mode::empty());
        }
        rustix::fs::openat2(&self.base, relative, flags, Mode::empty(), ResolveFlags::IN_ROOT)
    }

    /// Opens the directory of `path` and does something with it and the name.
    fn at<T>(&self, path: &str, act: impl FnOnce(&OwnedFd, &str) -> Result<T, Errno>) -> Result<T, Fault> {
        let (directory, name) = split(path);
        if matches!(name, "" | "." | "..") {
            return Err(Fault::new(path, Errno::ISDIR));
        }
        self.directory(directory).and_then(|fd| act(&fd, name)).map_err(|errno| Fault::new(path, errno))
    }

    /// Keeps other runs out until the lock is dropped. The file's directory is there.
    ///
    /// # Errors
    /// Another run has it (`WouldBlock`), or the file cannot be made.
    pub fn lock(&self, path: &str) -> Result<OwnedFd, Fault> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.at(path, |fd, name| {
            let lock = rustix::fs::openat(fd, name, flags, Mode::RUSR | Mode::WUSR)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(lock)
        })
    }
}

fn open_file(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    // NONBLOCK: a FIFO must not block the reader.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

/// Security labels and access lists, where the file system has them.
fn copy_attributes(from: impl AsFd, to: impl AsFd) {
    let mut names = vec![0u8; 4096];
    let Ok(size) = rustix::fs::flistxattr(&from, &mut names[..]) else { return };
    for name in names[..size].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0u8; 4096];
        if let Ok(size) = rustix::fs::fgetxattr(&from, name, &mut value[..]) {
            // What cannot be kept (another file system, no right to) does not stop the change.
            let _ = rustix::fs::fsetxattr(&to, name, &value[..size], XattrFlags::empty());
        }
    }
}

/// Nothing there is no error, not even where nothing may be removed.
fn unlink(directory: &OwnedFd, name: &str, flags: AtFlags) -> Result<(), Errno> {
    let Err(errno) = rustix::fs::unlinkat(directory, name, flags) else { return Ok(()) };
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        _ => Err(errno),
    }
}

impl Disk for Root {
    fn look(&self, path: &str) -> Result<Look, Fault> {
        let (directory, name) = split(path);
        let directory = match self.directory(directory) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(Look::NoDirectory),
            Err(errno) => return Err(Fault::new(path, errno)),
        };
        let odd = |what: &str| Fault::new(path, io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
        let file = match open_file(&directory, name) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Look::Absent),
            Err(Errno::LOOP) => return Err(odd("a link; put a regular file there")),
            Err(errno) => return Err(Fault::new(path, errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| Fault::new(path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(odd("no regular file; put one there"));
        }
        let mut bytes = Vec::new();
        File::from(file).take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| Fault::new(path, error))?;
        if bytes.len() as u64 > LIMIT {
            return Err(odd("larger than 1 MiB, so it is not what it should be; change it by hand"));
        }
        let content = String::from_utf8(bytes).map_err(|_| odd("not UTF-8 text; change it by hand"))?;
        Ok(Look::File(Present { content, mode: stat.st_mode & 0o7777, uid: stat.st_uid, gid: stat.st_gid }))
    }

    fn follow(&self, path: &str) -> Result<String, Fault> {
        let mut at = path.to_owned();
        for _ in 0..16 {
            let (directory, name) = split(&at);
            let target = match self.directory(directory) {
                Ok(fd) => rustix::fs::readlinkat(&fd, name, Vec::new()),
                Err(Errno::NOENT) => return Ok(at),
                Err(errno) => Err(errno),
            };
            let target = match target {
                // No link, or nothing there.
                Err(Errno::INVAL | Errno::NOENT) => return Ok(at),
                Err(errno) => return Err(Fault::new(path, errno)),
                Ok(target) => target.into_string().map_err(|_| Fault::new(path, Errno::INVAL))?,
            };
            at = if target.starts_with('/') { target } else { format!("{directory}/{target}") };
        }
        Err(Fault::new(path, Errno::LOOP))
    }

    fn direct(&self, path: &str) -> bool {
        let kind = self.at(path, |fd, _| rustix::fs::fstatfs(fd)).map(|stat| stat.f_type as u64);
        kind.is_ok_and(|kind| kind == SYSFS_MAGIC)
    }

    fn make_directory(&mut self, path: &str, mode: u32) -> Result<(), Fault> {
        self.at(path, |fd, name| match rustix::fs::mkdirat(fd, name, Mode::from_raw_mode(mode as RawMode)) {
            Err(Errno::EXIST) => Ok(()),
            done => done,
        })
    }

    fn stage(&mut self, path: &str, content: &str, like: Option<&Present>) -> Result<(), Fault> {
        let (directory, name) = split(path);
        let fault = |errno: Errno| Fault::new(path, errno);
        let directory = self.directory(directory).map_err(fault)?;
        let temporary = temporary(name);
        unlink(&directory, &temporary, AtFlags::empty()).map_err(fault)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&directory, &temporary, flags, Mode::RUSR | Mode::WUSR).map_err(fault)?;
        let made = rustix::fs::fstat(&fd).map_err(fault)?;
        let mut mode = 0o644;
        if let Some(like) = like {
            mode = like.mode;
            if (like.uid, like.gid) != (made.st_uid, made.st_gid) {
                let (uid, gid) = (Uid::from_raw(like.uid), Gid::from_raw(like.gid));
                rustix::fs::fchown(&fd, Some(uid), Some(gid)).map_err(fault)?;
            }
        }
        if let Ok(old) = open_file(&directory, name) {
            copy_attributes(&old, &fd);
        }
        // FAT, on which boot entries often lie, keeps no mode; it shows the same one for every file.
        match rustix::fs::fchmod(&fd, Mode::from_raw_mode(mode as RawMode)) {
            Err(Errno::PERM) if made.st_mode & 0o7777 == mode => {}
            done => done.map_err(fault)?,
        }
        let mut file = File::from(fd);
        file.write_all(content.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| Fault::new(path, error))
    }

    fn publish(&mut self, path: &str) -> Result<(), Fault> {
        self.at(path, |fd, name| rustix::fs::renameat(fd, temporary(name), fd, name))
    }

    fn unstage(&mut self, path: &str) -> Result<(), Fault> {
        match self.at(path, |fd, name| unlink(fd, &temporary(name), AtFlags::empty())) {
            Err(fault) if fault.error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn remove(&mut self, path: &str) -> Result<(), Fault> {
        match self.at(path, |fd, name| unlink(fd, name, AtFlags::empty())) {
            Err(fault) if fault.error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), Fault> {
        self.at(path, |fd, name| match unlink(fd, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            done => done,
        })
    }

    fn sync_directory(&mut self, path: &str) -> Result<(), Fault> {
        let directory = match self.directory(path) {
            Ok(directory) => directory,
            Err(errno) => return Err(Fault::new(path, errno)),
        };
        match rustix::fs::fsync(directory) {
            // Some file systems have no such thing.
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            done => done.map_err(|errno| Fault::new(path, errno)),
        }
    }

    fn overwrite(&mut self, path: &str, content: &str) -> Result<(), Fault> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = self.at(path, |fd, name| rustix::fs::openat(fd, name, flags, Mode::empty()))?;
        File::from(fd).write_all(content.as_bytes()).map_err(|error| Fault::new(path, error))
    }
}
