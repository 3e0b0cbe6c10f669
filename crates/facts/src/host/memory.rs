//! The host's RAM: meminfo, pressure, huge pages, NUMA.

use units::Bytes;

use super::Host;
use super::read::{Text, file, kib, known, missing, number, numbered, percent, word};
use crate::model::Memory;
use crate::reading::{Missing, Reading};

const NODES: &str = "/sys/devices/system/node";

/// What the kernel says of RAM. Where a container manager shows the container's figures in /proc/meminfo (`faked`,
/// as lxcfs does), the host's total is taken from the NUMA nodes and the rest stays unknown.
pub(super) fn read(host: &dyn Host, meminfo: &Text, faked: bool) -> Memory {
    let nodes = nodes(host);
    let entry = |key: &str| -> Reading<Bytes> {
        if faked {
            return meminfo.unreadable("shows the container's memory, not the host's");
        }
        meminfo.entry(key, kib)
    };
    let pressure = Text::open(host, "/proc/pressure/memory");
    let average = |kind: &str| {
        pressure.entry(kind, |rest| {
            let average = rest.split_whitespace().find_map(|field| field.strip_prefix("avg10="))?;
            percent(average)
        })
    };
    let vm = |name: &str| format!("/proc/sys/vm/{name}");
    Memory {
        installed: Reading::default(),
        total: if faked { node_total(host, &nodes) } else { entry("MemTotal") },
        available: entry("MemAvailable"),
        swap_total: entry("SwapTotal"),
        swap_free: entry("SwapFree"),
        swap_used: Reading::default(),
        huge_pages: huge_pages(meminfo),
        locked: entry("Mlocked"),
        shared: entry("Shmem"),
        unevictable: entry("Unevictable"),
        pressure_some: average("some"),
        pressure_full: average("full"),
        numa_nodes: match &nodes {
            Ok(nodes) => known(nodes.len() as u64, NODES, &format!("{} nodes", nodes.len())),
            Err(why) => Reading::Missing(why.clone()),
        },
        numa_balancing: file(host, "/proc/sys/kernel/numa_balancing", |text| {
            number::<u64>(text).map(|mode| mode != 0)
        }),
        overcommit: file(host, vm("overcommit_memory"), number),
        max_map_count: file(host, vm("max_map_count"), number),
        swappiness: file(host, vm("swappiness"), number),
        min_free: file(host, vm("min_free_kbytes"), kib),
        transparent_huge_pages: file(host, "/sys/kernel/mm/transparent_hugepage/enabled", |text| {
            let (_, rest) = text.split_once('[')?;
            word(rest.split_once(']')?.0)
        }),
    }
}

/// `Hugetlb` counts the pages of all sizes; kernels before 4.19 have only those of the default size.
fn huge_pages(meminfo: &Text) -> Reading<Bytes> {
    let all = meminfo.entry("Hugetlb", kib);
    if all.is_known() {
        return all;
    }
    let count = meminfo.entry("HugePages_Total", number::<u64>);
    let (Some(pages), Some(size)) = (count.get(), meminfo.entry("Hugepagesize", kib).get()) else {
        return all;
    };
    match pages.checked_mul(size.0) {
        Some(sum) => meminfo.found(Bytes(sum), &format!("HugePages_Total {pages}, Hugepagesize {}", size.0)),
        None => meminfo.unreadable("HugePages_Total times Hugepagesize overflows"),
    }
}

fn nodes(host: &dyn Host) -> Result<Vec<u64>, Missing> {
    let names = host.list(NODES).map_err(|refusal| missing(refusal, NODES))?;
    let mut nodes: Vec<u64> = names.iter().filter_map(|name| numbered(name, "node")).collect();
    nodes.sort_unstable();
    Ok(nodes)
}

/// The sum of the nodes' MemTotal, which no container manager replaces.
fn node_total(host: &dyn Host, nodes: &Result<Vec<u64>, Missing>) -> Reading<Bytes> {
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(why) => return Reading::Missing(why.clone()),
    };
    let mut sum = 0u64;
    for node in nodes {
        let text = Text::open(host, format!("{NODES}/node{node}/meminfo"));
        let total = text.entry(&format!("Node {node} MemTotal"), kib);
        match total.get().map(|total| sum.checked_add(total.0)) {
            Some(Some(more)) => sum = more,
            Some(None) => return text.unreadable("the sum of the nodes overflows"),
            None => return total,
        }
    }
    known(Bytes(sum), NODES, &format!("MemTotal of {} nodes", nodes.len()))
}
