//! The manifest: everything of a bundle that is no file's content.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::limits::{MANIFEST_VALUES, RECORDS};
use super::names::{clean, is_question};
use crate::host::{Answer, Question, Refusal, Stat};
use crate::redact::Redaction;

/// The schema a bundle states.
pub const SCHEMA: &str = "vramwarden.bundle/1";

/// `manifest.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub schema: String,
    pub program: String,
    pub created: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default, deserialize_with = "bounded")]
    pub redacted: Vec<Redaction>,
    #[serde(default, deserialize_with = "bounded")]
    pub answers: Vec<Record>,
}

/// An answer that is no file of the archive. Exactly one of the optional fields is there.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Record {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    list: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stat: Option<Stat>,
    /// A file whose path no archive should hold, such as one with `..`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Refused>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Refused {
    question: Question,
    why: Refusal,
}

impl Record {
    /// The record of an answer; `None` when a manifest cannot hold it.
    pub(super) fn of(path: &str, question: Question, answer: &Result<Answer, Refusal>) -> Option<Self> {
        let mut record = Self { path: path.to_owned(), ..Self::default() };
        match (question, answer) {
            (_, Err(why)) => record.refused = Some(Refused { question, why: why.clone() }),
            (Question::List, Ok(Answer::Names(names))) => record.list = Some(names.clone()),
            (Question::Link, Ok(Answer::Target(target))) => record.link = Some(target.clone()),
            (Question::Stat, Ok(Answer::Stat(stat))) => record.stat = Some(*stat),
            (Question::Read, Ok(Answer::Bytes(bytes))) => {
                record.text = Some(std::str::from_utf8(bytes).ok()?.to_owned());
            }
            _ => return None,
        }
        record.is_clean().then_some(record)
    }

    fn is_clean(&self) -> bool {
        is_question(&self.path)
            && self.list.iter().flatten().all(|name| clean(name))
            && self.link.as_deref().is_none_or(clean)
            && !matches!(&self.refused, Some(Refused { why: Refusal::Failed(why), .. }) if !clean(why))
    }

    /// The question and its answer; `None` when the record is not one we write.
    pub(super) fn into_answer(self) -> Option<(String, Question, Result<Answer, Refusal>)> {
        if !self.is_clean() {
            return None;
        }
        let Self { path, list, link, stat, text, refused } = self;
        let mut answers = [
            list.map(|names| (Question::List, Ok(Answer::Names(names)))),
            link.map(|target| (Question::Link, Ok(Answer::Target(target)))),
            stat.map(|stat| (Question::Stat, Ok(Answer::Stat(stat)))),
            text.map(|text| (Question::Read, Ok(Answer::Bytes(text.into_bytes())))),
            refused.map(|Refused { question, why }| (question, Err(why))),
        ]
        .into_iter()
        .flatten();
        let (question, answer) = answers.next()?;
        answers.next().is_none().then_some((path, question, answer))
    }
}

/// Commas and brackets: no JSON text holds more values than it has of these, plus one.
pub(super) fn values(json: &[u8]) -> usize {
    json.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}

/// Why a manifest is refused.
pub(super) enum Bad {
    /// It is no JSON, or not of our shape.
    Shape(String),
    /// Another program's, or a later version's.
    Schema(String),
    /// More than [`MANIFEST_VALUES`].
    Large,
}

impl Manifest {
    /// Parses a manifest whose size is bounded already.
    pub(super) fn parse(json: &[u8]) -> Result<Self, Bad> {
        #[derive(Deserialize)]
        struct Head {
            schema: Option<String>,
        }
        if values(json) > MANIFEST_VALUES {
            return Err(Bad::Large);
        }
        // The schema first: a later version's other fields may have another shape.
        let shape = |error: serde_json::Error| Bad::Shape(error.to_string());
        let head: Head = serde_json::from_slice(json).map_err(shape)?;
        match head.schema {
            Some(schema) if schema == SCHEMA => {}
            Some(schema) => return Err(Bad::Schema(schema)),
            None => return Err(Bad::Shape("states no schema".to_owned())),
        }
        let manifest: Self = serde_json::from_slice(json).map_err(shape)?;
        let texts = manifest.notes.iter().chain([&manifest.program, &manifest.created]);
        if !texts.chain(manifest.redacted.iter().map(|r| &r.place)).all(|text| clean(text)) {
            return Err(Bad::Shape("a text holds control characters".to_owned()));
        }
        Ok(manifest)
    }
}

/// A sequence of at most [`RECORDS`].
fn bounded<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct Bounded<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Bounded<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {RECORDS}")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                if items.len() == RECORDS {
                    return Err(A::Error::custom(format!("more than {RECORDS} records")));
                }
                items.push(item);
            }
            Ok(items)
        }
    }
    deserializer.deserialize_seq(Bounded(PhantomData))
}
