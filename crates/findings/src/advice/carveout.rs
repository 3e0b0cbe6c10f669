//! The carveout: RAM that the firmware takes from the OS for the GPU.

use facts::Facts;
use units::Bytes;

use crate::finding::{Change, Fix, FixKind};

/// AMD's recommendation for machines whose GPU lives in system memory.
pub const SMALL: Bytes = Bytes::mib(512);

/// The carveout to go down to on device `gpu`; `None` where it is small already or unknown.
pub fn smaller(facts: &Facts, gpu: usize) -> Option<Bytes> {
    let device = facts.gpus.get(gpu)?;
    let now = device.vram_total.get().filter(|_| device.apu.get() == Some(true))?;
    (now > Bytes::gib(1)).then_some(SMALL)
}

/// How to set the carveout to `size` on this machine.
pub fn set(facts: &Facts, gpu: usize, size: Bytes, gain: &str) -> Fix {
    let options = facts.gpus.get(gpu).and_then(|gpu| gpu.carveout_options.value());
    let index = options.and_then(|list| {
        let wanted = [size.whole_mib().to_string() + " MB", format!("{} GB", size.as_gib().round() as u64)];
        list.iter()
            .find(|line| wanted.iter().any(|w| line.contains(w.as_str())))
            .and_then(|line| line.split(':').next())
    });
    let bdf = facts.gpus.get(gpu).and_then(|gpu| gpu.bdf.text());
    match (index, bdf) {
        (Some(index), Some(bdf)) => Fix::new(
            FixKind::Bios,
            format!("Set the carveout (UMA frame buffer) to {size}; the kernel can write it for the next boot. {gain}"),
        )
        .command(format!("echo {} | sudo tee /sys/bus/pci/devices/{bdf}/uma/carveout", index.trim()))
        .change(
            Change::Sysfs {
                path: format!("/sys/bus/pci/devices/{bdf}/uma/carveout"),
                value: index.trim().to_owned(),
            },
            "sudo reboot",
        )
        .risk("takes effect at the next boot; Vulkan and HIP then use system memory through GTT")
        .undo("write the former index, then reboot")
        .check("cat /sys/class/drm/card*/device/mem_info_vram_total"),
        _ => Fix::new(FixKind::Bios, format!("In the BIOS set the carveout ({}) to {size}. {gain}", words(facts)))
        .risk("the BIOS menu differs by board; memory then comes from GTT, so the page limit has to be right too")
        .undo("set the former size in the BIOS")
        .check("cat /sys/class/drm/card*/device/mem_info_vram_total"),
    }
}

/// What the BIOS of this machine calls it.
///
/// Sources: owners' set-up notes of the Framework Desktop and of GMKtec's EVO-X2 (whose BIOS 1.12 goes down to 2 GB
/// only), GEEKOM's article GK-BIOS-04, SolidRun's guide for the Bedrock R8000 (AMD's own menu, found on most boards).
fn words(facts: &Facts) -> &'static str {
    let board = facts.platform.board.text().unwrap_or_default().to_ascii_lowercase();
    const BOARDS: &[(&str, &str)] = &[
        ("framework", "UMA: Advanced > iGPU Memory Configuration = Custom, then iGPU Memory Size"),
        (
            "gmktec",
            "UMA: iGPU Configuration = UMA_SPECIFIED, then UMA Frame Buffer Size; some versions go down to 2 GB only, which does as well",
        ),
        (
            "nucbox",
            "UMA: iGPU Configuration = UMA_SPECIFIED, then UMA Frame Buffer Size; some versions go down to 2 GB only, which does as well",
        ),
        ("geekom", "UMA: Advanced > UMA Frame Buffer Size"),
    ];
    const ANY: &str = "UMA Frame Buffer Size, on many boards under Advanced > AMD CBS > NBIO Common Options > GFX Configuration with \
                       iGPU Configuration = UMA_SPECIFIED; elsewhere iGPU Memory or Dedicated Graphics Memory";
    BOARDS.iter().find(|(name, _)| board.contains(name)).map_or(ANY, |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(board: &str) -> String {
        let sheet = format!(
            r#"{{"schema": "vramwarden.facts/1", "platform": {{"board": "{board}"}}, "gpus": [{{"apu": true}}]}}"#
        );
        set(&facts::sheet::read("s", &sheet).unwrap().facts, 0, SMALL, "").text
    }

    #[test]
    fn a_known_board_is_told_in_its_bios_s_words_and_another_in_the_common_ones() {
        assert!(told("Framework Desktop (AMD Ryzen AI Max 300 Series)").contains("iGPU Memory Size"));
        assert!(told("GMKtec NucBox_EVO-X2").contains("UMA_SPECIFIED"));
        assert!(told("Some Board").contains("AMD CBS"));
    }
}
