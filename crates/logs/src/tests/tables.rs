//! Every signature is sound by itself.

use std::collections::HashSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::near_misses::NEAR_MISSES;
use crate::engine::compile;
use crate::prefilter::WINDOW;
use crate::{Signature, scan_lines, signatures};

/// Whether the pattern matches, and the line is not one that only looks like it.
fn matches(signature: &Signature, line: &str) -> bool {
    let pattern = compile(signature).unwrap();
    pattern.captures_iter(line.as_bytes()).any(|c| c.name("not").is_none())
}

#[test]
fn ids_are_unique_and_in_kebab_case() {
    let mut seen = HashSet::new();
    for signature in signatures() {
        let id = signature.id;
        assert!(seen.insert(id), "{id} stands twice");
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(id.chars().all(plain) && !id.contains("--"), "{id}");
    }
}

#[test]
fn meanings_are_one_sentence() {
    for s in signatures() {
        assert!(s.meaning.ends_with('.') && !s.meaning.contains('\n') && !s.program.is_empty(), "{}", s.id);
    }
}

#[test]
fn every_example_matches_and_is_found() {
    for signature in signatures() {
        let id = signature.id;
        assert!(matches(signature, signature.example), "{id}: the example does not match");
        assert!(signature.literals.iter().any(|l| signature.example.contains(l)), "{id}: no literal in it");
        let scan = scan_lines("x", ["before", signature.example, "after"].into_iter());
        let hit = scan.hits.iter().find(|h| h.signature.id == id);
        let hit = hit.unwrap_or_else(|| panic!("{id}: not found by the scan"));
        assert_eq!((hit.line.number, hit.count), (2, 1), "{id}");
        assert!(hit.text.get(hit.span.clone()).is_some_and(|t| !t.is_empty()), "{id}");
    }
}

#[test]
fn literals_are_long_enough() {
    for signature in signatures() {
        assert!(!signature.literals.is_empty(), "{}", signature.id);
        for literal in signature.literals {
            assert!(literal.len() >= WINDOW, "{}: {literal:?}", signature.id);
        }
    }
}

#[test]
fn a_near_miss_is_no_hit() {
    for (id, line) in NEAR_MISSES {
        let signature = signatures().find(|s| s.id == *id).unwrap_or_else(|| panic!("{id} is not known"));
        assert!(!matches(signature, line), "{id} matches {line:?}");
        let scan = scan_lines("x", [*line].into_iter());
        assert!(scan.hits.iter().all(|h| h.signature.id != *id), "{id} found in {line:?}");
    }
}

#[test]
fn every_signature_has_a_near_miss() {
    let missed: HashSet<&str> = NEAR_MISSES.iter().map(|(id, _)| *id).collect();
    for signature in signatures() {
        assert!(missed.contains(signature.id), "{}", signature.id);
    }
}

/// The pattern as a generator of texts takes it: no anchors, no word boundaries, ASCII classes.
fn drawable(pattern: &str) -> String {
    let plain = pattern.replace(r"\b", "").replace("[^", "\0").replace(['^', '$'], "").replace('\0', "[^");
    let plain = plain.replace(r"\d", "[0-9]").replace(r"\w", "[0-9A-Za-z_]");
    plain.replace(r"\s", " ").replace(r"\S", "[!-~]")
}

/// Draws texts from the pattern itself: each must hold one of the literals, else the prefilter would pass it over.
#[test]
fn no_matching_line_lacks_a_literal() {
    let mut failures = Vec::new();
    for signature in signatures() {
        let (id, pattern) = (signature.id, compile(signature).unwrap());
        let texts = proptest::string::string_regex(&drawable(signature.pattern)).unwrap();
        let mut runner = TestRunner::deterministic();
        let drawn: Vec<String> = (0..200)
            .map(|_| texts.new_tree(&mut runner).unwrap().current())
            .filter(|t| pattern.captures_iter(t.as_bytes()).any(|c| c.name("not").is_none()))
            .collect();
        let without = drawn.iter().find(|t| !signature.literals.iter().any(|l| t.contains(l)));
        if let Some(text) = without {
            failures.push(format!("{id}: no literal in {text:?}"));
        } else if drawn.len() < 10 {
            failures.push(format!("{id}: only {} of the drawn texts match", drawn.len()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
