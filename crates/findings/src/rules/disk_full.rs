//! A disk is full.

use super::prelude::*;

rule!("disk-full", Host, 26);

/// What shows that "no space" is not about a disk.
const OTHER: &[&str] = &["/dev/shm", "</torch_", "inotify", "watch limit", "semget", "shmget"];

fn check(case: &Case<'_>, report: &mut Report) {
    // The kernel gives the same error for other things that have run out: /dev/shm in a container, inotify watches.
    let other = |hit: &&logs::Hit| OTHER.iter().any(|text| hit.text.contains(text));
    let Some(line) = case.lines("no-space-left").find(|hit| !other(hit)) else { return };
    if case.any_line(&["rccl-shm", "torch-shm"]).is_some() {
        return;
    }
    let finding = RULE
        .finding(
            Severity::Error,
            Confidence::Likely,
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
