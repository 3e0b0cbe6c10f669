//! `rocminfo`: agents, and the pools under each.

use logs::Hit;
use units::Bytes;

use super::{Draft, Name, set, text};
use crate::model::Gpu;
use crate::reading::Reading;

/// The agent being read. rocminfo prints CPUs as agents too; only what turns out to be a GPU is kept.
#[derive(Default)]
pub(super) struct Lines {
    agent: Gpu,
    is_gpu: bool,
    is_cpu: bool,
    coarse_pool: bool,
    seen: u64,
}

impl Lines {
    pub(super) fn take(&mut self, draft: &mut Draft, hit: &Hit) -> bool {
        match hit.signature.id {
            "rocminfo-agent" => {
                self.finish(draft);
                set(&mut draft.facts.gpus_seen, None, hit);
            }
            "rocminfo-name" => {
                // Without agent headers (a pasted part) the next target begins the next agent.
                if self.agent.gfx.is_known() {
                    self.finish(draft);
                }
                set(&mut self.agent.gfx, text(hit, "gfx"), hit);
                self.is_gpu = true;
            }
            "rocminfo-marketing-name" => set(&mut self.agent.name, text(hit, "name"), hit),
            "rocminfo-device-type" => {
                self.is_gpu |= hit.field("type") == Some("GPU");
                self.is_cpu |= hit.field("type") == Some("CPU");
            }
            "rocminfo-bdfid" => {
                // Bus in bits 8 to 15, device in 3 to 7, function in 0 to 2; the domain is not part of it.
                let bdf = hit
                    .number("bdfid")
                    .filter(|id| (1..=0xFFFF).contains(id))
                    .map(|id| format!("0000:{:02x}:{:02x}.{}", id >> 8, (id >> 3) & 31, id & 7));
                set(&mut self.agent.bdf, bdf, hit);
            }
            "rocminfo-chip-id" => {
                let pci = hit.field("device").map(|device| format!("1002:{}", device.to_ascii_lowercase()));
                set(&mut self.agent.pci_id, pci, hit);
            }
            "rocminfo-apu" => set(&mut self.agent.apu, Some(true), hit),
            "rocminfo-segment" => {
                self.coarse_pool = hit.field("segment") == Some("GLOBAL")
                    && hit.field("flags").is_some_and(|flags| flags.contains("COARSE"));
            }
            "rocminfo-pool-size" => {
                if self.coarse_pool {
                    let size = hit.number("kib").map(Bytes::kib);
                    set(&mut self.agent.kfd_pool, size, hit);
                    self.coarse_pool = false;
                }
            }
            _ => return false,
        }
        true
    }

    /// Keeps the agent read so far, if it is a GPU.
    pub(super) fn finish(&mut self, draft: &mut Draft) {
        let done = std::mem::take(self);
        self.seen = done.seen;
        if done.is_gpu && !done.is_cpu {
            draft.gpus.insert(Name::Agent(self.seen), done.agent);
            self.seen += 1;
        } else if let (Reading::Known(name), false) = (&done.agent.name, done.is_cpu) {
            // A marketing name alone, as people quote it.
            if !draft.gpus.keys().any(|name| matches!(name, Name::Agent(_))) && name.value.contains("AMD") {
                draft
                    .gpus
                    .insert(Name::Agent(self.seen), Gpu { name: done.agent.name.clone(), ..Gpu::default() });
            }
        }
    }
}
