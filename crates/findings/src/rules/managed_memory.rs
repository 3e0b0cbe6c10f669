//! hipMallocManaged: weights in the host's memory, whatever the GPU's pool is.

use facts::Symptom;

use super::prelude::*;
use crate::advice::engine::Engine;

rule!("managed-memory", Settings, 24);

const NAME: &str = "GGML_CUDA_ENABLE_UNIFIED_MEMORY";

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(known) = case.facts.env(NAME) else { return };
    // Other programs than ggml's do not read it.
    if matches!(case.engine, Some(Engine::Vllm | Engine::ComfyUi | Engine::PyTorch)) {
        return;
    }
    // Where the platform has none, the variable changes nothing.
    if case.line("ggml-managed-unsupported").is_some() || case.api == Some(facts::pool::Api::Vulkan) {
        return;
    }
    let line = case.any_line(&[
        "kernel-oom-kill",
        "memcg-oom",
        "k8s-oomkilled",
        "systemd-oomd-pressure",
        "systemd-oomd-swap",
        "kernel-svm-limit",
        "clr-alloc-failed-pinned",
        "exit-137",
        "exit-139",
        "ggml-rocm-error-other",
    ]);
    let symptom = case.facts.workload.symptom.get();
    let told = matches!(symptom, Some(Symptom::WrongOutput | Symptom::Crash | Symptom::Hang))
        || case.exit_is(137)
        || case.exit_is(139)
        || case.exit_is(134);
    let refused = case
        .failure
        .as_ref()
        .and_then(|f| f.requested)
        .zip(case.facts.memory.total.get())
        .is_some_and(|(asked, ram)| asked > ram);
    let hit = line.is_some() || told || refused || case.is_out_of_memory();
    let severity = match (hit, known.value.trim() == "0") {
        (true, _) => Severity::Error,
        (false, true) => Severity::Warning,
        (false, false) if case.is_apu() => Severity::Warning,
        (false, false) => Severity::Info,
    };
    let zero = if known.value.trim() == "0" { ", and 0 turns it on like any other value" } else { "" };
    let finding = RULE
        .finding(
            severity,
            Confidence::Likely,
            format!("{NAME} is set{zero}: buffers are managed memory"),
            "With the variable set to anything llama.cpp allocates with hipMallocManaged, which takes the host's memory: it lowers MemAvailable, is charged to the \
             container's limit, and hardly moves GTT. On gfx1151 garbled text, crashes and OOM kills are reported with it. Plain hipMalloc on an APU uses the same RAM \
             through GTT, without these troubles.",
        )
        .because(Evidence::fact(&known.source, format!("{NAME}={}", known.value)))
        .because_of(line.map(Evidence::line))
        .because_of(case.failure_evidence())
        .because_of(fact(&case.facts.workload.exit_status, "exit status"))
        .because_of(model_evidence(case))
        .fix(
            Fix::new(FixKind::Env, format!("Remove {NAME} from the environment altogether (unset it; setting 0 does not turn it off), and start the program anew."))
                .command(format!("unset {NAME}"))
                .undo(format!("export {NAME}={}", known.value))
                .check(format!("tr '\\0' '\\n' < /proc/$(pidof llama-server)/environ | grep {NAME}   # prints nothing")),
        )
        .fix(Fix::new(FixKind::KernelParam, "If the model then does not fit the pool, raise ttm.pages_limit (the pool above says how far this machine goes)."));
    report.add(finding);
}
