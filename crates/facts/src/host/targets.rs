//! What a GPU is by its PCI device id, and which LLVM targets are APUs.
//!
//! The table answers where KFD is missing (no compute support in the kernel, a container without it, a sleeping
//! driver). Where KFD answers, its `gfx_target_version` is the truth and this table only lends the name.

/// What is known of a PCI device id of vendor 1002.
pub(super) struct Device {
    /// PCI device id.
    pub(super) id: u16,
    /// LLVM target.
    pub(super) gfx: &'static str,
    /// Marketing name, or that of the family where several parts share the id.
    pub(super) name: &'static str,
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
pub(super) fn device_of(pci_id: &str) -> Option<&'static Device> {
    let id = u16::from_str_radix(pci_id.strip_prefix("1002:")?, 16).ok()?;
    DEVICES.iter().find(|device| device.id == id)
}

/// Whether a part of target `gfx` and PCI id `pci_id` is an APU; `None` for what this build does not know.
pub(super) fn is_apu(gfx: Option<&str>, pci_id: Option<&str>) -> Option<bool> {
    match (gfx?, pci_id) {
        // One target, two products: the MI300A has CPU cores beside it, the others have not.
        ("gfx942", Some(pci_id)) => Some(pci_id == "1002:74a0"),
        (gfx, _) if APUS.contains(&gfx) => Some(true),
        (gfx, _) if CARDS.contains(&gfx) => Some(false),
        _ => None,
    }
}

/// The LLVM target of KFD's `gfx_target_version`: major·10000 + minor·100 + step, minor and step hexadecimal digits.
pub(super) fn gfx_of(version: u64) -> Option<String> {
    let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
    (version > 0 && major < 100 && minor < 16 && step < 16).then(|| format!("gfx{major}{minor:x}{step:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
