//! PyTorch's cache holds the memory in pieces that are too small.

use super::prelude::*;

rule!("fragmentation", Framework, 44);

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(failure) = &case.failure else { return };
    let (Some(asked), Some(reserved), Some(total)) = (failure.requested, failure.reserved, failure.total)
    else {
        return;
    };
    let free = failure.free.unwrap_or_default();
    // The request fits if what is reserved and unused were one piece; and that is more than the cache's usual rest.
    let rest = reserved >= Bytes::gib(1) && reserved.0 >= total.0 / 20 || reserved.0 >= total.0 / 5;
    if free >= asked || free + reserved < asked || !rest || report.explains() {
        return;
    }
    let working = expandable_works(case);
    let mut finding = RULE
        .finding(
            Severity::Error,
            Confidence::Likely,
            format!("{reserved} are reserved by PyTorch and unused, in pieces smaller than the {asked} asked for"),
            "The caching allocator keeps freed blocks for reuse. Many sizes in turn leave holes, and a large request fits none of them although their sum would do.",
        )
        .because_of(case.failure_evidence())
        .because_of(case.line("torch-expandable-unsupported").map(Evidence::line));
    if working == Some(true) {
        finding = finding.fix(
            Fix::new(FixKind::Env, "Let segments grow instead of being cut: expandable segments work in this PyTorch with this ROCm.")
                .command("export PYTORCH_ALLOC_CONF=expandable_segments:True")
                .risk("an open report tells of a hang in hsaKmtMemoryVaMap with PyTorch 2.14 nightly and ROCm 7.2")
                .undo("unset PYTORCH_ALLOC_CONF"),
        );
    }
    let name = if torch_version(case).is_some_and(|v| v < (2, 9)) {
        "PYTORCH_HIP_ALLOC_CONF"
    } else {
        "PYTORCH_ALLOC_CONF"
    };
    finding = finding
        .fix(
            Fix::new(FixKind::Env, format!("Keep large blocks whole ({name}, max_split_size_mb), so that they can be reused for large requests."))
                .command(format!("export {name}=max_split_size_mb:512"))
                .undo(format!("unset {name}")),
        )
        .fix(Fix::new(FixKind::Code, "Call torch.cuda.empty_cache() between phases of different sizes, or start the program anew for each."));
    report.add(finding);
}

/// PyTorch's version, if stated.
pub(super) fn torch_version(case: &Case<'_>) -> Option<(u32, u32)> {
    let mut numbers = case.facts.version("pytorch")?.split(['.', '+']).map(|n| n.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// Whether expandable segments do anything here: upstream 2.12 and later with ROCm 7 and later.
pub(super) fn expandable_works(case: &Case<'_>) -> Option<bool> {
    if case.line("torch-expandable-unsupported").is_some() {
        return Some(false);
    }
    let torch = torch_version(case)?;
    let rocm = case.facts.version("pytorch").and_then(|v| v.split_once("rocm")).map(|(_, v)| v.to_owned());
    let rocm = rocm.or_else(|| case.facts.version("rocm").map(str::to_owned))?;
    let major: u32 = rocm.split('.').next()?.parse().ok()?;
    Some(torch >= (2, 12) && major >= 7)
}
