//! Facts stated in a log: any lines give facts from which pools and a sheet can be made.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let scan = logs::scan_lines("log", text.lines());
    let mut stated = facts::stated(&scan);
    _ = facts::pool::pools(&stated);
    let again = facts::stated(&scan);
    stated.merge(again);
    assert!(stated.conflicts.is_empty(), "a log does not contradict itself: {:?}", stated.conflicts);
    let sheet = facts::sheet::write(&stated);
    facts::sheet::read("sheet.json", &sheet).expect("what was written can be read");
});
