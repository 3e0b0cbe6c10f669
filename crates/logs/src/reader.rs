//! A log from any reader: plain, compressed with gzip, or the journal's JSON lines, told apart by content.

use std::io::{self, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use crate::hit::Scan;
use crate::journal::Journal;
use crate::scanner::Scanner;

/// Bytes read at once.
const CHUNK: usize = 128 << 10;
/// Bytes that tell what a log is.
const HEAD: usize = 4096;
/// How much a compressed log may grow to unless the caller says otherwise.
const GROWTH: u64 = 64 << 30;

/// Scans what `reader` gives. See [`scan_reader_limited`]; the limit is 64 GiB.
pub fn scan_reader(name: &str, reader: impl Read) -> io::Result<Scan> {
    scan_reader_limited(name, reader, GROWTH)
}

/// Scans what `reader` gives, and of a compressed log at most `limit` bytes of text.
///
/// A damaged archive is not an error: what could be read is scanned, and a note says so. An error of the reader itself is.
pub fn scan_reader_limited(name: &str, mut reader: impl Read, limit: u64) -> io::Result<Scan> {
    let head = fill(&mut reader)?;
    let mut scanner = Scanner::new(name);
    if head.starts_with(&[0x1f, 0x8b]) {
        let whole = BufReader::with_capacity(CHUNK, Cursor::new(head).chain(reader));
        unpack(name, whole, limit, &mut scanner);
        return Ok(scanner.finish());
    }
    for (magic, tool) in [
        (&b"\x28\xb5\x2f\xfd"[..], "zstd -d"),
        (b"\xfd7zXZ\0", "xz -d"),
        (b"BZh", "bzip2 -d"),
        (b"PK\x03\x04", "unzip"),
    ] {
        if head.starts_with(magic) {
            scanner.note(format!("{name}: this is compressed; unpack it with {tool} first"));
        }
    }
    let mut sink = Sink::new(&head);
    sink.take(&head, &mut scanner);
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => sink.take(&chunk[..n], &mut scanner),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    sink.end(&mut scanner);
    Ok(scanner.finish())
}

/// Up to [`HEAD`] bytes.
fn fill(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    reader.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Scans a gzip stream as far as it goes.
fn unpack(name: &str, packed: impl io::BufRead, limit: u64, scanner: &mut Scanner) {
    let mut text = MultiGzDecoder::new(packed);
    let mut chunk = vec![0; CHUNK];
    let mut sink: Option<Sink> = None;
    let mut left = limit;
    loop {
        // One byte more than allowed is asked for, to tell a log that ends at the limit from one that goes on.
        let room = usize::try_from(left.saturating_add(1)).map_or(CHUNK, |n| n.min(CHUNK));
        match text.read(&mut chunk[..room]) {
            Ok(0) => break,
            Ok(n) => {
                let n_kept = usize::try_from(left).map_or(n, |left| n.min(left));
                let part = &chunk[..n_kept];
                sink.get_or_insert_with(|| Sink::new(part)).take(part, scanner);
                left -= n_kept as u64;
                if n_kept < n {
                    scanner
                        .note(format!("{name}: unpacks to more than {limit} bytes; the rest was left out"));
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                scanner.note(format!(
                    "{name}: the gzip data is damaged or cut off ({error}); what came before was read"
                ));
                break;
            }
        }
    }
    if let Some(mut sink) = sink {
        sink.end(scanner);
    }
}

/// Where bytes go: straight to the scanner, or through the journal's decoder.
struct Sink {
    journal: Option<Journal>,
}

impl Sink {
    /// The right one for a log that starts with `head`.
    fn new(head: &[u8]) -> Self {
        Self { journal: Journal::recognise(head) }
    }

    fn take(&mut self, bytes: &[u8], scanner: &mut Scanner) {
        match &mut self.journal {
            Some(journal) => journal.take(bytes, scanner),
            None => scanner.feed(bytes),
        }
    }

    fn end(&mut self, scanner: &mut Scanner) {
        if let Some(journal) = &mut self.journal {
            journal.end(scanner);
        }
    }
}
