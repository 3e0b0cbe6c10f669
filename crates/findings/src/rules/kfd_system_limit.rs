//! KFD's limit on system memory is what ends the pool.

use facts::pool::LimitedBy;

use super::prelude::*;
use crate::advice::{boot, engine};

rule!("kfd-system-limit", Kernel, 34);

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(pool) = case.hip_pool().filter(|_| case.is_apu() && case.hip()) else { return };
    let Some(total) = pool.total.filter(|_| pool.limited_by == Some(LimitedBy::KfdSystemLimit)) else {
        return;
    };
    // Caps that promise more than the machine has are the cause; this limit is what saves the machine from them.
    if report.has("gtt-exceeds-ram") || !matches!(case.fit(), Fit::TooLarge | Fit::Exceeds | Fit::Raisable) {
        return;
    }
    let need = case.need().unwrap_or_default();
    let severity = if case.is_troubled() { Severity::Error } else { Severity::Warning };
    let finding = RULE
        .finding(
            severity,
            Confidence::Certain,
            format!("KFD hands out at most {total} of this machine's RAM, and {need} was needed"),
            "However high ttm.pages_limit is, KFD keeps MemTotal/64 + 1.5 GiB for the system. Raising the page limit further changes nothing.",
        )
        .because_of(case.failure_evidence())
        .because_of(case.ceiling_evidence("kfd-system-limit"))
        .because_of(case.ceiling_evidence("ttm.pages_limit"))
        .because_of(model_evidence(case))
        .fixes(engine::smaller_weights(case.engine))
        .fixes(engine::smaller_context(case.engine).into_iter().take(1))
        .fix(
            boot::module_parameter(
                case.facts,
                "amdgpu",
                "no_system_mem_limit",
                "1",
                "Or lift KFD's limit, knowing that it is what keeps the OS alive; the page limit then is the ceiling.".to_owned(),
            )
            .risk("the GPU can then take the RAM that the OS needs: the OOM killer, or a hang"),
        );
    report.add(finding);
}
