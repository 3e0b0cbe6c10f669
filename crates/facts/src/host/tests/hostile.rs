//! Whatever stands in a file, a link or a directory: no reader panics.

use std::cell::RefCell;

use proptest::prelude::*;

use super::super::tape::{Answer, Tape};
use super::super::{Host, Recorder, Refusal, Stat, hidden, read};
use super::{HOSTS, tree};

/// Answers one question, the `at`th of its run, with other bytes.
struct Altered<'a> {
    host: &'a dyn Host,
    at: usize,
    bytes: &'a [u8],
    asked: RefCell<usize>,
}

impl Altered<'_> {
    fn is_due(&self) -> bool {
        *self.asked.borrow_mut() += 1;
        *self.asked.borrow() == self.at + 1
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }
}

impl Host for Altered<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        if self.is_due() { Ok(self.bytes.to_vec()) } else { self.host.read(path) }
    }
    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        if self.is_due() {
            return Ok(self.text().split('\n').map(str::to_owned).collect());
        }
        self.host.list(path)
    }
    fn link(&self, path: &str) -> Result<String, Refusal> {
        if self.is_due() { Ok(self.text()) } else { self.host.link(path) }
    }
    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        if self.is_due() { Err(Refusal::Failed(self.text())) } else { self.host.stat(path) }
    }
}

fn must_not_panic(host: &dyn Host) {
    let facts = read(host);
    hidden(&facts);
    let sheet = crate::sheet::write(&facts);
    assert!(crate::sheet::read("written", &sheet).is_ok(), "{sheet}");
}

fn tapes() -> Vec<Tape> {
    let record = |name: &&str| {
        let tree = tree(name);
        let recorder = Recorder::new(&tree);
        read(&recorder);
        recorder.into_tape()
    };
    HOSTS.iter().map(record).collect()
}

/// Bytes that parsers trip over, and any others.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let number = "-?[0-9]{1,40}(\\.[0-9]{1,9})? ?(kB|KiB|MiB)?\n?";
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        number.prop_map(String::into_bytes),
        "([a-zé_-]{0,12}[:= \t]{1,2}-?[0-9x]{0,30}\n){0,20}".prop_map(String::into_bytes),
        "(0::|shm |options ttm |\"|'|\\$|/|\\.\\.|max|\0|\n| ){0,60}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_in_any_answer_are_survived(host in 0..HOSTS.len(), at in 0..400usize, bytes in bytes()) {
        thread_local!(static TAPES: Vec<Tape> = tapes());
        TAPES.with(|tapes| {
            must_not_panic(&Altered { host: &tapes[host], at, bytes: &bytes, asked: RefCell::default() });
        });
    }

    #[test]
    fn any_bytes_behind_a_true_beginning_are_survived(host in 0..HOSTS.len(), keep in 0..200usize, bytes in bytes()) {
        thread_local!(static TAPES: Vec<Tape> = tapes());
        let mut tape = TAPES.with(|tapes| tapes[host].clone());
        for answer in tape.answers.values_mut() {
            if let Ok(Answer::Bytes(have)) = answer {
                have.truncate(keep);
                have.extend(&bytes);
            }
        }
        must_not_panic(&tape);
    }
}

#[test]
fn the_longest_file_of_every_kind_is_survived() {
    let long = "9".repeat(1 << 17);
    for text in [&long, &"a=b\n".repeat(1 << 13), &"\0".repeat(1 << 13)] {
        let tree = tree("two-gpus");
        let recorder = Recorder::new(&tree);
        read(&recorder);
        let mut tape = recorder.into_tape();
        for ((path, _), answer) in &mut tape.answers {
            // The vendor decides whether there is a GPU to read at all.
            if let Ok(Answer::Bytes(have)) = answer
                && !path.ends_with("/vendor")
            {
                *have = text.as_bytes().to_vec();
            }
        }
        must_not_panic(&tape);
    }
}
