//! Every recorded host × every command, and every log in `tests/logs`: what is printed, to the letter.
//!
//! A new folder under `tests/hosts`, a new `*.log` in one, and a new `*.log` under `tests/logs` each make new cases.
//! `UPDATE_GOLDENS=1 cargo test -p vramwarden --test black_box goldens` writes them; read the diff before you commit it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::common::{Run, doctor, files, hosts, repository, run};

const UPDATE: &str = "UPDATE_GOLDENS=1 cargo test -p vramwarden --test black_box goldens";

fn directory() -> PathBuf {
    repository().join("tests/goldens")
}

fn shown(run: &Run) -> String {
    let mut text = format!("exit status {}\n", run.status);
    for line in run.err.lines() {
        let _ = writeln!(text, "stderr: {line}");
    }
    text.push('\n');
    text + &run.out
}

/// Every case: its path below `tests/goldens`, and what is printed now.
fn cases() -> BTreeMap<PathBuf, String> {
    let mut cases = BTreeMap::new();
    for (name, root) in hosts() {
        let mut case = |command: &str, run: &Run| {
            cases.insert(Path::new(&name).join(format!("{command}.txt")), shown(run));
        };
        case("plain", &doctor(&root, &[]));
        case("verbose", &doctor(&root, &["-v"]));
        case("json", &doctor(&root, &["--format", "json"]));
        case("markdown", &doctor(&root, &["--format", "markdown"]));
        for log in files(&root, "log") {
            let stem = log.file_stem().unwrap().to_str().unwrap();
            case(&format!("with-{stem}"), &doctor(&root, &["--log", log.to_str().unwrap()]));
        }
    }
    for log in files(&repository().join("tests/logs"), "log") {
        let stem = log.file_stem().unwrap().to_str().unwrap();
        let log = log.to_str().unwrap();
        for format in ["plain", "json"] {
            let run = run(["doctor", "--no-host", "--log", log, "--format", format]);
            cases.insert(Path::new("logs").join(format!("{stem}.{format}.txt")), shown(&run));
        }
    }
    cases
}

fn stored() -> BTreeMap<PathBuf, String> {
    let mut stored = BTreeMap::new();
    let top = directory();
    for (folder, path) in crate::common::folders(&top) {
        for file in files(&path, "txt") {
            let name = Path::new(&folder).join(file.file_name().unwrap());
            stored.insert(name, std::fs::read_to_string(file).unwrap());
        }
    }
    stored
}

/// The first lines that differ.
fn difference(golden: &str, now: &str) -> String {
    let (golden, now): (Vec<_>, Vec<_>) = (golden.lines().collect(), now.lines().collect());
    let same = golden.iter().zip(&now).take_while(|(a, b)| a == b).count();
    let mut text = format!("from line {}:\n", same + 1);
    let part = |lines: &[&str], mark: char, text: &mut String| {
        for line in lines.iter().skip(same).take(6) {
            let _ = writeln!(text, "    {mark} {line}");
        }
    };
    part(&golden, '-', &mut text);
    part(&now, '+', &mut text);
    text
}

#[test]
fn goldens_are_what_is_printed() {
    let (now, stored) = (cases(), stored());
    if std::env::var_os("UPDATE_GOLDENS").is_some_and(|v| !v.is_empty() && v != "0") {
        for path in stored.keys().filter(|path| !now.contains_key(*path)) {
            std::fs::remove_file(directory().join(path)).unwrap();
        }
        for (path, text) in now.iter().filter(|(path, text)| stored.get(*path) != Some(text)) {
            crate::common::write(&directory(), path.to_str().unwrap(), text);
        }
        return;
    }
    let mut report = String::new();
    for (path, text) in &now {
        match stored.get(path) {
            Some(golden) if golden == text => {}
            Some(golden) => {
                let _ = write!(report, "{}: differs {}", path.display(), difference(golden, text));
            }
            None => {
                let _ = writeln!(report, "{}: there is no golden", path.display());
            }
        }
    }
    for path in stored.keys().filter(|path| !now.contains_key(*path)) {
        let _ = writeln!(report, "{}: nothing makes this golden any more", path.display());
    }
    assert!(report.is_empty(), "\n{report}\nIf that is meant, run this and read the diff:\n    {UPDATE}\n");
}

#[test]
fn nothing_printed_is_wider_than_the_page_but_what_is_typed_or_quoted() {
    for (name, root) in hosts() {
        for line in doctor(&root, &["-v"]).out.lines() {
            let wide = line.chars().count() > 100;
            let typed = line.starts_with("       ") || line.contains('/');
            assert!(!wide || typed, "{name}: {line}");
            assert_eq!(line, line.trim_end(), "{name}: blanks at the end");
        }
    }
}
