//! HIP's pool on an APU: the carveout, or system memory under TTM's and KFD's limits.

use units::{Bytes, DeviceId, PAGE};

use super::ceiling::{Ceiling, LimitedBy, kfd_system_limit};
use super::policy::{Policy, policy};
use super::{Api, Pool, bound, discrete, usage};
use crate::reading::{Known, Source};
use crate::{Facts, Gpu};

/// TTM's limit in force, and how it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct Ttm {
    /// The limit.
    pub bytes: Bytes,
    /// How it comes about.
    pub formula: String,
    /// Where it was read.
    pub source: Source,
}

fn of(known: &Known<Bytes>, formula: String) -> Ttm {
    Ttm { bytes: known.value, formula, source: known.source.clone() }
}

/// The value of kernel parameter `name` on a command line: the last one given counts.
pub(crate) fn parameter<'a>(cmdline: &'a str, name: &str) -> Option<&'a str> {
    cmdline.split_ascii_whitespace().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// Whether `amdgpu.gttsize` is known to be set (`Some(true)`), known not to be, or unknown.
fn gttsize_set(facts: &Facts) -> Option<bool> {
    if let Some(mib) = facts.amdgpu.gttsize_mib.get() {
        return Some(mib >= 0);
    }
    let on_cmdline = |line: &str| parameter(line, "amdgpu.gttsize").is_some_and(|v| !v.starts_with('-'));
    if facts.kernel.cmdline.text().is_some_and(on_cmdline) {
        return Some(true);
    }
    let in_options = |lines: &Vec<String>| lines.iter().any(|line| parameter(line, "gttsize").is_some());
    if facts.kernel.modprobe_options.value().is_some_and(in_options) {
        return Some(true);
    }
    facts.kernel.cmdline.value().map(|_| false)
}

/// TTM's limit in force on this host, from the most direct statement there is.
///
/// In order: the module's parameter; the size the driver printed beside a differing GTT; KFD's pool, which is this very
/// limit where HIP memory comes from GTT; the GTT manager's size where `gttsize` does not move it; the limit asked for on
/// the command line; half of the RAM that the OS sees, TTM's default; the total that HIP reports.
pub fn ttm_limit(facts: &Facts, gpu: &Gpu) -> Option<Ttm> {
    // No limit that lets the machine work is 0, and none is a product that overflows.
    let plausible = |pages: u64| pages > 0 && pages < (1 << 48);
    if let Some(pages) = facts.ttm.pages_limit.as_known().filter(|known| plausible(known.value)) {
        return Some(Ttm {
            bytes: Bytes::pages(pages.value),
            formula: format!("{} pages × {PAGE}", pages.value),
            source: pages.source.clone(),
        });
    }
    if let Some(size) = facts.ttm.size_logged.as_known() {
        return Some(of(size, "TTM's size as the driver printed it".to_owned()));
    }
    let is_carveout = |total: Bytes| gpu.vram_total.get().is_some_and(|vram| total.near(vram, 2.0));
    if let Some(pool) = gpu.kfd_pool.as_known().filter(|pool| !is_carveout(pool.value)) {
        return Some(of(pool, "KFD's pool, which is TTM's limit where HIP memory comes from GTT".to_owned()));
    }
    let moved = gttsize_set(facts);
    if let Some(gtt) = gpu.gtt_total.as_known().filter(|_| moved != Some(true)) {
        let how = if moved == Some(false) { "gttsize is not set" } else { "assuming gttsize is not set" };
        return Some(of(gtt, format!("GTT size, which is TTM's limit ({how})")));
    }
    let line = facts.kernel.cmdline.as_known();
    let asked = line.and_then(|line| {
        let pages =
            ["ttm.pages_limit", "amdttm.pages_limit"].iter().find_map(|name| parameter(&line.value, name))?;
        Some((pages.parse::<u64>().ok()?, line.source.clone()))
    });
    // Asked for is not in force: a total that HIP showed and that differs says so.
    let contradicted =
        |asked: Bytes| gpu.hip_total.get().is_some_and(|t| !t.near(asked, 3.0) && !is_carveout(t));
    if let Some((pages, source)) = asked.filter(|(pages, _)| !contradicted(Bytes::pages(*pages))) {
        let formula = format!("{pages} pages × {PAGE}, as asked for at boot");
        return Some(Ttm { bytes: Bytes::pages(pages), formula, source });
    }
    if let Some(total) = facts.memory.total.as_known().filter(|_| moved == Some(true)) {
        let half = Bytes(total.value.0 / 2);
        let formula = format!("half of {} of RAM, TTM's default; gttsize does not move it", total.value);
        return Some(Ttm { bytes: half, formula, source: total.source.clone() });
    }
    gpu.hip_total
        .as_known()
        .filter(|total| !is_carveout(total.value))
        .map(|total| of(total, "the total that HIP reports".to_owned()))
}

/// HIP's pool on an APU.
pub(super) fn hip(facts: &Facts, gpu: &Gpu, device: DeviceId) -> Pool {
    let chosen = policy(facts, gpu).map(|(policy, _)| policy);
    let mut ceilings = Vec::new();
    if let Some(ttm) = ttm_limit(facts, gpu) {
        ceilings.push(Ceiling {
            name: "ttm.pages_limit",
            bytes: per_device(facts, gpu, ttm.bytes),
            formula: ttm.formula,
            source: ttm.source,
            binds: Some(LimitedBy::TtmPagesLimit),
        });
    }
    if let Some(total) =
        facts.memory.total.as_known().filter(|_| facts.amdgpu.no_system_mem_limit.get() != Some(true))
    {
        ceilings.push(Ceiling {
            name: "kfd-system-limit",
            bytes: kfd_system_limit(total.value),
            formula: format!("MemTotal {} − 1/64 − 1.5 GiB", total.value),
            source: total.source.clone(),
            binds: Some(LimitedBy::KfdSystemLimit),
        });
    }
    let mut carveout = discrete::vram_ceilings(gpu);
    match chosen {
        Some(Policy::Gtt) => {
            carveout.iter_mut().for_each(|c| c.binds = None);
            // Without TTM's limit the other one is an upper bound, not the pool.
            if !ceilings.iter().any(|c| c.name == "ttm.pages_limit") {
                ceilings.iter_mut().for_each(|c| c.binds = None);
            }
            ceilings.extend(carveout);
        }
        Some(Policy::Carveout) => {
            carveout
                .extend(discrete::shown_total(gpu, LimitedBy::Vram).filter(|_| !gpu.vram_total.is_known()));
            ceilings.iter_mut().for_each(|c| c.binds = None);
            carveout.extend(ceilings);
            ceilings = carveout;
        }
        None => {
            ceilings.extend(carveout);
            ceilings.iter_mut().for_each(|c| c.binds = None);
            // What decides is not known; what the runtime shows is all there is to go by.
            ceilings.extend(discrete::shown_total(gpu, LimitedBy::Unknown));
        }
    }
    ceilings.extend(orientation(facts, gpu));
    let pool = bound(device, Api::Hip, chosen == Some(Policy::Gtt), ceilings);
    usage::fill(facts, gpu, pool)
}

/// MI300A shares TTM's limit among its NUMA nodes and a node's share among its partitions
/// (`amdgpu_amdkfd_xcp_memory_size`); every other APU has all of it.
fn per_device(facts: &Facts, gpu: &Gpu, limit: Bytes) -> Bytes {
    if gpu.gfx.text() != Some("gfx942") {
        return limit;
    }
    let nodes = facts.memory.numa_nodes.get().unwrap_or(1).max(1);
    Bytes(limit.0 / nodes / gpu.partitions.get().unwrap_or(1).max(1))
}

/// Figures that do not bind HIP but that people look at.
fn orientation(facts: &Facts, gpu: &Gpu) -> Vec<Ceiling> {
    let mut list = Vec::new();
    let mut note = |name, known: Option<&Known<Bytes>>, formula: &str| {
        if let Some(known) = known {
            list.push(Ceiling {
                name,
                bytes: known.value,
                formula: formula.to_owned(),
                source: known.source.clone(),
                binds: None,
            });
        }
    };
    note("gtt", gpu.gtt_total.as_known(), "size of the GTT manager; it does not bind HIP");
    note("host-available", facts.memory.available.as_known(), "MemAvailable: what the host can still give");
    note("cgroup", facts.container.memory_max.as_known(), "memory.max; hipMalloc is not charged to it");
    list
}
