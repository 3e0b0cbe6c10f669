//! Diffusion without flash attention: the attention scores broke the pool.

use super::prelude::*;
use crate::advice::engine::Engine;
use crate::failure::Part;

rule!("attention-quadratic", Program, 46);

/// A single request of this size from an attention call is a score matrix, not a tensor of the model.
const SCORES: Bytes = Bytes::gib(4);

fn check(case: &Case<'_>, report: &mut Report) {
    if report.explains() {
        return;
    }
    let Some(failure) = &case.failure else { return };
    let frame = case.line("torch-attention-frame");
    let torch = frame.is_some() && failure.requested.is_some_and(|asked| asked >= SCORES);
    let args = case.facts.workload.args.text();
    let sdcpp = case.engine == Some(Engine::SdCpp)
        && failure.part == Some(Part::Compute)
        && args.is_some_and(|args| !args.contains("--diffusion-fa"))
        && failure.requested.is_some_and(|asked| asked >= Bytes::gib(2));
    if !torch && !sdcpp {
        return;
    }
    let asked = failure.requested.unwrap_or_default();
    let first = if sdcpp {
        Fix::new(
            FixKind::Flag,
            "Turn flash attention on in the diffusion model: the score matrix is then never stored.",
        )
        .command("sd --diffusion-fa")
    } else {
        Fix::new(
            FixKind::Flag,
            "Use an attention that does not store the scores: ComfyUI --use-pytorch-cross-attention with a PyTorch whose flash kernels cover this GPU, \
             or --use-split-cross-attention / --use-quad-cross-attention.",
        )
        .command("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1 python main.py --use-pytorch-cross-attention")
        .risk("the variable turns on kernels that are still experimental on some GPUs")
        .undo("start without the variable and the flag")
    };
    let finding = RULE
        .finding(
            Severity::Error,
            Confidence::Likely,
            format!("attention asked for {asked} at once: its scores grow with the square of the image (or of the frames)"),
            "Without a flash kernel the attention scores of all pairs of positions are stored. Twice the width and height makes sixteen times the memory.",
        )
        .because_of(frame.map(Evidence::line))
        .because_of(case.failure_evidence())
        .fix(first)
        .fix(Fix::new(FixKind::Flag, "Or a smaller resolution, fewer frames, or a batch of one."));
    report.add(finding);
}
