//! `vulkaninfo`: AMD devices, their limits and heaps.

use logs::Hit;
use units::Bytes;

use super::{Draft, Name, set, source, text};
use crate::model::Gpu;
use crate::reading::Reading;

/// The device being read.
#[derive(Default)]
pub(super) struct Lines {
    gpu: Gpu,
    begun: bool,
    software: bool,
    heaps: Vec<(Bytes, bool)>,
    last: Option<super::Source>,
    seen: u64,
}

fn size(hit: &Hit) -> Option<Bytes> {
    let text = hit.field("size")?;
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(Bytes),
        None => text.parse().ok().map(Bytes),
    }
}

impl Lines {
    pub(super) fn take(&mut self, draft: &mut Draft, hit: &Hit) -> bool {
        match hit.signature.id {
            "vulkan-device-name" => {
                // The name stands twice for each device (summary and properties); another name is another device.
                let name = text(hit, "name");
                if self.begun && self.gpu.name.value() != name.as_ref() {
                    self.finish(draft);
                }
                self.begun = true;
                set(&mut self.gpu.name, name, hit);
            }
            "vulkan-driver" => {
                set(&mut self.gpu.vulkan.driver, text(hit, "driver").map(|d| d.to_lowercase()), hit)
            }
            "vulkan-driver-id" => {
                let driver = match hit.field("name") {
                    Some("DRIVER_ID_MESA_RADV") => Some("radv"),
                    Some("DRIVER_ID_AMD_OPEN_SOURCE" | "DRIVER_ID_AMD_PROPRIETARY") => Some("amdvlk"),
                    _ => None,
                };
                set(&mut self.gpu.vulkan.driver, driver.map(str::to_owned), hit);
            }
            "vulkan-device-type" => {
                self.software |= hit.field("type") == Some("CPU");
                let apu = match hit.field("type") {
                    Some("INTEGRATED_GPU") => Some(true),
                    Some("DISCRETE_GPU") => Some(false),
                    _ => None,
                };
                set(&mut self.gpu.apu, apu, hit);
            }
            "vulkan-max-allocation" => set(&mut self.gpu.vulkan.max_allocation, size(hit), hit),
            "vulkan-max-buffer" => set(&mut self.gpu.vulkan.max_buffer, size(hit), hit),
            "vulkan-heap" => {
                self.heaps.push((size(hit).unwrap_or_default(), false));
                self.last = Some(source(hit));
            }
            "vulkan-heap-size" => {
                if let (Some(heap), Some(size)) = (self.heaps.last_mut(), size(hit)) {
                    heap.0 = size;
                }
            }
            "vulkan-heap-flag" => {
                if let Some(heap) = self.heaps.last_mut() {
                    heap.1 = true;
                }
            }
            "vulkan-heap-budget" => {}
            _ => return false,
        }
        true
    }

    /// Keeps the device read so far, unless it is a software one.
    pub(super) fn finish(&mut self, draft: &mut Draft) {
        let mut done = std::mem::take(self);
        self.seen = done.seen;
        done.heaps.retain(|(size, _)| *size > Bytes(0));
        done.heaps.sort_by_key(|(_, local)| !local);
        if let Some(source) = done.last.filter(|_| !done.heaps.is_empty()) {
            let sizes = done.heaps.iter().map(|(size, _)| *size).collect();
            done.gpu.vulkan.heaps = Reading::known(sizes, source);
        }
        if done.gpu != Gpu::default() && !done.software {
            draft.gpus.insert(Name::Vulkan(self.seen), done.gpu);
            self.seen += 1;
        }
    }
}
