//! A bundle: any bytes are read or refused, and what was read is written and read again the same. The members come
//! as plain tar, so that mutations need not get past gzip; it is packed here.
#![no_main]

use std::io::Write;

use facts::bundle::Bundle;
use facts::host;
use libfuzzer_sys::fuzz_target;

/// Stored, not compressed: the archive is what is tried.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    out.write_all(bytes).and_then(|()| out.finish()).expect("writing to memory")
}

fuzz_target!(|bytes: &[u8]| {
    _ = Bundle::decode(bytes, "raw");
    let Ok(bundle) = Bundle::decode(gzip(bytes).as_slice(), "packed") else { return };
    _ = host::read(&bundle.tape);
    let mut written = Vec::new();
    bundle.encode(&mut written).expect("what was read can be written");
    let again = Bundle::decode(written.as_slice(), "again").expect("what was written can be read");
    let mut twice = Vec::new();
    again.encode(&mut twice).expect("what was read can be written");
    assert_eq!(Bundle::decode(twice.as_slice(), "twice").expect("and read"), again);
});
