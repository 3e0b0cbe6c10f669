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
        .fixes(engine::smaller_compute(case.engine))
        .fixes(of_the_line(case));
    report.add(finding);
}

/// What bounds the kind of memory that the line speaks of.
fn of_the_line(case: &Case<'_>) -> Option<Fix> {
    if case.line("clr-queue-abort-out-of-resources").is_some() {
        let text = "Or bound the scratch memory that one queue keeps; leave the device 1 to 2 GiB for it in any case.";
        return Some(
            Fix::new(FixKind::Env, text)
                .command("export HSA_SCRATCH_SINGLE_LIMIT=134217728")
                .risk("kernels with much scratch wait for each other")
                .undo("unset HSA_SCRATCH_SINGLE_LIMIT"),
        );
    }
    case.line("rccl-hip-oom").map(|_| {
        Fix::new(FixKind::Env, "Or let each communicator take less: fewer channels (each takes hundreds of MiB), and fewer communicators.")
            .command("export NCCL_MAX_NCHANNELS=8")
            .undo("unset NCCL_MAX_NCHANNELS")
    })
}
