//! Cards and KFD nodes: finding, matching, describing.

use units::Bytes;

use super::super::read;
use super::Fake;
use crate::model::Gpu;
use crate::reading::{Missing, Reading};

const CARD: &str = "/sys/class/drm/card0/device";

fn card(files: &[(&str, &str)]) -> Fake {
    let mut fake = Fake::of(&[("/sys/class/drm/card0/device/vendor", "0x1002\n")]);
    for (name, text) in files {
        fake = fake.with(&format!("{CARD}/{name}"), text);
    }
    fake
}

fn node(fake: Fake, at: u64, properties: &str, banks: &[&str]) -> Fake {
    let directory = format!("/sys/class/kfd/kfd/topology/nodes/{at}");
    let mut fake =
        fake.with(&format!("{directory}/properties"), properties).with(&format!("{directory}/gpu_id"), "77");
    for (bank, text) in banks.iter().enumerate() {
        fake = fake.with(&format!("{directory}/mem_banks/{bank}/properties"), text);
    }
    fake
}

fn gpus(fake: &Fake) -> Vec<Gpu> {
    read(fake).gpus
}

#[test]
fn other_vendors_other_drivers_and_connectors_are_no_amd_gpus() {
    for fake in [
        Fake::of(&[("/sys/class/drm/card0/device/vendor", "0x8086")]),
        card(&[("uevent", "DRIVER=vfio-pci\nPCI_ID=1002:744C")]),
        card(&[]).link("/sys/class/drm/card0/device/driver", "../../bus/pci/drivers/radeon"),
        Fake::of(&[("/sys/class/drm/card0-DP-1/device/vendor", "0x1002")]),
        Fake::of(&[("/sys/class/drm/card/device/vendor", "0x1002")]),
        Fake::of(&[("/sys/class/drm/card0/device/uevent", "DRIVER=amdgpu")]),
    ] {
        let facts = read(&fake);
        assert_eq!((facts.gpus.len(), facts.gpus_seen.get()), (0, Some(0)));
    }
    assert!(!read(&Fake::of(&[("/proc/meminfo", "")])).gpus_seen.is_known());
}

#[test]
fn the_address_comes_from_the_link_else_from_the_uevent() {
    let uevent = ("uevent", "DRIVER=amdgpu\nPCI_ID=1002:15BF\nPCI_SLOT_NAME=0000:64:00.0");
    let plain = card(&[uevent]);
    assert_eq!(gpus(&plain)[0].bdf.text(), Some("0000:64:00.0"));
    assert_eq!(gpus(&plain)[0].pci_id.text(), Some("1002:15bf"));
    let linked = plain.link(CARD, "../../../devices/pci0000:00/0000:C5:00.0");
    assert_eq!(gpus(&linked)[0].bdf.text(), Some("0000:c5:00.0"));
    let odd = card(&[("uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=../../etc")]);
    assert!(matches!(gpus(&odd)[0].bdf, Reading::Missing(Missing::Unreadable(..))));
}

#[test]
fn without_kfd_the_device_id_tells_target_kind_and_name() {
    let gpu = &gpus(&card(&[("device", "0x1586")]))[0];
    assert_eq!((gpu.gfx.text(), gpu.apu.get()), (Some("gfx1151"), Some(true)));
    assert_eq!(&*gpu.gfx.source().unwrap().place, "/sys/class/drm/card0/device/device");
    assert_eq!(gpu.kfd_pool, Reading::Missing(Missing::Absent("/sys/class/kfd/kfd/topology/nodes".into())));
}

#[test]
fn an_unknown_device_is_discrete_only_if_the_driver_says_so() {
    let unknown = |files: &[(&str, &str)]| gpus(&card(files))[0].apu.clone();
    assert!(!unknown(&[("device", "0xffff")]).is_known());
    assert_eq!(unknown(&[("device", "0xffff"), ("mem_info_vram_vendor", "hynix")]).get(), Some(false));
    assert_eq!(unknown(&[("device", "0xffff"), ("board_info", "type : cem\n")]).get(), Some(false));
}

#[test]
fn a_node_with_cpu_cores_and_simds_is_an_apu_and_needs_no_card() {
    let properties = "cpu_cores_count 24\nsimd_count 912\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29856\n\
                      location_id 256\ndomain 1\ndrm_render_minor 128";
    let fake = node(Fake::of(&[("/sys/kernel/x", "")]), 0, properties, &["heap_type 1\nsize_in_bytes 100"]);
    let facts = read(&fake);
    let gpu = &facts.gpus[0];
    assert_eq!(facts.gpus_seen.get(), Some(1));
    assert_eq!((gpu.gfx.text(), gpu.apu.get()), (Some("gfx942"), Some(true)));
    assert_eq!((gpu.bdf.text(), gpu.pci_id.text()), (Some("0001:01:00.0"), Some("1002:74a0")));
    assert_eq!((gpu.name.text(), gpu.kfd_pool.get()), (Some("AMD Instinct MI300A"), Some(Bytes(100))));
}

#[test]
fn partitions_of_one_device_are_one_gpu_whose_pool_is_one_partitions() {
    let properties = |part: u64| {
        let location = 1280 | part << 28;
        format!(
            "simd_count 152\ngfx_target_version 90402\nlocation_id {location}\ndomain 0\ndrm_render_minor {}",
            128 + part
        )
    };
    let mut fake = card(&[("device", "0x74a1"), ("uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0")]);
    for part in 0..8 {
        fake = node(fake, part + 2, &properties(part), &["heap_type 1\nsize_in_bytes 25767706624"]);
    }
    let gpus = gpus(&fake);
    assert_eq!((gpus.len(), gpus[0].partitions.get()), (1, Some(8)));
    assert_eq!(gpus[0].kfd_pool.get(), Some(Bytes(25_767_706_624)));
    assert_eq!(gpus[0].apu.get(), Some(false));
}

#[test]
fn nodes_find_their_card_by_render_node_or_by_being_alone() {
    let no_address = "simd_count 64\ngfx_target_version 110002";
    let alone = node(card(&[("device", "0x7480")]), 1, no_address, &[]);
    assert_eq!((gpus(&alone).len(), gpus(&alone)[0].kfd_id.get()), (1, Some(77)));
    let by_minor =
        node(card(&[("drm/renderD129/dev", "")]), 1, &format!("{no_address}\ndrm_render_minor 129"), &[]);
    assert_eq!(gpus(&by_minor).len(), 1);
    let differ = card(&[("uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0")]);
    let differ = node(differ, 1, &format!("{no_address}\nlocation_id 768\ndomain 0"), &[]);
    assert_eq!(gpus(&differ).len(), 2);
}

#[test]
fn banks_are_summed_and_other_heaps_left_out() {
    let properties = "simd_count 64\ngfx_target_version 110002";
    let pool = |banks: &[&str]| gpus(&node(card(&[]), 1, properties, banks))[0].kfd_pool.clone();
    let two =
        ["heap_type 1\nsize_in_bytes 1", "heap_type 2\nsize_in_bytes 2", "heap_type 4\nsize_in_bytes 8"];
    assert_eq!(pool(&two).get(), Some(Bytes(3)));
    let over = ["heap_type 1\nsize_in_bytes 18446744073709551615", "heap_type 2\nsize_in_bytes 2"];
    for banks in
        [&over[..], &["heap_type 0\nsize_in_bytes 1"], &["heap_type one"], &["heap_type 1\nsize_in_bytes -1"]]
    {
        assert!(matches!(pool(banks), Reading::Missing(Missing::Unreadable(..))), "{banks:?}");
    }
}

#[test]
fn a_node_that_the_device_cgroup_hides_says_so() {
    let fake = card(&[("device", "0xffff")]).deny("/sys/class/kfd/kfd/topology/nodes/1/properties");
    let denied = Missing::Denied("/sys/class/kfd/kfd/topology/nodes/1/properties".into());
    assert_eq!(gpus(&fake)[0].kfd_pool, Reading::Missing(denied.clone()));
    assert_eq!(gpus(&fake)[0].gfx, Reading::Missing(denied));
}

#[test]
fn sizes_that_are_no_numbers_are_unreadable_with_what_was_found() {
    let gpu = &gpus(&card(&[
        ("mem_info_vram_total", "-1\n"),
        ("mem_info_gtt_total", "99999999999999999999999"),
        ("mem_info_vram_used", ""),
    ]))[0];
    let odd = |name: &str, why: &str| {
        Reading::Missing(Missing::Unreadable(format!("{CARD}/{name}").into(), why.into()))
    };
    assert_eq!(gpu.vram_total, odd("mem_info_vram_total", "found \"-1\""));
    assert_eq!(gpu.gtt_total, odd("mem_info_gtt_total", "found \"99999999999999999999999\""));
    assert_eq!(gpu.vram_used, odd("mem_info_vram_used", "is empty"));
}

#[test]
fn bars_and_retired_pages_are_read_from_their_tables() {
    let gpu = |name: &str, text: &str| gpus(&card(&[(name, text)])).remove(0);
    let bar = "0x0000007800000000 0x0000007fffffffff 0x000000000014220c\n0x0 0x0 0x0";
    assert_eq!(gpu("resource", bar).bar.get(), Some(Bytes::gib(32)));
    for text in ["0x0 0x0 0x0", "0x2 0x1 0x0", "x", "0x0 0xffffffffffffffff 0x0"] {
        assert!(!gpu("resource", text).bar.is_known(), "{text}");
    }
    assert_eq!(gpu("ras/gpu_vram_bad_pages", "").retired.get(), Some(Bytes(0)));
    assert!(!gpu("ras/gpu_vram_bad_pages", "0x1 : many : R").retired.is_known());
    let options = gpu("uma/carveout_options", "0: Minimum (512 MB)\n9: High (32 GB)\n").carveout_options;
    assert_eq!(options.value().unwrap(), &["0: Minimum (512 MB)", "9: High (32 GB)"]);
}

#[test]
fn the_scheduler_firmware_is_read_from_sysfs_or_for_root_from_debugfs() {
    let address = ("uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c5:00.0");
    let version = |fake: &Fake| gpus(fake)[0].mes_firmware.clone();
    assert_eq!(version(&card(&[("fw_version/mes_fw_version", "0x00000083\n")])).text(), Some("0x00000083"));
    assert!(!version(&card(&[("fw_version/mes_fw_version", "0x00000000\n")])).is_known());
    let lines = "VCE feature version: 0, firmware version: 0x00000000\n\
                 MES_KIQ feature version: 6, firmware version: 0x00000079\n\
                 MES feature version: 1, firmware version: 0x00000082";
    for directory in ["0000:c5:00.0", "0"] {
        let path = format!("/sys/kernel/debug/dri/{directory}/amdgpu_firmware_info");
        assert_eq!(version(&card(&[address]).with(&path, lines)).text(), Some("0x00000082"));
    }
    let path = "/sys/kernel/debug/dri/0000:c5:00.0/amdgpu_firmware_info";
    assert_eq!(version(&card(&[address]).deny(path)), Reading::Missing(Missing::Denied(path.into())));
}
