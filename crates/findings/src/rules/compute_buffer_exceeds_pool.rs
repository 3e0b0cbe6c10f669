//! Activations and scratch do not fit beside weights and cache.

use super::capacity::{evidence, figures, shortage};
use super::prelude::*;
use crate::advice::engine;
use crate::failure::Part;

rule!("compute-buffer-exceeds-pool", Settings, 48);

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(shortage) = shortage(case, report).filter(|s| matches!(s.part, Part::Compute | Part::Vae))
    else {
        return;
    };
    let named = case.failure.as_ref().is_some_and(|failure| failure.part.is_some());
    let finding = RULE
        .finding(
            Severity::Error,
            if named { shortage.confidence } else { Confidence::Likely },
            format!("what the model needs while it works does not fit beside what it holds ({})", figures(&shortage)),
            "Activations grow with batch, ubatch, resolution and, without flash attention, with the square of the sequence. They come on top of weights and cache.",
        )
        .because_of(evidence(case))
        .fixes(engine::smaller_compute(case.engine));
    report.add(finding);
}
