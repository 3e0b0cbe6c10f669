//! Something is wrong, and the evidence does not decide what.

use logs::Role;

use super::prelude::*;

rule!("insufficient-evidence", Host, 90);

fn check(case: &Case<'_>, report: &mut Report) {
    if report.explains() {
        return;
    }
    let facts = case.facts;
    let held = unexplained_use(case);
    if !case.is_troubled() && held.is_none() {
        return;
    }
    let line = case
        .hits
        .iter()
        .find(|hit| hit.signature.role == Role::Error)
        .or_else(|| case.hits.iter().find(|hit| hit.signature.role == Role::Echo));
    let title = match (line, &held) {
        (Some(hit), _) => {
            format!("cannot tell yet: \"{}\"", hit.text.get(hit.span.clone()).unwrap_or(&hit.text))
        }
        (None, Some(_)) => "cannot tell yet who holds the memory in use".to_owned(),
        (None, None) => "cannot tell yet what ended the program".to_owned(),
    };
    let why = line.map_or("The facts given fit several causes.", |hit| hit.signature.meaning);
    let finding = RULE
        .finding(
            Severity::Warning,
            Confidence::Certain,
            title,
            format!("{why} What would decide is listed below, cheapest first."),
        )
        .because_of(line.map(|hit| Evidence::line(hit)))
        .because_of(fact(&facts.workload.exit_status, "exit status").filter(|_| !case.exit_is(0)))
        .because_of(fact(&facts.workload.symptom, "symptom"))
        .because_of(held);
    report.add(finding);
    asks(case, report);
}

/// A device much of whose memory is in use while the processes listed do not say what they hold.
fn unexplained_use(case: &Case<'_>) -> Option<Evidence> {
    let processes = case.facts.processes.value().filter(|list| !list.is_empty())?;
    case.pools.iter().filter(|pool| pool.api == facts::pool::Api::Hip).find_map(|pool| {
        let (used, total) = (pool.used?, pool.total?);
        let vague = pool.held_by_the_living() == Bytes(0)
            && processes.iter().all(|p| p.vram.or(p.gtt).or(p.kfd).is_none());
        (vague && used > Bytes::gib(2) && used.0 > total.0 / 20).then(|| {
            Evidence::new(
                pool.device.as_str(),
                format!("{used} of {total} in use, and what each process holds is not known"),
            )
        })
    })
}

/// What would decide, cheapest first.
fn asks(case: &Case<'_>, report: &mut Report) {
    let facts = case.facts;
    if !facts.kernel.release.is_known() {
        report.ask(Ask::new(
            "the kernel's version: uname -r",
            "before 6.10, 6.10 to 6.14, and later kernels give HIP different pools on an APU",
        ));
    }
    report.ask(Ask::new(
        "the kernel log from that time: sudo dmesg, or journalctl -k (doctor --log FILE)",
        "an OOM kill (\"Killed process\"), a ring timeout, a page fault or a reset tells memory from a hang",
    ));
    if !facts.memory.available.is_known() {
        report.ask(Ask::new(
            "MemTotal and MemAvailable: cat /proc/meminfo",
            "lack of RAM and lack of GPU memory look alike on an APU",
        ));
    }
    if case.is_apu() && case.device().is_none_or(|gpu| !gpu.vram_total.is_known()) {
        report.ask(Ask::new(
            "the carveout: cat /sys/class/drm/card*/device/mem_info_vram_total, and the RAM installed (dmidecode -t memory, or the BIOS)",
            "a machine with little RAM and one with a large carveout look the same from the OS",
        ));
    }
    if case.is_apu() && !facts.ttm.pages_limit.is_known() {
        report.ask(Ask::new(
            "the page limit: cat /sys/module/ttm/parameters/pages_limit",
            "it caps the HIP pool of an APU",
        ));
    }
    if case.is_apu() && case.device().is_none_or(|gpu| !gpu.kfd_pool.is_known()) {
        report.ask(Ask::new("the pool that KFD shows: rocminfo, or /sys/class/kfd/kfd/topology/nodes/*/mem_banks/*/properties", "it says which pool HIP uses"));
    }
    let holders_known =
        facts.processes.value().is_some_and(|list| list.iter().all(|p| p.vram.or(p.gtt).or(p.kfd).is_some()));
    if !holders_known {
        report.ask(Ask::new(
            "which process holds GPU memory: sudo fuser -v /dev/kfd /dev/dri/render*, /proc/PID/fdinfo, /sys/class/kfd/kfd/proc/*/vram_*",
            "another process that holds the memory, and memory that nobody alive holds, look the same to the program that fails",
        ));
    }
    if case.device().is_none_or(|gpu| !gpu.vram_used.is_known() && !gpu.gtt_used.is_known()) {
        report.ask(Ask::new(
            "memory in use: cat /sys/class/drm/card*/device/mem_info_{vram,gtt}_used",
            "whether the pool was full at all",
        ));
    }
    if case.device().is_some_and(|gpu| gpu.gfx.text() == Some("gfx1151") && !gpu.mes_firmware.is_known()) {
        report.ask(Ask::new(
            "the MES firmware: sudo grep MES /sys/kernel/debug/dri/*/amdgpu_firmware_info",
            "version 0x83 makes GPU programs fault or hang",
        ));
    }
    let faults = [
        "hip-illegal-address",
        "rocr-memory-access-fault-not-present",
        "clr-queue-abort-exception-1016",
        "hip-launch-failure",
    ];
    if case.any_line(&faults).is_some() {
        report.ask(Ask::new(
            "the run again with AMD_SERIALIZE_KERNEL=3",
            "kernels then run one by one, and the call that is named is the one that failed",
        ));
    }
    let container = &facts.container;
    if container.runtime.is_known() && !container.oom_kills.is_known() {
        report.ask(Ask::new(
            "the container's counters: cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory.max",
            "oom_kill above zero means that its own limit ended the program",
        ));
    }
    if case
        .line("rocr-memory-access-fault-other")
        .is_some_and(|hit| hit.field("reason").is_some_and(|r| r.contains("ECC")))
    {
        report.ask(Ask::new(
            "the error counters of the device: cat /sys/class/drm/card*/device/ras/*_err_count",
            "memory of the card that is broken",
        ));
    }
    if !facts.platform.os.is_known() && facts.kernel.release.value().is_none() {
        report.ask(Ask::new(
            "the operating system (platform): Linux, WSL or Windows",
            "limits differ, and some errors exist on one of them only",
        ));
    }
}
