//! The GPU hung, or a job took longer than the kernel allows.

use super::prelude::*;
use crate::advice::boot;

rule!("gpu-timeout", Driver, 60);

/// Lines of the kernel that prove it.
const KERNEL: &[&str] =
    &["kernel-ring-timeout", "kernel-mes-failed", "kernel-kfd-evict-failed", "kernel-gpu-reset"];
/// Lines of programs that follow from it, and from other things.
const PROGRAM: &[&str] = &["vk-device-lost", "radv-context-lost"];

fn check(case: &Case<'_>, report: &mut Report) {
    if report.explains() {
        return;
    }
    let kernel = case.any_line(KERNEL);
    let program = case.any_line(PROGRAM);
    let Some(line) = kernel.or(program) else { return };
    // The working set was refused before the device was lost: that is lack of memory.
    if kernel.is_none() && case.any_line(&["radv-cs-not-enough-memory", "kernel-cs-enomem"]).is_some() {
        return;
    }
    let vulkan = case.api == Some(facts::pool::Api::Vulkan) || program.is_some();
    let mut finding = RULE
        .finding(
            Severity::Error,
            if kernel.is_some_and(|hit| hit.signature.id == "kernel-ring-timeout") { Confidence::Certain } else { Confidence::Likely },
            if kernel.is_some() { "the kernel found the GPU hanging and reset it" } else { "the device was lost while it worked: a job ran too long, or the GPU hung" },
            "A job that does not end within amdgpu.lockup_timeout (now 2 s for every queue) is taken for a hang. One long dispatch is enough; so are thrashing memory, \
             a firmware fault, or code for another GPU. After a reset everything in VRAM is lost, and every program has to start anew.",
        )
        .because(Evidence::line(line))
        .because_of(KERNEL.iter().chain(PROGRAM).filter_map(|id| case.line(id)).take(4).map(Evidence::line))
        .because_of(fact(&case.facts.kernel.release, "kernel"));
    if vulkan {
        finding = finding.fix(
            Fix::new(FixKind::Flag, "Make single jobs shorter: a smaller batch and ubatch (GGML_VK_MAX_NODES_PER_SUBMIT splits the graph into more submissions of fewer nodes).")
                .command("GGML_VK_MAX_NODES_PER_SUBMIT=20 llama-server -m MODEL.gguf -b 512 -ub 128"),
        );
    } else {
        finding = finding
            .fix(Fix::new(FixKind::Flag, "Make single jobs shorter: a smaller batch, ubatch or resolution."));
    }
    finding = finding
        .fix(
            boot::module_parameter(case.facts, "amdgpu", "lockup_timeout", "10000,60000", "Or allow jobs more time (milliseconds: graphics 10 s, compute 60 s).".to_owned())
                .risk("a real hang freezes the screen that much longer; needs a reboot"),
        )
        .fix(Fix::new(FixKind::Package, "If it comes back with short jobs, upgrade kernel and linux-firmware together (Strix Halo: kernel 6.18.4 or later)."));
    if kernel.is_none() {
        report.ask(Ask::new("the kernel log from that time: sudo dmesg, or journalctl -k", "a line \"ring … timeout\" proves a job that ran too long; \"Not enough memory for command submission\" speaks for memory"));
    }
    report.add(finding);
}
