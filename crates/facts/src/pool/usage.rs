//! What of a pool is in use, and by whom.

use units::Bytes;

use super::{Api, Pool};
use crate::{Facts, Gpu, Process, Reading};

/// A process that holds memory of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// Process id, where known.
    pub pid: Option<u32>,
    /// Name, where known.
    pub name: Option<String>,
    /// Memory held; unknown where the process is known only to be a client.
    pub bytes: Option<Bytes>,
    /// Whether it runs; a holder that does not is a leak.
    pub alive: Option<bool>,
}

/// No machine has this much: the counter ran below zero.
const ABSURD: Bytes = Bytes(1 << 60);

/// KFD keeps page tables out of reach: `total >> 14` and at least this much
/// (`AMDGPU_VRAM_RESERVE` class figures; `amdgpu_amdkfd_get_available_memory`).
fn page_table_reserve(total: Bytes) -> Bytes {
    Bytes(total.0 >> 14)
}

/// Fills in used, free, holders and what nobody accounts for.
pub(super) fn fill(facts: &Facts, gpu: &Gpu, mut pool: Pool) -> Pool {
    let (used, free) = match (pool.api, pool.in_ram) {
        // Vulkan's heaps on an APU span carveout and GTT.
        (Api::Vulkan, true) => (gpu.vram_used.get().zip(gpu.gtt_used.get()).map(|(v, g)| v + g), None),
        (_, true) => (gpu.gtt_used.get(), None),
        (_, false) => (gpu.vram_used.get(), gpu.vram_free.get()),
    };
    // A counter that ran below zero is no use, nor is more than a tenth beyond all there is.
    let used = used.filter(|used| {
        pool.total
            .is_none_or(|total| used.0 / 11 * 10 <= total.0.max(gpu.gtt_total.get().unwrap_or_default().0))
    });
    let free = free.filter(|free| pool.total.is_none_or(|total| *free <= total));
    let hip_free = (pool.api == Api::Hip).then(|| gpu.hip_free.get()).flatten();
    // A free figure above the total is a known fault of the runtime, not a measurement.
    let hip_free = hip_free.filter(|free| pool.total.is_some_and(|total| *free <= total));
    pool.holders = holders(facts, gpu, &pool);
    let held: Bytes = pool.holders.iter().filter_map(|h| h.bytes).sum();
    let left = free.or(hip_free);
    pool.used = used.or_else(|| Some(pool.total? - left?)).or_else(|| (held > Bytes(0)).then_some(held));
    pool.free = pool.total.and_then(|total| match (pool.used, left) {
        (_, Some(left)) => Some(left),
        (Some(used), None) if pool.in_ram => Some(total - used),
        (Some(used), None) => {
            Some(total - used - page_table_reserve(total) - gpu.retired.get().unwrap_or_default())
        }
        (None, None) => None,
    });
    if pool.in_ram {
        let carveout = gpu.vram_total.get().zip(gpu.vram_used.get()).map(|(total, used)| total - used);
        let beside = carveout.filter(|_| pool.api == Api::Vulkan).unwrap_or_default();
        let available = facts.memory.available.get().map(|available| available + beside);
        pool.free = pool.free.zip(available).map(|(free, available)| free.min(available)).or(pool.free);
    }
    let complete = facts.processes.is_known()
        && facts.processes_hidden.get().unwrap_or(0) == 0
        && pool.holders.iter().all(|h| h.bytes.is_some());
    pool.unaccounted = used.filter(|_| complete).map(|used| used - held);
    pool
}

fn holders(facts: &Facts, gpu: &Gpu, pool: &Pool) -> Vec<Holder> {
    let Some(processes) = facts.processes.value() else { return Vec::new() };
    let alone = facts.gpus.len() == 1;
    let here = |process: &&Process| match (process.device.as_deref(), gpu.bdf.text()) {
        (Some(device), Some(bdf)) => device.eq_ignore_ascii_case(bdf),
        (Some(device), None) => device == pool.device.as_str(),
        (None, _) => alone,
    };
    let mut list: Vec<Holder> = processes
        .iter()
        .filter(here)
        .map(|process| {
            // fdinfo and KFD see the same buffers of a process: the larger figure, never the sum.
            let by_drm = match (pool.api, pool.in_ram) {
                (Api::Vulkan, true) if process.vram.is_some() || process.gtt.is_some() => {
                    Some(process.vram.unwrap_or_default() + process.gtt.unwrap_or_default())
                }
                (_, true) => process.gtt,
                (_, false) => process.vram,
            };
            let by_kfd = process.kfd.filter(|_| pool.api == Api::Hip || by_drm.is_none());
            let bytes = by_drm.max(by_kfd).filter(|bytes| *bytes < ABSURD);
            Holder { pid: process.pid, name: process.name.clone(), bytes, alive: process.alive }
        })
        .collect();
    list.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.pid.cmp(&b.pid)));
    list
}

impl Pool {
    /// Memory held by processes that run, where any figure is known.
    pub fn held_by_the_living(&self) -> Bytes {
        self.holders.iter().filter(|h| h.alive != Some(false)).filter_map(|h| h.bytes).sum()
    }
}

impl Facts {
    /// Whether every holder of GPU memory could be seen.
    pub fn sees_all_processes(&self) -> bool {
        matches!(self.processes, Reading::Known(_)) && self.processes_hidden.get().unwrap_or(0) == 0
    }
}
