//! Why a bundle could not be read or written, in one line: what, where, and the mend.

use std::fmt;
use std::io;
use std::path::Path;

/// Whose fault it is. It decides the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The file given is not a bundle, or a bad one.
    Input,
    /// The machine failed us: a full disk, a missing permission.
    Environment,
}

/// One line: `FILE: what; how to mend`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleError {
    /// Whose fault it is.
    pub fault: Fault,
    place: String,
    what: String,
    mend: &'static str,
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.what, self.mend)
    }
}

impl std::error::Error for BundleError {}

impl BundleError {
    pub(super) fn input(place: &str, what: impl Into<String>, mend: &'static str) -> Self {
        Self { fault: Fault::Input, place: printable(place), what: what.into(), mend }
    }

    pub(super) fn environment(place: &str, what: impl Into<String>, mend: &'static str) -> Self {
        Self { fault: Fault::Environment, place: printable(place), what: what.into(), mend }
    }

    pub(super) fn reading(path: &Path, error: &io::Error) -> Self {
        let mend = match error.kind() {
            io::ErrorKind::NotFound => "give the path of a bundle that exists",
            io::ErrorKind::PermissionDenied => "make it readable for this user",
            io::ErrorKind::IsADirectory => "give the .tgz itself; a directory is read with --root",
            _ => "copy the bundle again and retry",
        };
        Self::environment(&path.to_string_lossy(), format!("cannot be read: {}", reason(error)), mend)
    }

    pub(super) fn writing(path: &Path, error: &io::Error) -> Self {
        let mend = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "nothing was left behind; make room or choose another place"
            }
            io::ErrorKind::NotFound => "create its directory or choose another place",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose a place this user can write to"
            }
            io::ErrorKind::AlreadyExists => "choose another name or allow overwriting",
            io::ErrorKind::FileTooLarge => {
                "nothing was left behind; pass shorter logs, or raise the file size limit"
            }
            _ => "nothing was left behind; choose another place",
        };
        Self::environment(&path.to_string_lossy(), format!("cannot be written: {}", reason(error)), mend)
    }
}

/// The reason without Rust's `(os error N)`.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Text from outside, as one line without control characters, and not endless.
pub(super) fn printable(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if line.len() > 200 {
            line.push('…');
            break;
        }
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}
