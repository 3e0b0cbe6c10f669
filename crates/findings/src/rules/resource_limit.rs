//! A limit that is not GPU memory.

use super::prelude::*;

rule!("resource-limit", Host, 26);

/// A limit, as data.
struct Limit {
    /// Signature of the line that tells of it.
    line: &'static str,
    title: &'static str,
    why: &'static str,
    kind: FixKind,
    step: &'static str,
    command: Option<&'static str>,
}

const LIMITS: &[Limit] = &[
    Limit {
        line: "triton-out-of-resources-lds",
        title: "a kernel needs more LDS (shared memory) than a compute unit has",
        why: "LDS is 64 KiB on this hardware. The kernel's block sizes were tuned for other GPUs; more VRAM never helps.",
        kind: FixKind::Code,
        step: "Use a configuration tuned for AMD: smaller BLOCK sizes, num_stages=1, or another attention backend.",
        command: None,
    },
    Limit {
        line: "hip-launch-out-of-resources",
        title: "a kernel launch asks for more registers, LDS or threads than a compute unit has",
        why: "The launch configuration is too large for this GPU. It is not a lack of memory.",
        kind: FixKind::Code,
        step: "Use a smaller block or tile, or a newer build of the program for this GPU.",
        command: None,
    },
    Limit {
        line: "rccl-shm",
        title: "/dev/shm is too small for RCCL",
        why: "Containers get 64 MiB of shared memory by default; RCCL needs more for each pair of processes.",
        kind: FixKind::Flag,
        step: "Give the container more shared memory, or the host's (--ipc=host; Kubernetes: an emptyDir of medium Memory on /dev/shm).",
        command: Some("docker run --shm-size 16g IMAGE"),
    },
    Limit {
        line: "torch-shm",
        title: "/dev/shm is too small for PyTorch's data loaders",
        why: "Containers get 64 MiB of shared memory by default; worker processes hand their tensors over through it.",
        kind: FixKind::Flag,
        step: "Give the container more shared memory, or the host's (--ipc=host).",
        command: Some("docker run --shm-size 16g IMAGE"),
    },
    Limit {
        line: "too-many-open-files",
        title: "the limit on open files was reached",
        why: "Each model file, socket and device handle counts. It is not a lack of memory.",
        kind: FixKind::Command,
        step: "Raise the limit (systemd: LimitNOFILE=).",
        command: Some("ulimit -n 65536"),
    },
    Limit {
        line: "k8s-insufficient-gpu",
        title: "the scheduler has no GPU left to give away",
        why: "The device plugin counts whole GPUs (amd.com/gpu). Other pods have been given all of them; how much memory is free on them does not count.",
        kind: FixKind::Command,
        step: "See which pods hold the GPUs, and end one, or let several share a GPU outside this count (partitions, one server for all).",
        command: Some("kubectl describe nodes | grep -A 8 'Allocated resources'"),
    },
    Limit {
        line: "llama-mlock",
        title: "the locked-memory limit keeps --mlock from working",
        why: "RLIMIT_MEMLOCK bounds what a user may pin. The GPU does not need --mlock; without it everything works.",
        kind: FixKind::Flag,
        step: "Leave --mlock away, or raise the limit (systemd: LimitMEMLOCK=infinity).",
        command: Some("ulimit -l unlimited"),
    },
];

fn check(case: &Case<'_>, report: &mut Report) {
    let Some((line, limit)) = LIMITS.iter().find_map(|limit| Some((case.line(limit.line)?, limit))) else {
        return;
    };
    let harmless = line.signature.id == "llama-mlock";
    let figures = match (line.number("req"), line.number("limit")) {
        (Some(asked), Some(limit)) => format!(" ({asked} asked for, {limit} allowed)"),
        _ => String::new(),
    };
    let mut fix = Fix::new(limit.kind, limit.step);
    if let Some(command) = limit.command {
        fix = fix.command(command);
    }
    let finding = RULE
        .finding(
            if harmless { Severity::Warning } else { Severity::Error },
            Confidence::Certain,
            format!("{}{figures}", limit.title),
            limit.why,
        )
        .because(Evidence::line(line))
        .fix(fix);
    report.add(finding);
}
