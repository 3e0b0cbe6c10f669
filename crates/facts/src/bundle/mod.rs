//! A host in one file: what was read of it, with logs, in a `.tgz` that people can look into with `tar`.
//!
//! ```text
//! manifest.json     first: schema, program, time, every answer that is no file's content, what was redacted
//! root/proc/meminfo …one member for each file that was read
//! logs/kernel.log   …one for each log
//! facts.json        vramwarden.facts/1
//! ```
//!
//! A bundle's tape is a [`crate::host::Host`], so the readers that made the facts make the same facts from it. Reading
//! one extracts nothing, and refuses what is larger or stranger than [`limits`] allow.

mod error;
pub mod limits;
mod manifest;
mod names;
mod read;
mod redacted;
mod write;

pub use error::{BundleError, Fault};
pub use manifest::SCHEMA;

use crate::host::Tape;
use crate::redact::Redaction;

/// A log that travels with the host's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleLog {
    /// Its name in the bundle, one path component.
    pub name: String,
    /// Its text.
    pub bytes: Vec<u8>,
}

/// What a bundle holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// The program that wrote it, with its version.
    pub program: String,
    /// When, RFC 3339.
    pub created: String,
    /// What the host answered.
    pub tape: Tape,
    /// Logs, in the order given.
    pub logs: Vec<BundleLog>,
    /// `vramwarden.facts/1`, whole. For people and other programs; our own readers derive it from the tape again.
    pub facts_json: Option<String>,
    /// What was redacted: where, what kind, how often. Never the value.
    pub redactions: Vec<Redaction>,
    /// What else a reader of the bundle should know, such as what did not fit.
    pub notes: Vec<String>,
}

impl Bundle {
    /// Adds a log under a name that a bundle can carry: the last component of `name`, made unique.
    pub fn add_log(&mut self, name: &str, bytes: Vec<u8>) {
        let wanted = names::log_name(name);
        let mut name = wanted.clone();
        let mut n = 1;
        while self.logs.iter().any(|log| log.name == name) {
            n += 1;
            name = format!("{n}-{wanted}");
        }
        self.logs.push(BundleLog { name, bytes });
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod whole;
