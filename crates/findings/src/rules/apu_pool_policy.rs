//! The kernel takes HIP memory from the smaller of carveout and GTT.

use facts::pool::Policy;

use super::prelude::*;
use crate::advice::simulate::{Setting, kernel_series, pool_with};
use crate::advice::{carveout, page_limit};

rule!("apu-pool-policy", Kernel, 32);

/// A kernel that picks the larger pool and is new enough for every APU of today.
const GOOD_KERNEL: (u32, u32) = (6, 18);

fn check(case: &Case<'_>, report: &mut Report) {
    let (Some(gpu), Some(policy)) = (case.gpu, case.policy()) else { return };
    let Some(total) = case.hip_pool().and_then(|pool| pool.total).filter(|_| case.is_apu() && case.hip())
    else {
        return;
    };
    let vram = case.device().and_then(|gpu| gpu.vram_total.get());
    match policy {
        Policy::Gtt => {
            let Some(vram) = vram.filter(|vram| *vram > total + Bytes(total.0 / 10)) else { return };
            if kernel_series(case.facts).is_none_or(|series| !((6, 10)..(6, 15)).contains(&series)) {
                return;
            }
            report.add(gtt_although_carveout(case, gpu, total, vram));
        }
        Policy::Carveout => {
            let old = kernel_series(case.facts).is_some_and(|series| series < (6, 10));
            let starved =
                total <= Bytes::gib(8) && case.facts.memory.total.get().is_none_or(|ram| ram.0 / 2 > total.0);
            let short = matches!(case.fit(), Fit::Raisable);
            if (old && starved && (case.is_troubled() || case.has_program())) || short {
                report.add(carveout_only(case, gpu, total, old));
            }
        }
    }
}

fn severity(case: &Case<'_>) -> Severity {
    if case.is_out_of_memory() { Severity::Error } else { Severity::Warning }
}

fn gtt_although_carveout(case: &Case<'_>, gpu: usize, total: Bytes, vram: Bytes) -> Finding {
    let (major, minor) = GOOD_KERNEL;
    let newer = pool_with(case.facts, gpu, Setting { kernel: Some(GOOD_KERNEL), ..Setting::default() });
    let gain = newer.map_or_else(String::new, |pool| format!(" The HIP pool becomes {pool}."));
    let shown = case.device().and_then(|gpu| gpu.hip_total.get()).is_some_and(|shown| shown.near(total, 3.0));
    RULE.finding(
        severity(case),
        case.sure_if(shown),
        format!("this kernel gives HIP {total} of GTT although {vram} are carved out"),
        "Kernels 6.10 to 6.14 take HIP memory of every APU from GTT, however large the carveout is; from 6.15 on the larger of \
         the two is used. GTT is half of the little RAM that the carveout leaves to the OS.",
    )
    .because_of(fact(&case.facts.kernel.release, "kernel"))
    .because_of(case.device().into_iter().flat_map(|gpu| fact(&gpu.vram_total, "carveout")))
    .because_of(case.ceiling_evidence("ttm.pages_limit"))
    .because_of(case.failure_evidence())
    .fix(
        Fix::new(FixKind::Package, format!("Upgrade to a newer kernel, {major}.{minor} or later (6.15 at least).{gain}"))
            .risk("a newer kernel may need newer firmware files beside it")
            .undo("choose the former kernel in the boot menu")
            .check("uname -r"),
    )
    .fixes(small_carveout(case, gpu))
}

fn carveout_only(case: &Case<'_>, gpu: usize, total: Bytes, old: bool) -> Finding {
    let reason = if old {
        "Kernels before 6.10 give HIP the carveout and nothing else, however much RAM there is."
    } else {
        "The carveout is at least as large as GTT, so the kernel gives HIP the carveout only; the rest of the RAM cannot be used by HIP."
    };
    let confidence = if old { Confidence::Certain } else { Confidence::Likely };
    let mut finding = RULE
        .finding(
            severity(case),
            confidence,
            format!("HIP gets the carveout of {total} only; RAM beside it is not used"),
            reason,
        )
        .because_of(fact(&case.facts.kernel.release, "kernel"))
        .because_of(case.ceiling_evidence("vram"))
        .because_of(case.failure_evidence());
    if old {
        let (major, minor) = GOOD_KERNEL;
        finding = finding.fix(
            Fix::new(
                FixKind::Package,
                format!("Upgrade to a newer kernel, {major}.{minor} or later: from 6.10 on HIP memory comes from GTT, by default half of the RAM."),
            )
            .risk("a newer kernel may need newer firmware files beside it")
            .undo("choose the former kernel in the boot menu")
            .check("uname -r"),
        );
        return finding.fix(
            Fix::new(FixKind::Bios, "Or give the GPU a larger carveout (UMA Frame Buffer Size) in the BIOS.")
                .risk("the OS loses that RAM for good")
                .undo("set the former size in the BIOS")
                .check("cat /sys/class/drm/card*/device/mem_info_vram_total"),
        );
    }
    finding.fixes(small_carveout(case, gpu))
}

/// The small carveout with the page limit that goes with it, where that makes the pool larger.
fn small_carveout(case: &Case<'_>, gpu: usize) -> Vec<Fix> {
    let Some(small) = carveout::smaller(case.facts, gpu) else {
        // The carveout is small already: GTT is what was made too small.
        let limit = page_limit::recommend(case.facts, gpu, case.need());
        return limit.map_or_else(
            || vec![Fix::new(
                FixKind::KernelParam,
                "Make GTT the larger of the two: take a small ttm.pages_limit off the kernel command line and out of /etc/modprobe.d, or set it for this machine's RAM.",
            )
            .command("grep MemTotal /proc/meminfo; cat /sys/module/*ttm/parameters/pages_limit")],
            |limit| limit.fixes(case.facts),
        );
    };
    match page_limit::recommend(case.facts, gpu, Some(Bytes(u64::MAX))).filter(|limit| limit.carveout_first) {
        Some(limit) => {
            let mut fixes = vec![carveout::set(
                case.facts,
                gpu,
                small,
                "The RAM goes back to the OS, and the GPU takes what it needs of it.",
            )];
            fixes.extend(limit.fixes(case.facts));
            fixes
        }
        None => vec![carveout::set(
            case.facts,
            gpu,
            small,
            "Then raise ttm.pages_limit for the RAM that the OS sees (vramwarden doctor computes it after the reboot).",
        )],
    }
}
