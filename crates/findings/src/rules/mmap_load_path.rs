//! How the weights are loaded is the trouble: mapped, through the page cache.

use facts::Symptom;

use super::prelude::*;

rule!("mmap-load-path", Program, 38);

fn check(case: &Case<'_>, report: &mut Report) {
    let workload = &case.facts.workload;
    let seconds = workload.load_seconds.get();
    // Half a GiB a second is what a disk gives; a large model takes its time.
    let patience = workload.model.get().map_or(0.0, |model| model.as_gib() * 2.0).max(120.0);
    let slow = workload.symptom.get() == Some(Symptom::SlowLoad) || seconds.is_some_and(|s| s >= patience);
    let args = workload.args.text().unwrap_or_default();
    let unmapped = args.contains("--no-mmap")
        || args.contains("-nommap")
        || args.contains("load-mode none")
        || args.contains("load-mode dio");
    if !slow || unmapped || report.explains() {
        return;
    }
    let model = workload.model.get();
    let ram = case.facts.memory.available.get().or(case.facts.memory.total.get());
    let crowded = model.zip(ram).is_some_and(|(model, ram)| model.0 > ram.0 / 10 * 9);
    let confidence = if case.is_apu() || crowded { Confidence::Likely } else { Confidence::Possible };
    let finding = RULE
        .finding(
            Severity::Warning,
            confidence,
            "loading is slow because the model file is mapped and copied through the page cache",
            "A mapped file is read page by page while the GPU's copy grows beside it. Where RAM does not hold both, pages are read again and again; on Strix Halo \
             loading through a map is known to be slow with ROCm.",
        )
        .because_of(fact(&workload.symptom, "symptom"))
        .because_of(seconds.and_then(|s| Some(Evidence::fact(workload.load_seconds.source()?, format!("loading took {s:.0} s")))))
        .because_of(fact(&workload.args, "command line"))
        .because_of(model_evidence(case))
        .because_of(fact(&case.facts.memory.available, "MemAvailable"))
        .because_of(fact(&case.facts.memory.total, "MemTotal"))
        .fix(
            Fix::new(FixKind::Flag, "Load without mapping (--no-mmap; newer builds also --load-mode dio, which bypasses the page cache).")
                .command("llama-server -m MODEL.gguf --no-mmap")
                .check("the load time the program prints"),
        )
        .fix(Fix::new(FixKind::Command, "If it stays slow, look at the disk: reading the file alone shows its speed.").command("dd if=MODEL.gguf of=/dev/null bs=16M status=progress"));
    report.add(finding);
}
