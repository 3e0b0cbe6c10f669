//! HIP's pool on a discrete card: its VRAM.

use units::DeviceId;

use super::ceiling::{Ceiling, LimitedBy};
use super::{Api, Pool, bound, usage};
use crate::reading::Known;
use crate::{Facts, Gpu};
use units::Bytes;

fn ceiling(name: &'static str, known: &Known<Bytes>, formula: &str, binds: Option<LimitedBy>) -> Ceiling {
    Ceiling { name, bytes: known.value, formula: formula.to_owned(), source: known.source.clone(), binds }
}

/// VRAM (or the carveout), and the control group's limit on it.
pub(super) fn vram_ceilings(gpu: &Gpu) -> Vec<Ceiling> {
    let what = if gpu.apu.get() == Some(true) { "the carveout" } else { "the card's VRAM" };
    let vram = gpu.vram_total.as_known().map(|known| ceiling("vram", known, what, Some(LimitedBy::Vram)));
    let group = gpu.dmem_max.as_known().map(|known| {
        ceiling("cgroup", known, "dmem.max: VRAM this control group may use", Some(LimitedBy::Cgroup))
    });
    vram.into_iter().chain(group).collect()
}

/// The total that KFD or HIP shows.
pub(super) fn shown_total(gpu: &Gpu, binds: LimitedBy) -> Option<Ceiling> {
    let shown = [&gpu.kfd_pool, &gpu.hip_total].into_iter().find_map(|reading| reading.as_known())?;
    let name = if binds == LimitedBy::Vram { "vram" } else { "shown" };
    Some(ceiling(name, shown, "the total that KFD or HIP shows", Some(binds)))
}

/// HIP's pool where it is not known whether the device is a card or an APU.
///
/// A card's firmware keeps a part of its VRAM, so that the rest is no round size; an APU's carveout is. A round size
/// decides nothing, and what KFD or HIP shows is all there is to go by.
pub(super) fn of_unknown_kind(facts: &Facts, gpu: &Gpu, device: DeviceId) -> Pool {
    let round = gpu.vram_total.get().is_some_and(|vram| vram.0.is_multiple_of(Bytes::mib(256).0));
    if gpu.vram_total.is_known() && !round {
        return hip(facts, gpu, device);
    }
    let mut ceilings = vram_ceilings(gpu);
    ceilings.iter_mut().for_each(|c| c.binds = None);
    ceilings.extend(shown_total(gpu, LimitedBy::Unknown));
    usage::fill(facts, gpu, bound(device, Api::Hip, false, ceilings))
}

/// HIP's pool on a discrete card. GTT is no part of it: what spills there is slow, and HIP does not put it there.
pub(super) fn hip(facts: &Facts, gpu: &Gpu, device: DeviceId) -> Pool {
    let mut ceilings = vram_ceilings(gpu);
    // Where the driver's files are out of reach the runtime's figure stands for VRAM.
    ceilings.extend(shown_total(gpu, LimitedBy::Vram).filter(|_| !gpu.vram_total.is_known()));
    let visible =
        gpu.visible_vram_total.as_known().filter(|v| gpu.vram_total.get().is_some_and(|t| v.value < t));
    ceilings.extend(visible.map(|known| {
        ceiling("visible-vram", known, "VRAM the CPU can see (no resizable BAR); it does not bind HIP", None)
    }));
    let gtt = gpu.gtt_total.as_known();
    ceilings
        .extend(gtt.map(|known| ceiling("gtt", known, "system memory for spill; no part of the pool", None)));
    usage::fill(facts, gpu, bound(device, Api::Hip, false, ceilings))
}
