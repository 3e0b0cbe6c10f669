//! From a case to a diagnosis, the way the program does it.

use facts::Facts;
use findings::{Confidence, Diagnosis, Finding, Severity};
use logs::Scan;
use serde_json::{Map, Value};

/// Facts and scans of a sheet (without its schema) and the lines of a log, joined as the doctor joins them.
///
/// # Panics
/// When the sheet is refused or has keys that nobody knows: the case is then written wrong.
pub fn gather(sheet: &Value, log: &[String]) -> (Facts, Vec<Scan>) {
    let mut sheet = sheet.clone();
    sheet["schema"] = facts::sheet::SCHEMA.into();
    let read = facts::sheet::read("sheet", &sheet.to_string()).unwrap_or_else(|error| panic!("{error}"));
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    let mut given = Facts::default();
    given.merge(read.facts);
    let mut scans = vec![logs::scan_lines("run.log", log.iter().map(String::as_str))];
    if let Some(lines) = given.kernel.log.value() {
        scans.push(logs::scan_lines("kernel.log", lines.iter().map(String::as_str)));
    }
    for scan in &scans {
        given.merge(facts::stated(scan));
    }
    given.complete();
    (given, scans)
}

/// The diagnosis of a sheet and a log.
pub fn diagnose(sheet: &Value, log: &[String]) -> Diagnosis {
    let (facts, scans) = gather(sheet, log);
    findings::diagnose(&facts, &scans)
}

/// Lays `over` on `base`: objects by key, lists by place, everything else replaced; `null` takes a key away.
pub fn lay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.remove(key);
                } else {
                    lay(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(base), Value::Array(over)) if !over.is_empty() => {
            for (at, value) in over.iter().enumerate() {
                match base.get_mut(at) {
                    Some(slot) => lay(slot, value),
                    None => base.push(value.clone()),
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Turns sizes written as texts (`"96 GiB"` under a key that ends in `_bytes`) into bytes.
pub fn sizes(value: &mut Value) {
    let read = |text: &str| units::Bytes::parse(text).unwrap_or_else(|| panic!("no size: {text}")).0;
    let one = |value: &mut Value| {
        if let Some(text) = value.as_str() {
            *value = read(text).into();
        }
    };
    match value {
        Value::Object(map) => each(map, &one),
        Value::Array(list) => list.iter_mut().for_each(sizes),
        _ => {}
    }
}

fn each(map: &mut Map<String, Value>, one: &dyn Fn(&mut Value)) {
    for (key, value) in map {
        match value {
            Value::Array(list) if key.ends_with("_bytes") => list.iter_mut().for_each(one),
            _ if key.ends_with("_bytes") => one(value),
            _ => sizes(value),
        }
    }
}

/// Whether a finding is one of severity error of which the doctor is more than half sure.
pub fn accuses(finding: &Finding) -> bool {
    finding.severity == Severity::Error && finding.confidence != Confidence::Possible
}

/// What holds of every diagnosis, whatever the case: evidence, fixes, order, and no certainty beside "cannot tell".
pub fn broken(diagnosis: &Diagnosis) -> Vec<String> {
    let mut wrong = Vec::new();
    for finding in &diagnosis.findings {
        let id = finding.id;
        if finding.severity != Severity::Info && finding.evidence.is_empty() {
            wrong.push(format!("{id}: no evidence"));
        }
        if finding.severity == Severity::Error && finding.fixes.is_empty() {
            wrong.push(format!("{id}: an error without a fix"));
        }
        if finding.title.is_empty()
            || finding.why.is_empty()
            || finding.fixes.iter().any(|f| f.text.is_empty())
        {
            wrong.push(format!("{id}: an empty sentence"));
        }
        if id == "benign-warning" && finding.severity != Severity::Info {
            wrong.push("benign-warning: not info".to_owned());
        }
        if id == "setting-has-no-effect" && finding.severity == Severity::Error {
            wrong.push("setting-has-no-effect: an error".to_owned());
        }
    }
    let unclear = diagnosis.findings.iter().position(|f| f.id == "insufficient-evidence");
    if unclear.is_some_and(|at| at != 0) {
        wrong.push("insufficient-evidence: not first".to_owned());
    }
    let sure = |f: &Finding| f.severity == Severity::Error && f.confidence == Confidence::Certain;
    if unclear.is_some() && diagnosis.findings.iter().any(sure) {
        wrong.push("insufficient-evidence beside a certain error".to_owned());
    }
    if unclear.is_some() && diagnosis.ask_for.is_empty() {
        wrong.push("insufficient-evidence: nothing asked for".to_owned());
    }
    let rest = &diagnosis.findings[usize::from(unclear.is_some())..];
    if !rest.is_sorted_by_key(|f| f.severity) {
        wrong.push("findings out of order".to_owned());
    }
    let mut ids: Vec<_> = diagnosis.findings.iter().map(|f| f.id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1] && pair[0] != "leaked-memory") {
        wrong.push("the same finding twice".to_owned());
    }
    wrong
}
