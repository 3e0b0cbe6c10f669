//! A program shows less (or more) free memory than can be allocated.

use super::misreported::{Figure, figures, in_carveout};
use super::prelude::*;
use crate::advice::carveout;
use crate::advice::engine::Engine;

rule!("free-misreported", Runtime, 42);

fn check(case: &Case<'_>, report: &mut Report) {
    for figure in figures(case) {
        let Some(free) = figure.free else { continue };
        if figure.total.is_some_and(|total| free > total) {
            return report.add(above_total(case, &figure));
        }
        if let Some(real) = really_free(case, &figure) {
            return report.add(too_low(case, &figure, free, real));
        }
    }
}

/// Free memory by the driver's own count, or all of the carveout where the figure can only be the host's free RAM.
fn really_free(case: &Case<'_>, figure: &Figure) -> Option<Bytes> {
    let (free, total) = (figure.free?, figure.total.or_else(|| case.hip_pool()?.total)?);
    let gpu = case.device()?;
    let vram = gpu.vram_total.get()?;
    if !case.is_apu() || !(total.near(vram, 3.0) || in_carveout(case, Some(total))) {
        return None;
    }
    if let Some(used) = gpu.vram_used.get() {
        let real = vram - used;
        return (real > free + Bytes(vram.0 / 10)).then_some(real);
    }
    // Nothing tells the use. The figure is the host's free RAM if it fits into what the carveout leaves of the machine.
    let ram = case.facts.memory.total.get().or_else(|| rest_of_the_machine(vram))?;
    let held = case.hip_pool().map(|pool| pool.held_by_the_living()).unwrap_or_default();
    (free <= ram && held == Bytes(0) && ram < vram && free.0 < vram.0 / 2).then_some(vram)
}

/// RAM beside a large carveout: machines come with whole powers of two, or once and a half of one.
fn rest_of_the_machine(carveout: Bytes) -> Option<Bytes> {
    [32, 48, 64, 96, 128, 192, 256]
        .into_iter()
        .map(Bytes::gib)
        .find(|size| *size > carveout)
        .map(|size| size - carveout)
}

fn too_low(case: &Case<'_>, figure: &Figure, free: Bytes, real: Bytes) -> Finding {
    let gpu = case.device();
    let mut finding = RULE
        .finding(
            if case.is_troubled() { Severity::Error } else { Severity::Warning },
            Confidence::Likely,
            format!("{} shows {free} free, and about {real} can be allocated", figure.program),
            "On an APU some runtimes and programs take the host's free RAM (MemAvailable) for the GPU's free memory, also where HIP uses the carveout. \
             llama.cpp did so on HIP from late 2025 until August 2026, and what builds on it with it. The memory itself is there.",
        )
        .because(figure.evidence.clone())
        .because_of(gpu.and_then(|gpu| fact(&gpu.vram_total, "carveout")))
        .because_of(gpu.and_then(|gpu| fact(&gpu.vram_used, "in use by the driver's count")));
    if case.engine == Some(Engine::Vllm) {
        let total = figure.total.unwrap_or(real);
        let share = (free.0 as f64 / total.0 as f64 * 100.0).floor().max(1.0) / 100.0;
        finding = finding.fix(
            Fix::new(FixKind::Flag, format!("Until the runtime is mended ask for a share below what it believes free: --gpu-memory-utilization at most {share:.2}."))
                .command(format!("vllm serve MODEL --gpu-memory-utilization {share:.2}")),
        );
    } else {
        finding = finding.fix(
            Fix::new(FixKind::Package, "Upgrade to a newer build of the program: the figure was mended in August 2026 (llama.cpp: \"skip UMA override for HIP builds\").")
                .check("the program's start-up lines show the carveout free"),
        );
        finding = finding.fix(Fix::new(FixKind::Flag, "Or use its Vulkan backend, or set the number of layers and the context yourself instead of letting the program fit them."));
    }
    if let (Some(gpu), Some(_)) = (case.gpu, case.gpu.and_then(|gpu| carveout::smaller(case.facts, gpu))) {
        finding = finding.fix(carveout::set(
            case.facts,
            gpu,
            carveout::SMALL,
            "With HIP memory in system RAM both figures agree; ttm.pages_limit then has to be raised.",
        ));
    }
    finding
}

fn above_total(case: &Case<'_>, figure: &Figure) -> Finding {
    RULE.finding(
        Severity::Warning,
        Confidence::Certain,
        format!("{} shows more memory free than there is in total", figure.program),
        "A known fault of the HIP runtime on APUs: total is the page limit, free is computed from another figure. Neither says what can be allocated; the pool above does.",
    )
    .because(figure.evidence.clone())
    .because_of(case.ceiling_evidence("ttm.pages_limit"))
    .fix(Fix::new(FixKind::Package, "Upgrade ROCm once a release has the fix; until then trust the pool that is derived here, not hipMemGetInfo."))
    .related("kernel-param-ineffective")
}
