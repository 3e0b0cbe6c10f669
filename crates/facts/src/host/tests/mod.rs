//! Hosts for tests: the recorded trees under `tests/hosts`, and hosts made of a few files.

mod cards;
mod fixtures;
mod hostile;
mod places;
mod processes;
mod system;

use std::path::Path;

use super::tape::{Answer, Question, Tape};
use super::{Host, Kind, Refusal, Stat, Tree};
use crate::facts::Facts;

/// All recorded hosts.
pub(super) const HOSTS: [&str; 9] = [
    "laptop-dgpu-asleep",
    "mi300x",
    "no-amd-gpu",
    "rx7900xtx-24g",
    "rx9070xt-16g",
    "strix-halo-512m-124g",
    "strix-halo-96g-carveout",
    "strix-halo-gttsize-only",
    "two-gpus",
];

pub(super) fn tree(name: &str) -> Tree {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hosts").join(name);
    Tree::under(&root).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn facts(name: &str) -> Facts {
    super::read(&tree(name))
}

/// A host of a few files.
#[derive(Clone, Default)]
pub(super) struct Fake {
    tape: Tape,
}

impl Fake {
    /// Files by path; their directories list them.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut fake = Self::default();
        for (path, text) in files {
            fake = fake.with(path, text);
        }
        fake
    }

    pub(super) fn with(mut self, path: &str, text: &str) -> Self {
        self.enter(path);
        self.answer(path, Question::Read, Ok(Answer::Bytes(text.as_bytes().to_vec())));
        let stat = Stat { kind: Kind::File, mode: 0o644, uid: 0, gid: 0, granted: None };
        self.answer(path, Question::Stat, Ok(Answer::Stat(stat)));
        self
    }

    pub(super) fn link(mut self, path: &str, target: &str) -> Self {
        self.enter(path);
        self.answer(path, Question::Link, Ok(Answer::Target(target.to_owned())));
        self
    }

    pub(super) fn node(mut self, path: &str, mode: u32, uid: u32, gid: u32, granted: Option<bool>) -> Self {
        self.enter(path);
        let stat = Stat { kind: Kind::CharDevice, mode, uid, gid, granted };
        self.answer(path, Question::Stat, Ok(Answer::Stat(stat)));
        self
    }

    /// The path is there and answers nothing.
    pub(super) fn deny(mut self, path: &str) -> Self {
        self.enter(path);
        for question in [Question::Read, Question::List, Question::Link, Question::Stat] {
            self.answer(path, question, Err(Refusal::Denied));
        }
        self
    }

    fn answer(&mut self, path: &str, question: Question, answer: Result<Answer, Refusal>) {
        self.tape.answers.insert((path.to_owned(), question), answer);
    }

    /// Names the path in its directory, and that in its own, up to the root.
    fn enter(&mut self, path: &str) {
        let Some((directory, name)) = path.rsplit_once('/') else { return };
        if !directory.is_empty() {
            self.enter(directory);
        }
        let directory = if directory.is_empty() { "/" } else { directory };
        let key = (directory.to_owned(), Question::List);
        let listed = self.tape.answers.entry(key).or_insert_with(|| Ok(Answer::Names(Vec::new())));
        if let Ok(Answer::Names(names)) = listed
            && !names.iter().any(|have| have == name)
        {
            names.push(name.to_owned());
            names.sort();
        }
    }
}

impl Host for Fake {
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        self.tape.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        self.tape.list(path)
    }

    fn link(&self, path: &str) -> Result<String, Refusal> {
        self.tape.link(path)
    }

    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        self.tape.stat(path)
    }
}
