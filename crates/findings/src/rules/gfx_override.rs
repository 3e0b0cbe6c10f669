//! HSA_OVERRIDE_GFX_VERSION makes the runtime load kernels for another GPU.

use super::prelude::*;

rule!("gfx-override", Settings, 16);

/// APU and card targets that ROCm has no kernels for and that people run under a neighbour's name.
const NEEDS_NEIGHBOUR: &[&str] =
    &["gfx90c", "gfx902", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1037"];

fn check(case: &Case<'_>, report: &mut Report) {
    let Some((name, known)) =
        case.facts.env.iter().find(|(name, _)| name.starts_with("HSA_OVERRIDE_GFX_VERSION"))
    else {
        return;
    };
    let Some(target) = target(&known.value) else { return };
    let real = case.device().and_then(|gpu| {
        // Under the override rocminfo prints the borrowed target; the product's name tells the real one.
        let by_name = gpu.name.text().and_then(facts::target_by_name);
        by_name.map(str::to_owned).or_else(|| gpu.gfx.text().map(str::to_owned))
    });
    if real.as_deref() == Some(target.as_str()) {
        return;
    }
    let symptom = case.any_line(&[
        "rocr-memory-access-fault-not-present",
        "rocr-memory-access-fault-other",
        "rocr-hw-exception",
        "clr-queue-abort-exception-1016",
        "hip-illegal-address",
        "hip-launch-failure",
        "hip-invalid-device-function",
        "hip-no-binary-for-gpu",
        "ggml-rocm-error-other",
    ]);
    let crashed = symptom.is_some() || case.misbehaves();
    let borrowed = real.as_deref().is_some_and(|gfx| has_to_borrow(case, gfx));
    let (severity, confidence) = match (crashed, borrowed) {
        (true, _) => (Severity::Error, Confidence::Likely),
        (false, true) => (Severity::Info, Confidence::Certain),
        (false, false) => (Severity::Warning, Confidence::Likely),
    };
    let is =
        real.map_or_else(|| "the GPU's own target".to_owned(), |gfx| format!("{gfx}, which this GPU is"));
    let finding = RULE
        .finding(
            severity,
            confidence,
            format!("{name}={} makes ROCm run {target} code instead of {is}", known.value),
            "Code for another target can hang, fault or compute garbage: instructions, registers and LDS differ. Since ROCm 6.4.4 and 7.x current \
             parts (gfx1151, gfx1103, gfx12) have code of their own.",
        )
        .because(Evidence::fact(&known.source, format!("{name}={}", known.value)))
        .because_of(case.device().into_iter().flat_map(|gpu| fact(&gpu.name, "GPU").into_iter().chain(fact(&gpu.gfx, "target"))))
        .because_of(symptom.map(Evidence::line))
        .fix(
            Fix::new(FixKind::Env, format!("Remove {name} from the environment (shell profile, unit, container) and start the program anew."))
                .command(format!("unset {name}"))
                .undo(format!("export {name}={}", known.value))
                .check("rocminfo | grep gfx   # the GPU's own target"),
        )
        .fix(Fix::new(
            FixKind::Package,
            "If the program then says that it has no kernels for this GPU, install a build that has them (ROCm 7 wheels for this target), or use Vulkan.",
        ));
    report.add(finding);
}

/// Targets that got code of their own with ROCm 6.4.4, or before it with 6.
const LATE: &[&str] = &["gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1152"];

/// Whether ROCm as it is here, as far as known, has no code for `gfx`.
fn has_to_borrow(case: &Case<'_>, gfx: &str) -> bool {
    let mut numbers = case.facts.version("rocm").unwrap_or_default().split('.').map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    let old = next().is_none_or(|major| (major, next().unwrap_or(0), next().unwrap_or(0)) < (6, 4, 4));
    NEEDS_NEIGHBOUR.contains(&gfx) || (LATE.contains(&gfx) && old)
}

/// The target that an override value means: `11.0.0` is gfx1100, the last number a hexadecimal digit.
fn target(value: &str) -> Option<String> {
    let mut numbers = value.trim().split('.').map(|n| n.parse::<u32>().ok());
    let (major, minor, step) = (numbers.next()??, numbers.next()??, numbers.next()??);
    (numbers.next().is_none() && minor < 16 && step < 16).then(|| format!("gfx{major}{minor:x}{step:x}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_override_names_a_target() {
        assert_eq!(super::target("11.0.0").as_deref(), Some("gfx1100"));
        assert_eq!(super::target("9.0.12").as_deref(), Some("gfx90c"));
        assert_eq!(super::target("gfx1100"), None);
        assert_eq!(super::target("11.0"), None);
    }
}
