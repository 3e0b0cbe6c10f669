//! The program runs on another GPU than the user means.

use super::prelude::*;

rule!("device-selection", Settings, 17);

const KERNELS: &[&str] = &[
    "hip-no-binary-for-gpu",
    "hip-invalid-device-function",
    "hip-invalid-image",
    "rocblas-tensile-missing",
    "ggml-rocm-error-other",
];

fn check(case: &Case<'_>, report: &mut Report) {
    let gpus = &case.facts.gpus;
    let (cards, apus): (Vec<_>, Vec<_>) = gpus.iter().partition(|gpu| gpu.apu.get() != Some(true));
    let invalid = case.line("hip-invalid-device");
    if invalid.is_none() && (cards.is_empty() || apus.is_empty()) {
        return;
    }
    let line = case.any_line(KERNELS).filter(|hit| {
        hit.signature.id != "ggml-rocm-error-other"
            || hit
                .field("reason")
                .is_some_and(|reason| reason.contains("kernel image") || reason.contains("device function"))
    });
    // The target that has no kernels has to be able to be the APU's.
    let names_card = line
        .and_then(|hit| hit.field("gfx"))
        .is_some_and(|gfx| cards.iter().any(|gpu| gpu.gfx.text() == Some(gfx)));
    let Some(line) = line.filter(|_| !names_card).or(invalid) else { return };
    let name = |list: &[&facts::Gpu]| {
        list.iter().filter_map(|gpu| gpu.name.text().or(gpu.gfx.text())).next().unwrap_or("a GPU").to_owned()
    };
    let (card, apu) = (name(&cards), name(&apus));
    let finding = RULE
        .finding(
            Severity::Error,
            Confidence::Likely,
            format!("the program also uses the integrated GPU ({apu}), for which it has no kernels; the card is {card}"),
            "HIP counts every AMD GPU. A program that takes all devices, or the first, meets the integrated one, and ends when a library has no code for it.",
        )
        .because(Evidence::line(line))
        .because_of(gpus.iter().flat_map(|gpu| fact(&gpu.name, "GPU").into_iter().chain(fact(&gpu.gfx, "target"))))
        .fix(
            Fix::new(FixKind::Env, "Show the program the card alone (HIP_VISIBLE_DEVICES counts as rocminfo lists GPUs, from 0; ROCR_VISIBLE_DEVICES does the same one layer below).")
                .command("export HIP_VISIBLE_DEVICES=0")
                .undo("unset HIP_VISIBLE_DEVICES")
                .check("rocminfo | grep -e 'Marketing Name' -e gfx   # which index is the card"),
        )
        .fix(Fix::new(FixKind::Flag, "Or name the device to the program (llama.cpp: --device ROCm0 or -mg 0 with --split-mode none)."))
        .fix(Fix::new(FixKind::Bios, "Or switch the integrated GPU off in the BIOS, if nothing needs it."));
    report.add(finding);
}
