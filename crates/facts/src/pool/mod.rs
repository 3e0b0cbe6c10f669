//! Pools: what each API can allocate on each device, derived from the facts and never read from a program.
//!
//! A [`Pool`] names every ceiling with its arithmetic and its source, and the one that binds. VRAM and GTT are never
//! added for HIP. Where the facts do not decide between two ceilings the total is unknown, and both stand in the list.

mod ceiling;
mod discrete;
mod policy;
mod shared;
mod usage;
mod vulkan;

pub use ceiling::{Ceiling, LimitedBy, kfd_system_limit};
pub use policy::{Policy, Source as PolicySource, policy};
pub use shared::{Ttm, ttm_limit};
pub use usage::Holder;

use serde::Serialize;
use units::{Bytes, DeviceId};

use crate::{Facts, Gpu};

/// Through which API memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// HIP: ROCm programs.
    Hip,
    /// Vulkan.
    Vulkan,
}

/// What one API can allocate on one device. Unknown figures are absent, never zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// The device.
    pub device: DeviceId,
    /// The API.
    pub api: Api,
    /// Lowest binding ceiling.
    pub total: Option<Bytes>,
    /// In use by everyone.
    pub used: Option<Bytes>,
    /// Left, also by what the host can still give.
    pub free: Option<Bytes>,
    /// Which ceiling binds; known whenever `total` is.
    pub limited_by: Option<LimitedBy>,
    /// Every ceiling, binding ones first.
    pub ceilings: Vec<Ceiling>,
    /// Processes that hold memory of this pool, largest first.
    pub holders: Vec<Holder>,
    /// In use, but by no process that was seen; only where every process could be seen.
    pub unaccounted: Option<Bytes>,
    /// Whether the pool lies in the host's RAM.
    pub in_ram: bool,
}

/// The name of the `position`th device of these facts.
pub fn device_id(gpu: &Gpu, position: usize) -> DeviceId {
    gpu.bdf.text().map_or_else(|| DeviceId::nth(position), DeviceId::bdf)
}

/// Every pool of these facts: for each device HIP's, then Vulkan's where its size is known.
pub fn pools(facts: &Facts) -> Vec<Pool> {
    let mut pools = Vec::new();
    for (position, gpu) in facts.gpus.iter().enumerate() {
        let device = device_id(gpu, position);
        pools.push(match gpu.apu.get() {
            Some(true) => shared::hip(facts, gpu, device.clone()),
            Some(false) => discrete::hip(facts, gpu, device.clone()),
            None => discrete::of_unknown_kind(facts, gpu, device.clone()),
        });
        pools.extend(vulkan::pool(facts, gpu, device));
    }
    pools
}

/// The pool that the binding ceilings among `ceilings` give.
fn bound(device: DeviceId, api: Api, in_ram: bool, ceilings: Vec<Ceiling>) -> Pool {
    let lowest = ceilings.iter().filter(|c| c.binds.is_some()).min_by_key(|c| c.bytes);
    let (total, limited_by) = (lowest.map(|c| c.bytes), lowest.and_then(|c| c.binds));
    Pool {
        device,
        api,
        total,
        used: None,
        free: None,
        limited_by,
        ceilings,
        holders: Vec::new(),
        unaccounted: None,
        in_ram,
    }
}

#[cfg(test)]
mod tests;
