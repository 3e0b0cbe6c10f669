//! Somebody else has the memory.

use facts::pool::{Holder, Pool};

use super::prelude::*;

rule!("other-process-holds-memory", Host, 41);

fn check(case: &Case<'_>, report: &mut Report) {
    let api = case.api.unwrap_or(facts::pool::Api::Hip);
    let Some(pool) = case.pool(api) else { return };
    let Some(total) = pool.total else { return };
    let others: Vec<&Holder> =
        pool.holders.iter().filter(|h| h.alive != Some(false) && !is_workload(case, h)).collect();
    let held: Bytes = others.iter().filter_map(|h| h.bytes).sum();
    // A desktop's few hundred MiB explain nothing; a twentieth of the pool may.
    if held.0 < total.0 / 20 {
        return;
    }
    let Some((wanted, what)) = wanted(case, pool) else { return };
    // Without the others it has to fit, else they are not the cause.
    if wanted > total || held + wanted <= total {
        return;
    }
    let room = pool.free.unwrap_or(total - held).min(total - held);
    // What has to go, largest first; the desktop goes last of all.
    let mut by_size = others.clone();
    by_size.sort_by_key(|h| (is_desktop(h), std::cmp::Reverse(h.bytes)));
    let mut gained = room;
    let enough: Vec<&Holder> = by_size
        .into_iter()
        .take_while(|h| {
            let short = gained < wanted;
            gained += h.bytes.unwrap_or_default();
            short
        })
        .collect();
    let names = others
        .iter()
        .filter_map(|h| Some(format!("{} holds {}", name(h), h.bytes?)))
        .take(4)
        .collect::<Vec<_>>()
        .join(", ");
    let stop = enough
        .iter()
        .filter(|h| !is_desktop(h))
        .filter_map(|h| h.pid)
        .map(|pid| pid.to_string())
        .collect::<Vec<_>>();
    let to_stop = enough.iter().map(|h| name(h)).collect::<Vec<_>>().join(", ");
    let mut close = Fix::new(
        FixKind::Command,
        format!("Stop or close what holds the memory ({to_stop}), or unload its model."),
    );
    if !stop.is_empty() {
        close = close
            .command(format!("kill {}", stop.join(" ")))
            .risk("ends these programs; save their work first");
    }
    let mut finding = RULE
        .finding(
            Severity::Error,
            Confidence::Likely,
            format!("{names}: of {total}, {room} are left for {what}"),
            format!("{wanted} would fit the pool of {total} were it alone. The driver does not take memory from one program to give it to another."),
        )
        .because_of(case.failure_evidence())
        .because_of(utilization_evidence(case))
        .because(process_evidence(case, &names))
        .fix(close);
    if case.engine == Some(crate::advice::engine::Engine::Vllm) {
        let share = (room.0 as f64 / total.0 as f64 * 100.0 - 2.0).floor().max(5.0) / 100.0;
        finding = finding.fix(
            Fix::new(
                FixKind::Flag,
                format!("Or take a smaller share: --gpu-memory-utilization counts from the total, so at most {share:.2} while the others run."),
            )
            .command(format!("vllm serve MODEL --gpu-memory-utilization {share:.2}")),
        );
    }
    report.add(finding);
}

/// Programs without which the session ends.
fn is_desktop(holder: &Holder) -> bool {
    const NAMES: &[&str] = &[
        "gnome-shell",
        "kwin",
        "Xorg",
        "Xwayland",
        "plasmashell",
        "sway",
        "Hyprland",
        "mutter",
        "gdm",
        "sddm",
        "weston",
        "cosmic-comp",
    ];
    holder.name.as_deref().is_some_and(|name| NAMES.iter().any(|desktop| name.starts_with(desktop)))
}

fn name(holder: &Holder) -> String {
    match (&holder.name, holder.pid) {
        (Some(name), Some(pid)) => format!("{name} (pid {pid})"),
        (Some(name), None) => name.clone(),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "another process".to_owned(),
    }
}

/// Whether the holder is the program that failed.
fn is_workload(case: &Case<'_>, holder: &Holder) -> bool {
    let killed = case.any_line(&["kernel-oom-kill", "memcg-oom"]).and_then(|hit| hit.number("pid"));
    if killed.is_some() && killed == holder.pid.map(u64::from) {
        return true;
    }
    // It says itself how much it holds; a process that holds as much is it.
    let own = case.failure.as_ref().and_then(|failure| failure.own());
    own.zip(holder.bytes).is_some_and(|(own, held)| {
        let differ = if own > held { own - held } else { held - own };
        differ <= Bytes::gib(1).max(Bytes(own.0 / 10))
    })
}

/// What the workload wanted of the pool, and what it is called.
fn wanted(case: &Case<'_>, pool: &Pool) -> Option<(Bytes, &'static str)> {
    if let (Some(failure), Some(_)) = (&case.failure, case.need()) {
        return Some((failure.own().unwrap_or_default() + failure.requested?, "this program"));
    }
    let share = case.utilization()?;
    Some((Bytes((pool.total?.0 as f64 * share) as u64), "the share that vLLM was told to take"))
}

fn utilization_evidence(case: &Case<'_>) -> Option<Evidence> {
    case.utilization()?;
    case.line("vllm-free-memory-startup")
        .map(Evidence::line)
        .or_else(|| fact(&case.facts.workload.args, "command line"))
}

fn process_evidence(case: &Case<'_>, names: &str) -> Evidence {
    let place = case.facts.processes.source().map_or_else(|| "processes".to_owned(), |s| s.place.to_string());
    Evidence::new(place, names)
}
