//! A library or program has no code for this GPU.

use super::prelude::*;

rule!("missing-kernels", Framework, 18);

const LINES: &[&str] = &[
    "hip-no-binary-for-gpu",
    "hip-invalid-device-function",
    "hip-invalid-image",
    "rocblas-tensile-missing",
    "ggml-rocm-error-other",
];

/// The first line that says a library or program has no code for a GPU.
pub(super) fn no_code<'a>(case: &Case<'a>) -> Option<&'a logs::Hit> {
    let says = |hit: &&logs::Hit| {
        LINES.contains(&hit.signature.id)
            && (hit.signature.id != "ggml-rocm-error-other"
                || hit.field("reason").is_some_and(|reason| {
                    reason.contains("kernel image") || reason.contains("device function")
                }))
    };
    case.hits.iter().copied().find(says)
}

fn check(case: &Case<'_>, report: &mut Report) {
    if report.has("gfx-override") && report.explains()
        || report.has("device-selection")
        || report.has("device-access")
    {
        return;
    }
    let line = no_code(case);
    let lazy = case.line("hipblaslt-tensile-missing");
    let (line, severity) = match (line, lazy) {
        (Some(hit), _) => (hit, Severity::Error),
        (None, Some(hit)) => (hit, Severity::Warning),
        (None, None) => return,
    };
    let gfx = line
        .field("gfx")
        .map(str::to_owned)
        .or_else(|| case.device().and_then(|gpu| gpu.gfx.text()).map(str::to_owned));
    let target = gfx.clone().unwrap_or_else(|| "this GPU".to_owned());
    let mut finding = RULE
        .finding(
            severity,
            case.sure_if(severity == Severity::Error),
            format!("there is no code for {target} in what the program runs"),
            "ROCm libraries and wheels carry code for the GPU targets they were built for, and nothing for others. No memory is lacking.",
        )
        .because(Evidence::line(line))
        .because_of(case.device().and_then(|gpu| fact(&gpu.gfx, "target")))
        .because_of(case.facts.software.get("pytorch").map(|known| Evidence::fact(&known.source, format!("PyTorch {}", known.value))))
        .because_of(case.facts.software.get("rocm").map(|known| Evidence::fact(&known.source, format!("ROCm {}", known.value))))
        .fix(
            Fix::new(
                FixKind::Package,
                format!("Install a build for {target}: the PyTorch wheel and the ROCm packages of one release that list it (in newer releases a package per target, device-{target})."),
            )
            .check("python -c 'import torch; print(torch.cuda.get_arch_list())'   # lists the target"),
        );
    if severity == Severity::Warning {
        finding = finding.fix(
            Fix::new(FixKind::Env, "Or do without hipBLASLt, which falls back to hipBLAS.")
                .command("export TORCH_BLAS_PREFER_HIPBLASLT=0 ROCBLAS_USE_HIPBLASLT=0")
                .undo("unset TORCH_BLAS_PREFER_HIPBLASLT ROCBLAS_USE_HIPBLASLT"),
        );
    }
    finding = finding
        .fix(Fix::new(FixKind::Flag, "Or use the program's Vulkan backend, which compiles its code for any GPU."))
        .fix(Fix::new(
            FixKind::Package,
            "If the build does list the target, its files are not found: check that the library directory is whole and that no path contains a space.",
        ));
    report.add(finding);
}
