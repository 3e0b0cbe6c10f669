//! A value with the place it came from, or the reason it is missing.

use std::fmt;
use std::sync::Arc;

/// Who stated a value. The order is the precedence: what stands first wins when two disagree.
///
/// A sheet is what somebody says on purpose, so it overrides the host's files ("what if the page limit were…"); the
/// host's files are read now, while a log may be from another boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A `vramwarden.facts/1` sheet.
    Sheet,
    /// A file of the host: live, under a root, or out of a bundle.
    Host,
    /// A line of a log.
    Log,
}

/// The place a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Who stated it.
    pub origin: Origin,
    /// File path as on the host, `facts:path.of.field`, or `log:line`.
    pub place: Arc<str>,
    /// What stood there, shortened for people. May be empty.
    pub text: Arc<str>,
}

impl Source {
    /// A source; `text` is what stood there, `place` where.
    pub fn new(origin: Origin, place: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { origin, place: place.into(), text: text.into() }
    }
}

/// Why a value is missing. Unknown is never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Nobody said anything about it.
    #[default]
    NotStated,
    /// The file does not exist.
    Absent(Arc<str>),
    /// The file may not be read by this user.
    Denied(Arc<str>),
    /// The device sleeps and reading this file would wake it.
    Asleep(Arc<str>),
    /// The file could not be read, or says something else than expected: path, and what was found.
    Unreadable(Arc<str>, Arc<str>),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStated => f.write_str("not stated"),
            Self::Absent(path) => write!(f, "{path} does not exist"),
            Self::Denied(path) => write!(f, "{path} may not be read by this user"),
            Self::Asleep(path) => write!(f, "{path} was not read: the GPU sleeps and reading would wake it"),
            Self::Unreadable(path, why) => write!(f, "{path}: {why}"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub source: Source,
}

/// A value with its source, or the reason it is missing.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading<T> {
    /// The value is known.
    Known(Known<T>),
    /// It is not, and why.
    Missing(Missing),
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::Missing(Missing::NotStated)
    }
}

impl<T> Reading<T> {
    /// A known value.
    pub fn known(value: T, source: Source) -> Self {
        Self::Known(Known { value, source })
    }

    /// The value, if known.
    pub fn value(&self) -> Option<&T> {
        self.as_known().map(|known| &known.value)
    }

    /// The value with its source, if known.
    pub fn as_known(&self) -> Option<&Known<T>> {
        match self {
            Self::Known(known) => Some(known),
            Self::Missing(_) => None,
        }
    }

    /// Where the value came from, if known.
    pub fn source(&self) -> Option<&Source> {
        self.as_known().map(|known| &known.source)
    }

    /// The value by copy, if known.
    pub fn get(&self) -> Option<T>
    where
        T: Copy,
    {
        self.value().copied()
    }

    /// Whether the value is known.
    pub fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }
}

impl Reading<String> {
    /// The text, if known.
    pub fn text(&self) -> Option<&str> {
        self.value().map(String::as_str)
    }
}
