//! KFD's topology: compute targets and the pools that ROCr makes of them.

use units::Bytes;

use super::Host;
use super::read::{Text, bytes, known, number};
use crate::model::Gpu;
use crate::reading::{Missing, Reading};
use crate::targets::gfx_of;

const NODES: &str = "/sys/class/kfd/kfd/topology/nodes";

/// The heap types that are device memory: visible to the CPU, and not.
const DEVICE_HEAPS: [u64; 2] = [1, 2];

/// One node of the topology that is a GPU, or a compute partition of one.
pub(super) struct Node {
    properties: Text,
    /// PCI address of the device, if stated.
    pub(super) bdf: Option<String>,
    /// KFD's id.
    id: Reading<u64>,
    pool: Reading<Bytes>,
}

/// The GPU nodes, and why some could not be read.
#[derive(Default)]
pub(super) struct Topology {
    pub(super) nodes: Vec<Node>,
    /// Why KFD said nothing of a device for which there is no node.
    pub(super) missing: Option<Missing>,
}

impl Topology {
    /// Reads the topology. It holds what the driver found at its start, so no GPU wakes.
    pub(super) fn read(host: &dyn Host) -> Self {
        let names = match host.list(NODES) {
            Ok(names) => names,
            Err(refusal) => {
                return Self { nodes: Vec::new(), missing: Some(super::read::missing(refusal, NODES)) };
            }
        };
        let mut topology = Self::default();
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| number(name)).collect();
        numbers.sort_unstable();
        for at in numbers {
            let properties = Text::open(host, format!("{NODES}/{at}/properties"));
            let Some(_) = properties.get() else {
                // A device cgroup that hides the GPU hides its node as well.
                if let Reading::Missing(why) = properties.whole(|_| None::<()>) {
                    topology.missing.get_or_insert(why);
                }
                continue;
            };
            let value = |key: &str| properties.entry(key, number::<u64>).get().unwrap_or(0);
            if value("gfx_target_version") == 0 && value("simd_count") == 0 {
                continue;
            }
            topology.nodes.push(Node {
                bdf: bdf(&properties),
                id: super::read::file(host, format!("{NODES}/{at}/gpu_id"), number),
                pool: pool(host, at),
                properties,
            });
        }
        topology
    }
}

/// `location_id` is bus, device and function; bits from 28 on count compute partitions.
fn bdf(properties: &Text) -> Option<String> {
    let location = properties.entry("location_id", number::<u64>).get()?;
    let domain = properties.entry("domain", number::<u64>).get().unwrap_or(0);
    let (bus, slot, function) = (location >> 8 & 0xff, location >> 3 & 0x1f, location & 7);
    (domain <= 0xffff_ffff).then(|| format!("{domain:04x}:{bus:02x}:{slot:02x}.{function}"))
}

/// The device memory of node `at`: the sum of its banks that are no system memory, LDS or scratch.
fn pool(host: &dyn Host, at: u64) -> Reading<Bytes> {
    let banks = format!("{NODES}/{at}/mem_banks");
    let names = match host.list(&banks) {
        Ok(names) => names,
        Err(refusal) => return Reading::Missing(super::read::missing(refusal, &banks)),
    };
    let mut sum: Option<(u64, Text)> = None;
    let mut odd = None;
    for name in names.iter().filter(|name| number::<u64>(name).is_some()) {
        let bank = Text::open(host, format!("{banks}/{name}/properties"));
        match (bank.entry("heap_type", number::<u64>), bank.entry("size_in_bytes", bytes)) {
            (Reading::Known(heap), _) if !DEVICE_HEAPS.contains(&heap.value) => {}
            (Reading::Known(_), Reading::Known(size)) => {
                let (have, first) = sum.map_or((0, bank), |(have, first)| (have, first));
                match have.checked_add(size.value.0) {
                    Some(total) => sum = Some((total, first)),
                    None => return first.unreadable("the sum of the banks overflows"),
                }
            }
            (Reading::Missing(why), _) | (_, Reading::Missing(why)) => odd = Some(why),
        }
    }
    match (sum, odd) {
        (Some((total, bank)), _) => bank.found(Bytes(total), &format!("size_in_bytes {total}")),
        (None, Some(why)) => Reading::Missing(why),
        (None, None) => Reading::Missing(Missing::Unreadable(
            banks.into(),
            "no bank is device memory (heap_type 1 or 2)".into(),
        )),
    }
}

impl Node {
    fn property(&self, key: &str) -> Reading<u64> {
        self.properties.entry(key, number)
    }

    /// `/dev/dri/renderD<n>`, if the driver gave the node one.
    pub(super) fn render_minor(&self) -> Option<u64> {
        self.property("drm_render_minor").get().filter(|minor| *minor != 0)
    }

    /// A node with CPU cores and compute units is one package.
    pub(super) fn cpu_and_gpu(&self) -> Reading<bool> {
        let value = |key: &str| self.property(key).get().unwrap_or(0);
        let (cores, simds) = (value("cpu_cores_count"), value("simd_count"));
        if cores > 0 && simds > 0 {
            return self.properties.found(true, &format!("cpu_cores_count {cores}, simd_count {simds}"));
        }
        self.properties.unreadable("cpu_cores_count and simd_count do not tell")
    }

    fn pci_id(&self) -> Reading<String> {
        let (vendor, device) = (self.property("vendor_id").get(), self.property("device_id").get());
        match (vendor, device) {
            (Some(vendor @ 1..=0xffff), Some(device @ 1..=0xffff)) => self.properties.found(
                format!("{vendor:04x}:{device:04x}"),
                &format!("vendor_id {vendor}, device_id {device}"),
            ),
            _ => self.properties.unreadable("vendor_id and device_id are no PCI ids"),
        }
    }
}

/// Puts into `gpu` what the nodes of its device say. There are several where it is partitioned.
pub(super) fn describe(gpu: &mut Gpu, nodes: &[&Node]) {
    let Some(first) = nodes.first() else { return };
    let fill = |mine: &mut Reading<String>, other: Reading<String>| {
        if !mine.is_known() {
            *mine = other;
        }
    };
    if let Some(bdf) = &first.bdf {
        fill(&mut gpu.bdf, first.properties.found(bdf.clone(), "location_id and domain"));
    }
    fill(&mut gpu.pci_id, first.pci_id());
    gpu.gfx = first.properties.entry("gfx_target_version", |text| number::<u64>(text).and_then(gfx_of));
    gpu.kfd_id = first.id.clone();
    gpu.simd_count = first.property("simd_count");
    gpu.xcc_count = first.property("num_xcc");
    if !gpu.render_minor.is_known() {
        gpu.render_minor =
            first.properties.entry("drm_render_minor", |text| number(text).filter(|minor: &u64| *minor != 0));
    }
    gpu.partitions = known(nodes.len() as u64, NODES, &format!("{} nodes of one device", nodes.len()));
    // Each partition is a device to HIP, and what one of them has is what one process can take.
    gpu.kfd_pool =
        nodes.iter().map(|node| &node.pool).max_by_key(|pool| pool.get()).cloned().unwrap_or_default();
}
