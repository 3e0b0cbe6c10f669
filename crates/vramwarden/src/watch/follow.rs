//! Follows a log as `tail -F` does: over rotation and truncation, and before it exists.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use logs::{Hit, Scan, Scanner};
use rustix::fs::{Mode, OFlags};

use crate::Failure;

/// Read at one look, so that a log that is written faster than it is read holds up nothing.
const AT_ONCE: u64 = 16 << 20;

/// A line that has no end yet is waited for up to this length.
const OPEN_LINE: usize = 64 << 10;

/// Lines of a file larger than this are counted from where it was opened.
const COUNTED: u64 = 256 << 20;

/// A log that is followed.
pub struct Follower {
    path: PathBuf,
    open: Option<(File, Metadata)>,
    at: u64,
    /// Bytes of a line that has no end yet.
    partial: Vec<u8>,
    tail: Tail,
    lines: Lines,
    /// Why it cannot be read, told once.
    trouble: Option<String>,
}

impl Follower {
    /// Follows `path` from its end, or from its beginning once it exists.
    ///
    /// # Errors
    /// It is a directory.
    pub fn start(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        if path.is_dir() {
            return Err(Failure::Input(format!("{name}: a directory; name a file in it")));
        }
        let shown = path.file_name().map_or_else(|| name.to_string(), |f| f.to_string_lossy().into_owned());
        let mut follower = Self {
            path: path.to_owned(),
            open: None,
            at: 0,
            partial: Vec::new(),
            tail: Tail::default(),
            lines: Lines::new(&shown),
            trouble: None,
        };
        follower.open(true);
        Ok(follower)
    }

    /// Whether it is there and can be read.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Known lines that came since the last look; and a sentence where the log can no longer, or again, be read.
    pub fn look(&mut self) -> (Vec<Hit>, Option<String>) {
        let mut hits = Vec::new();
        self.read(&mut hits);
        let there = std::fs::metadata(&self.path).ok();
        let same = |(_, was): &(File, Metadata)| {
            there.as_ref().is_none_or(|is| (is.dev(), is.ino()) == (was.dev(), was.ino()))
        };
        let mut told = None;
        if !self.open.as_ref().is_some_and(same) && there.is_some() {
            // Rotated: the old one was read to its end above, the new one is read from its beginning.
            told = self.open(false);
            self.read(&mut hits);
        }
        (hits, told)
    }

    fn open(&mut self, at_end: bool) -> Option<String> {
        self.at = 0;
        self.partial.clear();
        self.tail = Tail::default();
        self.lines.number = 0;
        // Without NONBLOCK opening a FIFO would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.path, flags, Mode::empty()).map(File::from);
        let opened = opened.map_err(std::io::Error::from).and_then(|file| Ok((file.metadata()?, file)));
        let trouble = match opened {
            Ok((meta, mut file)) => {
                if at_end && meta.is_file() {
                    if meta.len() <= COUNTED {
                        self.lines.number = newlines(&mut file);
                    }
                    self.at = file.seek(SeekFrom::End(0)).unwrap_or(0);
                    self.tail = Tail::before(&file, self.at);
                }
                self.open = Some((file, meta));
                None
            }
            Err(error) => {
                self.open = None;
                (error.kind() != ErrorKind::NotFound).then(|| format!("{}: {error}", self.path.display()))
            }
        };
        let news = trouble.clone().filter(|_| trouble != self.trouble);
        self.trouble = trouble;
        news
    }

    fn read(&mut self, hits: &mut Vec<Hit>) {
        let Some((file, opened)) = &mut self.open else { return };
        let truncated =
            |meta: Metadata| meta.len() < self.at || meta.len() > self.at && !self.tail.is(file, self.at);
        if opened.is_file() && file.metadata().is_ok_and(truncated) {
            self.at = file.rewind().map_or(self.at, |()| 0);
            self.partial.clear();
            self.tail = Tail::default();
            self.lines.number = 0;
        }
        let mut buffer = vec![0; 64 << 10];
        let mut left = AT_ONCE;
        while left > 0 {
            let length = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            self.at += length as u64;
            left = left.saturating_sub(length as u64);
            self.tail.push(&buffer[..length]);
            self.partial.extend_from_slice(&buffer[..length]);
            let end = self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let end = if end == 0 && self.partial.len() > OPEN_LINE { self.partial.len() } else { end };
            self.lines.feed(&self.partial[..end]);
            self.partial.drain(..end);
        }
        self.lines.take(hits);
    }
}

/// The last bytes that were read. A file that was truncated and has grown past where we were is known by others there.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    const LENGTH: usize = 128;

    fn before(file: &File, at: u64) -> Self {
        let mut bytes = vec![0; Self::LENGTH.min(usize::try_from(at).unwrap_or(Self::LENGTH))];
        let from = at - bytes.len() as u64;
        match file.read_exact_at(&mut bytes, from) {
            Ok(()) => Self(bytes),
            Err(_) => Self::default(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(Self::LENGTH)..]);
        self.0.drain(..self.0.len().saturating_sub(Self::LENGTH));
    }

    fn is(&self, file: &File, at: u64) -> bool {
        let mut bytes = vec![0; self.0.len()];
        let before = at.saturating_sub(bytes.len() as u64);
        file.read_exact_at(&mut bytes, before).is_ok() && bytes == self.0
    }
}

fn newlines(file: &mut File) -> u64 {
    let mut buffer = vec![0; 64 << 10];
    let mut count = 0;
    while let Ok(length @ 1..) = file.read(&mut buffer) {
        count += buffer[..length].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
    count
}

/// Scans a log piece by piece; a scanner lives for one look only, so that nothing piles up over days.
struct Lines {
    name: String,
    /// Lines before the scanner's first.
    number: u64,
    scanner: Option<Scanner>,
}

impl Lines {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), number: 0, scanner: None }
    }

    fn feed(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.scanner.get_or_insert_with(|| Scanner::new(&self.name)).feed(bytes);
        }
    }

    fn take(&mut self, hits: &mut Vec<Hit>) {
        let Some(scanner) = self.scanner.take() else { return };
        let scan = scanner.finish();
        hits.extend(numbered(scan.hits, self.number));
        self.number += scan.lines;
    }
}

/// The hits of a piece, with line numbers that count what came before it.
pub fn numbered(mut hits: Vec<Hit>, before: u64) -> Vec<Hit> {
    for hit in &mut hits {
        hit.line.number += before;
        hit.last.number += before;
    }
    hits
}

/// The hits of one log that came lately, which are looked at together: an error may span several looks.
#[derive(Default)]
pub struct Recent {
    hits: VecDeque<(u64, Hit)>,
}

impl Recent {
    /// The most that is kept; older ones go first.
    const MOST: usize = 512;

    /// Takes hits that came at second `now`, and lets go of those older than `seconds`. Tells whether any changed.
    pub fn take(&mut self, hits: Vec<Hit>, now: u64, seconds: u64) -> bool {
        let before = self.hits.len();
        self.hits.retain(|(came, _)| now.saturating_sub(*came) <= seconds);
        let changed = before != self.hits.len() || !hits.is_empty();
        for hit in hits {
            let same = |(_, have): &&mut (u64, Hit)| {
                have.signature.id == hit.signature.id && have.fields == hit.fields
            };
            match self.hits.iter_mut().find(same) {
                Some((came, have)) => {
                    *came = now;
                    have.count += hit.count;
                    have.last = hit.last;
                }
                None => self.hits.push_back((now, hit)),
            }
        }
        while self.hits.len() > Self::MOST {
            self.hits.pop_front();
        }
        changed
    }

    /// They as a scan.
    pub fn scan(&self) -> Scan {
        let hits: Vec<Hit> = self.hits.iter().map(|(_, hit)| hit.clone()).collect();
        Scan { lines: hits.len() as u64, bytes: 0, notes: Vec::new(), hits }
    }
}
