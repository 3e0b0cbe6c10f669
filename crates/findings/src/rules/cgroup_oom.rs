//! The container's memory limit killed the program.

use super::prelude::*;
use crate::advice::container::{self, Runtime};

rule!("cgroup-oom", Container, 27);

fn check(case: &Case<'_>, report: &mut Report) {
    let container = &case.facts.container;
    let killed = case.line("memcg-oom");
    // Kubernetes says OOMKilled of a node that ran out of RAM too; the kernel's line tells the two apart.
    let of_node = killed.is_none() && case.line("kernel-oom-kill").is_some();
    if of_node {
        return;
    }
    let line = killed.or_else(|| case.line("k8s-oomkilled"));
    let kills = container.oom_kills.get().filter(|kills| *kills > 0);
    let full = container
        .memory_current
        .get()
        .zip(container.memory_max.get())
        .is_some_and(|(now, max)| now.0 >= max.0 / 100 * 98);
    if line.is_none() && kills.is_none() && !(full && case.exit_is(137)) {
        return;
    }
    // Managed memory is what is charged to the limit: then it is the cause, and this the way it ends.
    if report.has("managed-memory") {
        return;
    }
    let limit = container.memory_max.get();
    let is = limit.map_or_else(
        || "the container's memory limit".to_owned(),
        |limit| format!("the container's memory limit of {limit}"),
    );
    let kubernetes = case.line("k8s-oomkilled").map(|_| Runtime::Kubernetes);
    let runtime = container::runtime(case.facts).or(kubernetes).unwrap_or(Runtime::Docker);
    let first = container::more_memory(runtime);
    let finding = RULE
        .finding(
            if line.is_some() || case.is_troubled() { Severity::Error } else { Severity::Warning },
            case.sure_if(killed.is_some()),
            format!("{is} was exceeded by host memory, and the program was killed"),
            "The limit counts host memory: page cache of the model file, pinned and managed buffers, the program itself. Memory that hipMalloc takes through KFD is not \
             charged to it, so the limit need not hold the whole GPU pool, and it does not protect the host from it either.",
        )
        .because_of(line.map(Evidence::line))
        .because_of(fact(&container.oom_kills, "processes killed for the limit"))
        .because_of(fact(&container.memory_max, "memory.max"))
        .because_of(fact(&container.memory_current, "memory.current"))
        .fix(first)
        .fix(Fix::new(FixKind::Flag, "Or need less of it while loading: no mapped file (llama.cpp: --no-mmap), no GGML_CUDA_ENABLE_UNIFIED_MEMORY, smaller host buffers."))
        .related("managed-memory");
    report.add(finding);
}
