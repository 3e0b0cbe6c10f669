//! A line that alarms people and means nothing.

use logs::Role;

use super::prelude::*;

rule!("benign-warning", Framework, 80);

/// Lines that are harmless although their role is not: what they lead to is told by other lines.
const ALSO: &[&str] = &[
    "llama-fit-abort",
    "kernel-queue-evicted",
    "hip-async-error-report",
    "ggml-pinned-failed",
    "ollama-vram-not-recovered",
    "torch-attention-experimental",
];

fn check(case: &Case<'_>, report: &mut Report) {
    // Beside a real trouble they are noise.
    if case.is_troubled() || report.explains() {
        return;
    }
    let Some(line) = case.hits.iter().find(|hit| {
        hit.signature.role == Role::Benign
            || ALSO.contains(&hit.signature.id)
            || crate::case::is_optional_firmware(hit)
    }) else {
        return;
    };
    let fix = match line.signature.id {
        "torch-hipblaslt-unsupported" => Fix::new(FixKind::Env, "Ignore it, or choose hipBLAS yourself so that the line does not come: it is what PyTorch does anyway.")
            .command("export TORCH_BLAS_PREFER_HIPBLASLT=0")
            .undo("unset TORCH_BLAS_PREFER_HIPBLASLT"),
        "torch-alloc-conf-deprecated" => Fix::new(FixKind::Env, "Rename the variable to PYTORCH_ALLOC_CONF when only PyTorch 2.9 and later read it; until then ignore the line."),
        "miopen-not-enough-workspace" => Fix::new(FixKind::Env, "Ignore it, or let MIOpen choose faster without measuring.").command("export MIOPEN_FIND_MODE=FAST").undo("unset MIOPEN_FIND_MODE"),
        _ => Fix::new(FixKind::Wait, "Ignore it: it is harmless by itself."),
    };
    let finding = RULE
        .finding(Severity::Info, Confidence::Certain, "this line is harmless", line.signature.meaning)
        .because(Evidence::line(line))
        .fix(fix);
    report.add(finding);
}
