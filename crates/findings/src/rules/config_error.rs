//! The program was told something it cannot do.

use super::prelude::*;

rule!("config-error", Settings, 26);

fn check(case: &Case<'_>, report: &mut Report) {
    let found = quantised_cache(case).or_else(|| budget(case)).or_else(|| {
        let line = case.any_line(&[
            "torch-alloc-conf-unknown-key",
            "llama-invalid-argument",
            "llama-unknown-architecture",
            "llama-context-exceeded",
            "llama-kv-slot",
            "vllm-context-exceeded",
        ])?;
        Some(said(line))
    });
    if let Some(finding) = found {
        report.add(finding);
    }
}

/// K and V caches of types for which this build has no flash-attention kernel.
fn quantised_cache(case: &Case<'_>) -> Option<Finding> {
    let off = case.line("llama-fa-auto").filter(|hit| hit.field("value") == Some("disabled"));
    let mismatch = case.line("llama-fa-device-mismatch");
    let args = case.facts.workload.args.text().unwrap_or_default();
    let kind = |short: &str, long: &str| {
        let mut words = args.split_ascii_whitespace();
        words.find(|word| *word == short || *word == long)?;
        words.next()
    };
    let (k, v) = (kind("-ctk", "--cache-type-k"), kind("-ctv", "--cache-type-v"));
    let line = mismatch.or(off)?;
    let differ = k != v && (k.is_some() || v.is_some());
    if !differ && v.is_none_or(|v| v == "f16") {
        return None;
    }
    let same = k.filter(|k| ["q8_0", "q4_0"].contains(k)).unwrap_or("q8_0");
    Some(
        RULE.finding(
            Severity::Error,
            Confidence::Likely,
            format!("there is no flash-attention kernel for this pair of cache types (K {}, V {})", k.unwrap_or("f16"), v.unwrap_or("f16")),
            "Builds of llama.cpp carry kernels for equal pairs (f16, q8_0, q4_0) unless built with GGML_CUDA_FA_ALL_QUANTS. For another pair attention falls to the CPU, \
             flash attention is switched off, and a quantised V cache cannot be used without it.",
        )
        .because(Evidence::line(line))
        .because_of(off.map(Evidence::line))
        .because_of(fact(&case.facts.workload.args, "command line"))
        .fix(
            Fix::new(FixKind::Flag, format!("Use the same type for both: -ctk {same} -ctv {same}."))
                .command(format!("llama-server -m MODEL.gguf -fa on -ctk {same} -ctv {same}"))
                .check("the log no longer says that flash attention was disabled"),
        )
        .fix(Fix::new(FixKind::Package, "Or a build with -DGGML_CUDA_FA_ALL_QUANTS=ON, which has every pair.")),
    )
}

/// stable-diffusion.cpp was told to take less memory than one part of the graph needs.
fn budget(case: &Case<'_>) -> Option<Finding> {
    let line = case.line("sdcpp-graph-cut-limit")?;
    let (needs, may) = (line.mib("req_mib")?, line.mib("free_mib")?);
    Some(
        RULE.finding(
            Severity::Error,
            Confidence::Likely,
            format!("one part of the graph needs {needs}, and the limit set with --max-vram leaves it {may}"),
            "With --max-vram stable-diffusion.cpp cuts the graph into parts that fit the limit one after the other. The smallest part there is does not.",
        )
        .because(Evidence::line(line))
        .because_of(fact(&case.facts.workload.args, "command line"))
        .fix(Fix::new(
            FixKind::Flag,
            "Raise --max-vram as far as the card has memory, or leave it away.",
        ))
        .fix(
            Fix::new(FixKind::Flag, "Or make the part smaller: a smaller resolution, --diffusion-fa, --vae-tiling.")
                .command("sd --diffusion-fa --vae-tiling"),
        ),
    )
}

fn said(line: &logs::Hit) -> Finding {
    let name = line.field("name").or_else(|| line.field("flag")).unwrap_or("a value").to_owned();
    let (title, fix) = match line.signature.id {
        "torch-alloc-conf-unknown-key" => (
            format!("{name} is no key of PyTorch's allocator configuration"),
            "Correct PYTORCH_ALLOC_CONF: keys are expandable_segments, max_split_size_mb, garbage_collection_threshold, roundup_power2_divisions, backend.",
        ),
        "llama-unknown-architecture" => (
            format!("this build does not know the model architecture {name}"),
            "Upgrade llama.cpp (or what brings it along) to a build that knows the model, or take another model.",
        ),
        "llama-kv-slot" => (
            "the context is full: the conversations in all slots are longer than it".to_owned(),
            "Start the server with a larger context (-c) or fewer slots (--parallel), as far as memory allows, or send shorter conversations.",
        ),
        "llama-context-exceeded" | "vllm-context-exceeded" => (
            "the request is longer than the context the server was started with".to_owned(),
            "Start the server with a larger context (-c, --max-model-len), as far as memory allows, or send a shorter prompt.",
        ),
        _ => (
            format!("the program does not accept {name}"),
            "Correct the option; the program's --help lists what it takes.",
        ),
    };
    RULE.finding(Severity::Error, Confidence::Certain, title, line.signature.meaning)
        .because(Evidence::line(line))
        .fix(Fix::new(FixKind::Flag, fix))
}
