//! The host's readers: a recorded host with some answers replaced by any bytes. Nothing panics, and the tape of what
//! was asked gives the same facts again.
#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use facts::host::{self, Answer, Recorder, Tape, Tree};
use libfuzzer_sys::fuzz_target;

/// What every recorded host answers, by name.
fn hosts() -> &'static [Tape] {
    static HOSTS: OnceLock<Vec<Tape>> = OnceLock::new();
    HOSTS.get_or_init(|| {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/hosts");
        let entries = std::fs::read_dir(&directory).expect("the recorded hosts ship with the project");
        let mut roots: Vec<_> =
            entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        roots.sort();
        let record = |root: &std::path::PathBuf| {
            let tree = Tree::under(root).expect("a recorded host");
            let recorder = Recorder::new(&tree);
            _ = host::read(&recorder);
            recorder.into_tape()
        };
        roots.iter().map(record).collect()
    })
}

fuzz_target!(|input: (u8, Vec<(u16, Vec<u8>)>)| {
    let (which, replacements) = input;
    let mut tape = hosts()[usize::from(which) % hosts().len()].clone();
    let keys: Vec<_> = tape.answers.keys().cloned().collect();
    for (at, bytes) in replacements {
        let answer = tape.answers.get_mut(&keys[usize::from(at) % keys.len()]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        match answer {
            Some(Ok(Answer::Bytes(old))) => *old = bytes,
            Some(Ok(Answer::Names(old))) => {
                // Names are one path component each, in order, as every host gives them.
                *old = text
                    .split('\n')
                    .filter(|n| !n.is_empty() && !n.contains('/'))
                    .map(str::to_owned)
                    .collect();
                old.sort();
            }
            Some(Ok(Answer::Target(old))) => *old = text,
            Some(Ok(Answer::Stat(old))) => {
                old.mode = bytes.iter().fold(0, |mode, b| mode << 3 | u32::from(b & 7))
            }
            Some(answer @ Err(_)) => *answer = Ok(Answer::Bytes(bytes)),
            None => {}
        }
    }
    let recorder = Recorder::new(&tape);
    let facts = host::read(&recorder);
    let again = host::read(&recorder.into_tape());
    assert_eq!(facts, again, "the tape answers as the host did");
    _ = facts::pool::pools(&facts);
    _ = facts::host::hidden(&facts);
    _ = facts::sheet::write(&facts);
});
