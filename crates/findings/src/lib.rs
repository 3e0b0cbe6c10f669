//! What is wrong, why, how sure that is, and what mends it on this host.
//!
//! [`diagnose`] looks at facts and scanned logs and returns [`Diagnosis`]: the pools, the findings with the most
//! important first, and what would decide where the evidence does not. It does no I/O. Every diagnosis is one [`Rule`],
//! in one file of `rules/`, with one page under `docs/findings/`.

pub mod advice;
mod case;
mod contradiction;
mod failure;
mod finding;
mod rule;
mod rules;

pub use case::{Case, Fit};
pub use contradiction::{Contradiction, Word};
pub use failure::{Failure, Part};
pub use finding::{Ask, Change, Confidence, Evidence, Finding, Fix, FixKind, Layer, Severity};
pub use rule::{Report, Rule};

use facts::Facts;
use facts::pool::{Pool, pools};
use logs::Scan;

/// The doctor's answer.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// What each API can allocate on each device.
    pub pools: Vec<Pool>,
    /// Findings, most important first.
    pub findings: Vec<Finding>,
    /// What would decide, cheapest first.
    pub ask_for: Vec<Ask>,
    /// Where two sources disagree about what the pools are made of.
    pub contradictions: Vec<Contradiction>,
}

/// Every rule, by causal depth: a cause stands before what it causes.
pub fn rules() -> &'static [Rule] {
    rules::ALL
}

/// Looks at facts and scanned logs.
pub fn diagnose(facts: &Facts, scans: &[Scan]) -> Diagnosis {
    let pools = pools(facts);
    let case = Case::new(facts, &pools, scans);
    let mut report = Report::default();
    for rule in rules::ALL {
        (rule.check)(&case, &mut report);
    }
    let (findings, ask_for) = report.ranked();
    Diagnosis { pools, findings, ask_for, contradictions: contradiction::contradictions(facts) }
}
