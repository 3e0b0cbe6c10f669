//! Containers, control groups and device nodes.

use units::Bytes;

use super::super::{Kind, Stat, read};
use super::Fake;
use crate::model::{Access, Container, NodeAccess};
use crate::reading::{Missing, Reading};

fn container(files: &[(&str, &str)]) -> Container {
    read(&Fake::of(files)).container
}

#[test]
fn each_manager_leaves_its_mark() {
    for (path, text, runtime) in [
        ("/.dockerenv", "", "docker"),
        ("/run/.containerenv", "engine=\"podman-5.6\"", "podman"),
        ("/proc/self/environ", "A=b\0KUBERNETES_SERVICE_HOST=10.0.0.1\0", "kubernetes"),
        ("/proc/1/environ", "container=systemd-nspawn\0", "systemd-nspawn"),
        ("/run/systemd/container", "lxc\n", "lxc"),
        ("/proc/self/cgroup", "0::/kubepods.slice/pod1", "kubernetes"),
    ] {
        let runtime_found = container(&[(path, text)]).runtime;
        assert_eq!(runtime_found.text(), Some(runtime));
        assert_eq!(&*runtime_found.source().unwrap().place, path);
    }
    let host = container(&[("/proc/self/cgroup", "0::/user.slice"), ("/proc/1/environ", "HOME=/\0")]);
    assert_eq!(host.runtime, Reading::Missing(Missing::Absent("/.dockerenv".into())));
    assert!(!host.memory_total_seen.is_known());
}

#[test]
fn the_lowest_limit_of_the_groups_above_holds_and_its_use_and_kills_are_told() {
    let container = container(&[
        ("/proc/self/cgroup", "1:name=systemd:/x\n0::/a/b/c\n"),
        ("/sys/fs/cgroup/a/b/c/memory.max", "max"),
        ("/sys/fs/cgroup/a/b/c/memory.high", "max"),
        ("/sys/fs/cgroup/a/b/memory.max", "8589934592"),
        ("/sys/fs/cgroup/a/b/memory.current", "8589000000"),
        ("/sys/fs/cgroup/a/b/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0"),
        ("/sys/fs/cgroup/a/memory.max", "17179869184"),
    ]);
    assert_eq!(container.memory_max.get(), Some(Bytes::gib(8)));
    assert_eq!(&*container.memory_max.source().unwrap().place, "/sys/fs/cgroup/a/b/memory.max");
    assert_eq!(
        (container.memory_current.get(), container.oom_kills.get()),
        (Some(Bytes(8_589_000_000)), Some(2))
    );
    let no_limit = Missing::Unreadable("/sys/fs/cgroup/a/b/c/memory.high".into(), "max: no limit".into());
    assert_eq!(container.memory_high, Reading::Missing(no_limit));
}

#[test]
fn inside_a_cgroup_namespace_the_root_has_the_limit() {
    let container = container(&[
        ("/.dockerenv", ""),
        ("/proc/self/cgroup", "0::/"),
        ("/proc/meminfo", "MemTotal: 131753600 kB\nMemAvailable: 1 kB"),
        ("/sys/fs/cgroup/memory.max", "77309411328\n"),
        ("/proc/self/mounts", "shm /dev/shm tmpfs rw,nosuid,size=65536k,inode64 0 0"),
    ]);
    assert_eq!(container.memory_max.get(), Some(Bytes::gib(72)));
    assert_eq!(container.memory_total_seen.get(), Some(Bytes::kib(131_753_600)));
    assert_eq!((container.shm.get(), container.cgroup.text()), (Some(Bytes::mib(64)), Some("/")));
}

#[test]
fn limits_that_are_no_numbers_and_groups_outside_the_mount_are_unreadable() {
    let container = container(&[("/proc/self/cgroup", "0::/../../x"), ("/sys/fs/cgroup/memory.max", "-5")]);
    assert!(matches!(container.memory_max, Reading::Missing(Missing::Unreadable(..))));
    assert!(!container.cgroup.is_known());
}

#[test]
fn a_limit_on_vram_goes_to_the_gpu_whose_address_the_region_names() {
    let fake = Fake::of(&[
        ("/sys/class/drm/card0/device/vendor", "0x1002"),
        ("/sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0"),
        ("/proc/self/cgroup", "0::/a"),
        ("/sys/fs/cgroup/a/dmem.max", "drm/0000:03:00.0/vram0 1073741824\ndrm/0000:05:00.0/vram0 1\n"),
        ("/sys/fs/cgroup/a/dmem.current", "drm/0000:03:00.0/vram0 4096\n"),
    ]);
    let gpu = &read(&fake).gpus[0];
    assert_eq!((gpu.dmem_max.get(), gpu.dmem_current.get()), (Some(Bytes::gib(1)), Some(Bytes(4096))));
    let open = fake.with("/sys/fs/cgroup/a/dmem.max", "drm/0000:03:00.0/vram0 max");
    let no_limit = Missing::Unreadable("/sys/fs/cgroup/a/dmem.max".into(), "max: no limit".into());
    assert_eq!(read(&open).gpus[0].dmem_max, Reading::Missing(no_limit));
}

const USER: &str = "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t27 992 \n";

fn access(status: &str, mode: u32, gid: u32, granted: Option<bool>) -> Access {
    let fake = Fake::of(&[("/proc/self/status", status), ("/etc/group", "render:x:992:\nuser:x:1000:")]);
    read(&fake.node("/dev/kfd", mode, 0, gid, granted)).access
}

#[test]
fn permission_bits_are_held_against_the_effective_user_and_all_groups() {
    let root = "Uid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\n";
    for (status, mode, gid, expected) in [
        (USER, 0o660, 992, NodeAccess::Ok),
        (USER, 0o660, 110, NodeAccess::Denied),
        (USER, 0o666, 110, NodeAccess::Ok),
        (USER, 0o640, 992, NodeAccess::Denied),
        (USER, 0o606, 992, NodeAccess::Denied),
        (USER, 0o660, 1000, NodeAccess::Ok),
        (root, 0o600, 0, NodeAccess::Ok),
    ] {
        let access = access(status, mode, gid, None);
        assert_eq!(access.kfd.get(), Some(expected), "{mode:o} {gid}");
        assert_eq!(access.kfd_gid.get(), Some(u64::from(gid)));
    }
    let access = access(USER, 0o660, 110, None);
    assert_eq!(access.groups.value().unwrap(), &["27", "render", "user"]);
    assert_eq!(access.uid.get(), Some(1000));
}

#[test]
fn an_access_list_that_the_kernel_knows_of_wins_over_the_bits() {
    assert_eq!(access(USER, 0o660, 110, Some(true)).kfd.get(), Some(NodeAccess::Ok));
    assert_eq!(access(USER, 0o666, 110, Some(false)).kfd.get(), Some(NodeAccess::Denied));
}

#[test]
fn without_a_user_only_a_node_open_to_all_is_known_to_open() {
    assert_eq!(access("", 0o666, 0, None).kfd.get(), Some(NodeAccess::Ok));
    assert!(!access("", 0o660, 0, None).kfd.is_known());
    assert!(!access("Uid: a b c", 0o660, 0, None).kfd.is_known());
}

#[test]
fn a_missing_node_is_missing_only_where_there_is_a_dev() {
    let none = read(&Fake::of(&[("/dev/null", "")])).access;
    assert_eq!((none.kfd.get(), none.render.get()), (Some(NodeAccess::Missing), Some(NodeAccess::Missing)));
    let bare = read(&Fake::of(&[("/proc/self/status", USER)])).access;
    assert!(!bare.kfd.is_known() && !bare.render.is_known());
}

#[test]
fn one_render_node_that_opens_is_enough_and_each_gpu_has_its_own() {
    let mut fake = Fake::of(&[("/proc/self/status", USER)]);
    for (card, minor) in [(0, 128), (1, 129)] {
        fake = fake
            .with(&format!("/sys/class/drm/card{card}/device/vendor"), "0x1002")
            .with(&format!("/sys/class/drm/card{card}/device/drm/renderD{minor}/dev"), "");
    }
    let fake = fake.node("/dev/dri/renderD129", 0o660, 0, 992, None);
    let facts = read(&fake);
    assert_eq!(facts.access.render.get(), Some(NodeAccess::Ok));
    let own: Vec<_> = facts.gpus.iter().map(|gpu| gpu.render_access.get()).collect();
    assert_eq!(own, [Some(NodeAccess::Missing), Some(NodeAccess::Ok)]);
}

#[test]
fn a_regular_file_stands_for_a_node_and_rubbish_or_a_directory_for_none() {
    let kfd = |text: &str| read(&Fake::of(&[("/proc/self/status", USER), ("/dev/kfd", text)])).access.kfd;
    assert_eq!(kfd("0660 0 992").get(), Some(NodeAccess::Ok));
    assert_eq!(kfd("0660 0 44").get(), Some(NodeAccess::Denied));
    assert_eq!(kfd("").get(), Some(NodeAccess::Ok));
    assert!(!kfd("0999 0 1").is_known() && !kfd("rw").is_known());
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("dev/kfd")).unwrap();
    let tree = super::Tree::under(tree.path()).unwrap();
    assert_eq!(read(&tree).access.kfd.get(), Some(NodeAccess::Invalid));
    assert_eq!(super::Host::stat(&tree, "/dev/kfd").map(|Stat { kind, .. }| kind), Ok(Kind::Directory));
}

#[test]
fn limits_of_the_process_and_of_selinux_are_read() {
    let access = read(&Fake::of(&[
        (
            "/proc/self/limits",
            "Limit  Soft Limit  Hard Limit  Units\nMax locked memory         8388608  unlimited  bytes\n",
        ),
        ("/sys/fs/selinux/enforce", "0"),
        ("/sys/fs/selinux/booleans/container_use_devices", "1 1"),
        ("/sys/kernel/iommu_groups/0/type", ""),
    ]))
    .access;
    assert_eq!((access.memlock.get(), access.iommu_groups.get()), (Some(Bytes::mib(8)), Some(1)));
    assert_eq!((access.selinux.text(), access.container_use_devices.get()), (Some("permissive"), Some(true)));
    let unlimited =
        read(&Fake::of(&[("/proc/self/limits", "Max locked memory  unlimited  unlimited  bytes")]));
    assert!(!unlimited.access.memlock.is_known());
}
