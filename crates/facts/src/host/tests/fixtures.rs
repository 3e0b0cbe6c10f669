//! The recorded hosts, read whole.

use std::cell::RefCell;

use units::Bytes;

use super::super::{Host, Recorder, Refusal, Stat, hidden, read};
use super::{HOSTS, facts, tree};
use crate::model::NodeAccess;
use crate::reading::{Missing, Origin, Reading};

#[test]
fn a_discrete_card_is_read_with_its_name_size_and_target() {
    let facts = facts("rx7900xtx-24g");
    assert_eq!(facts.gpus_seen.get(), Some(1));
    let gpu = &facts.gpus[0];
    assert_eq!(gpu.bdf.text(), Some("0000:03:00.0"));
    assert_eq!(gpu.pci_id.text(), Some("1002:744c"));
    assert_eq!((gpu.gfx.text(), gpu.apu.get()), (Some("gfx1100"), Some(false)));
    assert_eq!(gpu.vram_total.get(), Some(Bytes(25_753_026_560)));
    assert_eq!(gpu.kfd_pool.get(), gpu.vram_total.get());
    assert_eq!(gpu.bar.get(), Some(Bytes::gib(32)));
    assert_eq!(gpu.mes_firmware.text(), Some("0x0000007f"));
    let source = gpu.vram_total.source().unwrap();
    assert_eq!(source.origin, Origin::Host);
    assert_eq!(&*source.place, "/sys/class/drm/card1/device/mem_info_vram_total");
    assert_eq!(&*source.text, "25753026560");
    assert_eq!(facts.ttm.pages_limit.get(), Some(4_096_256));
    assert_eq!(facts.memory.total.get(), Some(Bytes::kib(32_770_048)));
    assert_eq!(facts.platform.distribution.text(), Some("ubuntu 24.04"));
    assert_eq!(facts.version("rocm"), Some("7.2.0"));
    assert_eq!(facts.access.kfd.get(), Some(NodeAccess::Ok));
    assert_eq!(facts.access.groups.value().unwrap(), &["sudo", "video", "render", "user"]);
    assert_eq!(facts.container.cgroup.text(), Some("/user.slice/user-1000.slice/session-2.scope"));
    assert!(!facts.container.runtime.is_known() && !facts.container.memory_max.is_known());
}

#[test]
fn one_client_with_two_open_files_is_counted_once_and_packages_tell_versions() {
    let facts = facts("rx9070xt-16g");
    assert_eq!(facts.gpus[0].name.text(), Some("AMD Radeon RX 9070 XT"));
    assert_eq!(facts.gpus[0].gfx.text(), Some("gfx1201"));
    let processes = facts.processes.value().unwrap();
    assert_eq!(processes.len(), 1);
    assert_eq!(
        (processes[0].name.as_deref(), processes[0].vram),
        (Some("kwin_wayland"), Some(Bytes::mib(1800)))
    );
    assert_eq!((facts.version("linux_firmware"), facts.version("mesa")), (Some("20251125"), Some("25.2.7")));
    assert_eq!(facts.platform.distribution.text(), Some("arch"));
    assert_eq!(&*facts.kernel.cmdline_configured.source().unwrap().place, "/boot/loader/entries/arch.conf");
}

#[test]
fn an_apu_is_known_as_one_with_either_carveout() {
    let large = facts("strix-halo-96g-carveout");
    let small = facts("strix-halo-512m-124g");
    for facts in [&large, &small] {
        assert_eq!(facts.gpus[0].apu.get(), Some(true));
        assert_eq!(facts.gpus[0].gfx.text(), Some("gfx1151"));
        assert_eq!(facts.gpus[0].name.text(), Some("Radeon 8060S Graphics"));
    }
    assert_eq!(large.gpus[0].kfd_pool.get(), Some(Bytes::gib(96)));
    assert_eq!(small.gpus[0].kfd_pool.get(), Some(Bytes::gib(124)));
    let holder = &small.processes.value().unwrap()[0];
    assert_eq!((holder.pid, holder.name.as_deref()), (Some(4242), Some("llama-server")));
    assert_eq!((holder.kfd, holder.gtt), (Some(Bytes(2_815_950_848)), Some(Bytes::kib(2_749_952))));
    assert_eq!(holder.pinned, Some(Bytes::mib(64)));
    assert_eq!(holder.env.keys().collect::<Vec<_>>(), ["GGML_CUDA_NO_PINNED", "HSA_OVERRIDE_GFX_VERSION"]);
}

#[test]
fn gttsize_alone_moves_the_gtt_manager_and_not_the_compute_pool() {
    let facts = facts("strix-halo-gttsize-only");
    assert_eq!(facts.amdgpu.gttsize_mib.get(), Some(131_072));
    assert_eq!(facts.gpus[0].gtt_total.get(), Some(Bytes::gib(128)));
    assert_eq!(facts.gpus[0].kfd_pool.get(), Some(Bytes::pages(16_469_200)));
    assert_eq!(facts.kernel.modprobe_options.value().unwrap(), &["options amdgpu gttsize=131072"]);
}

#[test]
fn an_instinct_states_its_name_dies_and_retired_memory() {
    let facts = facts("mi300x");
    let gpu = &facts.gpus[0];
    assert_eq!((gpu.gfx.text(), gpu.apu.get()), (Some("gfx942"), Some(false)));
    assert_eq!(gpu.name.text(), Some("AMD Instinct MI300X OAM"));
    assert_eq!((gpu.xcc_count.get(), gpu.partitions.get()), (Some(8), Some(1)));
    assert_eq!(gpu.retired.get(), Some(Bytes::kib(4)));
    assert_eq!(facts.memory.numa_nodes.get(), Some(2));
}

#[test]
fn two_gpus_are_ordered_by_address_and_hold_their_own_processes() {
    let facts = facts("two-gpus");
    let addresses: Vec<_> = facts.gpus.iter().map(|gpu| gpu.bdf.text().unwrap()).collect();
    assert_eq!(addresses, ["0000:03:00.0", "0000:11:00.0"]);
    assert_eq!((facts.gpus[0].apu.get(), facts.gpus[1].apu.get()), (Some(false), Some(true)));
    assert_eq!((facts.gpus[0].drm_card.get(), facts.gpus[1].drm_card.get()), (Some(1), Some(0)));
    let list = facts.processes.value().unwrap();
    let rows: Vec<_> = list.iter().map(|p| (p.pid.unwrap(), p.device.as_deref().unwrap(), p.alive)).collect();
    let expected = [
        (990, "0000:03:00.0", Some(true)),
        (990, "0000:11:00.0", Some(true)),
        (1500, "0000:03:00.0", Some(true)),
        (7777, "0000:03:00.0", Some(false)),
    ];
    assert_eq!(rows, expected);
    assert_eq!(facts.processes_hidden.get(), Some(0));
}

#[test]
fn a_host_without_an_amd_gpu_is_known_to_have_none() {
    let facts = facts("no-amd-gpu");
    assert_eq!((facts.gpus_seen.get(), facts.gpus.len()), (Some(0), 0));
    assert!(!facts.processes.is_known() && !facts.processes_hidden.is_known());
    assert_eq!(facts.memory.swap_free.get(), Some(Bytes::kib(1_048_574)));
    assert_eq!(facts.access.kfd.get(), Some(NodeAccess::Missing));
}

/// Notes every path asked for.
struct Watched<'a> {
    host: &'a dyn Host,
    asked: RefCell<Vec<String>>,
}

impl Watched<'_> {
    fn note(&self, path: &str) {
        self.asked.borrow_mut().push(path.to_owned());
    }
}

impl Host for Watched<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal> {
        self.note(path);
        self.host.read(path)
    }
    fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        self.note(path);
        self.host.list(path)
    }
    fn link(&self, path: &str) -> Result<String, Refusal> {
        self.note(path);
        self.host.link(path)
    }
    fn links(&self, path: &str, prefix: &str) -> Result<Vec<(String, String)>, Refusal> {
        self.note(path);
        self.host.links(path, prefix)
    }
    fn stat(&self, path: &str) -> Result<Stat, Refusal> {
        self.note(path);
        self.host.stat(path)
    }
}

/// What may be asked of a sleeping device: the kernel answers it without touching the hardware.
const SAFE: [&str; 9] = [
    "",
    "/vendor",
    "/device",
    "/revision",
    "/uevent",
    "/driver",
    "/numa_node",
    "/power/runtime_status",
    "/drm",
];

#[test]
fn a_sleeping_gpu_is_not_woken() {
    let tree = tree("laptop-dgpu-asleep");
    let watched = Watched { host: &tree, asked: RefCell::default() };
    let facts = read(&watched);
    let device = "/sys/class/drm/card2/device";
    let asked = watched.asked.into_inner();
    let mut of_sleeper = asked.iter().filter_map(|path| path.strip_prefix(device));
    assert!(of_sleeper.all(|path| SAFE.contains(&path) || path == "/resource"), "{asked:#?}");
    assert!(asked.iter().all(|path| !path.starts_with("/sys/kernel/debug/dri")));
    let sleeper = &facts.gpus[0];
    assert_eq!(sleeper.power.text(), Some("suspended"));
    let asleep = |name: &str| Missing::Asleep(format!("{device}/{name}").into());
    assert_eq!(sleeper.vram_total, Reading::Missing(asleep("mem_info_vram_total")));
    assert_eq!(sleeper.mes_firmware, Reading::Missing(asleep("fw_version/mes_fw_version")));
    assert_eq!(sleeper.link_speed, Reading::Missing(asleep("current_link_speed")));
    // What KFD and PCI keep is known all the same.
    assert_eq!((sleeper.gfx.text(), sleeper.apu.get()), (Some("gfx1102"), Some(false)));
    assert_eq!(sleeper.kfd_pool.get(), Some(Bytes(8_573_157_376)));
    assert!(facts.gpus[1].vram_total.is_known());
}

#[test]
fn no_file_that_evicts_is_ever_read_and_nothing_but_links_of_open_files_without_a_gpu() {
    for name in HOSTS {
        let tree = tree(name);
        let watched = Watched { host: &tree, asked: RefCell::default() };
        read(&watched);
        let asked = watched.asked.into_inner();
        assert!(asked.iter().all(|path| !path.contains("evict")), "{name}");
        assert!(asked.iter().all(|path| path.starts_with('/') && !path.contains("//")), "{name}");
        if name == "no-amd-gpu" {
            let walked = |path: &&String| path.starts_with("/proc/") && path.contains("/fd");
            assert_eq!(asked.iter().find(walked), None);
        }
    }
}

#[test]
fn a_tape_of_every_host_gives_the_same_facts() {
    for name in HOSTS {
        let tree = tree(name);
        let recorder = Recorder::new(&tree);
        let facts = read(&recorder);
        let tape = recorder.into_tape();
        assert_eq!(read(&tape), facts, "{name}");
        let open_files =
            tape.answers.keys().filter(|(path, _)| path.contains("/fd/") && path.ends_with("/0"));
        assert_eq!(open_files.count(), 0, "{name}");
    }
}

#[test]
fn a_sheet_of_every_host_is_understood_whole() {
    for name in HOSTS {
        let sheet = crate::sheet::read(name, &crate::sheet::write(&facts(name))).unwrap();
        assert_eq!(sheet.warnings, Vec::<String>::new());
    }
}

#[test]
fn nothing_is_hidden_in_a_recorded_tree() {
    for name in HOSTS {
        assert_eq!(hidden(&facts(name)), [], "{name}");
    }
}

#[test]
fn this_machine_is_read_too_whatever_it_is() {
    let live = super::super::Tree::live().unwrap();
    let facts = read(&live);
    assert!(facts.kernel.release.is_known() && facts.memory.total.is_known());
    // access(2) answers for a node without opening it.
    assert_eq!(live.stat("/dev/null").unwrap().granted, Some(true));
}
