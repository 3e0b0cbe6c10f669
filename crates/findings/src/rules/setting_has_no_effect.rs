//! A setting that nothing here reads, or that cannot help.

use facts::Source;

use super::fragmentation::{expandable_works, torch_version};
use super::prelude::*;

rule!("setting-has-no-effect", Settings, 70);

/// Variables that no runtime reads, and what does what people hope for.
const NOBODY_READS: &[(&str, &str)] = &[
    (
        "HIP_FORCE_MEMORY_POOL_SIZE",
        "HIP has no such pool to size. To hold a program to a part of the GPU use its own option (vLLM --gpu-memory-utilization, Ollama OLLAMA_GPU_OVERHEAD)",
    ),
    (
        "HIP_MAX_CONTEXT_TOKENS",
        "a GPU runtime knows no tokens. Limit the context in the program (-c, --max-model-len, OLLAMA_CONTEXT_LENGTH)",
    ),
    (
        "TORCH_SHOW_MEMORY_STATS",
        "PyTorch has no such variable. Call torch.cuda.memory_summary(), or memory_snapshot()",
    ),
    (
        "GPU_MAX_ALLOC_PERCENT",
        "it comes from OpenCL mining guides and is not among HIP's settings. The pool is what the driver gives",
    ),
    ("GPU_USE_SYNC_OBJECTS", "it comes from OpenCL mining guides and is not among HIP's settings"),
    (
        "VLLM_USE_TRITON_FLASH_ATTN",
        "vLLM removed it in November 2025; the attention backend is chosen by itself (--attention-backend)",
    ),
    (
        "GGML_HIP_UMA",
        "it was a build option, removed from llama.cpp in April 2025. On an APU plain hipMalloc uses system memory through GTT",
    ),
];

/// Lines with which a program says itself that it does not heed a setting.
const LINES: &[(&str, &str, &str)] = &[
    (
        "torch-async-ignores-options",
        "max_split_size_mb",
        "the asynchronous backend (backend:cudaMallocAsync) ignores the options of the native one; choose one backend",
    ),
    (
        "ggml-managed-unsupported",
        "GGML_CUDA_ENABLE_UNIFIED_MEMORY",
        "this platform has no managed memory, and plain hipMalloc is used",
    ),
];

struct Dead {
    name: String,
    instead: String,
    source: Source,
    /// Whether somebody counts on it in a way that the kernel parameter or the memory of this host decides.
    severity: Severity,
}

fn check(case: &Case<'_>, report: &mut Report) {
    let mut dead = variables(case);
    dead.extend(arguments(case));
    dead.extend(parameters(case));
    if dead.is_empty() {
        return;
    }
    let names = dead.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", ");
    let severity = dead.iter().map(|d| d.severity).min().unwrap_or(Severity::Info);
    let verb = if dead.len() == 1 { "has" } else { "have" };
    let unset: Vec<&str> = dead
        .iter()
        .map(|d| d.name.as_str())
        .filter(|n| n.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .collect();
    let mut finding = RULE
        .finding(
            severity,
            Confidence::Certain,
            format!("{names} {verb} no effect here"),
            "Guides repeat settings that no program reads, or that another version or another GPU reads. They do no harm by themselves, and they mend nothing.",
        )
        .because_of(dead.iter().map(|d| Evidence::fact(&d.source, format!("{}: {}", d.name, d.instead))))
        .fixes(dead.iter().map(|d| Fix::new(FixKind::Env, format!("Remove {}: {}.", d.name, d.instead))));
    if let (Some(first), false) = (finding.fixes.first_mut(), unset.is_empty()) {
        first.command = Some(format!("unset {}", unset.join(" ")));
    }
    report.add(finding);
}

fn variables(case: &Case<'_>) -> Vec<Dead> {
    let mut dead = Vec::new();
    let mut add = |name: &str, instead: &str, source: &Source| {
        dead.push(Dead {
            name: name.to_owned(),
            instead: instead.to_owned(),
            source: source.clone(),
            severity: Severity::Warning,
        });
    };
    for (name, instead) in NOBODY_READS {
        if let Some(known) = case.facts.env(name) {
            add(name, instead, &known.source);
        }
    }
    if let Some(hit) = case.line("vllm-unknown-env")
        && let Some(name) = hit.field("name").filter(|name| case.facts.env(name).is_none())
    {
        let source = Source::new(
            facts::Origin::Log,
            format!("{}:{}", hit.line.log, hit.line.number),
            hit.text.as_str(),
        );
        let instead = NOBODY_READS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("this vLLM does not know it", |(_, instead)| *instead);
        add(name, instead, &source);
    }
    for (id, name, instead) in LINES {
        if let Some(hit) = case.line(id) {
            let place = format!("{}:{}", hit.line.log, hit.line.number);
            add(name, instead, &Source::new(facts::Origin::Log, place, hit.text.as_str()));
        }
    }
    let gfx9 = case.facts.gpus.iter().any(|gpu| gpu.gfx.text().is_some_and(|gfx| gfx.starts_with("gfx9")));
    if let Some(known) =
        case.facts.env("HSA_XNACK").filter(|_| !gfx9 && case.facts.gpus.iter().any(|g| g.gfx.is_known()))
    {
        add("HSA_XNACK", "page-fault retry exists on gfx9 data-centre GPUs only", &known.source);
    }
    for name in ["PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"] {
        let Some(known) =
            case.facts.env(name).filter(|known| known.value.contains("expandable_segments:True"))
        else {
            continue;
        };
        if expandable_works(case) == Some(false) {
            add(
                name,
                "this PyTorch ignores expandable_segments on ROCm (upstream 2.12 and later with ROCm 7 and later have it), and it would only lessen fragmentation, not the need",
                &known.source,
            );
        }
    }
    // The new name does not exist before 2.9.
    if let Some(known) =
        case.facts.env("PYTORCH_ALLOC_CONF").filter(|_| torch_version(case).is_some_and(|v| v < (2, 9)))
    {
        add("PYTORCH_ALLOC_CONF", "PyTorch before 2.9 reads PYTORCH_HIP_ALLOC_CONF", &known.source);
    }
    // PyTorch says so, and where it was set is not known.
    if let Some(hit) = case.line("torch-expandable-unsupported").filter(|_| dead.is_empty()) {
        let place = format!("{}:{}", hit.line.log, hit.line.number);
        dead.push(Dead {
            name: "expandable_segments:True".to_owned(),
            instead: "this PyTorch ignores it on ROCm, and it would only lessen fragmentation, not the need"
                .to_owned(),
            source: Source::new(facts::Origin::Log, place, hit.text.as_str()),
            severity: Severity::Warning,
        });
    }
    dead
}

/// Settings on the workload's command line that cannot help.
fn arguments(case: &Case<'_>) -> Vec<Dead> {
    let Some(args) = case.facts.workload.args.as_known() else { return Vec::new() };
    let text = args.value.to_ascii_lowercase();
    let mut dead = Vec::new();
    let mut add = |name: &str, instead: &str| {
        dead.push(Dead {
            name: name.to_owned(),
            instead: instead.to_owned(),
            source: args.source.clone(),
            severity: Severity::Warning,
        });
    };
    if text.contains("gradient_checkpointing") || text.contains("gradient-checkpointing") {
        add(
            "gradient checkpointing",
            "it saves memory in training only; inference keeps nothing for a backward pass",
        );
    }
    if text.contains("ggml_hip_uma") {
        add(
            "GGML_HIP_UMA",
            "the build option was removed from llama.cpp in April 2025; unknown CMake options are ignored",
        );
    }
    dead
}

/// Kernel parameters that people set for memory and that give none.
fn parameters(case: &Case<'_>) -> Vec<Dead> {
    let Some(line) = case.facts.kernel.cmdline.as_known() else { return Vec::new() };
    let words: Vec<&str> = line.value.split_ascii_whitespace().collect();
    let mut dead = Vec::new();
    let mut add = |name: String, instead: &str, severity| {
        dead.push(Dead { name, instead: instead.to_owned(), source: line.source.clone(), severity });
    };
    let discrete =
        !case.facts.gpus.is_empty() && case.facts.gpus.iter().all(|gpu| gpu.apu.get() == Some(false));
    for word in words {
        match word.split_once('=') {
            // The IOMMU has nothing to do with the pool; off it costs the NPU and DMA protection.
            Some(("amd_iommu", "off")) => add(
                word.to_owned(),
                "it gives the GPU no memory (the pool is not bounded by the IOMMU); it saves a few percent of time and costs the NPU and DMA protection",
                Severity::Info,
            ),
            Some((name @ ("amdgpu.gttsize" | "ttm.pages_limit" | "amdttm.pages_limit"), _)) if discrete => {
                add(
                    name.to_owned(),
                    "it sizes system memory for the GPU; HIP on a card uses its VRAM only",
                    Severity::Info,
                );
            }
            Some((name @ ("amdgpu.vm_size" | "amdgpu.vm_block_size" | "amdgpu.vm_fragment_size"), _)) => {
                add(
                    name.to_owned(),
                    "it shapes page tables and address space, not capacity; the default is right",
                    Severity::Info,
                );
            }
            _ => {}
        }
    }
    dead
}
