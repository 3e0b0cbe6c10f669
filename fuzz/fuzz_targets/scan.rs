//! A log: however it is cut into pieces, the same hits; every hit can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use logs::{Scan, Scanner};

fn scan(bytes: &[u8], piece: usize) -> Scan {
    let mut scanner = Scanner::new("log");
    bytes.chunks(piece).for_each(|piece| scanner.feed(piece));
    scanner.finish()
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = scan(bytes, bytes.len().max(1));
    let pieces = scan(bytes, usize::from(piece).max(1));
    assert_eq!(whole.lines, pieces.lines);
    assert_eq!(whole.hits.len(), pieces.hits.len());
    for (a, b) in whole.hits.iter().zip(&pieces.hits) {
        assert_eq!(
            (a.signature.id, &a.text, &a.span, &a.fields),
            (b.signature.id, &b.text, &b.span, &b.fields)
        );
        assert!(a.text.get(a.span.clone()).is_some(), "the span lies on characters of the text");
    }
    // gzip and journal JSON are told by their first bytes.
    _ = logs::scan_reader_limited("log", bytes, 1 << 20);
});
