//! Holders of GPU memory.

use units::Bytes;

use super::super::read;
use super::Fake;
use crate::facts::Facts;
use crate::model::Process;

fn host() -> Fake {
    Fake::of(&[
        ("/sys/class/drm/card0/device/vendor", "0x1002"),
        ("/sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0"),
        ("/proc/meminfo", ""),
    ])
}

fn open(fake: Fake, pid: u32, fd: u32, client: u64, vram: &str) -> Fake {
    let fdinfo = format!("drm-driver: amdgpu\ndrm-client-id: {client}\ndrm-pdev: 0000:03:00.0\n{vram}");
    fake.link(&format!("/proc/{pid}/fd/{fd}"), "/dev/dri/renderD128")
        .with(&format!("/proc/{pid}/fdinfo/{fd}"), &fdinfo)
        .with(&format!("/proc/{pid}/comm"), "program\n")
        .with(
            &format!("/proc/{pid}/status"),
            "State:\tS (sleeping)\nVmLck:\t4 kB\nVmPin:\t8 kB\nVmRSS:\t16 kB",
        )
}

fn holders(facts: &Facts) -> &[Process] {
    facts.processes.value().unwrap()
}

#[test]
fn a_client_shared_by_two_processes_is_counted_once_and_two_clients_are_summed() {
    let memory = "drm-memory-vram: 1024 KiB";
    let fake = open(open(open(host(), 100, 5, 1, memory), 100, 6, 2, memory), 20, 7, 1, memory);
    let facts = read(&fake);
    let rows: Vec<_> = holders(&facts).iter().map(|p| (p.pid, p.vram)).collect();
    assert_eq!(rows, [(Some(20), Some(Bytes::mib(1))), (Some(100), Some(Bytes::mib(1)))]);
    let holder = &holders(&facts)[0];
    assert_eq!((holder.name.as_deref(), holder.alive), (Some("program"), Some(true)));
    assert_eq!((holder.pinned, holder.rss), (Some(Bytes::kib(12)), Some(Bytes::kib(16))));
    assert_eq!(facts.processes_hidden.get(), Some(0));
}

#[test]
fn who_holds_nothing_is_no_holder_and_who_states_nothing_is() {
    let none = read(&open(host(), 100, 5, 1, "drm-memory-vram: 0 KiB\ndrm-memory-gtt: 0 KiB"));
    assert_eq!(holders(&none), []);
    let silent = read(&open(host(), 100, 5, 1, ""));
    assert_eq!((holders(&silent).len(), holders(&silent)[0].vram), (1, None));
}

#[test]
fn open_files_that_are_no_drm_device_are_not_looked_into() {
    let fake = host()
        .link("/proc/9/fd/1", "/home/user/secret")
        .with("/proc/9/fdinfo/1", "drm-driver: amdgpu\ndrm-memory-vram: 9");
    assert_eq!(holders(&read(&fake)), []);
}

#[test]
fn processes_of_others_are_counted_as_hidden_but_kernel_threads_are_not() {
    let fake = host()
        .deny("/proc/1/fd")
        .with("/proc/1/cmdline", "init\0")
        .deny("/proc/2/fd")
        .with("/proc/2/cmdline", "")
        .deny("/proc/3/fd");
    let facts = read(&fake);
    assert_eq!(facts.processes_hidden.get(), Some(2));
    assert_eq!(holders(&facts), []);
    assert!(super::super::hidden(&facts).iter().any(|hidden| &*hidden.path == "/proc/<pid>/fd"));
}

#[test]
fn a_compute_entry_without_a_process_is_nobody_alive() {
    let fake = host().with("/sys/class/kfd/kfd/proc/77/vram_4711", "4096\n");
    let facts = read(&fake);
    assert_eq!((holders(&facts)[0].alive, holders(&facts)[0].kfd), (Some(false), Some(Bytes(4096))));
    assert_eq!(holders(&facts)[0].device.as_deref(), Some("0000:03:00.0"));
    let zombie = fake.with("/proc/77/status", "State:\tZ (zombie)");
    assert_eq!(holders(&read(&zombie))[0].alive, Some(false));
}

#[test]
fn inside_a_container_a_compute_entry_is_not_called_dead() {
    let fake = host().with("/sys/class/kfd/kfd/proc/77/vram_4711", "4096\n");
    for fake in
        [fake.clone().with("/.dockerenv", ""), fake.clone().link("/proc/self/ns/pid", "pid:[4026532201]")]
    {
        let facts = read(&fake);
        assert_eq!(holders(&facts)[0].alive, None);
        assert!(!facts.processes_hidden.is_known());
    }
    let outside = read(&fake.link("/proc/self/ns/pid", "pid:[4026531836]"));
    assert_eq!(holders(&outside)[0].alive, Some(false));
}

#[test]
fn sizes_saturate_and_rubbish_is_skipped() {
    let most = "drm-memory-vram: 18014398509481983 KiB";
    let fake = open(open(host(), 100, 5, 1, most), 100, 6, 2, most)
        .with("/sys/class/kfd/kfd/proc/100/vram_4711", "many")
        .with("/sys/class/kfd/kfd/proc/x/vram_4711", "1")
        .with("/sys/class/kfd/kfd/proc/99999999999/vram_4711", "1")
        .with("/sys/class/kfd/kfd/proc/100/vram_", "1");
    let facts = read(&fake);
    assert_eq!(holders(&facts).len(), 1);
    assert_eq!((holders(&facts)[0].vram, holders(&facts)[0].kfd), (Some(Bytes(u64::MAX)), None));
}

#[test]
fn without_a_proc_the_holders_are_unknown() {
    let fake = Fake::of(&[("/sys/class/drm/card0/device/vendor", "0x1002")]);
    let facts = read(&fake);
    assert!(!facts.processes.is_known() && !facts.processes_hidden.is_known());
}
