//! An older HIP runtime refuses one allocation larger than the RAM that the OS sees.

use facts::pool::Policy;

use super::prelude::*;
use crate::advice::carveout;

rule!("single-allocation-over-ram", Runtime, 36);

fn check(case: &Case<'_>, report: &mut Report) {
    let (Some(position), Some(failure), true) = (case.gpu, &case.failure, case.hip()) else { return };
    let (Some(asked), Some(ram)) = (failure.requested, case.facts.memory.total.get()) else { return };
    let Some(total) = case.hip_pool().and_then(|pool| pool.total) else { return };
    // Memory in the host's own RAM has lower ceilings than this one.
    let in_vram = !case.is_apu() || case.policy() == Some(Policy::Carveout);
    if !in_vram || asked <= ram || case.need().is_some_and(|need| need > total) {
        return;
    }
    // The runtime's own line with free and total comes from a later step: the check before it was passed.
    if case.line("clr-alloc-failed-device").is_some() {
        return;
    }
    let held = case.hip_pool().map(|pool| pool.held_by_the_living()).unwrap_or_default();
    if held + asked > total {
        return;
    }
    let mut finding = RULE
        .finding(
            Severity::Error,
            Confidence::Likely,
            format!("one allocation of {asked} was refused although the pool is {total}: it is larger than the RAM the OS sees, {ram}"),
            "HIP runtimes of 2024 refuse any single hipMalloc larger than the host's RAM, whatever the GPU has; later ones apply that to host \
             memory only. Two smaller allocations would pass.",
        )
        .because_of(case.failure_evidence())
        .because_of(fact(&case.facts.memory.total, "MemTotal"))
        .because_of(case.ceiling_evidence("vram"))
        .fix(
            Fix::new(FixKind::Package, "Upgrade to a newer ROCm (HIP runtime), also the one that the program brings along.")
                .check("with AMD_LOG_LEVEL=1 the refusal prints no \"Allocation failed\" line; after the upgrade the allocation succeeds"),
        );
    if case.is_apu() {
        finding = finding.fix(carveout::set(
            case.facts,
            position,
            carveout::SMALL,
            "The OS then sees the RAM, and with ttm.pages_limit raised the allocation fits.",
        ));
    }
    finding = finding.fix(Fix::new(
        FixKind::Flag,
        "Or split the buffer: offload fewer layers to the device (-ngl), or spread the model over two buffers or devices (--tensor-split).",
    ));
    report.add(finding);
    report.ask(Ask::new(
        "the run again with AMD_LOG_LEVEL=1",
        "a line \"Allocation failed : Device memory\" would speak against this cause",
    ));
    report.ask(Ask::new(
        "the ROCm version (cat /opt/rocm/.info/version)",
        "only older HIP runtimes have this check",
    ));
}
