//! What a scan brings back.

use std::ops::Range;
use std::sync::Arc;

use units::Bytes;

use crate::signature::Signature;

/// Where a line stands: the log's name as the user gave it, and its number from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The log's name (`run.log`, `-`, `kernel.log`).
    pub log: Arc<str>,
    /// Line number, from 1.
    pub number: u64,
}

/// A known line that was found.
#[derive(Clone, Debug)]
pub struct Hit {
    /// Which one.
    pub signature: &'static Signature,
    /// Where it stood first.
    pub line: Line,
    /// The line as text, without colour codes and control characters, cut to 400 characters around the match.
    pub text: String,
    /// The part of `text` that matched, in bytes.
    pub span: Range<usize>,
    /// The named groups that took part in the match, in the order of the pattern.
    pub fields: Vec<(&'static str, String)>,
    /// How many times the same line (signature and fields) came, at least 1.
    pub count: u64,
    /// Where it stood last.
    pub last: Line,
}

impl Hit {
    /// The text of field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    /// Field `name` as a whole number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// Field `name` as a decimal number.
    pub fn decimal(&self, name: &str) -> Option<f64> {
        self.field(name)?.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
    }

    /// Field `name` as a size with its unit in the text (`15.24 GiB`); bare numbers are bytes.
    pub fn size(&self, name: &str) -> Option<Bytes> {
        Bytes::parse(self.field(name)?)
    }

    /// Field `name`, a number of MiB with or without decimals.
    pub fn mib(&self, name: &str) -> Option<Bytes> {
        Bytes::parse(&format!("{} MiB", self.field(name)?))
    }
}

/// All that one log said.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Known lines, by where they stood first.
    pub hits: Vec<Hit>,
    /// Lines read.
    pub lines: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// What could not be read to its end, or was left out, one sentence each, for the user.
    pub notes: Vec<String>,
}
