//! Carveout and GTT promise more memory than the machine has.

use facts::pool::{Policy, ttm_limit};

use super::prelude::*;
use crate::advice::{carveout, page_limit};

rule!("gtt-exceeds-ram", Kernel, 31);

/// The most memory that boards of a family carry, where it is soldered.
fn most_memory(gfx: Option<&str>) -> Option<Bytes> {
    (gfx == Some("gfx1151")).then_some(Bytes::gib(128))
}

fn check(case: &Case<'_>, report: &mut Report) {
    let (Some(position), Some(gpu)) = (case.gpu, case.device()) else { return };
    if !case.is_apu() || report.has("kernel-param-ineffective") {
        return;
    }
    // The kernel itself says that more was asked for than there is.
    let capped = case.line("kernel-gtt-capped");
    let known = gpu.gtt_total.get().or_else(|| ttm_limit(case.facts, gpu).map(|ttm| ttm.bytes));
    let Some(gtt) = known.or_else(|| capped?.mib("mib")) else { return };
    let vram = gpu.vram_total.get().unwrap_or_default();
    let ram = case.facts.memory.total.get();
    let installed = case.facts.memory.installed.get().or_else(|| {
        // A machine that has more was not built yet when this was written.
        most_memory(gpu.gfx.text()).filter(|most| ram.is_none_or(|ram| ram + vram <= *most))
    });
    // MemTotal excludes the carveout, and a few percent go to the firmware and the kernel.
    let over_ram = ram.is_some_and(|ram| gtt > ram + Bytes(ram.0 / 50));
    let over_board = installed.is_some_and(|installed| (gtt + vram) > installed);
    if !(over_ram || over_board || capped.is_some()) {
        return;
    }
    let what_is = match (ram, installed) {
        (Some(ram), _) if over_ram => format!("the OS sees {ram}"),
        (_, Some(installed)) => format!("the machine has at most {installed}"),
        _ => "the kernel cut down what was asked for".to_owned(),
    };
    let failed = case.is_out_of_memory();
    let severity = if failed { Severity::Error } else { Severity::Warning };
    let mut finding = RULE
        .finding(
            severity,
            case.sure_if(over_ram && ram.is_some()),
            format!("GTT of {gtt} beside a carveout of {vram} promises more than there is: {what_is}"),
            "The GTT size is a promise, not memory. Programs that believe it fail late: the allocation is refused, or the OS runs out of RAM. \
             It usually dates from before the carveout was enlarged in the BIOS.",
        )
        .because_of(capped.map(Evidence::line))
        .because_of(fact(&gpu.gtt_total, "GTT"))
        .because_of(fact(&gpu.vram_total, "carveout"))
        .because_of(fact(&case.facts.memory.total, "MemTotal"))
        .because_of(case.failure_evidence());
    if let Some(small) = carveout::smaller(case.facts, position).filter(|_| vram > Bytes::gib(4)) {
        finding = finding.fix(carveout::set(
            case.facts,
            position,
            small,
            "Then the RAM goes back to the OS and a large ttm.pages_limit is backed by memory.",
        ));
    }
    let limit = page_limit::recommend(case.facts, position, None);
    finding = match limit {
        Some(limit) if case.policy() == Some(Policy::Gtt) && !limit.carveout_first => finding.fixes(limit.fixes(case.facts)),
        _ => finding.fix(
            Fix::new(
                FixKind::KernelParam,
                "Or keep the carveout and take the stale ttm.pages_limit and amdgpu.gttsize off the kernel command line and out of \
                 /etc/modprobe.d; GTT then is half of what the OS sees.",
            )
            .command("grep -rn 'pages_limit\\|gttsize' /etc/modprobe.d /etc/default/grub /etc/kernel/cmdline /boot/loader/entries")
            .risk("needs a reboot")
            .undo("put the parameters back")
            .check("cat /sys/class/drm/card*/device/mem_info_gtt_total"),
        ),
    };
    report.add(finding);
}
