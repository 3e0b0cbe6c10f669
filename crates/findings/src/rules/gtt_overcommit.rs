//! Pinned host memory or spill exhausts GTT.

use super::prelude::*;

rule!("gtt-overcommit", Driver, 38);

/// Lines with which the driver says that a working set cannot be made resident.
const LINES: &[&str] = &[
    "kernel-cs-enomem",
    "kernel-vm-validate",
    "radv-cs-not-enough-memory",
    "kernel-svm-limit",
    "kernel-ttm-eviction",
    "clr-alloc-failed-pinned",
    "ggml-vulkan-memory-alloc",
];

fn check(case: &Case<'_>, report: &mut Report) {
    if report.explains() {
        return;
    }
    let Some(gpu) = case.device() else { return };
    let line = case.any_line(LINES);
    let full =
        gpu.gtt_used.get().zip(gpu.gtt_total.get()).is_some_and(|(used, total)| used.0 > total.0 / 20 * 19);
    let pinned: Bytes = case.facts.processes.value().into_iter().flatten().filter_map(|p| p.pinned).sum();
    let pins = gpu.gtt_total.get().is_some_and(|total| pinned.0 > total.0 / 2);
    // The model beside its own file in pinned RAM: the two share GTT.
    let model = case.facts.workload.model.get();
    let tight = model.zip(gpu.gtt_total.get()).is_some_and(|(model, gtt)| model.0 > gtt.0 / 5 * 4);
    let (severity, confidence) = match (line, full || pins || tight) {
        (Some(_), true) => (Severity::Error, Confidence::Likely),
        (Some(hit), false) if case.is_apu() || hit.signature.id == "kernel-svm-limit" => {
            (Severity::Error, Confidence::Likely)
        }
        (Some(_), false) => (Severity::Error, Confidence::Possible),
        (None, _) if (full || pins) && case.is_troubled() => (Severity::Warning, Confidence::Likely),
        _ => return,
    };
    let vulkan = case.api == Some(facts::pool::Api::Vulkan);
    let mut finding = RULE
        .finding(
            severity,
            confidence,
            "the driver could not make everything resident: GTT is over-committed",
            "GTT holds what the GPU uses of system memory: on an APU the model itself, everywhere pinned and spilled buffers. A model file that is mapped and \
             pinned beside its copy counts twice.",
        )
        .because_of(line.map(Evidence::line))
        .because_of(LINES.iter().filter_map(|id| case.line(id)).take(3).map(Evidence::line))
        .because_of(fact(&gpu.gtt_total, "GTT"))
        .because_of(fact(&gpu.gtt_used, "GTT in use"))
        .because_of(model_evidence(case))
        .fix(
            Fix::new(FixKind::Flag, "Load without mapping the file (llama.cpp: --no-mmap, or --load-mode none), so that the host copy goes away after loading.")
                .command("llama-server -m MODEL.gguf --no-mmap"),
        );
    if !vulkan {
        finding = finding.fix(
            Fix::new(
                FixKind::Env,
                "Do not pin host buffers (GGML_CUDA_NO_PINNED=1), and offload less to the CPU.",
            )
            .command("export GGML_CUDA_NO_PINNED=1")
            .undo("unset GGML_CUDA_NO_PINNED"),
        );
    }
    let limit = case
        .gpu
        .filter(|_| case.is_apu())
        .and_then(|gpu| crate::advice::page_limit::recommend(case.facts, gpu, None));
    if let Some(limit) = limit.filter(|limit| !limit.carveout_first) {
        finding = finding.fixes(limit.fixes(case.facts).into_iter().take(1));
    }
    finding = finding.fix(Fix::new(FixKind::Flag, "Or a smaller context, a smaller quantisation, or unload other models (vramwarden doctor shows who holds what)."));
    report.add(finding);
}
