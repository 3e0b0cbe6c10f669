//! Who holds GPU memory: DRM's fdinfo of open devices, and KFD's list of compute processes.
//!
//! Neither source is enough: Vulkan-only processes have no KFD entry, and other users' open files are hidden. Only links
//! are looked at to find open devices; files are read of holders alone.

use std::collections::{BTreeMap, BTreeSet};

use units::Bytes;

use super::cards::DRM;
use super::read::{Text, bytes, file, kib, known, missing, numbered, word};
use super::{Host, Refusal, env, fdinfo};
use crate::model::{Gpu, Process};
use crate::reading::{Missing, Reading};

const KFD: &str = "/sys/class/kfd/kfd/proc";

/// `/proc/self/ns/pid` of the host's first namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// What one process holds of one device.
#[derive(Default)]
struct Held {
    vram: Option<u64>,
    gtt: Option<u64>,
    kfd: Option<u64>,
    /// Its open device states no sizes.
    silent: bool,
}

type Holders = BTreeMap<(u32, Option<String>), Held>;

/// The holders, and how many processes could not be looked into. Nobody is looked at where there is no AMD GPU.
///
/// Inside a container the processes outside are not seen, and KFD's process ids are the host's: such an entry has no
/// name, and is not called dead.
pub(super) fn read(host: &dyn Host, gpus: &[Gpu], contained: bool) -> (Reading<Vec<Process>>, Reading<u64>) {
    if gpus.is_empty() {
        let why = Missing::Absent(format!("{DRM}/card*").into());
        return (Reading::Missing(why.clone()), Reading::Missing(why));
    }
    let names = match host.list("/proc") {
        Ok(names) => names,
        Err(refusal) => {
            let why = missing(refusal, "/proc");
            return (Reading::Missing(why.clone()), Reading::Missing(why));
        }
    };
    let mut pids: Vec<u32> = names.iter().filter_map(|name| numbered(name, "")?.try_into().ok()).collect();
    pids.sort_unstable();
    let outside =
        contained || host.link("/proc/self/ns/pid").is_ok_and(|namespace| namespace != FIRST_NAMESPACE);
    let mut holders = Holders::new();
    let mut hidden = 0;
    let mut clients = BTreeSet::new();
    for pid in &pids {
        hidden += u64::from(!open_devices(host, *pid, &mut clients, &mut holders));
    }
    compute(host, gpus, &mut holders);
    let list: Vec<Process> = holders
        .into_iter()
        .filter(|(_, held)| {
            let sum = [held.vram, held.gtt, held.kfd].iter().flatten().any(|bytes| *bytes > 0);
            sum || held.silent
        })
        .map(|((pid, device), held)| process(host, pid, device, &held, &pids, outside))
        .collect();
    let text = format!("{} processes, {hidden} of them hidden", pids.len());
    let hidden = if outside {
        let why = "shows the container's processes only";
        Reading::Missing(Missing::Unreadable("/proc".into(), why.into()))
    } else {
        known(hidden, "/proc", &text)
    };
    (known(list, "/proc/<pid>/fdinfo", &text), hidden)
}

/// Adds what the open DRM devices of `pid` hold. False if they may not be seen.
fn open_devices(
    host: &dyn Host,
    pid: u32,
    clients: &mut BTreeSet<(Option<String>, u64)>,
    holders: &mut Holders,
) -> bool {
    let directory = format!("/proc/{pid}/fd");
    let devices = match host.links(&directory, "/dev/dri/") {
        Ok(devices) => devices,
        Err(Refusal::Denied) => return !has_memory(host, pid),
        Err(_) => return true,
    };
    for (fd, _) in devices {
        let text = host.text(&format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
        let Some(client) = fdinfo::parse(&text) else { continue };
        if client.id.is_some_and(|id| !clients.insert((client.bdf.clone(), id))) {
            continue;
        }
        let held = holders.entry((pid, client.bdf)).or_default();
        held.silent |= client.vram.is_none() && client.gtt.is_none();
        add(&mut held.vram, client.vram);
        add(&mut held.gtt, client.gtt);
    }
    true
}

fn add(sum: &mut Option<u64>, more: Option<Bytes>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more.0));
    }
}

/// Threads of the kernel, and zombies, have no memory of their own: their command line is empty.
fn has_memory(host: &dyn Host, pid: u32) -> bool {
    !host.read(&format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty())
}

/// Adds what KFD's own list says: `/sys/class/kfd/kfd/proc/<pid>/vram_<gpu id>`, for everyone to read.
fn compute(host: &dyn Host, gpus: &[Gpu], holders: &mut Holders) {
    for name in host.list(KFD).unwrap_or_default() {
        let Some(pid) = numbered(&name, "").and_then(|pid| u32::try_from(pid).ok()) else { continue };
        for entry in host.list(&format!("{KFD}/{name}")).unwrap_or_default() {
            let Some(id) = numbered(&entry, "vram_") else { continue };
            let Some(held) = file(host, format!("{KFD}/{name}/{entry}"), bytes).get() else { continue };
            let gpu = gpus.iter().find(|gpu| gpu.kfd_id.get() == Some(id)).or(match gpus {
                [only] => Some(only),
                _ => None,
            });
            let device = gpu.and_then(|gpu| gpu.bdf.text()).map(str::to_owned);
            add(&mut holders.entry((pid, device)).or_default().kfd, Some(held));
        }
    }
}

fn process(
    host: &dyn Host,
    pid: u32,
    device: Option<String>,
    held: &Held,
    pids: &[u32],
    outside: bool,
) -> Process {
    let size = |bytes: Option<u64>| bytes.map(Bytes);
    let mut process = Process {
        pid: Some(pid),
        device,
        vram: size(held.vram),
        gtt: size(held.gtt),
        kfd: size(held.kfd),
        ..Process::default()
    };
    let only_kfd = held.vram.is_none() && held.gtt.is_none() && !held.silent;
    if outside && only_kfd {
        return process;
    }
    if pids.binary_search(&pid).is_err() {
        process.alive = Some(false);
        return process;
    }
    let status = Text::open(host, format!("/proc/{pid}/status"));
    process.name = file(host, format!("/proc/{pid}/comm"), word).value().cloned();
    process.alive = status.entry("State", |state| Some(!state.starts_with(['Z', 'X']))).get();
    process.rss = status.entry("VmRSS", kib).get();
    let locked = [status.entry("VmLck", kib).get(), status.entry("VmPin", kib).get()];
    process.pinned = locked.into_iter().flatten().reduce(|a, b| a + b);
    let environ = host.text(&format!("/proc/{pid}/environ")).unwrap_or_default();
    process.env = env::relevant(&environ).collect();
    process
}
