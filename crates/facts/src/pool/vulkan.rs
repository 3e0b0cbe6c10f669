//! Vulkan's pool: the device-local heap.
//!
//! RADV splits an APU's VRAM and GTT two to one into a device-local heap and the rest, aligned to the GPU page
//! (`radv_physical_device_init_mem_types`); with `radv_enable_unified_heap_on_apu` all of it is device-local. One
//! allocation is at most 0xFFFFFFFC bytes (`RADV_MAX_MEMORY_ALLOCATION_SIZE`), AMDVLK's 2 GiB.

use units::{Bytes, DeviceId, PAGE};

use super::ceiling::{Ceiling, LimitedBy};
use super::{Api, Pool, bound, usage};
use crate::reading::Source;
use crate::{Facts, Gpu};

/// RADV's limit on one allocation.
const RADV_MAX_ALLOCATION: Bytes = Bytes(0xFFFF_FFFC);

/// Targets that have compute units only.
const NO_GRAPHICS: &[&str] = &["gfx908", "gfx90a", "gfx942", "gfx950"];

/// The device-local heap of RADV on an APU: two thirds of VRAM and GTT together, rounded up to a page.
fn radv_device_local(vram: Bytes, gtt: Bytes) -> Bytes {
    let two_thirds = ((u128::from(vram.0) + u128::from(gtt.0)) * 2 / 3) as u64;
    Bytes(two_thirds.checked_next_multiple_of(PAGE).unwrap_or(two_thirds))
}

/// Vulkan's pool, where its size is stated or follows from Mesa's rule.
pub(super) fn pool(facts: &Facts, gpu: &Gpu, device: DeviceId) -> Option<Pool> {
    let apu = gpu.apu.get()?;
    // Data-centre parts without graphics have no Vulkan driver in Mesa.
    if gpu.gfx.text().is_some_and(|gfx| NO_GRAPHICS.contains(&gfx)) && !gpu.vulkan.heaps.is_known() {
        return None;
    }
    let binds = Some(if apu { LimitedBy::Gtt } else { LimitedBy::Vram });
    let radv = gpu.vulkan.driver.text().is_none_or(|driver| driver.eq_ignore_ascii_case("radv"));
    let mut ceilings = Vec::new();
    let mut add = |name, bytes, formula: &str, source: &Source, binds| {
        ceilings.push(Ceiling { name, bytes, formula: formula.to_owned(), source: source.clone(), binds });
    };
    let stated = gpu.vulkan.heaps.as_known().filter(|heaps| !heaps.value.is_empty());
    match (stated, gpu.vram_total.as_known(), gpu.gtt_total.as_known()) {
        (Some(heaps), ..) => {
            add(
                "device-local-heap",
                heaps.value[0],
                "device-local heap as Vulkan states it",
                &heaps.source,
                binds,
            );
            if let Some(rest) = heaps.value.get(1) {
                add("other-heap", *rest, "the other heap as Vulkan states it", &heaps.source, None);
            }
        }
        (None, Some(vram), Some(gtt)) if apu && radv => {
            let local = radv_device_local(vram.value, gtt.value);
            let rest = vram.value + gtt.value - local;
            add(
                "device-local-heap",
                local,
                "2/3 of carveout + GTT, by Mesa's rule for RADV",
                &gtt.source,
                binds,
            );
            add("other-heap", rest, "the remaining third, by Mesa's rule for RADV", &gtt.source, None);
        }
        (None, Some(vram), gtt) if !apu => {
            add("device-local-heap", vram.value, "the card's VRAM", &vram.source, binds);
            if let Some(gtt) = gtt {
                add("other-heap", gtt.value, "GTT: system memory, slow for the card", &gtt.source, None);
            }
        }
        _ => return None,
    }
    let source = ceilings.first().map(|c| c.source.clone())?;
    if let Some(limit) = gpu.vulkan.max_allocation.as_known() {
        let formula = "largest single allocation, as Vulkan states it".to_owned();
        let source = limit.source.clone();
        ceilings.push(Ceiling {
            name: "single-allocation",
            bytes: limit.value,
            formula,
            source,
            binds: None,
        });
    } else if radv {
        let formula = "largest single allocation, by Mesa's rule for RADV".to_owned();
        ceilings.push(Ceiling {
            name: "single-allocation",
            bytes: RADV_MAX_ALLOCATION,
            formula,
            source,
            binds: None,
        });
    }
    if let Some(available) = facts.memory.available.as_known().filter(|_| apu) {
        ceilings.push(Ceiling {
            name: "host-available",
            bytes: available.value,
            formula: "MemAvailable: what the host can still give".to_owned(),
            source: available.source.clone(),
            binds: None,
        });
    }
    Some(usage::fill(facts, gpu, bound(device, Api::Vulkan, apu, ceilings)))
}
