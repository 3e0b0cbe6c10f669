//! A known bad version of a program, runtime or kernel.

use facts::KernelVersion;

use super::prelude::*;

rule!("program-regression", Program, 20);

/// A version that is known to fail, as data.
struct Known {
    /// Lines of which one has to be there.
    lines: &'static [&'static str],
    /// When it applies.
    when: fn(&Case<'_>) -> bool,
    /// The answer.
    title: &'static str,
    /// The reason, with its source.
    why: &'static str,
    /// What mends it.
    fix: &'static str,
    /// How sure: a version that was told is more than a symptom.
    confidence: Confidence,
}

/// The number in a llama.cpp build name, `b6996`.
fn llama_build(case: &Case<'_>) -> Option<u32> {
    case.facts.version("llama_cpp")?.trim_start_matches(['b', 'B']).parse().ok()
}

/// Leading numbers of a version.
fn version(case: &Case<'_>, program: &str) -> Option<(u32, u32, u32)> {
    let text = case.facts.version(program)?.trim_start_matches('v');
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u32>().ok());
    Some((numbers.next()??, numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0)))
}

/// Whether a kernel is older than what AMD names for Strix Halo: 6.18.4, Ubuntu's HWE 6.17.0-19 and OEM 6.14.0-1018.
fn before_floor(release: &str) -> bool {
    let Some(kernel) = KernelVersion::parse(release) else { return false };
    // Ubuntu counts its builds after the first hyphen: 6.17.0-19-generic.
    let build = release.split('-').nth(1).and_then(|n| n.split('~').next()?.parse::<u32>().ok());
    match (kernel.series, kernel.oem) {
        ((6, 14), true) => build.is_some_and(|build| build < 1018),
        (_, true) => false,
        ((6, 17), _) if release.contains("-generic") => build.is_some_and(|build| build < 19),
        ((6, 18), _) => kernel.patch.is_some_and(|patch| patch < 4),
        (series, _) => series < (6, 18),
    }
}

fn gfx(case: &Case<'_>, names: &[&str]) -> bool {
    case.facts.gpus.iter().any(|gpu| gpu.gfx.text().is_some_and(|gfx| names.contains(&gfx)))
}

const KNOWN: &[Known] = &[
    Known {
        lines: &["radv-cs-not-enough-memory", "kernel-cs-enomem"],
        when: |case| case.vulkan() && llama_build(case).is_some_and(|build| (6900..=6996).contains(&build)),
        title: "llama.cpp builds up to b6996 exhaust memory on Vulkan submissions; b6997 mends it",
        why: "Builds of that time keep too much resident in one submission on Vulkan (llama.cpp issue 17117, mended by pull request 17122). Earlier and later builds run the same \
              settings on the same card.",
        fix: "Upgrade llama.cpp to b6997 or newer (17122), or go back to the build that worked.",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &["radv-cs-not-enough-memory", "kernel-cs-enomem"],
        when: |case| gfx(case, &["gfx1103"]) && version(case, "ollama").is_some_and(|v| v >= (0, 32, 10)),
        title: "Ollama from 0.32.10 on fails to submit on the 780M",
        why: "Reported for the 780M with Vulkan (Ollama issue 17748); the version before runs the same model. Which release mends it is not known.",
        fix: "Go back to an Ollama before 0.32.10 until a newer release mends it.",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &["rocr-memory-critical-error"],
        when: |case| version(case, "rocm").is_none_or(|v| v < (7, 13, 0)) && case.is_apu(),
        title: "ROCm 7.2 ends with \"Memory in use\" on this APU; ROCm 7.13 does not",
        why: "The runtime's own bookkeeping fails while it frees memory; nothing else holds it (legacy-rocm-build issue 6182).",
        fix: "Upgrade to ROCm 7.13 or newer, also the copy that the program brings along.",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &["torch-hang-hsakmt-map"],
        when: |_| true,
        title: "expandable segments hang this PyTorch in hsaKmtMemoryVaMap",
        why: "With expandable_segments:True moving a tensor to the GPU hangs in PyTorch 2.14 nightly with ROCm 7.2 (pytorch issue 192259, open).",
        fix: "Remove expandable_segments from PYTORCH_ALLOC_CONF (and from the older names of that variable).",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &["torch-oom-short"],
        when: |case| gfx(case, &["gfx1100", "gfx1101"]) && version(case, "rocm").is_some_and(|v| v.0 == 7),
        title: "hipMallocAsync's pool fails with free memory on gfx1100 and gfx1101 under ROCm 7",
        why: "The asynchronous backend's pool refuses while memory is free (legacy-rocm-build issue 6178).",
        fix: "Use PyTorch's native allocator (ComfyUI: --disable-cuda-malloc).",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &["ggml-memgetinfo-failed"],
        when: |_| true,
        title: "the HIP runtime fails to report memory, and the program counts with 0 bytes",
        why: "hipMemGetInfo returns an error on some APUs; fitting then puts everything on the CPU (rocm-systems pull request 6350).",
        fix: "Upgrade ROCm; until then set the layers yourself (-ngl 99).",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &["ggml-ctx-pool", "ggml-alloc-space"],
        when: |_| true,
        title: "an arena inside the program is too small: a bug of this build, not lack of GPU memory",
        why: "ggml's metadata pool and its graph allocator have sizes fixed when the program was built; a graph that outgrows them ends it.",
        fix: "Upgrade the program to a newer build.",
        confidence: Confidence::Likely,
    },
    Known {
        lines: &[
            "kernel-mes-failed",
            "rocr-memory-access-fault-not-present",
            "rocr-hw-exception",
            "kernel-gfxhub-page-fault",
        ],
        when: |case| {
            gfx(case, &["gfx1151"])
                && case.facts.amdgpu.dkms_version.value().is_none()
                && case.facts.kernel.release.text().is_some_and(before_floor)
        },
        title: "this kernel is older than what ROCm needs on Strix Halo",
        why: "AMD names 6.18.4 (Ubuntu HWE 6.17.0-19.19, OEM 6.14.0-1018) as the first with the wave save and restore fixes for gfx1151. Before them programs fault or hang.",
        fix: "Upgrade to a newer kernel: 6.18.4 or later, or Ubuntu's 6.17.0-19 (HWE) or 6.14.0-1018 (OEM).",
        confidence: Confidence::Likely,
    },
];

fn check(case: &Case<'_>, report: &mut Report) {
    if report.explains() {
        return;
    }
    let Some((known, line)) = KNOWN.iter().find_map(|known| {
        let line = case.any_line(known.lines)?;
        (known.when)(case).then_some((known, line))
    }) else {
        return;
    };
    let versions = ["llama_cpp", "ollama", "rocm", "pytorch"].into_iter().filter_map(|program| {
        let version = case.facts.software.get(program)?;
        Some(Evidence::fact(&version.source, format!("{program} {}", version.value)))
    });
    let finding = RULE
        .finding(Severity::Error, known.confidence, known.title, known.why)
        .because(Evidence::line(line))
        .because_of(versions)
        .because_of(fact(&case.facts.kernel.release, "kernel"))
        .fix(Fix::new(FixKind::Package, known.fix).undo("install the former version"));
    report.add(finding);
}
