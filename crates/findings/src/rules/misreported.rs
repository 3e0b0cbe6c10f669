//! What the three rules about wrong figures share.

use facts::pool::Policy;

use super::prelude::*;

/// A figure that a program shows for the device.
pub(super) struct Figure {
    /// Who shows it.
    pub(super) program: String,
    /// Total shown.
    pub(super) total: Option<Bytes>,
    /// Free shown.
    pub(super) free: Option<Bytes>,
    /// The line or field.
    pub(super) evidence: Evidence,
}

/// Every figure that a program shows: from the sheet, from log lines, from the runtime.
pub(super) fn figures(case: &Case<'_>) -> Vec<Figure> {
    let mut list = Vec::new();
    for known in &case.facts.shown {
        // Ollama's figures of another API, and of the CPU, are not HIP's.
        if ["library=Vulkan", "library=vulkan", "library=cpu"]
            .iter()
            .any(|other| known.source.text.contains(other))
        {
            continue;
        }
        let program = known.value.program.clone().unwrap_or_else(|| "a program".to_owned());
        let text = if known.source.text.is_empty() { program.clone() } else { known.source.text.to_string() };
        let evidence = Evidence::fact(&known.source, text);
        list.push(Figure { program, total: known.value.total, free: known.value.free, evidence });
    }
    for hit in case.lines("vllm-free-memory-startup") {
        let gib = |name| hit.decimal(name).and_then(|n| Bytes::parse(&format!("{n} GiB")));
        list.push(Figure {
            program: "vLLM".to_owned(),
            total: gib("total_gib"),
            free: gib("free_gib"),
            evidence: Evidence::line(hit),
        });
    }
    if let Some(hit) = case.line("llama-fit-projected") {
        list.push(Figure {
            program: "llama.cpp".to_owned(),
            total: None,
            free: hit.mib("free_mib"),
            evidence: Evidence::line(hit),
        });
    }
    if let Some(known) = case.device().and_then(|gpu| gpu.hip_free.as_known()) {
        let total = case.device().and_then(|gpu| gpu.hip_total.get());
        let text = match total {
            Some(total) => format!("HIP reports total {total}, free {}", known.value),
            None => format!("HIP reports free {}", known.value),
        };
        list.push(Figure {
            program: "HIP".to_owned(),
            total,
            free: Some(known.value),
            evidence: Evidence::fact(&known.source, text),
        });
    }
    list
}

/// Whether the pool is the carveout of an APU.
pub(super) fn in_carveout(case: &Case<'_>, total: Option<Bytes>) -> bool {
    let vram = case.device().and_then(|gpu| gpu.vram_total.get());
    let equals = total.zip(vram).is_some_and(|(total, vram)| total.near(vram, 3.0));
    case.is_apu() && equals && case.policy() != Some(Policy::Gtt)
}
