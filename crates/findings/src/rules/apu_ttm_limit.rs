//! TTM's page limit caps the pool of an APU whose RAM would allow more.

use facts::pool::LimitedBy;

use super::prelude::*;
use crate::advice::page_limit::{self, PageLimit};

rule!("apu-ttm-limit", Kernel, 33);

fn check(case: &Case<'_>, report: &mut Report) {
    // Another rule has said that the limit is not the one asked for, or that the wrong pool is used.
    if report.has("kernel-param-ineffective") || report.has("apu-pool-policy") {
        return;
    }
    let (Some(gpu), Some(pool)) = (case.gpu, case.hip_pool()) else { return };
    let Some(total) = pool
        .total
        .filter(|_| case.is_apu() && case.hip() && pool.limited_by == Some(LimitedBy::TtmPagesLimit))
    else {
        return;
    };
    let fit = case.fit();
    let Some(limit) = page_limit::recommend(case.facts, gpu, case.need()) else { return };
    match fit {
        Fit::Raisable | Fit::Exceeds => report.add(too_small(case, total, &limit)),
        Fit::Unknown if case.is_out_of_memory() => {
            let mut finding = too_small(case, total, &limit);
            finding.confidence = Confidence::Likely;
            report.add(finding);
        }
        // Nothing failed: worth knowing where much is left unused.
        _ if limit.estimated_ram.is_none() && limit.pool.0 / 5 > total.0 / 4 => {
            let finding = RULE
                .finding(
                    Severity::Info,
                    Confidence::Certain,
                    format!("HIP can use {total}; this machine could give {}", limit.pool),
                    "TTM's page limit is the ceiling. By default it is half of the RAM that the OS sees.",
                )
                .because_of(case.ceiling_evidence("ttm.pages_limit"))
                .fixes(limit.fixes(case.facts));
            report.add(finding);
        }
        _ => {}
    }
}

fn too_small(case: &Case<'_>, total: Bytes, limit: &PageLimit) -> Finding {
    let need = case.need().map_or_else(|| "More than that".to_owned(), |need| format!("At least {need}"));
    let certain =
        case.facts.memory.total.is_known() && case.facts.ttm.pages_limit.is_known() && case.need().is_some();
    let severity = if case.is_troubled() { Severity::Error } else { Severity::Warning };
    RULE.finding(
        severity,
        case.sure_if(certain),
        format!("the TTM page limit caps the HIP pool at {total}; RAM for more is there"),
        format!(
            "On this APU hipMalloc takes system memory through GTT, and KFD counts it against ttm.pages_limit × 4096 = {total}. \
             {need} was needed. Free RAM above the limit cannot be used by the GPU, and amdgpu.gttsize does not move this limit."
        ),
    )
    .because_of(case.failure_evidence())
    .because_of(case.ceiling_evidence("ttm.pages_limit"))
    .because_of(model_evidence(case))
    .fixes(carveout_first(case, limit))
    .fixes(limit.fixes(case.facts))
}
