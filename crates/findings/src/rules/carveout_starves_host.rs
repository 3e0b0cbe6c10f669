//! So much is carved out that the OS has too little.

use super::prelude::*;
use crate::advice::carveout;

rule!("carveout-starves-host", Firmware, 28);

fn check(case: &Case<'_>, report: &mut Report) {
    let (Some(position), Some(gpu)) = (case.gpu, case.device()) else { return };
    let (Some(vram), Some(ram)) = (gpu.vram_total.get(), case.facts.memory.total.get()) else { return };
    if !case.is_apu() || vram < Bytes::gib(8) || vram.0 < ram.0 / 2 {
        return;
    }
    let killed = case.any_line(&[
        "kernel-oom-kill",
        "systemd-oomd-pressure",
        "systemd-oomd-swap",
        "earlyoom-kill",
        "host-bad-alloc",
    ]);
    let refused = case.line("ollama-system-memory");
    let slow = case.facts.workload.load_seconds.get().is_some_and(|s| s > 120.0)
        || case.facts.workload.symptom.get() == Some(facts::Symptom::SlowLoad);
    let starved = case.facts.memory.available.get().is_some_and(|available| available < Bytes::gib(2));
    let (severity, confidence) = match (killed.or(refused), slow || starved) {
        (Some(_), _) => (Severity::Error, Confidence::Likely),
        (None, true) => (Severity::Warning, Confidence::Likely),
        (None, false) if vram > ram => (Severity::Info, Confidence::Certain),
        _ => return,
    };
    let finding = RULE
        .finding(
            severity,
            confidence,
            format!("{vram} are carved out for the GPU; the OS has {ram} left"),
            "The carveout is taken from RAM before the OS starts. Model files are read through the page cache, and host buffers, other \
             programs and the desktop share what is left, while the carveout may stand empty.",
        )
        .because_of(killed.or(refused).map(Evidence::line))
        .because_of(fact(&gpu.vram_total, "carveout"))
        .because_of(fact(&case.facts.memory.total, "MemTotal"))
        .because_of(fact(&case.facts.memory.available, "MemAvailable"))
        .fix(carveout::set(
            case.facts,
            position,
            carveout::SMALL,
            "The RAM goes back to the OS; then raise ttm.pages_limit so that HIP can take it when it needs it.",
        ))
        .fix(Fix::new(FixKind::Flag, "Until then load without mapping the file (llama.cpp: --no-mmap), so that weights do not sit in RAM twice."));
    report.add(finding);
}
