//! One JSON object a line: `journalctl -o json`, and the files Docker keeps of a container's output.

use std::borrow::Cow;

use memchr::memchr;
use serde::Deserialize;

use crate::scanner::Scanner;

/// A record longer than this is scanned as it stands.
const RECORD: usize = 1 << 20;

/// What is read of a record: the journal's message, or Docker's.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(rename = "MESSAGE", borrow, default)]
    message: Option<Message<'a>>,
    #[serde(borrow, default)]
    log: Option<Message<'a>>,
}

/// A message is text, or bytes where it is no valid text; a field that came twice is a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Bytes(Vec<u8>),
    Other(serde::de::IgnoredAny),
}

/// The decoder: it keeps the record that is not yet complete.
pub(crate) struct Journal {
    record: Vec<u8>,
    /// The record is too long and goes to the scanner undecoded.
    raw: bool,
}

impl Journal {
    /// A decoder, if a log that starts with `head` is of this kind.
    pub(crate) fn recognise(head: &[u8]) -> Option<Self> {
        let start = head.trim_ascii_start();
        let line = &start[..memchr(b'\n', start).unwrap_or(start.len())];
        let has = |key: &[u8]| memchr::memmem::find(line, key).is_some();
        let journal = has(b"\"MESSAGE\"") || has(b"\"__CURSOR\"") || has(b"\"__REALTIME_TIMESTAMP\"");
        let docker = has(b"\"log\"") && has(b"\"stream\"");
        (start.starts_with(b"{\"") || start.starts_with(b"{ \""))
            .then_some(())
            .filter(|()| journal || docker)
            .map(|()| Self { record: Vec::new(), raw: false })
    }

    /// The next bytes of the log.
    pub(crate) fn take(&mut self, mut bytes: &[u8], scanner: &mut Scanner) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.put(&bytes[..end], scanner);
            self.end_record(scanner);
            bytes = &bytes[end + 1..];
        }
        self.put(bytes, scanner);
    }

    /// The end of the log.
    pub(crate) fn end(&mut self, scanner: &mut Scanner) {
        if self.raw || !self.record.is_empty() {
            self.end_record(scanner);
        }
    }

    fn put(&mut self, bytes: &[u8], scanner: &mut Scanner) {
        if !self.raw && self.record.len() + bytes.len() > RECORD {
            scanner.feed(&self.record);
            self.record.clear();
            self.raw = true;
        }
        if self.raw {
            scanner.feed(bytes);
        } else {
            self.record.extend_from_slice(bytes);
        }
    }

    fn end_record(&mut self, scanner: &mut Scanner) {
        if !self.raw {
            match message(&self.record) {
                Some(text) => scanner.feed(&text),
                None => scanner.feed(&self.record),
            }
        }
        scanner.feed(b"\n");
        self.record.clear();
        self.raw = false;
    }
}

/// The message of a record. Its line breaks become `\r`, so that a record stays one line in the count.
fn message(record: &[u8]) -> Option<Vec<u8>> {
    let record: Record<'_> = serde_json::from_slice(record).ok()?;
    let mut text = match record.message.or(record.log)? {
        Message::Text(text) => text.into_owned().into_bytes(),
        Message::Bytes(bytes) => bytes,
        Message::Other(_) => return None,
    };
    if text.last() == Some(&b'\n') {
        text.pop();
    }
    for byte in &mut text {
        if *byte == b'\n' {
            *byte = b'\r';
        }
    }
    Some(text)
}
