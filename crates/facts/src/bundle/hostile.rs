//! Bundles that somebody made to do harm.

use std::io::{self, Read, Write};

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use tar::EntryType;

use super::tests::{decompressed, encoded, small};
use super::*;

const MANIFEST: &[u8] = br#"{"schema": "vramwarden.bundle/1", "program": "x", "created": "y"}"#;

/// Members of an archive, written without any of the checks that a tar library makes.
struct Raw(Vec<u8>);

impl Raw {
    fn new() -> Self {
        Self(Vec::new()).member(b"manifest.json", EntryType::Regular, MANIFEST)
    }

    fn header(mut self, name: &[u8], kind: EntryType, size: u64) -> Self {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(size);
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self
    }

    fn member(self, name: &[u8], kind: EntryType, bytes: &[u8]) -> Self {
        let mut raw = self.header(name, kind, bytes.len() as u64);
        raw.0.extend_from_slice(bytes);
        raw.0.resize(raw.0.len().next_multiple_of(512), 0);
        raw
    }

    fn file(self, name: &str) -> Self {
        self.member(name.as_bytes(), EntryType::Regular, b"1\n")
    }

    fn gzip(&self, end: bool) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&self.0).unwrap();
        if end {
            gzip.write_all(&[0; 1024]).unwrap();
        }
        gzip.finish().unwrap()
    }

    fn refusal(&self) -> String {
        refusal(&self.gzip(true))
    }
}

fn refusal(bytes: &[u8]) -> String {
    let error = Bundle::decode(bytes, "b.tgz").expect_err("a hostile bundle was read").to_string();
    assert!(error.starts_with("b.tgz: ") && error.contains("; ") && error.len() < 600, "{error}");
    assert!(!error.chars().any(char::is_control), "{error:?}");
    error
}

#[test]
fn a_path_that_leads_outside_is_refused() {
    for name in [
        "/etc/passwd",
        "root/../../x",
        "..",
        "root//x",
        "root/./x",
        "root/",
        "./manifest.json",
        "root/x\x1b[2J",
        "logs/a/b\n",
    ] {
        let refused = Raw::new().file(name).refusal();
        assert!(refused.contains("no plain path below the bundle"), "{name:?}: {refused}");
    }
    let refused = Raw::new().member(b"root/\xff\xfe", EntryType::Regular, b"").refusal();
    assert!(refused.contains("no plain path"), "{refused}");
}

#[test]
fn what_is_no_file_is_refused() {
    for (kind, what) in [
        (EntryType::Symlink, "a symbolic link"),
        (EntryType::Link, "a hard link"),
        (EntryType::Char, "a device"),
        (EntryType::Block, "a device"),
        (EntryType::Fifo, "a pipe"),
        (EntryType::GNUSparse, "a sparse file"),
        (EntryType::GNULongLink, "something that is no file"),
        (EntryType::new(b'?'), "something that is no file"),
    ] {
        let refused = Raw::new().member(b"root/x", kind, b"").refusal();
        assert!(refused.contains(what), "{refused}");
    }
    // Directories say nothing; `tar` writes them.
    let raw = Raw::new().header(b"root/", EntryType::Directory, 0).file("root/x");
    assert_eq!(Bundle::decode(&*raw.gzip(true), "b").unwrap().tape.answers.len(), 1);
}

#[test]
fn the_same_name_twice_is_refused() {
    assert!(Raw::new().file("root/x").file("root/x").refusal().contains("there twice"));
    assert!(
        Raw::new().member(b"manifest.json", EntryType::Regular, MANIFEST).refusal().contains("there twice")
    );
    let twice = br#"{"schema": "vramwarden.bundle/1", "program": "x", "created": "y",
        "answers": [{"path": "/a", "refused": {"question": "read", "why": "absent"}}]}"#;
    let raw = Raw(Vec::new()).member(b"manifest.json", EntryType::Regular, twice).file("root/a");
    assert!(raw.refusal().contains("answered twice"));
}

#[test]
fn long_names_are_read_and_endless_ones_refused() {
    let long = format!("root/{}", "d/".repeat(200) + "x");
    let pax = |record: &str| {
        let mut n = record.len() + 3;
        while format!("{n} {record}\n").len() != n {
            n += 1;
        }
        format!("{n} {record}\n")
    };
    let path = pax(&format!("path={long}"));
    for raw in [
        Raw::new().member(b"@", EntryType::GNULongName, format!("{long}\0").as_bytes()).file("root/short"),
        Raw::new().member(b"@", EntryType::XHeader, path.as_bytes()).file("root/short"),
    ] {
        let read = Bundle::decode(&*raw.gzip(true), "b").unwrap();
        assert_eq!(read.tape.answers.keys().next().unwrap().0, long[4..]);
    }
    for size in [8192u64, 1 << 33] {
        for kind in [EntryType::GNULongName, EntryType::XHeader, EntryType::XGlobalHeader] {
            let refused = Raw::new().header(b"x", kind, size.max(20_000)).refusal();
            assert!(refused.contains("a name without end"), "{refused}");
        }
    }
    for record in ["size=9999999999", "linkpath=/etc/passwd", "GNU.sparse.major=1"] {
        let refused = Raw::new().member(b"x", EntryType::XHeader, pax(record).as_bytes()).refusal();
        assert!(refused.contains("pax header changes"), "{refused}");
    }
    let refused = Raw::new().member(b"x", EntryType::XHeader, b"garbage").refusal();
    assert!(refused.contains("malformed"), "{refused}");
    let outside = Raw::new().member(b"@", EntryType::GNULongName, b"../../etc/passwd\0").file("root/short");
    assert!(outside.refusal().contains("no plain path"));
}

/// An archive without end, made as it is read.
struct Endless {
    buffer: Vec<u8>,
    at: usize,
    next: Box<dyn FnMut() -> Vec<u8>>,
    produced: u64,
}

impl Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.buffer.len() {
            self.buffer = (self.next)();
            self.at = 0;
        }
        let n = buf.len().min(self.buffer.len() - self.at);
        buf[..n].copy_from_slice(&self.buffer[self.at..self.at + n]);
        self.at += n;
        self.produced += n as u64;
        assert!(self.produced < limits::STREAM_BYTES, "the reader goes on and on");
        Ok(n)
    }
}

fn endless(mut next: impl FnMut() -> Vec<u8> + 'static) -> String {
    let mut first = Some(Raw::new().0);
    let next = Box::new(move || first.take().unwrap_or_else(&mut next));
    let tar = Endless { buffer: Vec::new(), at: 0, next, produced: 0 };
    let gzip = flate2::read::GzEncoder::new(tar, Compression::fast());
    Bundle::decode(gzip, "b").unwrap_err().to_string()
}

#[test]
fn ten_million_members_are_refused_early() {
    let mut n = 0;
    let refused = endless(move || {
        n += 1;
        Raw(Vec::new()).header(format!("root/{n}").as_bytes(), EntryType::Regular, 0).0
    });
    assert!(refused.contains("more than 20000 files"), "{refused}");
    let refused = endless(|| Raw(Vec::new()).header(b"d/", EntryType::Directory, 0).0);
    assert!(refused.contains("more than 20000 files"), "{refused}");
    let refused = endless(|| Raw(Vec::new()).member(b"@", EntryType::GNULongName, &[b'x'; 4000]).0);
    assert!(refused.contains("more than 20000 files"), "{refused}");
}

#[test]
fn a_bomb_is_left_at_the_limit() {
    for (name, size, what) in [
        ("root/x", 1 << 40, "root/x is over the limit of 4 MiB"),
        ("logs/x", 1 << 40, "logs/ is over the limit of 256 MiB"),
        ("logs/x", u64::MAX >> 1, "logs/ is over the limit of 256 MiB"),
        ("facts.json", 5 << 20, "facts.json is over the limit of 4 MiB"),
        ("other", 2 << 20, "other is over the limit of 1 MiB"),
    ] {
        let refused = Raw::new().header(name.as_bytes(), EntryType::Regular, size).refusal();
        assert!(refused.contains(what), "{refused}");
    }
    let mut n = 0;
    let refused = endless(move || {
        n += 1;
        Raw(Vec::new()).member(format!("root/{n}").as_bytes(), EntryType::Regular, &vec![0; 4 << 20]).0
    });
    assert!(refused.contains("root/ is over the limit of 64 MiB"), "{refused}");
    let manifest = Raw(Vec::new()).header(b"manifest.json", EntryType::Regular, 1 << 30).refusal();
    assert!(manifest.contains("over the limit of 16 MiB"), "{manifest}");
    let mut raw = Raw::new();
    raw.0.resize(raw.0.len() + (4 << 20), 0);
    assert!(refusal(&raw.gzip(true)).contains("data follows the end"), "zeros after the end");
}

#[test]
fn what_is_no_bundle_says_so() {
    assert!(refusal(b"").contains("is not gzip"));
    assert!(refusal(b"PK\x03\x04 a zip").contains("is not gzip"));
    assert!(refusal(&[0; 4096]).contains("is not gzip"));
    assert!(refusal(&Raw(b"hello\n".to_vec()).gzip(false)).contains("is cut short"));
    assert!(refusal(&Raw(vec![b'x'; 4096]).gzip(false)).contains("is damaged"));
    assert!(refusal(&Raw(Vec::new()).gzip(false)).contains("is empty"));
    assert!(Raw(Vec::new()).refusal().contains("holds no manifest.json"));
    assert!(Raw(Vec::new()).file("root/x").refusal().contains("does not begin with manifest.json"));
    let missing = Bundle::read(std::path::Path::new("/none/b.tgz")).unwrap_err();
    assert_eq!(missing.fault, Fault::Environment);
    assert!(missing.to_string().contains("/none/b.tgz: cannot be read: No such file"), "{missing}");
    let directory = Bundle::read(std::path::Path::new("/")).unwrap_err();
    assert!(directory.to_string().contains("--root"), "{directory}");
}

#[test]
fn a_manifest_of_another_kind_is_refused() {
    let manifest =
        |json: &str| Raw(Vec::new()).member(b"manifest.json", EntryType::Regular, json.as_bytes()).refusal();
    let later = manifest(r#"{"schema": "vramwarden.bundle/2", "answers": 7}"#);
    assert!(later.ends_with("use the version that wrote it, or newer"), "{later}");
    assert!(manifest(r#"{"schema": "vramwarden.facts/1"}"#).contains("states \"vramwarden.facts/1\""));
    assert!(manifest("{}").contains("states no schema"));
    assert!(manifest("not json").contains("manifest.json: expected"));
    assert!(manifest("").contains("manifest.json: EOF"));
    assert!(manifest(&"[".repeat(1 << 20)).contains("manifest.json"));
    assert!(manifest(&"{\"a\":".repeat(100_000)).contains("manifest.json: EOF"));
    let with = |answers: &str| {
        manifest(&format!(
            r#"{{"schema": "vramwarden.bundle/1", "program": "", "created": "", "answers": [{answers}]}}"#
        ))
    };
    let many = vec![r#"{"path":"/"}"#; 1_200_000].join(",");
    assert!(with(&many).contains("more than 200000 records"), "{}", with(&many));
    let many = vec![r#"{"path":"/"}"#; 200_001].join(",");
    assert!(with(&many).contains("more than 200000 records"));
    let deep = format!(r#"{{"path": "/", "list": {}"#, "[".repeat(100_000));
    assert!(with(&deep).contains("manifest.json: "), "{}", with(&deep));
    for record in [
        r#"{"path":"/a"}"#,
        r#"{"path":"relative","link":"x"}"#,
        r#"{"path":"/a\u001b","link":"x"}"#,
        r#"{"path":"/a","link":"x","list":[]}"#,
        r#"{"path":"/a","list":["a\nb"]}"#,
    ] {
        assert!(with(record).contains("is malformed"), "{record}");
    }
}

#[test]
fn a_manifest_of_ten_million_records_is_refused_before_it_is_parsed() {
    let mut json = MANIFEST[..MANIFEST.len() - 1].to_vec();
    json.extend_from_slice(b",\"answers\":[");
    json.resize(json.len() + 10_000_000, b'1');
    for (n, byte) in json.iter_mut().rev().take(10_000_000).enumerate() {
        *byte = if n % 2 == 0 { b'1' } else { b',' };
    }
    json.extend_from_slice(b"]}");
    let refused = Raw(Vec::new()).member(b"manifest.json", EntryType::Regular, &json).refusal();
    assert!(refused.contains("more than 200000 records"), "{refused}");
}

#[test]
fn a_bundle_cut_anywhere_is_refused() {
    let bytes = encoded(&small());
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
    }
    let tar = decompressed(&bytes);
    for length in (0..tar.len() - 1024).step_by(256) {
        refusal(&Raw(tar[..length].to_vec()).gzip(false));
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        let _ = Bundle::decode(&*bytes, "b");
        let _ = Bundle::decode(&*Raw(bytes).gzip(true), "b");
    }

    #[test]
    fn no_changed_bytes_make_the_reader_panic(at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut tar = decompressed(&encoded(&small()));
        for (index, byte) in at {
            let length = tar.len();
            tar[index.index(length)] = byte;
        }
        let _ = Bundle::decode(&*Raw(tar).gzip(false), "b");
    }
}
