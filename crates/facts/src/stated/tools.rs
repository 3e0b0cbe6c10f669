//! What monitoring tools, and files pasted from sysfs, state.

use logs::Hit;
use units::Bytes;

use super::{Draft, Name, known, set, text};
use crate::model::{Gpu, Shown};
use crate::reading::Reading;

/// rocm-smi's underflow on APUs prints about 1.8e19; nothing real comes near this.
const ABSURD: u64 = 1 << 62;

fn figure<'a>(gpu: &'a mut Gpu, kind: &str, name: &str) -> Option<&'a mut Reading<Bytes>> {
    Some(match (kind.to_ascii_lowercase().as_str(), name.to_ascii_lowercase().as_str()) {
        ("vram", "total") => &mut gpu.vram_total,
        ("vram", "used") => &mut gpu.vram_used,
        ("vram", "free") => &mut gpu.vram_free,
        ("gtt", "total") => &mut gpu.gtt_total,
        ("gtt", "used") => &mut gpu.gtt_used,
        ("vis_vram" | "visible_vram", "total") => &mut gpu.visible_vram_total,
        _ => return None,
    })
}

pub(super) fn take(draft: &mut Draft, hit: &Hit) -> bool {
    let kind = hit.field("kind").unwrap_or_default();
    match hit.signature.id {
        id @ ("rocm-smi-total" | "rocm-smi-used") => {
            let name = if id == "rocm-smi-total" { "total" } else { "used" };
            let size = hit.number("size").filter(|size| *size < ABSURD).map(Bytes);
            let gpu = draft.gpu(Name::Tool(hit.number("dev").unwrap_or_default()));
            if let Some(reading) = figure(gpu, kind, name) {
                set(reading, size, hit);
            }
            if kind == "VRAM" {
                let mut shown = Shown { program: Some("rocm-smi".to_owned()), ..Shown::default() };
                let slot = if name == "total" { &mut shown.total } else { &mut shown.used };
                *slot = hit.number("size").map(Bytes);
                draft.facts.shown.push(known(shown, hit));
            }
        }
        "amd-smi-memory" => {
            let gpu = draft.gpu(Name::Tool(0));
            if let Some(reading) = figure(gpu, kind, hit.field("name").unwrap_or_default()) {
                set(reading, hit.size("size"), hit);
            }
        }
        "sysfs-memory" => {
            let gpu = draft.gpu(Name::Tool(0));
            if let Some(reading) = figure(gpu, kind, hit.field("name").unwrap_or_default()) {
                set(reading, hit.number("size").map(Bytes), hit);
            }
        }
        "sysfs-pages-limit" => {
            set(&mut draft.facts.ttm.pages_limit, hit.number("pages"), hit);
            set(&mut draft.facts.ttm.module, text(hit, "module"), hit);
        }
        "hipinfo-memory" => {
            let gpu = draft.gpu(Name::Hip(0));
            let size = hit.size("size");
            match hit.field("name") {
                Some("memInfo.free") => set(&mut gpu.hip_free, size, hit),
                _ => set(&mut gpu.hip_total, size, hit),
            }
        }
        "hipinfo-arch" => set(&mut draft.gpu(Name::Hip(0)).gfx, text(hit, "gfx"), hit),
        "meminfo" => {
            let memory = &mut draft.facts.memory;
            let reading = match hit.field("name") {
                Some("MemTotal") => &mut memory.total,
                Some("MemAvailable") => &mut memory.available,
                Some("SwapTotal") => &mut memory.swap_total,
                Some("SwapFree") => &mut memory.swap_free,
                _ => return true,
            };
            set(reading, hit.number("kib").map(Bytes::kib), hit);
        }
        _ => return false,
    }
    true
}
