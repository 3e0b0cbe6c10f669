//! A record of what a host answered, and a host that answers from it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Host, Refusal, Stat};

/// What can be asked about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// [`Host::read`].
    Read,
    /// [`Host::list`].
    List,
    /// [`Host::link`].
    Link,
    /// [`Host::stat`].
    Stat,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A file's bytes.
    Bytes(Vec<u8>),
    /// A directory's names.
    Names(Vec<String>),
    /// A link's target.
    Target(String),
    /// Owner and bits.
    Stat(Stat),
}

/// Questions and answers, by path. What was never asked is [`Refusal::Absent`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    /// Every answer, by path and question.
    pub answers: BTreeMap<(String, Question), Result<Answer, Refusal>>,
}

impl Tape {
    fn answer(&self, path: &str, question: Question) -> Result<&Answer, Refusal> {
        match self.answers.get(&(path.to_owned(), question)) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(refusal)) => Err(refusal.clone()),
            None => Err(Refusal::Absent),
        }
    }
}

impl Host for Tape {
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        match self.answer(path, Question::Read)? {
            Answer::Bytes(bytes) => Ok(bytes.clone()),
            _ => Err(Refusal::Absent),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        match self.answer(path, Question::List)? {
            Answer::Names(names) => Ok(names.clone()),
            _ => Err(Refusal::Absent),
        }
    }

    fn link(&self, path: &str) -> Result<String, Refusal> {
        match self.answer(path, Question::Link)? {
            Answer::Target(target) => Ok(target.clone()),
            _ => Err(Refusal::Absent),
        }
    }

    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        match self.answer(path, Question::Stat)? {
            Answer::Stat(stat) => Ok(*stat),
            _ => Err(Refusal::Absent),
        }
    }
}

/// Asks another host and notes every answer.
pub struct Recorder<'a> {
    host: &'a dyn Host,
    tape: RefCell<Tape>,
}

impl<'a> Recorder<'a> {
    /// Records what `host` answers.
    pub fn new(host: &'a dyn Host) -> Self {
        Self { host, tape: RefCell::default() }
    }

    /// The record.
    pub fn into_tape(self) -> Tape {
        self.tape.into_inner()
    }

    fn note<T>(
        &self,
        path: &str,
        question: Question,
        answer: Result<T, Refusal>,
        wrap: impl Fn(T) -> Answer,
    ) -> Result<T, Refusal>
    where
        T: Clone,
    {
        let noted = answer.clone().map(wrap);
        self.tape.borrow_mut().answers.insert((path.to_owned(), question), noted);
        answer
    }
}

impl Host for Recorder<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        self.note(path, Question::Read, self.host.read(path), Answer::Bytes)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        self.note(path, Question::List, self.host.list(path), Answer::Names)
    }

    fn link(&self, path: &str) -> Result<String, Refusal> {
        self.note(path, Question::Link, self.host.link(path), Answer::Target)
    }

    fn links(&self, path: &str, prefix: &str) -> Result<Vec<(String, String)>, Refusal> {
        let links = self.host.links(path, prefix);
        let names = links.as_ref().map(|links| links.iter().map(|(name, _)| name.clone()).collect());
        _ = self.note(path, Question::List, names.map_err(Clone::clone), Answer::Names);
        for (name, target) in links.iter().flatten() {
            _ = self.note(&format!("{path}/{name}"), Question::Link, Ok(target.clone()), Answer::Target);
        }
        links
    }

    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        self.note(path, Question::Stat, self.host.stat(path), Answer::Stat)
    }
}
