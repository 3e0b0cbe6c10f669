//! The image decoder's workspace broke the pool.

use super::prelude::*;
use crate::advice::engine::Engine;
use crate::failure::Part;

rule!("vae-workspace", Program, 46);

fn check(case: &Case<'_>, report: &mut Report) {
    let soft = case.line("comfy-vae-tiled");
    let failed = case.failure.as_ref().filter(|f| f.part == Some(Part::Vae));
    if report.explains() && failed.is_none() {
        return;
    }
    let (severity, title) = match (failed, soft) {
        (Some(failure), _) => {
            let asked = failure.requested.map_or_else(String::new, |asked| format!(" ({asked} asked for)"));
            (Severity::Error, format!("the image decoder (VAE) could not get its workspace{asked}"))
        }
        (None, Some(_)) => (
            Severity::Info,
            "the image decoder (VAE) ran out of memory once and went on with tiles".to_owned(),
        ),
        (None, None) => return,
    };
    let comfy = case.engine == Some(Engine::ComfyUi);
    let tile = if comfy {
        Fix::new(
            FixKind::Flag,
            "Use the node VAE Decode (Tiled) instead of VAE Decode: tiling bounds the workspace.",
        )
    } else {
        Fix::new(FixKind::Flag, "Tile the VAE (--vae-tiling): the workspace then is that of one tile.")
            .command("sd --vae-tiling")
    };
    let finding = RULE
        .finding(
            severity,
            Confidence::Likely,
            title,
            "The decoder works at full resolution, and its workspace grows with the pixels of the image; older stable-diffusion.cpp builds take 7680 bytes per \
             pixel for SDXL. It comes last, when the diffusion model may still hold its memory.",
        )
        .because_of(case.failure_evidence())
        .because_of(soft.map(Evidence::line))
        .because_of(fact(&case.facts.workload.args, "command line"))
        .fix(tile)
        .fix(Fix::new(FixKind::Flag, "Or decode on the CPU (stable-diffusion.cpp: --vae-on-cpu), which is slow and always fits, or a smaller resolution."))
        .fix(Fix::new(FixKind::Package, "Or a newer build, which needs less for the same image."));
    report.add(finding);
}
