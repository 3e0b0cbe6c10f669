//! ROCm does not support this GPU, or this machine.

use super::prelude::*;
use crate::case::DROPPED;

rule!("unsupported-gpu", Runtime, 15);

fn check(case: &Case<'_>, report: &mut Report) {
    let skipped = case
        .any_line(&["kernel-kfd-skipped", "ollama-unsupported-gpu"])
        .filter(|hit| !passed_over(case, hit));
    let old =
        case.device().and_then(|gpu| gpu.gfx.as_known()).filter(|gfx| DROPPED.contains(&gfx.value.as_str()));
    let hip_failure = case.any_line(&[
        "hip-no-device",
        "hip-no-binary-for-gpu",
        "hip-invalid-device-function",
        "rocblas-tensile-missing",
        "ggml-cuda-init-failed",
        "hip-invalid-image",
    ]);
    let line = match (skipped, old, hip_failure) {
        (Some(hit), ..) => hit,
        (None, Some(_), Some(hit)) if case.hip() => hit,
        _ => return,
    };
    let atomics = skipped.is_some_and(|hit| {
        hit.field("reason").is_some_and(|reason| reason.to_lowercase().contains("atomics"))
    });
    let gfx = case
        .device()
        .and_then(|gpu| gpu.gfx.text())
        .or_else(|| skipped.and_then(|hit| hit.field("gfx")))
        .unwrap_or("this GPU")
        .to_owned();
    let (title, why) = if atomics {
        (
            "the compute driver skips the GPU: PCIe atomics do not reach it".to_owned(),
            "ROCm needs PCIe atomics from the processor down to the card; some slots, bridges, enclosures and boards do not pass them on.",
        )
    } else {
        (
            format!("ROCm does not support {gfx}"),
            "Current ROCm has no code for this GPU, or its compute driver leaves it out. It is not a lack of memory.",
        )
    };
    let mut finding = RULE
        .finding(Severity::Error, case.sure_if(skipped.is_some()), title, why)
        .because(Evidence::line(line))
        .because_of(case.device().and_then(|gpu| fact(&gpu.gfx, "target")));
    if atomics {
        finding = finding.fix(Fix::new(FixKind::Bios, "Move the card to a slot wired to the processor, and switch on 'PCIe atomics' or 'AER' in the BIOS where it has them."));
    }
    report.add(
        finding.fix(Fix::new(FixKind::Package, "Use the program's Vulkan backend, which runs on this GPU.")),
    );
}

/// Whether the line is about a device that nobody here wants to use: another one is there, and nothing failed.
fn passed_over(case: &Case<'_>, hit: &logs::Hit) -> bool {
    case.is_about_another(hit) && !case.is_troubled()
}
