//! A rule, and what rules report.

use crate::case::Case;
use crate::finding::{Ask, Confidence, Finding, Fix, Layer, Severity};

/// One diagnosis: when it holds, and its page.
pub struct Rule {
    /// The contract's id.
    pub id: &'static str,
    /// Where the cause sits.
    pub layer: Layer,
    /// Causal depth: of two that hold, the one with the smaller number explains the other.
    pub depth: u8,
    /// Its page, in Markdown.
    pub page: &'static str,
    /// Looks at a case and reports.
    pub check: fn(&Case<'_>, &mut Report),
}

impl Rule {
    /// A finding of this rule, still without evidence and fixes.
    pub(crate) fn finding(
        &self,
        severity: Severity,
        confidence: Confidence,
        title: impl Into<String>,
        why: impl Into<String>,
    ) -> Finding {
        Finding {
            id: self.id,
            severity,
            confidence,
            layer: self.layer,
            title: title.into(),
            why: why.into(),
            evidence: Vec::new(),
            fixes: Vec::new(),
            related: Vec::new(),
        }
    }
}

/// Declares a file's rule; its page is docs/findings/ID.md.
macro_rules! rule {
    ($id:literal, $layer:ident, $depth:literal) => {
        /// The rule of this file.
        pub(crate) const RULE: $crate::rule::Rule = $crate::rule::Rule {
            id: $id,
            layer: $crate::finding::Layer::$layer,
            depth: $depth,
            page: include_str!(concat!("../../../../docs/findings/", $id, ".md")),
            check,
        };
    };
}
pub(crate) use rule;

/// Findings of which a warning tells of a risk or a figure, not of what failed.
const ASIDE: &[&str] = &["firmware-bad", "gfx-override", "resource-limit", "used-misreported"];

/// Whether a finding is loud and sure enough to explain something, and no mere warning of the kinds `aside`.
fn explains(finding: &Finding, aside: &[&str]) -> bool {
    let idle = finding.severity == Severity::Warning && aside.contains(&finding.id);
    finding.severity != Severity::Info && finding.confidence != Confidence::Possible && !idle
}

/// Findings of which a note says what the host could do, and not what a line or a setting means.
const UNASKED: &[&str] = &["apu-ttm-limit", "carveout-starves-host"];

/// What the rules found so far. Rules run by causal depth, so a later one sees what explains it already.
#[derive(Debug, Default)]
pub struct Report {
    findings: Vec<Finding>,
    ask_for: Vec<Ask>,
}

impl Report {
    /// Adds a finding.
    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds something that would decide.
    pub(crate) fn ask(&mut self, ask: Ask) {
        if !self.ask_for.iter().any(|have| have.what == ask.what) {
            self.ask_for.push(ask);
        }
    }

    /// Whether rule `id` has reported.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.findings.iter().any(|finding| finding.id == id)
    }

    /// Whether something reported so far explains that memory ran out, or that something failed: a warning or error
    /// that is more than possible. A warning of something that has not struck explains nothing.
    pub(crate) fn explains(&self) -> bool {
        self.findings.iter().any(|f| explains(f, ASIDE))
    }

    /// Whether something reported so far explains that memory ran out: as [`Report::explains`], and a library that can
    /// be done without is none either.
    pub(crate) fn explains_shortage(&self) -> bool {
        self.findings.iter().any(|f| explains(f, ASIDE) && explains(f, &["missing-kernels"]))
    }

    /// Findings, most important first, and what to ask for.
    ///
    /// `insufficient-evidence` leads where it was reported, because it is reported only when nothing decides. Then severity;
    /// then what is only possible after what is more; then what nobody's line or setting gave rise to; then causal
    /// depth, which is the order they came in.
    pub(crate) fn ranked(mut self) -> (Vec<Finding>, Vec<Ask>) {
        for finding in &mut self.findings {
            finding.fixes = std::mem::take(&mut finding.fixes).into_iter().map(Fix::completed).collect();
        }
        self.findings.sort_by_key(|finding| {
            (
                finding.id != "insufficient-evidence",
                finding.severity,
                finding.confidence == Confidence::Possible,
                finding.severity == Severity::Info && UNASKED.contains(&finding.id),
            )
        });
        (self.findings, self.ask_for)
    }
}
