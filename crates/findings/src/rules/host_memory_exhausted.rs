//! The host's RAM is what ran out.

use super::prelude::*;

rule!("host-memory-exhausted", Host, 29);

const KILLS: &[&str] = &[
    "kernel-oom-kill",
    "systemd-oomd-pressure",
    "systemd-oomd-swap",
    "earlyoom-kill",
    "host-bad-alloc",
    "host-python-memory-error",
    "host-mmap-failed",
    "torch-cpu-oom",
    "vk-out-of-host-memory",
    "kernel-page-alloc-failure",
];

fn check(case: &Case<'_>, report: &mut Report) {
    if report.has("managed-memory") && report.explains() || report.has("cgroup-oom") {
        return;
    }
    let line = case
        .hits
        .iter()
        .copied()
        .filter(|hit| KILLS.contains(&hit.signature.id))
        // Long runs of pages fail in fragmented RAM, and shorter ones are tried; short ones fail when there is none.
        .find(|hit| hit.number("order").is_none_or(|order| order <= 3))
        .or_else(|| refused(case));
    let memory = &case.facts.memory;
    let (total, available) = (memory.total.get(), memory.available.get());
    let low = available.is_some_and(|available| {
        available < Bytes::gib(1) || total.is_some_and(|total| available.0 < total.0 / 32)
    });
    let asked = case.failure.as_ref().and_then(|failure| failure.requested);
    let in_ram = case.is_apu() && case.hip_pool().is_none_or(|pool| pool.in_ram || pool.total.is_none());
    // GTT draws on the host's free RAM: a request above it cannot be served whatever the limits say.
    let over = in_ram
        && asked.zip(available).is_some_and(|(asked, available)| asked > available)
        // A pool that is too small refuses first.
        && matches!(case.fit(), Fit::Fits | Fit::Unknown);
    if line.is_none() && !low && !over {
        return;
    }
    let starved = report.has("carveout-starves-host") && report.explains();
    if starved {
        return;
    }
    let severity = if line.is_some() || over { Severity::Error } else { Severity::Warning };
    let confidence = if line.is_some_and(|hit| hit.signature.id == "kernel-oom-kill") {
        Confidence::Certain
    } else {
        Confidence::Likely
    };
    let title = match (line, available) {
        (Some(hit), _) => match (hit.field("comm"), hit.number("pid")) {
            (Some(comm), Some(pid)) => {
                format!("the host ran out of RAM, and {comm} (pid {pid}) was killed for it")
            }
            _ => "the host ran out of RAM".to_owned(),
        },
        (None, Some(available)) => format!("the host has {available} of RAM left"),
        (None, None) => "the host ran out of RAM".to_owned(),
    };
    let vllm = case.engine == Some(crate::advice::engine::Engine::Vllm);
    let mut finding = RULE
        .finding(
            severity,
            confidence,
            title,
            "On an APU the GPU's memory is the host's RAM: GTT, page cache, pinned buffers and programs share it, and GTT is charged to no process, so the one that \
             is killed may look small. On any machine host buffers and a model file larger than RAM do the same.",
        )
        .because_of(line.map(Evidence::line))
        .because_of(case.failure_evidence())
        .because_of(fact(&memory.available, "MemAvailable"))
        .because_of(fact(&memory.total, "MemTotal"))
        .because_of(case.utilization().and_then(|_| fact(&case.facts.workload.args, "command line")));
    if vllm {
        let share = case.utilization().map_or_else(String::new, |share| format!(" (now {share:.2})"));
        finding = finding.fix(
            Fix::new(FixKind::Flag, format!("Lower the share that vLLM takes{share}: on an APU it counts from the RAM that the OS needs too; leave it at least 8 GiB."))
                .command("vllm serve MODEL --gpu-memory-utilization 0.80"),
        );
    }
    let oomd = case.any_line(&["systemd-oomd-pressure", "systemd-oomd-swap"]);
    finding = finding
        .fix(Fix::new(FixKind::Flag, "Load without mapping the file (llama.cpp: --no-mmap), and lower context or slots, so that a reserve of RAM stays for the host."))
        .fix(Fix::new(FixKind::KernelParam, "On an APU lower ttm.pages_limit so that the GPU leaves the OS a tenth of RAM and at least 4 GiB."))
        .fix(Fix::new(FixKind::Command, "Close what else uses RAM, or add swap as a cushion.").command("ps -eo pid,rss,comm --sort=-rss | head"));
    if oomd.is_some() {
        finding = finding.fix(
            Fix::new(FixKind::Command, "Or keep systemd-oomd from this service: it ends a whole unit for memory pressure, before the kernel would (ManagedOOMMemoryPressure=auto in the unit).")
                .command("sudo systemctl edit NAME.service   # [Service] ManagedOOMMemoryPressure=auto")
                .risk("under real lack of RAM the machine then stalls for longer before the kernel ends something"),
        );
    }
    // Freed pages of GTT stay in TTM's own pool, by default as many as the page limit.
    let pool = case.facts.ttm.page_pool_size.as_known().map(|pages| Bytes::pages(pages.value));
    if case.is_apu() && pool.is_some_and(|pool| total.is_some_and(|total| pool.0 > total.0 / 4)) {
        finding = finding.fix(crate::advice::boot::module_parameter(
            case.facts,
            "ttm",
            "page_pool_size",
            &Bytes::gib(4).whole_pages().to_string(),
            "Or let TTM keep fewer freed pages for itself (page_pool_size, here 4 GiB), so that they go back to the OS.".to_owned(),
        ));
    }
    report.add(finding);
}

/// A request of host memory that was refused before or while it was made, larger than what this host has.
fn refused<'a>(case: &Case<'a>) -> Option<&'a logs::Hit> {
    let line = case.any_line(&["ollama-system-memory", "clr-alloc-failed-pinned"])?;
    let asked = line.size("req").or_else(|| line.size("size"))?;
    let memory = &case.facts.memory;
    let most = memory.available.get().or(memory.total.get())?;
    (asked > most).then_some(line)
}
