//! A facts sheet: any text is read or refused in one line, and what was read is written and read again the same.
#![no_main]

use facts::sheet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match sheet::read("sheet.json", text) {
        Ok(first) => {
            let written = sheet::write(&first.facts);
            let again = sheet::read("sheet.json", &written).expect("what was written can be read");
            assert_eq!(written, sheet::write(&again.facts));
            _ = facts::pool::pools(&first.facts);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
