//! The doctor: a sheet and log lines, after which every rule runs, and with them the reading of kernel command lines
//! and of overrides. A finding that alarms has evidence, and evidence can be shown.
#![no_main]

use facts::{Facts, sheet};
use findings::{Severity, diagnose};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // The sheet, then a line of NUL, then the log.
    let (json, log) = text.split_once('\0').unwrap_or((text, ""));
    let mut facts = sheet::read("sheet.json", json).map_or_else(|_| Facts::default(), |sheet| sheet.facts);
    let scan = logs::scan_lines("log", log.lines());
    facts.merge(facts::stated(&scan));
    facts.complete();
    for finding in diagnose(&facts, &[scan]).findings {
        let alarms = finding.severity != Severity::Info && finding.id != "insufficient-evidence";
        assert!(!alarms || !finding.evidence.is_empty(), "{} without evidence", finding.id);
        for evidence in finding.evidence {
            assert!(evidence.span.is_none_or(|span| evidence.text.get(span).is_some()), "{}", finding.id);
        }
    }
});
