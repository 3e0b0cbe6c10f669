//! For pasting into an issue.

use std::fmt::Write;

use findings::Diagnosis;

use super::plain::{api, confidence, severity, verdict};
use crate::gather::Gathered;

/// Text that cannot break out of a table cell or start markup of its own.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '[' | ']' | '\\' => cell.extend(['\\', c]),
            '`' => cell.push('\''),
            '<' => cell.push_str("&lt;"),
            c if c.is_control() => cell.push(' '),
            c => cell.push(c),
        }
    }
    cell
}

/// A code block that its own text cannot close, each line after `indent`.
fn block(out: &mut String, indent: &str, text: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    for line in [fence.as_str()].into_iter().chain(text.lines()).chain([fence.as_str()]) {
        let _ = writeln!(out, "{indent}{line}");
    }
}

/// The whole answer.
pub fn document(gathered: &Gathered, diagnosis: &Diagnosis) -> String {
    let mut out = format!("**{}**\n", cell(&verdict(gathered, diagnosis)));
    if let Some(why) = &gathered.left_out {
        let _ = writeln!(out, "\nThe host this ran on was left out: {}.", cell(why));
    }
    if !diagnosis.pools.is_empty() {
        out.push_str("\n| device | API | pool | used | free | limited by |\n| --- | --- | ---: | ---: | ---: | --- |\n");
        let size =
            |bytes: Option<units::Bytes>| bytes.map_or_else(|| "unknown".to_owned(), |b| b.to_string());
        for pool in &diagnosis.pools {
            let by = pool.limited_by.map_or("unknown", |by| by.name());
            let (total, used, free) = (size(pool.total), size(pool.used), size(pool.free));
            let _ = writeln!(out, "| {} | {} | {total} | {used} | {free} | {by} |", pool.device, api(pool));
        }
    }
    for finding in &diagnosis.findings {
        let _ = write!(
            out,
            "\n### `{}` ({}, {})\n\n{}. {}\n",
            finding.id,
            severity(finding),
            confidence(finding),
            cell(&finding.title),
            cell(&finding.why)
        );
        if !finding.evidence.is_empty() {
            let lines: Vec<String> =
                finding.evidence.iter().map(|e| format!("{}  [{}]", e.text, e.source)).collect();
            out.push('\n');
            block(&mut out, "", &lines.join("\n"));
        }
        for fix in &finding.fixes {
            let _ = writeln!(out, "\n- {}", cell(&fix.text));
            if let Some(command) = &fix.command {
                out.push('\n');
                block(&mut out, "  ", command);
            }
            for (name, text) in [("Risk", &fix.risk), ("Undo", &fix.undo), ("Check", &fix.check)] {
                if let Some(text) = text.as_ref().filter(|text| !fix.is_usual(text)) {
                    let _ = writeln!(out, "  - {name}: {}", cell(text));
                }
            }
        }
    }
    if !diagnosis.contradictions.is_empty() {
        out.push_str("\n### Sources disagree\n\n");
        for told in &diagnosis.contradictions {
            let (used, other) = (&told.used, &told.set_aside);
            let _ = writeln!(
                out,
                "- {}: {} ({}), not {} ({})",
                told.field,
                cell(&used.value),
                cell(&used.source),
                cell(&other.value),
                cell(&other.source)
            );
        }
    }
    if !diagnosis.ask_for.is_empty() {
        out.push_str("\n### What would decide\n\n");
        for ask in &diagnosis.ask_for {
            let _ = writeln!(out, "- {} ({})", cell(&ask.what), cell(&ask.why));
        }
    }
    out
}
