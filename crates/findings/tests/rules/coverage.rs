//! That the cases cover what they should.

use std::collections::BTreeSet;
use std::process::Command;

use crate::cases;

#[test]
fn every_rule_has_two_cases_that_are_it_and_two_that_only_look_like_it() {
    let cases = cases::all();
    let mut short = Vec::new();
    for rule in findings::rules() {
        let own = || cases.iter().filter(|case| case.file == rule.id);
        let is = own().filter(|case| case.first.iter().chain(&case.has).any(|id| id == rule.id)).count();
        let looks = own().filter(|case| case.not.iter().chain(&case.absent).any(|id| id == rule.id)).count();
        if is < 2 || looks < 2 {
            short.push(format!("{}: {is} are it, {looks} look like it", rule.id));
        }
    }
    assert!(short.is_empty(), "{}", short.join("\n"));
}

#[test]
fn names_are_unique_and_every_id_is_a_rule_s() {
    let known: BTreeSet<&str> = findings::rules().iter().map(|rule| rule.id).collect();
    let mut names = BTreeSet::new();
    for case in cases::all() {
        assert!(names.insert(case.name.clone()), "twice: {}", case.name);
        let ids = case.first.iter().chain(&case.has).chain(&case.not).chain(&case.absent);
        for id in ids {
            assert!(known.contains(id.as_str()), "{}: no rule {id}", case.name);
        }
    }
}

#[test]
fn what_is_to_be_typed_is_a_shell_s_syntax() {
    if Command::new("bash").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no bash on this machine; the commands in fixes were not checked");
        return;
    }
    let mut commands = BTreeSet::new();
    for case in cases::all() {
        let fixes = case.run().findings.into_iter().flat_map(|finding| finding.fixes);
        commands.extend(fixes.filter_map(|fix| fix.command));
    }
    assert!(commands.len() > 40, "{}", commands.len());
    let mut wrong = Vec::new();
    for command in &commands {
        let out = Command::new("bash").args(["-n", "-c", command]).output().unwrap();
        if !out.status.success() {
            wrong.push(format!("{command}\n    {}", String::from_utf8_lossy(&out.stderr).trim()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
