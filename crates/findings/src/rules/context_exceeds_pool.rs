//! The KV cache does not fit.

use super::capacity::{evidence, figures, shortage};
use super::prelude::*;
use crate::advice::engine;
use crate::failure::Part;

rule!("context-exceeds-pool", Settings, 48);

fn check(case: &Case<'_>, report: &mut Report) {
    if let Some(line) = case.any_line(&["vllm-kv-cache-too-small", "vllm-old-kv-tokens"]) {
        return vllm(case, report, line);
    }
    let Some(shortage) = shortage(case, report).filter(|s| s.part == Part::Context) else { return };
    let finding = RULE
        .finding(
            Severity::Error,
            shortage.confidence,
            format!("the KV cache for this context does not fit ({})", figures(&shortage)),
            "The weights fit; the cache grows in proportion to context and slots. It is allocated whole at the start.",
        )
        .because_of(evidence(case))
        .fixes(engine::smaller_context(case.engine));
    report.add(finding);
}

/// vLLM computes it before it allocates, and says what would fit.
fn vllm(case: &Case<'_>, report: &mut Report, line: &logs::Hit) {
    if report.explains() {
        return;
    }
    let fits = case.line("vllm-estimated-max-len").or(Some(line)).and_then(|hit| {
        hit.number("tokens").or_else(|| {
            (hit.signature.id == "vllm-estimated-max-len").then(|| hit.number("context")).flatten()
        })
    });
    let asked = line.number("context").map_or_else(String::new, |n| format!(" of {n} tokens"));
    let first = match fits {
        Some(tokens) => Fix::new(
            FixKind::Flag,
            format!("Lower the longest sequence to what vLLM says fits: --max-model-len {tokens}."),
        )
        .command(format!("vllm serve MODEL --max-model-len {tokens}")),
        None => Fix::new(FixKind::Flag, "Lower the longest sequence (--max-model-len).")
            .command("vllm serve MODEL --max-model-len 32768"),
    };
    let finding = RULE
        .finding(
            Severity::Error,
            Confidence::Certain,
            format!("the KV cache for one sequence{asked} does not fit beside the weights"),
            "vLLM gives the cache what its share of the GPU (--gpu-memory-utilization) leaves after weights and activations, and refuses to start where one \
             sequence of the longest length does not fit.",
        )
        .because(Evidence::line(line))
        .because_of(case.line("vllm-estimated-max-len").map(Evidence::line))
        .fix(first)
        .fix(
            Fix::new(FixKind::Flag, "Or store the cache in 8 bits (--kv-cache-dtype fp8), or allow fewer tokens at a time (--max-num-batched-tokens).")
                .command("vllm serve MODEL --kv-cache-dtype fp8"),
        )
        .fix(Fix::new(FixKind::Flag, "Or a larger share, where nothing else needs the GPU (--gpu-memory-utilization, which counts from the total)."));
    report.add(finding);
}
