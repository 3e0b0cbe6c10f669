//! What a GPU is by its PCI device id, and which LLVM targets are APUs.
//!
//! The table answers where KFD is missing (no compute support in the kernel, a container without it, a sleeping
//! driver). Where KFD answers, its `gfx_target_version` is the truth and this table only lends the name.

use crate::model::Gpu;
use crate::reading::Reading;

/// What is known of a PCI device id of vendor 1002.
pub(crate) struct Device {
    /// PCI device id.
    pub(crate) id: u16,
    /// LLVM target.
    pub(crate) gfx: &'static str,
    /// Marketing name, or that of the family where several parts share the id.
    pub(crate) name: &'static str,
}

const fn device(id: u16, gfx: &'static str, name: &'static str) -> Device {
    Device { id, gfx, name }
}

/// Device ids by target; sources: the kernel's amdgpu id list and libdrm's amdgpu.ids.
const DEVICES: &[Device] = &[
    device(0x67df, "gfx803", "AMD Radeon RX 470/480/570/580"),
    device(0x687f, "gfx900", "AMD Radeon RX Vega 56/64"),
    device(0x66af, "gfx906", "AMD Radeon VII"),
    device(0x66a1, "gfx906", "AMD Instinct MI50/MI60"),
    device(0x738c, "gfx908", "AMD Instinct MI100"),
    device(0x7408, "gfx90a", "AMD Instinct MI250X"),
    device(0x740c, "gfx90a", "AMD Instinct MI250X/MI250"),
    device(0x740f, "gfx90a", "AMD Instinct MI210"),
    device(0x74a0, "gfx942", "AMD Instinct MI300A"),
    device(0x74a1, "gfx942", "AMD Instinct MI300X"),
    device(0x74a5, "gfx942", "AMD Instinct MI325X"),
    device(0x74b5, "gfx942", "AMD Instinct MI300X VF"),
    device(0x75a0, "gfx950", "AMD Instinct MI350X"),
    device(0x75a3, "gfx950", "AMD Instinct MI355X"),
    device(0x15d8, "gfx902", "AMD Radeon Vega (Picasso)"),
    device(0x15dd, "gfx902", "AMD Radeon Vega (Raven Ridge)"),
    device(0x1636, "gfx90c", "AMD Radeon Vega (Renoir)"),
    device(0x1638, "gfx90c", "AMD Radeon Vega (Cezanne)"),
    device(0x15e7, "gfx90c", "AMD Radeon Vega (Barcelo)"),
    device(0x164c, "gfx90c", "AMD Radeon Vega (Lucienne)"),
    device(0x731f, "gfx1010", "AMD Radeon RX 5600/5700 series"),
    device(0x7340, "gfx1012", "AMD Radeon RX 5500 series"),
    device(0x13fe, "gfx1013", "AMD BC-250"),
    device(0x73bf, "gfx1030", "AMD Radeon RX 6800/6900 series"),
    device(0x73af, "gfx1030", "AMD Radeon RX 6900 XT"),
    device(0x73a5, "gfx1030", "AMD Radeon RX 6950 XT"),
    device(0x73a3, "gfx1030", "AMD Radeon Pro W6800"),
    device(0x73df, "gfx1031", "AMD Radeon RX 6700 series"),
    device(0x73ff, "gfx1032", "AMD Radeon RX 6600 series"),
    device(0x73e3, "gfx1032", "AMD Radeon Pro W6600"),
    device(0x163f, "gfx1033", "AMD Custom GPU 0405 (Van Gogh)"),
    device(0x1435, "gfx1033", "AMD Custom GPU 0932 (Van Gogh)"),
    device(0x743f, "gfx1034", "AMD Radeon RX 6400/6500 XT"),
    device(0x1681, "gfx1035", "AMD Radeon 680M/660M"),
    device(0x164e, "gfx1036", "AMD Radeon 610M (Raphael)"),
    device(0x13c0, "gfx1036", "AMD Radeon 610M (Granite Ridge)"),
    device(0x1506, "gfx1037", "AMD Radeon 610M (Mendocino)"),
    device(0x744c, "gfx1100", "AMD Radeon RX 7900 series"),
    device(0x7448, "gfx1100", "AMD Radeon Pro W7900"),
    device(0x745e, "gfx1100", "AMD Radeon Pro W7800"),
    device(0x747e, "gfx1101", "AMD Radeon RX 7700/7800 XT"),
    device(0x7480, "gfx1102", "AMD Radeon RX 7600 series"),
    device(0x15bf, "gfx1103", "AMD Radeon 780M/760M"),
    device(0x15c8, "gfx1103", "AMD Radeon 740M"),
    device(0x1900, "gfx1103", "AMD Radeon 780M/760M"),
    device(0x1901, "gfx1103", "AMD Radeon 740M"),
    device(0x150e, "gfx1150", "AMD Radeon 890M/880M"),
    device(0x1586, "gfx1151", "AMD Radeon 8060S/8050S/8040S (Strix Halo)"),
    device(0x1114, "gfx1152", "AMD Radeon 840M/860M"),
    device(0x7590, "gfx1200", "AMD Radeon RX 9060 series"),
    device(0x7550, "gfx1201", "AMD Radeon RX 9070 series"),
    device(0x7551, "gfx1201", "AMD Radeon AI PRO R9700"),
];

/// Targets of which every part shares the host's RAM.
const APUS: &[&str] = &[
    "gfx801", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153",
];

/// Targets of which every part has memory of its own.
const CARDS: &[&str] = &[
    "gfx803", "gfx900", "gfx904", "gfx906", "gfx908", "gfx90a", "gfx950", "gfx1010", "gfx1011", "gfx1012",
    "gfx1030", "gfx1031", "gfx1032", "gfx1034", "gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201",
];

/// The table's entry for `pci_id`, as `1002:1586`.
pub(crate) fn device_of(pci_id: &str) -> Option<&'static Device> {
    let id = u16::from_str_radix(pci_id.strip_prefix("1002:")?, 16).ok()?;
    DEVICES.iter().find(|device| device.id == id)
}

/// Whether a part of target `gfx` and PCI id `pci_id` is an APU; `None` for what this build does not know.
pub(crate) fn is_apu(gfx: Option<&str>, pci_id: Option<&str>) -> Option<bool> {
    match (gfx?, pci_id) {
        // One target, two products: the MI300A has CPU cores beside it, the others have not.
        ("gfx942", Some(pci_id)) => Some(pci_id == "1002:74a0"),
        (gfx, _) if APUS.contains(&gfx) => Some(true),
        (gfx, _) if CARDS.contains(&gfx) => Some(false),
        _ => None,
    }
}

/// The LLVM target of KFD's `gfx_target_version`: major·10000 + minor·100 + step, minor and step hexadecimal digits.
pub(crate) fn gfx_of(version: u64) -> Option<String> {
    let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
    (version > 0 && major < 100 && minor < 16 && step < 16).then(|| format!("gfx{major}{minor:x}{step:x}"))
}

/// Fills in what follows from a device's other values: the target from its PCI id or its name, and from the target
/// whether it is an APU. The source stays that of the value it follows from.
pub(crate) fn complete(gpu: &mut Gpu) {
    if !gpu.gfx.is_known() {
        let by_id = gpu.pci_id.as_known().and_then(|id| Some((device_of(&id.value)?.gfx, id.source.clone())));
        let by_name =
            || gpu.name.as_known().and_then(|name| Some((target_by_name(&name.value)?, name.source.clone())));
        if let Some((gfx, source)) = by_id.or_else(by_name) {
            gpu.gfx = Reading::known(gfx.to_owned(), source);
        }
    }
    if !gpu.apu.is_known()
        && let (Some(apu), Some(source)) = (is_apu(gpu.gfx.text(), gpu.pci_id.text()), gpu.gfx.source())
    {
        gpu.apu = Reading::known(apu, source.clone());
    }
}

/// The target of a product that people name without saying the target. Only names that mean one target.
pub fn target_by_name(name: &str) -> Option<&'static str> {
    const NAMES: &[(&str, &str)] = &[
        ("strix halo", "gfx1151"),
        ("8060s", "gfx1151"),
        ("8050s", "gfx1151"),
        ("8040s", "gfx1151"),
        ("890m", "gfx1150"),
        ("880m", "gfx1150"),
        ("780m", "gfx1103"),
        ("760m", "gfx1103"),
        ("740m", "gfx1103"),
        ("680m", "gfx1035"),
        ("660m", "gfx1035"),
        ("rx 9070", "gfx1201"),
        ("r9700", "gfx1201"),
        ("rx 9060", "gfx1200"),
        ("rx 7900", "gfx1100"),
        ("w7900", "gfx1100"),
        ("rx 7800 xt", "gfx1101"),
        ("rx 7700 xt", "gfx1101"),
        ("rx 7600", "gfx1102"),
        ("rx 6950", "gfx1030"),
        ("rx 6900", "gfx1030"),
        ("rx 6800", "gfx1030"),
        ("rx 6700", "gfx1031"),
        ("rx 6600", "gfx1032"),
        ("mi355", "gfx950"),
        ("mi350", "gfx950"),
        ("mi325", "gfx942"),
        ("mi300", "gfx942"),
        ("mi250", "gfx90a"),
        ("mi210", "gfx90a"),
        ("mi100", "gfx908"),
        ("radeon vii", "gfx906"),
        ("mi60", "gfx906"),
        ("mi50", "gfx906"),
    ];
    let name = name.to_ascii_lowercase();
    NAMES.iter().find(|(part, _)| name.contains(part)).map(|(_, gfx)| *gfx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_a_name_or_an_id_is_filled_in_and_nothing_else() {
        use crate::reading::{Origin, Source};
        let stated = |text: &str| Reading::known(text.to_owned(), Source::new(Origin::Sheet, "s", text));
        let mut gpu = Gpu { name: stated("AMD Radeon 8060S"), ..Gpu::default() };
        complete(&mut gpu);
        assert_eq!((gpu.gfx.text(), gpu.apu.get()), (Some("gfx1151"), Some(true)));
        let mut card = Gpu { pci_id: stated("1002:744c"), ..Gpu::default() };
        complete(&mut card);
        assert_eq!((card.gfx.text(), card.apu.get()), (Some("gfx1100"), Some(false)));
        let mut unknown = Gpu { name: stated("AMD Radeon Graphics"), ..Gpu::default() };
        complete(&mut unknown);
        assert_eq!((unknown.gfx.text(), unknown.apu.get()), (None, None));
    }

    #[test]
    fn the_step_of_a_target_is_a_hexadecimal_digit() {
        for (version, gfx) in [
            (110_000, "gfx1100"),
            (110_501, "gfx1151"),
            (120_001, "gfx1201"),
            (90_402, "gfx942"),
            (90_010, "gfx90a"),
            (90_012, "gfx90c"),
            (110_003, "gfx1103"),
            (100_303, "gfx1033"),
        ] {
            assert_eq!(gfx_of(version).as_deref(), Some(gfx));
        }
        for version in [0, 99, 110_099, u64::MAX] {
            assert!(gfx_of(version).is_none_or(|gfx| version == 99 && gfx.is_empty()), "{version}");
        }
    }

    #[test]
    fn every_target_of_the_table_is_known_to_be_card_or_apu_and_no_id_stands_twice() {
        for (at, device) in DEVICES.iter().enumerate() {
            assert!(is_apu(Some(device.gfx), Some("1002:74a1")).is_some(), "{}", device.gfx);
            assert!(DEVICES[at + 1..].iter().all(|other| other.id != device.id), "{:04x}", device.id);
        }
    }

    #[test]
    fn only_the_mi300a_of_its_target_is_an_apu_and_the_unknown_stays_unknown() {
        assert_eq!(is_apu(Some("gfx942"), Some("1002:74a0")), Some(true));
        assert_eq!(is_apu(Some("gfx942"), Some("1002:74a1")), Some(false));
        assert_eq!(is_apu(Some("gfx942"), None), None);
        assert_eq!(is_apu(Some("gfx1151"), None), Some(true));
        assert_eq!(is_apu(Some("gfx1999"), Some("1002:ffff")), None);
        assert_eq!(is_apu(None, Some("1002:1586")), None);
        assert_eq!(device_of("1002:1586").map(|device| device.gfx), Some("gfx1151"));
        assert!(device_of("10de:1586").is_none() && device_of("1002:").is_none());
    }
}
