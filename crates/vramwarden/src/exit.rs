//! Exit statuses, as the contract has them.

use std::fmt;
use std::process::ExitCode;

use facts::bundle::{BundleError, Fault};

use crate::render::harmless;

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing wrong, or stopped as asked: 0.
    Fine,
    /// A finding of severity error, or it does not fit: 1.
    Found,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Fine => Self::SUCCESS,
            Exit::Found => Self::from(1),
        }
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// Bad usage or bad input: 2.
    Input(String),
    /// The environment failed us: 3.
    Environment(String),
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Environment(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    /// One line, whatever the text it was made of.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Input(text) | Self::Environment(text)) = self;
        f.write_str(&without_number(&harmless::text(text)))
    }
}

/// The text without Rust's ` (os error N)`, which tells nobody anything.
fn without_number(text: &str) -> String {
    let Some((before, after)) = text.split_once(" (os error ") else { return text.to_owned() };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix(')').map_or_else(|| text.to_owned(), |rest| format!("{before}{rest}"))
}

impl std::error::Error for Failure {}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        match error.fault {
            Fault::Input => Self::Input(error.to_string()),
            Fault::Environment => Self::Environment(error.to_string()),
        }
    }
}
