//! Cases: read, run, judged. All failures are told at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use findings::{Diagnosis, Severity};
use serde::Deserialize;
use serde_json::Value;

use crate::doctor;

/// One case, as the table in `main.rs` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    host: Option<String>,
    #[serde(default)]
    facts: Value,
    #[serde(default)]
    pub log: Vec<String>,
    pub first: Vec<String>,
    #[serde(default)]
    pub has: Vec<String>,
    #[serde(default)]
    pub not: Vec<String>,
    #[serde(default)]
    pub absent: Vec<String>,
    #[serde(default)]
    fix: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    error: Option<bool>,
    #[serde(default, rename = "note")]
    _note: String,
    /// The file it stands in, without its ending.
    #[serde(skip)]
    pub file: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn hosts() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(folder().join("hosts.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every case, with its host's sheet laid under its own.
pub fn all() -> Vec<Case> {
    let hosts = hosts();
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    let mut list = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        for (at, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            let mut case: Case =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{stem}:{}: {error}", at + 1));
            let mut sheet = match &case.host {
                Some(host) => {
                    hosts.get(host).unwrap_or_else(|| panic!("{stem}:{}: no host {host}", at + 1)).clone()
                }
                None => Value::Object(serde_json::Map::new()),
            };
            if !case.facts.is_null() {
                doctor::lay(&mut sheet, &case.facts);
            }
            doctor::sizes(&mut sheet);
            case.facts = sheet;
            case.file.clone_from(&stem);
            list.push(case);
        }
    }
    list
}

impl Case {
    /// Its diagnosis.
    pub fn run(&self) -> Diagnosis {
        doctor::diagnose(&self.facts, &self.log)
    }

    /// The whole sheet.
    pub fn sheet(&self) -> &Value {
        &self.facts
    }

    /// What is wrong with the diagnosis.
    fn judge(&self, got: &Diagnosis) -> Vec<String> {
        let mut wrong = doctor::broken(got);
        let found = &got.findings;
        let loud = |f: &&findings::Finding| f.severity != Severity::Info;
        match (self.first.is_empty(), found.first()) {
            (true, _) => {
                wrong.extend(found.iter().filter(loud).map(|f| format!("false alarm {}", f.id)));
            }
            (false, None) => wrong.push("nothing found".to_owned()),
            (false, Some(first)) if !self.first.iter().any(|id| id == first.id) => {
                wrong.push(format!("first is {}", first.id));
            }
            (false, Some(first)) => {
                let steps = first.fixes.iter().map(|fix| format!("{} {:?}", fix.text, fix.command));
                let steps = steps.collect::<Vec<_>>().join("\n").to_lowercase();
                let unclear = first.id == "insufficient-evidence";
                if !unclear
                    && !self.fix.is_empty()
                    && !self.fix.iter().any(|text| steps.contains(text.as_str()))
                {
                    wrong.push(format!("no fix says one of {:?}", self.fix));
                }
            }
        }
        let asked = got
            .ask_for
            .iter()
            .map(|ask| format!("{} {}\n", ask.what, ask.why))
            .collect::<String>()
            .to_lowercase();
        if !self.ask.is_empty() && !self.ask.iter().any(|text| asked.contains(text.as_str())) {
            wrong.push(format!("nothing asked for says one of {:?}", self.ask));
        }
        // A note that comes first blames nothing.
        let first = found.first().filter(loud).map(|f| f.id);
        for id in &self.not {
            if first == Some(id) || found.iter().any(|f| f.id == id && doctor::accuses(f)) {
                wrong.push(format!("blames {id}"));
            }
        }
        wrong.extend(
            self.has.iter().filter(|id| !found.iter().any(|f| f.id == *id)).map(|id| format!("no {id}")),
        );
        wrong.extend(
            self.absent.iter().filter(|id| found.iter().any(|f| f.id == *id)).map(|id| format!("says {id}")),
        );
        let error = found.iter().any(|f| f.severity == Severity::Error);
        if self.error.is_some_and(|wanted| wanted != error) {
            wrong.push(format!("an error: {error}"));
        }
        wrong
    }
}

#[test]
fn every_case_gets_its_diagnosis() {
    let cases = all();
    let mut failures = Vec::new();
    for case in &cases {
        let got = case.run();
        let wrong = case.judge(&got);
        if !wrong.is_empty() {
            let found = got
                .findings
                .iter()
                .map(|f| format!("\n      {:?} {:?} {}: {}", f.severity, f.confidence, f.id, f.title));
            failures.push(format!(
                "{}: {}\n    {}\n    wanted {:?}, found:{}",
                case.file,
                case.name,
                wrong.join("; "),
                case.first,
                found.collect::<String>()
            ));
        }
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}
