//! All signatures, ready to be looked for. One for the process; patterns are compiled when first needed.

use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};

use crate::prefilter::Prefilter;
use crate::signature::Signature;
use crate::signatures;

/// A pattern and its named groups.
struct Compiled {
    pattern: Regex,
    names: Vec<(usize, &'static str)>,
}

/// The signatures with their literals and patterns.
pub(crate) struct Engine {
    pub(crate) signatures: Vec<&'static Signature>,
    pub(crate) prefilter: Prefilter,
    compiled: Vec<OnceLock<Option<Compiled>>>,
}

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let signatures: Vec<&'static Signature> = signatures::all().collect();
    let literals =
        signatures.iter().enumerate().flat_map(|(n, s)| s.literals.iter().map(move |l| (n as u16, *l)));
    let prefilter = Prefilter::new(literals);
    let compiled = signatures.iter().map(|_| OnceLock::new()).collect();
    Engine { signatures, prefilter, compiled }
});

/// The engine of this process.
pub(crate) fn engine() -> &'static Engine {
    &ENGINE
}

/// Compiles the pattern of a signature: on bytes, ASCII classes, so that no text is invalid.
pub(crate) fn compile(signature: &Signature) -> Result<Regex, regex::Error> {
    RegexBuilder::new(signature.pattern).unicode(false).build()
}

impl Engine {
    fn compiled(&'static self, number: usize) -> Option<&'static Compiled> {
        let compiled = self.compiled[number].get_or_init(|| {
            let signature = self.signatures[number];
            let pattern = compile(signature).ok()?;
            let names = pattern
                .capture_names()
                .enumerate()
                .filter_map(|(i, name)| Some((i, group_name(signature.pattern, name?)?)))
                .collect();
            Some(Compiled { pattern, names })
        });
        compiled.as_ref()
    }

    /// The pattern of signature `number`; none if it does not compile, which a test rules out.
    pub(crate) fn pattern(&'static self, number: usize) -> Option<&'static Regex> {
        self.compiled(number).map(|c| &c.pattern)
    }

    /// The named groups of signature `number`, with their index.
    pub(crate) fn names(&'static self, number: usize) -> &'static [(usize, &'static str)] {
        self.compiled(number).map_or(&[], |c| c.names.as_slice())
    }
}

/// The name as part of the pattern's own text, which lives as long as the program.
fn group_name(pattern: &'static str, name: &str) -> Option<&'static str> {
    let at = pattern.find(&format!("(?P<{name}>"))? + 4;
    pattern.get(at..at + name.len())
}
