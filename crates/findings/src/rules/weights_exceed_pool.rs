//! The weights do not fit.

use super::capacity::{evidence, figures, shortage};
use super::prelude::*;
use crate::advice::engine;
use crate::failure::Part;

rule!("weights-exceed-pool", Program, 48);

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(shortage) = shortage(case, report).filter(|s| s.part == Part::Weights) else {
        return partly_on_cpu(case, report);
    };
    let finding = RULE
        .finding(
            if case.is_troubled() { Severity::Error } else { Severity::Warning },
            shortage.confidence,
            format!("the model's weights do not fit the GPU ({})", figures(&shortage)),
            "Weights, KV cache and compute buffers share one pool. GTT does not extend a card's VRAM for HIP, and no allocator setting does.",
        )
        .because_of(evidence(case))
        .fixes(engine::smaller_weights(case.engine))
        .fixes(of_the_line(case));
    report.add(finding);
}

/// llama.cpp put a part of the layers on the CPU, because the pool was too small for all.
fn partly_on_cpu(case: &Case<'_>, report: &mut Report) {
    if report.explains() || !case.hip() {
        return;
    }
    // Who puts experts, tensors or layers on the CPU himself knows.
    let args = case.facts.workload.args.text().unwrap_or_default();
    if ["--n-cpu-moe", "-ncmoe", "--cpu-moe", "-cmoe", "-ot ", "--override-tensor"]
        .iter()
        .any(|flag| args.contains(flag))
    {
        return;
    }
    let model = |on_gpu: bool| {
        case.lines("llama-buffer-size").filter(move |hit| {
            let device = hit.field("dev").unwrap_or_default();
            hit.field("kind") == Some("model")
                && if on_gpu { device.starts_with("ROCm") } else { device.starts_with("CPU") }
        })
    };
    let sum = |on_gpu: bool| -> Bytes { model(on_gpu).filter_map(|hit| hit.mib("mib")).sum() };
    let (gpu, cpu) = (sum(true), sum(false));
    let Some(total) = case.pool_at_most() else { return };
    // A few GiB on the CPU are the embedding and what the user put there.
    if gpu == Bytes(0) || cpu.0 < (gpu + cpu).0 / 4 || gpu + cpu <= total {
        return;
    }
    let finding = RULE
        .finding(
            Severity::Warning,
            Confidence::Likely,
            format!("only {gpu} of {} of weights are on the GPU: its pool is {total} at most", gpu + cpu),
            "The program splits the layers where the pool ends; what is on the CPU runs at the CPU's speed.",
        )
        .because_of(model(true).chain(model(false)).map(Evidence::line))
        .because_of(case.ceiling_evidence("vram"))
        .fixes(larger_pool(case))
        .fix(Fix::new(FixKind::Flag, "Or use the Vulkan backend, whose pool spans carveout and GTT (two thirds of their sum are device-local)."))
        .fixes(engine::smaller_weights(case.engine).into_iter().take(1));
    report.add(finding);
}

/// A larger pool, where this machine could have one.
fn larger_pool(case: &Case<'_>) -> Vec<Fix> {
    let limit =
        case.gpu.and_then(|gpu| crate::advice::page_limit::recommend(case.facts, gpu, Some(Bytes(u64::MAX))));
    match limit {
        Some(limit) => carveout_first(case, &limit).into_iter().chain(limit.fixes(case.facts)).collect(),
        None if case.is_apu() => vec![Fix::new(
            FixKind::Bios,
            "Give HIP one large pool: the smallest carveout in the BIOS (512 MB), and ttm.pages_limit raised for the RAM that the OS then sees.",
        )
        .undo("set the former size in the BIOS")],
        None => Vec::new(),
    }
}

/// What gives the weights more room where a setting took it.
fn of_the_line(case: &Case<'_>) -> Option<Fix> {
    if case.line("vllm-no-cache-blocks").is_some() {
        let text = "Or give vLLM a larger share of the GPU where nothing else needs it (--gpu-memory-utilization), and save what graph capture takes (--enforce-eager).";
        return Some(
            Fix::new(FixKind::Flag, text)
                .command("vllm serve MODEL --gpu-memory-utilization 0.95 --enforce-eager"),
        );
    }
    case.line("ollama-memory-layout").map(|_| {
        Fix::new(FixKind::Flag, "Or take num_gpu out of the request and the Modelfile: Ollama then chooses as many layers as fit.")
    })
}
