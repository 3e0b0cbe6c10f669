//! Text in, known lines out, in bounded memory and at any split of the input.
//!
//! A line is searched whole up to [`LINE`] bytes. A longer one is searched in cells: a literal in a cell makes the
//! cell and its surroundings be searched once. Line breaks are `\n` and `\r` (progress bars); only `\n` counts lines.

use std::sync::Arc;

use memchr::{memchr, memchr_iter, memchr2, memrchr2};
use regex::bytes::CaptureLocations;

use crate::clean::Cleaner;
use crate::engine::{Engine, engine};
use crate::excerpt::excerpt;
use crate::hit::{Hit, Line, Scan};
use crate::prefilter::Candidate;
use crate::signature::Role;

/// Input is worked on in blocks of this size, which stay in the cache.
const BLOCK: usize = 64 << 10;
/// A line up to this length is searched whole.
const LINE: usize = 4096;
/// A longer line is searched in cells of this size, with so much before and after.
const CELL: usize = 2048;
const BEFORE: usize = 1024;
const AFTER: usize = 3072;
/// Matches of one signature in one search.
const MATCHES: usize = 64;
/// A fact's lines are kept one by one, up to so many; they have an order (agents, heaps, boots).
const FACTS: usize = 256;
/// Of all other lines only different ones are kept, up to so many.
const DISTINCT: usize = 64;
/// A field is cut to so many bytes: the longest kernel command line.
const FIELD: usize = 4096;
/// NUL bytes in the first bytes of a log make it a binary one.
const SNIFF: u64 = 8192;

/// What is remembered of one signature during a scan.
#[derive(Clone, Default)]
struct Seen {
    /// Up to where it was searched, and where its last match ended, as offsets in the text.
    searched: u64,
    matched: u64,
    /// Its hits, as indices.
    hits: Vec<usize>,
    /// How many more were not kept.
    dropped: u64,
}

/// A scan under way.
pub struct Scanner {
    engine: &'static Engine,
    name: Arc<str>,
    cleaner: Cleaner,
    /// Text not yet done with, and the offset of its first byte.
    text: Vec<u8>,
    base: u64,
    /// Up to where literals were looked for, as an index.
    done: usize,
    /// Offset of the start of the line that `text[0]` is in.
    line_start: u64,
    /// Number of the line at index `counted`.
    line: u64,
    counted: usize,
    candidates: Vec<Candidate>,
    locations: Vec<Option<CaptureLocations>>,
    seen: Vec<Seen>,
    /// Hits with the offset of their match.
    hits: Vec<(u64, Hit)>,
    bytes: u64,
    newlines: u64,
    last_byte: Option<u8>,
    start: Vec<u8>,
    notes: Vec<String>,
}

impl Scanner {
    /// A scan of the log that the user knows as `name`.
    pub fn new(name: &str) -> Self {
        let engine = engine();
        let count = engine.signatures.len();
        Self {
            engine,
            name: name.into(),
            cleaner: Cleaner::default(),
            text: Vec::new(),
            base: 0,
            done: 0,
            line_start: 0,
            line: 1,
            counted: 0,
            candidates: Vec::new(),
            locations: vec![None; count],
            seen: vec![Seen::default(); count],
            hits: Vec::new(),
            bytes: 0,
            newlines: 0,
            last_byte: None,
            start: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The next bytes of the log, any number.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.bytes < SNIFF {
            let room = (SNIFF - self.bytes) as usize;
            self.start.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.bytes += bytes.len() as u64;
        self.last_byte = bytes.last().copied().or(self.last_byte);
        for block in bytes.chunks(BLOCK) {
            self.newlines += memchr_iter(b'\n', block).count() as u64;
            self.cleaner.push(block, &mut self.text);
            self.advance(false);
        }
    }

    /// Bytes of text kept for later.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.text.capacity()
    }

    /// A sentence for the user about this log.
    pub(crate) fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The end of the log.
    pub fn finish(mut self) -> Scan {
        self.advance(true);
        let utf16 = self.start.starts_with(&[0xff, 0xfe]) || self.start.starts_with(&[0xfe, 0xff]);
        if !utf16 && memchr(0, &self.start).is_some() {
            self.note(format!(
                "{}: this looks like a binary file; its text was read all the same",
                self.name
            ));
        }
        for (signature, seen) in self.engine.signatures.iter().zip(&self.seen) {
            if seen.dropped > 0 {
                self.notes.push(format!(
                    "{}: of the lines known as {} only the first {} are kept",
                    self.name,
                    signature.id,
                    seen.hits.len()
                ));
            }
        }
        self.hits.sort_by_key(|(at, _)| *at);
        let open = self.last_byte.is_some_and(|b| b != b'\n');
        Scan {
            hits: self.hits.into_iter().map(|(_, hit)| hit).collect(),
            lines: self.newlines + u64::from(open),
            bytes: self.bytes,
            notes: self.notes,
        }
    }

    /// Looks at all text that can be decided now, and lets go of it.
    fn advance(&mut self, last: bool) {
        let (len, longest) = (self.text.len(), self.engine.prefilter.longest());
        let ended = memrchr2(b'\n', b'\r', &self.text[self.done..]).map_or(self.done, |i| self.done + i + 1);
        let slack = CELL + AFTER + longest;
        let whole = last || len - ended <= LINE + slack;
        let limit = match (last, whole) {
            (true, _) => len,
            (false, true) => ended,
            (false, false) => len - slack,
        };
        if limit > self.done {
            let mut candidates = std::mem::take(&mut self.candidates);
            candidates.clear();
            self.engine.prefilter.find(&self.text, self.done, limit, &mut candidates);
            for candidate in &candidates {
                self.look(*candidate);
            }
            self.candidates = candidates;
            self.done = limit;
        }
        // In the middle of a line, what a cell may look back at stays.
        let broken = self.done > 0 && !matches!(self.text[self.done - 1], b'\n' | b'\r');
        self.let_go(if broken { self.done.saturating_sub(BEFORE + CELL) } else { self.done });
    }

    /// Drops the text before index `keep`.
    fn let_go(&mut self, keep: usize) {
        if keep == 0 {
            return;
        }
        self.count_to(keep);
        if let Some(i) = memrchr2(b'\n', b'\r', &self.text[..keep]) {
            self.line_start = self.base + i as u64 + 1;
        }
        self.text.drain(..keep);
        self.base += keep as u64;
        self.done -= keep;
        self.counted -= keep;
    }

    /// Brings the line number up to index `to`.
    fn count_to(&mut self, to: usize) {
        if to > self.counted {
            self.line += memchr_iter(b'\n', &self.text[self.counted..to]).count() as u64;
            self.counted = to;
        }
    }

    /// Searches the line around a literal for its signature.
    fn look(&mut self, candidate: Candidate) {
        let number = usize::from(candidate.signature);
        let signature = self.engine.signatures[number];
        let at = candidate.at;
        if signature.role == Role::Fact && self.seen[number].hits.len() >= FACTS {
            if self.base + at as u64 >= self.seen[number].searched {
                self.seen[number].dropped += 1;
            }
            return;
        }
        let start = memrchr2(b'\n', b'\r', &self.text[..at]).map(|i| i + 1);
        let end = memchr2(b'\n', b'\r', &self.text[at..]).map_or(self.text.len(), |i| at + i);
        let line_start = start.map_or(self.line_start, |i| self.base + i as u64);
        let (mut low, mut high) = (start.unwrap_or(0), end);
        if self.base + end as u64 - line_start > LINE as u64 {
            let cell = line_start + (self.base + at as u64 - line_start) / CELL as u64 * CELL as u64;
            low = low.max((cell.saturating_sub(self.base) as usize).saturating_sub(BEFORE));
            high = high.min(cell.saturating_sub(self.base) as usize + CELL + AFTER);
        }
        if self.base + high as u64 <= self.seen[number].searched {
            return;
        }
        self.seen[number].searched = self.base + high as u64;
        let Some(pattern) = self.engine.pattern(number) else { return };
        self.count_to(at);
        let mut locations = self.locations[number].take().unwrap_or_else(|| pattern.capture_locations());
        let mut from = (self.seen[number].matched.saturating_sub(self.base + low as u64)) as usize;
        for _ in 0..MATCHES {
            if from > high - low {
                break;
            }
            let Some(found) = pattern.captures_read_at(&mut locations, &self.text[low..high], from) else {
                break;
            };
            from = found.end().max(found.start() + 1);
            self.seen[number].matched = self.base + (low + from) as u64;
            self.keep(number, low..high, found.range(), &locations);
        }
        self.locations[number] = Some(locations);
    }

    /// Takes a match as a hit, or as one more of a known one.
    fn keep(
        &mut self,
        number: usize,
        line: std::ops::Range<usize>,
        span: std::ops::Range<usize>,
        locations: &CaptureLocations,
    ) {
        let compiled = &self.engine.names(number);
        let text = &self.text[line.clone()];
        let field = |i: usize| {
            let (from, to) = locations.get(i)?;
            Some(String::from_utf8_lossy(&text[from..to.min(from + FIELD)]))
        };
        // A group named `not` marks what looks like the line and is not (advice to set a variable, for one).
        if compiled.iter().any(|(i, name)| *name == "not" && locations.get(*i).is_some()) {
            return;
        }
        let fields: Vec<_> = compiled
            .iter()
            .filter(|(_, name)| *name != "not")
            .filter_map(|(i, name)| Some((*name, field(*i)?)))
            .collect();
        let place = Line { log: self.name.clone(), number: self.line };
        let seen = &mut self.seen[number];
        let signature = self.engine.signatures[number];
        if signature.role != Role::Fact {
            let same = |hit: &Hit| {
                hit.fields.len() == fields.len()
                    && hit.fields.iter().zip(&fields).all(|(a, b)| a.0 == b.0 && a.1 == b.1)
            };
            if let Some(i) = seen.hits.iter().copied().find(|i| same(&self.hits[*i].1)) {
                let hit = &mut self.hits[i].1;
                hit.count += 1;
                hit.last = place;
                return;
            }
        }
        if seen.hits.len() >= if signature.role == Role::Fact { FACTS } else { DISTINCT } {
            seen.dropped += 1;
            return;
        }
        seen.hits.push(self.hits.len());
        let (excerpt, span) = excerpt(text, span.clone());
        let fields = fields.into_iter().map(|(name, value)| (name, value.into_owned())).collect();
        let at = self.base + (line.start + locations.get(0).map_or(0, |(from, _)| from)) as u64;
        self.hits.push((
            at,
            Hit { signature, line: place.clone(), text: excerpt, span, fields, count: 1, last: place },
        ));
    }
}

/// Scans text that is already in lines.
pub fn scan_lines<'a>(name: &str, lines: impl Iterator<Item = &'a str>) -> Scan {
    let mut scanner = Scanner::new(name);
    for line in lines {
        scanner.feed(line.as_bytes());
        if !line.ends_with('\n') {
            scanner.feed(b"\n");
        }
    }
    scanner.finish()
}
