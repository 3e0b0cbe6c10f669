//! The program runs on another GPU than the user means.

use super::prelude::*;

rule!("device-selection", Settings, 17);

fn check(case: &Case<'_>, report: &mut Report) {
    let gpus = &case.facts.gpus;
    let (cards, apus): (Vec<_>, Vec<_>) = gpus.iter().partition(|gpu| gpu.apu.get() != Some(true));
    if let Some((line, card)) = filled(case) {
        return report.add(wrong_one(case, line, card));
    }
    let ordinal =
        |hit: &&logs::Hit| hit.field("reason").is_some_and(|reason| reason.contains("device ordinal"));
    let invalid =
        case.line("hip-invalid-device").or_else(|| case.line("ggml-rocm-error-other").filter(ordinal));
    if invalid.is_none() && (cards.is_empty() || apus.is_empty()) {
        return;
    }
    let line = super::missing_kernels::no_code(case);
    // The target that has no kernels has to be able to be the APU's.
    let names_card = line
        .and_then(|hit| hit.field("gfx"))
        .is_some_and(|gfx| cards.iter().any(|gpu| gpu.gfx.text() == Some(gfx)));
    let Some(line) = line.filter(|_| !names_card) else {
        if let Some(hit) = invalid {
            report.add(no_such(case, hit));
        }
        return;
    };
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
        .fix(choose())
        .fix(Fix::new(FixKind::Flag, "Or name the device to the program (llama.cpp: --device ROCm0 or -mg 0 with --split-mode none)."))
        .fix(Fix::new(FixKind::Bios, "Or switch the integrated GPU off in the BIOS, if nothing needs it."));
    report.add(finding);
}

/// A program that ran out on a device smaller than the card beside it: the line, and which device the card is.
fn filled<'a>(case: &Case<'a>) -> Option<(&'a logs::Hit, &'a facts::Gpu)> {
    let failure = case.failure.as_ref()?;
    let (total, line) = (failure.total?, failure.lines.first()?);
    let apus = case.facts.gpus.iter().filter(|gpu| gpu.apu.get() == Some(true));
    let its = |gpu: &facts::Gpu| {
        [gpu.vram_total.get(), gpu.gtt_total.get()].into_iter().flatten().any(|size| size.near(total, 5.0))
    };
    let card = case
        .facts
        .gpus
        .iter()
        .filter(|gpu| gpu.apu.get() == Some(false))
        .max_by_key(|gpu| gpu.vram_total.get())?;
    let larger = card.vram_total.get().is_some_and(|vram| !vram.near(total, 10.0) && vram > total);
    (larger && apus.into_iter().any(its)).then_some((line, card))
}

fn wrong_one(case: &Case<'_>, line: &logs::Hit, card: &facts::Gpu) -> Finding {
    let name = card.name.text().or(card.gfx.text()).unwrap_or("the card");
    let total = case.failure.as_ref().and_then(|failure| failure.total).unwrap_or_default();
    RULE.finding(
        Severity::Error,
        Confidence::Likely,
        format!("the program runs on the integrated GPU, whose pool is {total}, and not on {name}"),
        "HIP counts every AMD GPU, and a program that is not told otherwise takes the first.",
    )
    .because(Evidence::line(line))
    .because_of(fact(&card.vram_total, "VRAM of the card"))
    .fix(choose())
    .fix(Fix::new(
        FixKind::Flag,
        "Or name the device to the program (ComfyUI: --cuda-device; llama.cpp: --device, -mg).",
    ))
}

fn no_such(case: &Case<'_>, line: &logs::Hit) -> Finding {
    let variables = ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"];
    RULE.finding(
        Severity::Error,
        Confidence::Likely,
        "the program asks for a device whose index does not exist",
        "Indices count from 0, and only devices that the visibility variables leave over are counted.",
    )
    .because(Evidence::line(line))
    .because_of(variables.iter().filter_map(|name| {
        let known = case.facts.env(name)?;
        Some(Evidence::fact(&known.source, format!("{name}={}", known.value)))
    }))
    .fix(choose())
}

/// How to show the program one device.
fn choose() -> Fix {
    Fix::new(FixKind::Env, "Show the program the card alone (HIP_VISIBLE_DEVICES counts as rocminfo lists GPUs, from 0; ROCR_VISIBLE_DEVICES does the same one layer below).")
        .command("export HIP_VISIBLE_DEVICES=0")
        .undo("unset HIP_VISIBLE_DEVICES")
        .check("rocminfo | grep -e 'Marketing Name' -e gfx   # which index is the card")
}
