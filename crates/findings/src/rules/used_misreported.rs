//! A tool shows a use that is not the use.

use super::prelude::*;

rule!("used-misreported", Program, 42);

/// Nothing has this much memory: the tool subtracted below zero.
const ABSURD: Bytes = Bytes(1 << 62);

fn check(case: &Case<'_>, report: &mut Report) {
    let line = case.line("rocm-smi-vram-underflow");
    let shown = case.facts.shown.iter().find(|known| known.value.used.is_some_and(|used| used > ABSURD));
    if line.is_none() && shown.is_none() {
        return low(case, report);
    }
    let finding = RULE
        .finding(
            Severity::Warning,
            Confidence::Certain,
            "the tool shows about 18 exabytes in use: it subtracted below zero",
            "rocm-smi and amd-smi do this on some APUs, where the memory of HIP programs is not in the carveout that they count. The figure says nothing.",
        )
        .because_of(line.map(Evidence::line))
        .because_of(shown.filter(|_| line.is_none()).map(|known| Evidence::fact(&known.source, known.source.text.to_string())))
        .fix(
            Fix::new(FixKind::Command, "Read the kernel's own figures instead; upgrade the tool when a release mends it.")
                .command("cat /sys/class/drm/card*/device/mem_info_{vram,gtt}_used"),
        );
    report.add(finding);
}

/// A monitor that counts only the carveout while the model lies in GTT.
fn low(case: &Case<'_>, report: &mut Report) {
    let Some(pool) = case.hip_pool().filter(|pool| pool.in_ram) else { return };
    let Some(used) = pool.used.filter(|used| *used > Bytes::gib(2)) else { return };
    let Some(shown) =
        case.facts.shown.iter().find(|known| known.value.used.is_some_and(|shown| shown.0 < used.0 / 4))
    else {
        return;
    };
    let program = shown.value.program.as_deref().unwrap_or("the tool");
    let finding = RULE
        .finding(
            Severity::Info,
            Confidence::Likely,
            format!("{program} shows {} in use; it is {used}", shown.value.used.unwrap_or_default()),
            "On an APU with a small carveout models live in GTT. Tools that count VRAM only do not see them.",
        )
        .because(Evidence::fact(&shown.source, shown.source.text.to_string()))
        .because_of(case.device().and_then(|gpu| fact(&gpu.gtt_used, "GTT in use")))
        .fix(
            Fix::new(FixKind::Command, "Read GTT too.")
                .command("cat /sys/class/drm/card*/device/mem_info_gtt_used"),
        );
    report.add(finding);
}
