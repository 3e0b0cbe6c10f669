//! A program shows a total that is not what can be allocated.

use super::misreported::figures;
use super::prelude::*;

rule!("total-misreported", Program, 42);

fn check(case: &Case<'_>, report: &mut Report) {
    if !case.is_apu() {
        return;
    }
    let Some(gpu) = case.device() else { return };
    let (Some(vram), Some(gtt)) = (gpu.vram_total.get(), gpu.gtt_total.get()) else { return };
    let Some(pool) = case.hip_pool().and_then(|pool| pool.total).filter(|_| case.hip()) else { return };
    for figure in figures(case) {
        let Some(total) = figure.total else { continue };
        let sum = total.near(vram + gtt, 1.0) && !total.near(pool, 5.0);
        let carveout_only = total.near(vram, 2.0) && pool.0 / 4 > vram.0;
        if !sum && !carveout_only {
            continue;
        }
        let (title, why) = if sum {
            (
                format!("{} shows {total}, carveout and GTT added; HIP can allocate {pool}", figure.program),
                "HIP uses one of the two, never their sum. A program that plans with the sum fails when it fills it.",
            )
        } else {
            (
                format!(
                    "{} takes the carveout of {vram} for all there is; HIP can allocate {pool}",
                    figure.program
                ),
                "On an APU with a small carveout HIP memory comes from GTT. A program that reads only the carveout believes that it has next to nothing, and \
                 puts the model on the CPU.",
            )
        };
        let finding = RULE
            .finding(Severity::Warning, Confidence::Likely, title, why)
            .because(figure.evidence)
            .because_of(case.line("ollama-low-vram").map(Evidence::line))
            .because_of(fact(&gpu.vram_total, "carveout"))
            .because_of(fact(&gpu.gtt_total, "GTT"))
            .fix(
                Fix::new(FixKind::Package, "Upgrade the program to a newer version (for Ollama see its issue 13196), or go back to the one before the update that brought this.")
                    .check("its start-up line shows the size of the pool"),
            )
            .fix(Fix::new(FixKind::Flag, "Until then set the number of layers on the GPU yourself (Ollama: num_gpu; llama.cpp: -ngl 99)."));
        return report.add(finding);
    }
}
