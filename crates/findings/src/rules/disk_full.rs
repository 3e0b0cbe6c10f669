//! A disk is full.

use super::prelude::*;

rule!("disk-full", Host, 26);

fn check(case: &Case<'_>, report: &mut Report) {
    // /dev/shm in a container is a limit of its own.
    let Some(line) = case.lines("no-space-left").find(|hit| !hit.text.contains("/dev/shm")) else { return };
    if case.any_line(&["rccl-shm", "torch-shm"]).is_some() {
        return;
    }
    let finding = RULE
        .finding(
            Severity::Error,
            Confidence::Certain,
            "a disk is full",
            "\"No space left on device\" speaks of a file system: a download, a cache (Hugging Face, MIOpen, Triton, shader caches) or a log. It is not the GPU's memory.",
        )
        .because(Evidence::line(line))
        .fix(
            Fix::new(FixKind::Command, "See which file system is full and what fills it.")
                .command("df -h; du -xsh ~/.cache/* /tmp /var/tmp 2>/dev/null | sort -h | tail")
                .check("df -h"),
        )
        .fix(Fix::new(FixKind::Env, "Or put the caches elsewhere (HF_HOME, MIOPEN_USER_DB_PATH, TRITON_CACHE_DIR, TMPDIR)."));
    report.add(finding);
}
