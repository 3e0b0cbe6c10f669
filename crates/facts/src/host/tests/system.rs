//! Memory, modules, kernel, platform and software.

use units::Bytes;

use super::super::read;
use super::Fake;
use crate::reading::{Missing, Reading};

#[test]
fn meminfo_is_read_by_line_and_each_line_may_be_missing() {
    let text = "MemTotal:       131753600 kB\nMemAvailable:   x kB\nSwapTotal: 0 kB\nHugePages_Total: 4\nHugepagesize: 2048 kB";
    let memory = read(&Fake::of(&[("/proc/meminfo", text)])).memory;
    assert_eq!(memory.total.get(), Some(Bytes::kib(131_753_600)));
    assert_eq!(memory.swap_total.get(), Some(Bytes(0)));
    assert_eq!(memory.huge_pages.get(), Some(Bytes::mib(8)));
    assert!(matches!(memory.available, Reading::Missing(Missing::Unreadable(..))));
    assert!(matches!(memory.swap_free, Reading::Missing(Missing::Unreadable(..))));
    let over = "HugePages_Total: 18446744073709551615\nHugepagesize: 2048 kB";
    assert!(!read(&Fake::of(&[("/proc/meminfo", over)])).memory.huge_pages.is_known());
}

#[test]
fn pressure_is_a_share_and_nothing_else() {
    let some = |text: &str| read(&Fake::of(&[("/proc/pressure/memory", text)])).memory.pressure_some;
    assert_eq!(some("some avg10=12.50 avg60=0.00").get(), Some(12.5));
    for text in ["some avg10=NaN", "some avg10=101", "some", "full avg10=1.0", ""] {
        assert!(!some(text).is_known(), "{text}");
    }
}

#[test]
fn a_meminfo_that_shows_the_container_gives_the_hosts_total_from_its_nodes() {
    let facts = read(&Fake::of(&[
        ("/proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1024 kB"),
        ("/proc/self/mounts", "lxcfs /proc/meminfo fuse.lxcfs rw 0 0"),
        ("/proc/1/environ", "container=lxc\0"),
        ("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       16777216 kB"),
        ("/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal:       16777216 kB"),
    ]));
    assert_eq!(facts.container.runtime.text(), Some("lxc"));
    assert_eq!(facts.memory.total.get(), Some(Bytes::gib(32)));
    assert!(!facts.memory.available.is_known());
    assert_eq!(facts.container.memory_total_seen.get(), Some(Bytes::gib(8)));
    assert_eq!(facts.container.memory_available_seen.get(), Some(Bytes::mib(1)));
}

#[test]
fn the_out_of_tree_driver_brings_its_own_ttm_and_a_version() {
    let facts = read(&Fake::of(&[
        ("/sys/module/ttm/parameters/pages_limit", "1"),
        ("/sys/module/amdttm/parameters/pages_limit", "28835840\n"),
        ("/usr/src/amdgpu-6.14.14-2212064.24.04/Makefile", ""),
    ]));
    assert_eq!((facts.ttm.module.text(), facts.ttm.pages_limit.get()), (Some("amdttm"), Some(28_835_840)));
    assert_eq!(facts.amdgpu.dkms_version.text(), Some("6.14.14"));
    let own = read(&Fake::of(&[("/sys/module/ttm/parameters/pages_limit", "many")]));
    assert_eq!(own.ttm.module.text(), Some("ttm"));
    assert!(matches!(own.ttm.pages_limit, Reading::Missing(Missing::Unreadable(..))));
    assert!(!own.amdgpu.dkms_version.is_known());
}

#[test]
fn parameters_have_their_own_forms_and_some_are_for_root() {
    let directory = "/sys/module/amdgpu/parameters";
    let fake = Fake::of(&[
        ("/sys/module/amdgpu/parameters/no_system_mem_limit", "Y\n"),
        ("/sys/module/amdgpu/parameters/lockup_timeout", "\n"),
        ("/sys/module/amdgpu/parameters/noretry", "perhaps"),
    ])
    .deny(&format!("{directory}/gttsize"));
    let facts = read(&fake);
    assert_eq!(facts.amdgpu.no_system_mem_limit.get(), Some(true));
    assert_eq!(facts.amdgpu.lockup_timeout.text(), Some(""));
    assert!(!facts.amdgpu.noretry.is_known());
    let path = "/sys/module/amdgpu/parameters/gttsize";
    assert_eq!(facts.amdgpu.gttsize_mib, Reading::Missing(Missing::Denied(path.into())));
    let hidden = super::super::hidden(&facts);
    assert_eq!((hidden.len(), &*hidden[0].path), (1, path));
    assert!(hidden[0].adds.contains("gttsize"));
}

#[test]
fn the_kernel_and_the_system_are_named_by_themselves() {
    let facts = read(&Fake::of(&[
        ("/proc/version", "Linux version 6.14.0-1014-oem (buildd@lcy02) (gcc) #14 SMP"),
        ("/proc/modules", "amdgpu 20164608 35 - Live 0x0\nttm 118784 1 amdgpu, Live 0x0\n"),
        ("/usr/lib/os-release", "NAME=x\nID='debian'\nVERSION_ID=\"13\"\n"),
    ]));
    assert_eq!(facts.kernel.release.text(), Some("6.14.0-1014-oem"));
    assert_eq!(facts.kernel.modules.value().unwrap(), &["amdgpu", "ttm"]);
    assert_eq!(facts.platform.distribution.text(), Some("debian 13"));
    assert_eq!(facts.platform.os.text(), Some("linux"));
}

#[test]
fn windows_below_linux_is_known_by_its_kernel_or_its_device() {
    let release = "5.15.167.4-microsoft-standard-WSL2\n";
    let os = |fake: &Fake| read(fake).platform.os;
    assert_eq!(os(&Fake::of(&[("/proc/sys/kernel/osrelease", release)])).text(), Some("wsl2"));
    let device = Fake::of(&[("/proc/sys/kernel/osrelease", "6.6.0")]).node("/dev/dxg", 0o666, 0, 0, None);
    assert_eq!(os(&device).text(), Some("wsl2"));
    assert!(!os(&Fake::default()).is_known());
}

#[test]
fn a_virtual_machine_is_known_by_its_maker_or_its_processor() {
    let virtualized = |path: &str, text: &str| read(&Fake::of(&[(path, text)])).platform.virtualized;
    assert_eq!(virtualized("/sys/class/dmi/id/sys_vendor", "QEMU\n").get(), Some(true));
    assert_eq!(virtualized("/sys/class/dmi/id/sys_vendor", "Framework\n").get(), Some(false));
    assert_eq!(virtualized("/proc/cpuinfo", "flags\t\t: fpu hypervisor lahf_lm").get(), Some(true));
    assert_eq!(virtualized("/proc/cpuinfo", "flags\t\t: fpu lahf_lm").get(), Some(false));
    assert!(!virtualized("/proc/cpuinfo", "Features: fp asimd").is_known());
    let metal = Fake::of(&[
        ("/sys/class/dmi/id/sys_vendor", "Amazon EC2"),
        ("/sys/class/dmi/id/product_name", "g4ad.metal"),
    ]);
    assert_eq!(read(&metal).platform.virtualized.get(), Some(false));
}

#[test]
fn rocm_is_the_linked_version_else_the_newest_directory() {
    let version = |files: &[(&str, &str)]| read(&Fake::of(files)).version("rocm").map(str::to_owned);
    let old = ("/opt/rocm-6.4.1/.info/version", "6.4.1-83\n");
    let new = ("/opt/rocm-10.0.0/bin/rocminfo", "");
    assert_eq!(version(&[old, new]).as_deref(), Some("10.0.0"));
    assert_eq!(version(&[old, new, ("/opt/rocm/.info/version", "7.2.0-43")]).as_deref(), Some("7.2.0"));
    assert_eq!(version(&[("/opt/rocm-x/y", "")]), None);
}

#[test]
fn mesa_is_known_by_its_library_where_there_is_a_gpu() {
    let library = ("/usr/lib/x86_64-linux-gnu/libgallium-25.0.7-2.so", "");
    let gpu = ("/sys/class/drm/card0/device/vendor", "0x1002");
    assert_eq!(read(&Fake::of(&[library, gpu])).version("mesa"), Some("25.0.7"));
    assert_eq!(read(&Fake::of(&[library])).version("mesa"), None);
}
