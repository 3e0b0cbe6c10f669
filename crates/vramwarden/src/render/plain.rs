//! For people at 2 a.m.: the verdict, then a table, then each finding with its reason and its evidence.

use std::fmt::Write;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use comfy_table::{ContentArrangement, Table, presets};
use facts::pool::{Api, Pool};
use facts::{Missing, Reading};
use findings::{Confidence, Contradiction, Diagnosis, Evidence, Finding, Fix, Severity};

use super::harmless;
use crate::gather::Gathered;

/// How the page looks.
pub struct Page {
    /// Whether to use colour.
    pub colour: bool,
    /// Columns to fill.
    pub width: usize,
    /// Whether to list everything.
    pub verbose: bool,
}

/// The answer in one line.
pub fn verdict(gathered: &Gathered, diagnosis: &Diagnosis) -> String {
    let count = |severity| diagnosis.findings.iter().filter(|f| f.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    match diagnosis.findings.first() {
        Some(first) if first.severity != Severity::Info => {
            let more = match errors + warnings - 1 {
                0 => String::new(),
                1 => " (and one more finding)".to_owned(),
                n => format!(" (and {n} more findings)"),
            };
            format!("{}{more}.", capital(&first.title))
        }
        _ if gathered.facts.gpus_seen.get() == Some(0) && diagnosis.pools.is_empty() => {
            "No AMD GPU is visible on this host; give a log (--log), a bundle or a sheet to look at another machine.".to_owned()
        }
        _ if matches!(gathered.facts.gpus_seen, Reading::Missing(Missing::Denied(_))) && diagnosis.pools.is_empty() => {
            "Whether there is an AMD GPU could not be seen: /sys is not readable for this user; run it as root.".to_owned()
        }
        _ if diagnosis.findings.is_empty() && gathered.scans.iter().any(|scan| scan.hits.is_empty() && !scan.notes.is_empty()) => {
            "Nothing known is wrong in what could be read; see the notes above for what could not.".to_owned()
        }
        _ if diagnosis.pools.is_empty() && diagnosis.findings.is_empty() => {
            "Nothing known is wrong in what was given, and no AMD GPU is told of in it.".to_owned()
        }
        _ if !diagnosis.pools.is_empty() && diagnosis.pools.iter().all(|pool| pool.total.is_none()) => {
            "Nothing wrong was seen, but the size of no pool is known (-v says what is missing).".to_owned()
        }
        _ => "Nothing is wrong as far as can be seen.".to_owned(),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    // An option, a variable, a parameter or a process keeps its spelling.
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    match chars.next() {
        Some(first) if !(word.contains(['.', '_', '-', '=']) || text[word.len()..].starts_with(" (pid ")) => {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

/// Severity as a word.
pub fn severity(finding: &Finding) -> &'static str {
    match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// Confidence as a word.
pub fn confidence(finding: &Finding) -> &'static str {
    match finding.confidence {
        Confidence::Certain => "certain",
        Confidence::Likely => "likely",
        Confidence::Possible => "possible",
    }
}

/// `hip` or `vulkan` as people write it.
pub fn api(pool: &Pool) -> &'static str {
    match pool.api {
        Api::Hip => "HIP",
        Api::Vulkan => "Vulkan",
    }
}

impl Page {
    /// The whole answer.
    pub fn document(&self, gathered: &Gathered, diagnosis: &Diagnosis) -> String {
        let mut out = String::new();
        let mut head = String::new();
        self.wrapped(&mut head, "", "", &verdict(gathered, diagnosis));
        head.lines().for_each(|line| self.line(&mut out, &self.bold(line)));
        if let Some(why) = &gathered.left_out {
            let line = format!("This host was left out: {} (--with-host keeps it).", harmless::text(why));
            self.wrapped(&mut out, "", "", &line);
        }
        if !diagnosis.findings.is_empty() {
            out.push('\n');
            self.overview(&mut out, &diagnosis.findings);
        }
        if !diagnosis.pools.is_empty() {
            out.push('\n');
            self.pools(&mut out, &diagnosis.pools);
        }
        for (number, finding) in diagnosis.findings.iter().enumerate() {
            out.push('\n');
            self.finding(&mut out, number + 1, finding);
        }
        if !diagnosis.ask_for.is_empty() {
            out.push('\n');
            self.line(&mut out, &self.bold("What would decide, cheapest first"));
            for ask in &diagnosis.ask_for {
                self.wrapped(&mut out, "  - ", "    ", &ask.what);
                self.wrapped(&mut out, "    ", "    ", &format!("({})", ask.why));
            }
        }
        self.contradictions(&mut out, &diagnosis.contradictions);
        self.unread(&mut out, &gathered.facts);
        out
    }

    /// Where sources disagree: often a log of another boot.
    fn contradictions(&self, out: &mut String, contradictions: &[Contradiction]) {
        if contradictions.is_empty() {
            return;
        }
        out.push('\n');
        self.line(out, &self.bold("Sources disagree (a log of another boot, or a tool that is wrong)"));
        for told in contradictions.iter().take(if self.verbose { 64 } else { 6 }) {
            let Contradiction { field, used, set_aside } = told;
            let text = format!(
                "{field}: {} [{}], not {} [{}]",
                used.value, used.source, set_aside.value, set_aside.source
            );
            self.wrapped(out, "  - ", "    ", &text);
        }
    }

    /// What `--watch` says of a finding: the verdict with the time, and unless it is gone the finding.
    pub fn event(&self, time: &str, gone: bool, finding: &Finding) -> String {
        let mut out = String::new();
        let verdict = capital(&finding.title);
        if gone {
            self.line(&mut out, &format!("{time} Gone: {verdict} ({}).", finding.id));
        } else {
            self.line(&mut out, &self.bold(&format!("{time} {verdict}.")));
            self.finding(&mut out, 1, finding);
        }
        out
    }

    pub(super) fn bold(&self, text: &str) -> String {
        if self.colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn tinted(&self, finding: &Finding, text: &str) -> String {
        let code = match finding.severity {
            Severity::Error => 31,
            Severity::Warning => 33,
            Severity::Info => 36,
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn line(&self, out: &mut String, text: &str) {
        out.push_str(text);
        out.push('\n');
    }

    /// Words of `text`, wrapped at the width.
    pub(super) fn wrapped(&self, out: &mut String, first: &str, rest: &str, text: &str) {
        let mut line = first.to_owned();
        let mut length = first.chars().count();
        let mut empty = true;
        for word in text.split_ascii_whitespace() {
            let size = word.chars().count();
            if !empty && length + 1 + size > self.width {
                self.line(out, &line);
                rest.clone_into(&mut line);
                length = rest.chars().count();
                empty = true;
            }
            if !empty {
                line.push(' ');
                length += 1;
            }
            line.push_str(word);
            length += size;
            empty = false;
        }
        self.line(out, &line);
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width).unwrap_or(100));
        table
    }

    pub(super) fn print_table(&self, out: &mut String, table: &Table) {
        for line in table.lines() {
            self.line(out, line.trim_end());
        }
    }

    fn overview(&self, out: &mut String, findings: &[Finding]) {
        let mut table = self.table();
        table.set_header(["LAYER", "CAUSE", "HOW SURE", "FIX"]);
        for finding in findings {
            let layer = serde_json::to_value(finding.layer).ok();
            let layer = layer.as_ref().and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            let fix = finding.fixes.first().map_or("see below", |fix| clause(&fix.text));
            let sure = format!("{}, {}", severity(finding), confidence(finding));
            table.add_row([layer, finding.id.to_owned(), sure, fix.to_owned()]);
        }
        self.print_table(out, &table);
    }

    fn finding(&self, out: &mut String, number: usize, finding: &Finding) {
        let head = format!("{number}. {} ({}, {})", finding.id, severity(finding), confidence(finding));
        self.line(out, &self.tinted(finding, &head));
        self.wrapped(out, "   ", "   ", &capital(&finding.title));
        self.wrapped(out, "   ", "   ", &finding.why);
        if !finding.evidence.is_empty() {
            self.line(out, "");
            for evidence in &finding.evidence {
                self.evidence(out, evidence);
            }
        }
        if !finding.fixes.is_empty() {
            self.line(out, "");
            for fix in &finding.fixes {
                self.fix(out, fix);
            }
        }
        if !finding.related.is_empty() {
            self.wrapped(out, "   ", "   ", &format!("Related: {}", finding.related.join(", ")));
        }
    }

    /// A log line with its telling part underlined where it fits the width; anything else in one line.
    fn evidence(&self, out: &mut String, evidence: &Evidence) {
        let (log, line) = place(&evidence.source);
        let gutter = line.to_string().len() + 6;
        let fits = evidence.text.chars().count() + gutter <= self.width;
        // A span of the whole line tells nothing that the line does not.
        let tells =
            |span: &Range<usize>| span.end <= evidence.text.len() && *span != (0..evidence.text.len());
        let Some(span) = evidence.span.clone().filter(|span| fits && tells(span)) else {
            self.wrapped(out, "   | ", "   |   ", &format!("{}   [{}]", evidence.text, evidence.source));
            return;
        };
        let snippet = Snippet::source(&evidence.text)
            .line_start(line)
            .path(log)
            .annotation(AnnotationKind::Primary.span(span));
        let report = [Level::INFO.no_name().secondary_title("").element(snippet)];
        let renderer = if self.colour { Renderer::styled() } else { Renderer::plain() };
        let text = renderer.term_width(self.width).render(&report);
        // The empty title leaves a blank first line.
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let _ = writeln!(out, "   {}", line.trim_end());
        }
    }

    fn fix(&self, out: &mut String, fix: &Fix) {
        self.wrapped(out, "   > ", "     ", &fix.text);
        for line in fix.command.iter().flat_map(|command| command.lines()) {
            self.line(out, &format!("       {}", self.bold(line)));
        }
        let notes = [("risk", &fix.risk), ("undo", &fix.undo), ("check", &fix.check)];
        let told = notes.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        // What holds for every step of its kind is for those who ask for all.
        for (name, text) in told.filter(|(_, text)| self.verbose || !fix.is_usual(text)) {
            self.wrapped(out, &format!("       {name:>5}: "), "              ", text);
        }
    }
}

/// Log and line of an evidence's source.
fn place(source: &str) -> (&str, usize) {
    let plain = source.split(" (").next().unwrap_or(source);
    plain.rsplit_once(':').and_then(|(log, line)| Some((log, line.parse().ok()?))).unwrap_or((plain, 1))
}

/// The first clause of a step: what fits a table. A dot inside a name (`ttm.pages_limit`) ends nothing, nor does
/// anything in parentheses.
fn clause(text: &str) -> &str {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let ends = depth == 0 && rest.starts_with(' ');
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ';' | ':' if ends => return &text[..at],
            // "e.g. this" goes on.
            '.' if ends && !rest.trim_start().starts_with(char::is_lowercase) => return &text[..=at],
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::clause;

    #[test]
    fn a_clause_ends_with_a_sentence_and_not_inside_a_name() {
        for (text, first) in [
            (
                "Take amdgpu.gttsize off the command line. Then reboot.",
                "Take amdgpu.gttsize off the command line.",
            ),
            ("Set ttm.pages_limit=1, e.g. by file: the pool grows.", "Set ttm.pages_limit=1, e.g. by file"),
            ("Load it whole (llama.cpp: --no-mmap); it takes longer", "Load it whole (llama.cpp: --no-mmap)"),
            ("Update to 6.18.4", "Update to 6.18.4"),
            ("", ""),
        ] {
            assert_eq!(clause(text), first);
        }
    }
}
