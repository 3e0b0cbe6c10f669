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

/// Asks another host and notes every answer, but for the files that processes have open: which they are is nobody's
/// business unless they are devices, and a link that is not on the tape reads as absent, which is as good.
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
        let target = self.host.link(path);
        let open_file = path.starts_with("/proc/") && path.contains("/fd/");
        if open_file && !target.as_ref().is_ok_and(|target| target.starts_with("/dev/dri/")) {
            return target;
        }
        self.note(path, Question::Link, target, Answer::Target)
    }

    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        self.note(path, Question::Stat, self.host.stat(path), Answer::Stat)
    }
}
