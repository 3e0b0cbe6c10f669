//! What the kernel's log and its command line state.

use logs::Hit;
use units::Bytes;

use super::{Draft, Name, set, text};
use crate::model::Gpu;

/// The device that unaddressed lines are about.
#[derive(Default)]
pub(super) struct Lines {
    current: Option<String>,
}

impl Lines {
    fn device<'a>(&self, draft: &'a mut Draft, hit: &Hit) -> &'a mut Gpu {
        match hit.field("bdf") {
            Some(bdf) => {
                let bdf = bdf.to_ascii_lowercase();
                let gpu = draft.gpu(Name::Address(bdf.clone()));
                set(&mut gpu.bdf, Some(bdf), hit);
                gpu
            }
            None => draft.gpu(Name::Kernel(self.current.clone())),
        }
    }

    pub(super) fn take(&mut self, draft: &mut Draft, hit: &Hit) -> bool {
        match hit.signature.id {
            "kernel-modesetting" => {
                let (vendor, device) =
                    (hit.field("vendor").unwrap_or_default(), hit.field("device").unwrap_or_default());
                let pci = format!("{vendor}:{device}").to_ascii_lowercase();
                self.current = Some(pci.clone());
                let gpu = self.device(draft, hit);
                set(&mut gpu.pci_id, Some(pci), hit);
            }
            "kernel-memory-ready" => {
                let gpu = self.device(draft, hit);
                let size = hit.mib("mib");
                match hit.field("kind") {
                    Some("VRAM") => set(&mut gpu.vram_total, size, hit),
                    Some("GTT") => set(&mut gpu.gtt_total, size, hit),
                    _ => {}
                }
            }
            "kernel-vram-detected" => {
                let gpu = self.device(draft, hit);
                set(&mut gpu.vram_total, hit.mib("mib"), hit);
                set(&mut gpu.bar, hit.mib("bar_mib"), hit);
            }
            "kernel-vram-range" => {
                let gpu = self.device(draft, hit);
                set(&mut gpu.vram_total, hit.mib("mib"), hit);
            }
            "kernel-hmm-registered" => set(&mut self.device(draft, hit).hmm_registered, Some(true), hit),
            "kernel-gtt-ttm-mismatch" => {
                let gpu = self.device(draft, hit);
                set(&mut gpu.gtt_total, hit.number("gtt").map(Bytes), hit);
                set(&mut draft.facts.ttm.size_logged, hit.number("ttm").map(Bytes), hit);
            }
            "kernel-mes-firmware" if hit.field("kind").is_none() => {
                set(&mut self.device(draft, hit).mes_firmware, text(hit, "firmware"), hit);
            }
            "kernel-amdgpu-version" => set(&mut draft.facts.amdgpu.dkms_version, text(hit, "version"), hit),
            "kernel-version" | "kernel-uname" | "kernel-release-stated" => {
                set(&mut draft.facts.kernel.release, text(hit, "release"), hit);
            }
            "kernel-cmdline" | "proc-cmdline" if hit.field("not").is_none() => {
                set(&mut draft.facts.kernel.cmdline, text(hit, "cmdline"), hit);
            }
            "boot-loader-cmdline" => {
                let line = text(hit, "cmdline").or_else(|| text(hit, "quoted"));
                set(&mut draft.facts.kernel.cmdline_configured, line, hit);
            }
            "modprobe-option" => {
                let (module, args) =
                    (hit.field("module").unwrap_or_default(), hit.field("args").unwrap_or_default());
                let mut lines = draft.facts.kernel.modprobe_options.value().cloned().unwrap_or_default();
                lines.push(format!("options {module} {args}"));
                set(&mut draft.facts.kernel.modprobe_options, Some(lines), hit);
            }
            _ => return false,
        }
        true
    }
}
