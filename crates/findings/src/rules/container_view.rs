//! The container's view of memory is not the host's.

use super::prelude::*;

rule!("container-view", Container, 29);

fn check(case: &Case<'_>, report: &mut Report) {
    let container = &case.facts.container;
    let seen = [&container.memory_available_seen, &container.memory_total_seen]
        .into_iter()
        .find_map(Reading::as_known);
    let (Some(seen), Some(available)) = (seen, case.facts.memory.available.as_known()) else { return };
    let asked = case.need().or_else(|| case.facts.workload.model.get());
    let Some(asked) = asked.filter(|asked| *asked > available.value && *asked <= seen.value) else { return };
    // Only where GPU memory is the host's RAM does the host's free RAM bound it.
    if !case.is_apu() || case.hip_pool().is_some_and(|pool| !pool.in_ram && pool.total.is_some()) {
        return;
    }
    let finding = RULE
        .finding(
            if case.is_troubled() { Severity::Error } else { Severity::Warning },
            Confidence::Likely,
            format!("the container shows {} of memory; the host has {} left, and GTT is taken from there", seen.value, available.value),
            format!("{asked} were needed. /proc/meminfo inside a container is a view (lxcfs, limits), while the GPU's memory on an APU comes from the host's free RAM."),
        )
        .because_of(case.failure_evidence())
        .because(Evidence::fact(&seen.source, format!("memory seen inside the container: {}", seen.value)))
        .because(Evidence::fact(&available.source, format!("MemAvailable of the host: {}", available.value)))
        .because_of(model_evidence(case))
        .fix(
            Fix::new(FixKind::Command, "Free RAM on the host (other containers and machines, ZFS ARC, page cache that is pinned), and look at the host's own figures.")
                .command("grep -e MemTotal -e MemAvailable /proc/meminfo   # on the host"),
        )
        .fix(Fix::new(FixKind::Flag, "Or run what fits into the host's free RAM: a smaller quantisation, fewer layers on the GPU."));
    report.add(finding);
}
