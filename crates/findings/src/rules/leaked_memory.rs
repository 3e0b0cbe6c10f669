//! Memory that is in use, and nobody alive holds it.

use super::prelude::*;

rule!("leaked-memory", Driver, 40);

/// The driver, page tables and a display hold this much without any process: firmware, framebuffers, ring buffers.
const DRIVER_OWN: Bytes = Bytes::gib(1);

/// A desktop with several screens and a browser.
const DESKTOP: Bytes = Bytes::gib(2);

fn check(case: &Case<'_>, report: &mut Report) {
    // Alone the line is a miscount of the driver; with submissions or allocations that fail it is memory that is gone.
    if let Some(hit) = case.line("kernel-vm-stats-at-end").filter(|_| case.is_troubled()) {
        report.add(
            found(
                case,
                "memory of a process that has ended is still charged to its GPU address space".to_owned(),
                Confidence::Likely,
            )
            .because(Evidence::line(hit))
            .because_of(case.line("kernel-cs-enomem").map(Evidence::line)),
        );
        return;
    }
    for pool in case.pools.iter().filter(|pool| pool.api == facts::pool::Api::Hip) {
        let dead: Bytes =
            pool.holders.iter().filter(|h| h.alive == Some(false)).filter_map(|h| h.bytes).sum();
        if dead > Bytes::mib(256) {
            let names = pool.holders.iter().filter(|h| h.alive == Some(false));
            let list = names.map(|h| {
                format!(
                    "{} (pid {}) {}",
                    h.name.as_deref().unwrap_or("?"),
                    h.pid.unwrap_or(0),
                    h.bytes.unwrap_or_default()
                )
            });
            let text = list.collect::<Vec<_>>().join(", ");
            report.add(
                found(
                    case,
                    format!("{dead} on {} belong to processes that have ended", pool.device),
                    Confidence::Certain,
                )
                .because(Evidence::new("processes", text)),
            );
            continue;
        }
        let Some(unaccounted) = pool.unaccounted.filter(|_| case.facts.sees_all_processes()) else {
            continue;
        };
        // Which device a process uses is not said: nobody can be counted out.
        let vague = case.facts.gpus.len() > 1
            && case.facts.processes.value().is_some_and(|list| list.iter().any(|p| p.device.is_none()));
        // A desktop that no list names holds its share; only what is missed makes little of it matter.
        let (floor, share) = if case.is_out_of_memory() { (DRIVER_OWN, 20) } else { (DESKTOP, 8) };
        if !vague && unaccounted > floor && unaccounted.0 > pool.total.map_or(0, |total| total.0 / share) {
            let device = &pool.device;
            let used = pool.used.unwrap_or_default();
            let severity_matters = case.is_out_of_memory();
            let mut finding = found(
                case,
                format!("{unaccounted} of {used} in use on {device} belong to no process"),
                Confidence::Likely,
            )
            .because(Evidence::new(
                "processes",
                format!("all processes together hold {}", used - unaccounted),
            ))
            .because_of(
                case.facts.gpus.iter().find(|g| g.bdf.text().is_none_or(|b| b == device.as_str())).and_then(
                    |g| {
                        if pool.in_ram {
                            fact(&g.gtt_used, "GTT in use")
                        } else {
                            fact(&g.vram_used, "VRAM in use")
                        }
                    },
                ),
            );
            if !severity_matters {
                finding.severity = Severity::Warning;
            }
            report.add(finding);
        }
    }
}

fn found(case: &Case<'_>, title: String, confidence: Confidence) -> Finding {
    let severity = if case.is_troubled() { Severity::Error } else { Severity::Warning };
    RULE.finding(
        severity,
        confidence,
        title,
        "The driver frees a process's memory when its last file descriptor closes. A process that hangs in the kernel, a crashed one that is a zombie, \
         or a driver bug keeps it. No setting of the program brings it back.",
    )
    .fix(
        Fix::new(FixKind::Command, "See who still has the device open, and end what is left over.")
            .command("sudo fuser -v /dev/kfd /dev/dri/render*")
            .risk("ending a process loses its work"),
    )
    .fix(
        Fix::new(FixKind::Command, "If nobody has it open, reboot (or, without a display on that GPU, reload the amdgpu module).")
            .command("sudo reboot")
            .check("cat /sys/class/drm/card*/device/mem_info_*_used"),
    )
    .fix(Fix::new(FixKind::Package, "If it comes back, upgrade the kernel: the accounting of freed GPU memory was mended several times."))
}
