//! DRM cards: which AMD GPUs there are, and what their device directories say.

use units::Bytes;

use super::Host;
use super::kfd::{self, Node, Topology};
use super::read::{Text, basename, bytes, file, hex, known, missing, number, numbered, percent, word};
use crate::model::Gpu;
use crate::reading::{Missing, Reading};
use crate::targets::{device_of, is_apu};

pub(super) const DRM: &str = "/sys/class/drm";

/// A DRM card that amdgpu drives.
pub(super) struct Card {
    /// `N` of `cardN`.
    pub(super) number: u64,
    /// Its device directory, `/sys/class/drm/cardN/device`.
    pub(super) device: String,
    /// PCI address.
    pub(super) bdf: Reading<String>,
    /// Runtime power state.
    power: Reading<String>,
}

impl Card {
    /// Whether reading anything but what the kernel keeps in memory would wake it.
    pub(super) fn asleep(&self) -> bool {
        matches!(self.power.text(), Some("suspended" | "suspending"))
    }

    /// A file of the device that does not wake it.
    fn safe<T>(&self, host: &dyn Host, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        file(host, format!("{}/{name}", self.device), parse)
    }

    /// A file of the device that may wake it, and is not read when it sleeps.
    pub(super) fn awake<T>(
        &self,
        host: &dyn Host,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Reading<T> {
        if self.asleep() {
            return Reading::Missing(Missing::Asleep(format!("{}/{name}", self.device).into()));
        }
        self.safe(host, name, parse)
    }
}

/// The cards, in the order of their numbers.
pub(super) fn find(host: &dyn Host) -> Vec<Card> {
    let names = host.list(DRM).unwrap_or_default();
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| numbered(name, "card")).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(|number| card(host, number)).collect()
}

fn card(host: &dyn Host, number: u64) -> Option<Card> {
    let device = format!("{DRM}/card{number}/device");
    let vendor = file(host, format!("{device}/vendor"), hex).get();
    if vendor.is_some_and(|vendor| vendor != 0x1002) {
        return None;
    }
    let uevent = Text::open(host, format!("{device}/uevent"));
    if vendor.is_none() && !uevent.entry("PCI_ID", word).text().is_some_and(|id| id.starts_with("1002:")) {
        return None;
    }
    let driver = match host.link(&format!("{device}/driver")) {
        Ok(link) => Some(basename(&link).to_owned()),
        Err(_) => uevent.entry("DRIVER", word).text().map(str::to_owned),
    };
    // A recorded tree may lack both; then the vendor decides.
    if driver.is_some_and(|driver| driver != "amdgpu") {
        return None;
    }
    let linked = host.link(&device).ok();
    let bdf = match linked.as_deref().map(basename).and_then(address) {
        Some(bdf) => known(bdf, &device, linked.as_deref().unwrap_or_default()),
        None => uevent.entry("PCI_SLOT_NAME", address),
    };
    let power = file(host, format!("{device}/power/runtime_status"), word);
    Some(Card { number, device, bdf, power })
}

/// A PCI address: `0000:c5:00.0`, lower-case.
fn address(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let mut parts = text.split([':', '.']);
    let is_hex = |part: Option<&str>, least: usize, most: usize| {
        part.is_some_and(|part| {
            (least..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit())
        })
    };
    let domain = is_hex(parts.next(), 4, 8);
    let rest = is_hex(parts.next(), 2, 2) && is_hex(parts.next(), 2, 2) && is_hex(parts.next(), 1, 1);
    (domain && rest && parts.next().is_none() && text.contains('.')).then_some(text)
}

/// All GPUs: cards with their KFD nodes, then nodes that have no card, in the order of their addresses.
pub(super) fn gpus(host: &dyn Host, cards: &[Card], topology: &Topology) -> Vec<Gpu> {
    let names = Names::read(host, !cards.is_empty() || !topology.nodes.is_empty());
    let mut taken = vec![false; topology.nodes.len()];
    let mut gpus: Vec<Gpu> = Vec::new();
    for card in cards {
        let mut gpu = describe(host, card);
        let mine = nodes_of(&gpu, cards.len(), &topology.nodes);
        mine.iter().for_each(|at| taken[*at] = true);
        let nodes: Vec<&Node> = mine.iter().map(|at| &topology.nodes[*at]).collect();
        kfd::describe(&mut gpu, &nodes);
        conclude(host, &mut gpu, &nodes, Some(card), topology, &names);
        gpus.push(gpu);
    }
    for (at, node) in topology.nodes.iter().enumerate() {
        if taken[at] {
            continue;
        }
        let same = |other: &Node| other.bdf.is_some() && other.bdf == node.bdf;
        let mut nodes = vec![node];
        for (other_at, other) in topology.nodes.iter().enumerate().skip(at + 1) {
            if !taken[other_at] && same(other) {
                taken[other_at] = true;
                nodes.push(other);
            }
        }
        let mut gpu = Gpu::default();
        kfd::describe(&mut gpu, &nodes);
        conclude(host, &mut gpu, &nodes, None, topology, &names);
        gpus.push(gpu);
    }
    gpus.sort_by_key(|gpu| (!gpu.bdf.is_known(), gpu.bdf.text().map(str::to_owned)));
    gpus
}

/// The nodes of the card's device: by PCI address, else by render node, else the only one for the only card.
fn nodes_of(gpu: &Gpu, cards: usize, nodes: &[Node]) -> Vec<usize> {
    let matching = |test: &dyn Fn(&Node) -> bool| -> Vec<usize> {
        nodes.iter().enumerate().filter(|(_, node)| test(node)).map(|(at, _)| at).collect()
    };
    let by_address = matching(&|node| gpu.bdf.is_known() && node.bdf.as_deref() == gpu.bdf.text());
    if !by_address.is_empty() {
        return by_address;
    }
    let minor = gpu.render_minor.get();
    let by_minor = matching(&|node| minor.is_some() && node.render_minor() == minor);
    if !by_minor.is_empty() {
        return by_minor;
    }
    // Addresses that differ are two devices, of which one has no card and the other no node.
    let differ = |node: &Node| gpu.bdf.is_known() && node.bdf.is_some();
    match nodes {
        [node] if cards == 1 && !differ(node) => vec![0],
        _ => Vec::new(),
    }
}

/// What the card's own directory says.
fn describe(host: &dyn Host, card: &Card) -> Gpu {
    let (part, whole) = (word as fn(&str) -> Option<String>, bytes as fn(&str) -> Option<Bytes>);
    Gpu {
        bdf: card.bdf.clone(),
        pci_id: pci_id(host, card),
        power: card.power.clone(),
        revision: card.safe(host, "revision", |text| hex(text).map(|n| format!("{n:02x}"))),
        numa_node: card.safe(host, "numa_node", number),
        bar: card.safe(host, "resource", first_bar),
        render_minor: render_minor(host, card),
        drm_card: known(card.number, &card.device, ""),
        vram_total: card.awake(host, "mem_info_vram_total", whole),
        vram_used: card.awake(host, "mem_info_vram_used", whole),
        visible_vram_total: card.awake(host, "mem_info_vis_vram_total", whole),
        visible_vram_used: card.awake(host, "mem_info_vis_vram_used", whole),
        gtt_total: card.awake(host, "mem_info_gtt_total", whole),
        gtt_used: card.awake(host, "mem_info_gtt_used", whole),
        preempt_used: card.awake(host, "mem_info_preempt_used", whole),
        vram_vendor: card.awake(host, "mem_info_vram_vendor", part),
        busy_percent: card.awake(host, "gpu_busy_percent", percent),
        link_speed: card.awake(host, "current_link_speed", part),
        link_width: card.awake(host, "current_link_width", number),
        vbios: card.awake(host, "vbios_version", part),
        carveout_options: card.awake(host, "uma/carveout_options", lines),
        carveout: card.awake(host, "uma/carveout", part),
        retired: card.awake(host, "ras/gpu_vram_bad_pages", retired),
        mes_firmware: super::firmware::mes(host, card),
        ..Gpu::default()
    }
}

fn pci_id(host: &dyn Host, card: &Card) -> Reading<String> {
    let device = card
        .safe(host, "device", |text| hex(text).filter(|id| *id <= 0xffff).map(|id| format!("1002:{id:04x}")));
    if device.is_known() {
        return device;
    }
    Text::open(host, format!("{}/uevent", card.device)).entry("PCI_ID", |text| {
        let (vendor, device) = text.split_once(':')?;
        let id = |text| hex(text).filter(|id| *id <= 0xffff);
        Some(format!("{:04x}:{:04x}", id(vendor)?, id(device)?))
    })
}

fn render_minor(host: &dyn Host, card: &Card) -> Reading<u64> {
    let directory = format!("{}/drm", card.device);
    match host.list(&directory) {
        Ok(names) => match names.iter().find_map(|name| Some((numbered(name, "renderD")?, name))) {
            Some((minor, name)) => known(minor, &directory, name),
            None => Reading::Missing(Missing::Unreadable(directory.into(), "has no renderD".into())),
        },
        Err(refusal) => Reading::Missing(missing(refusal, &directory)),
    }
}

/// Size of BAR 0, through which the CPU sees VRAM: `first-byte last-byte flags` in hex, a BAR per line.
fn first_bar(text: &str) -> Option<Bytes> {
    let mut fields = text.lines().next()?.split_whitespace();
    let (first, last) = (hex(fields.next()?)?, hex(fields.next()?)?);
    let size = last.checked_sub(first)?.checked_add(1)?;
    (last > 0).then_some(Bytes(size))
}

fn lines(text: &str) -> Option<Vec<String>> {
    let lines: Vec<String> = text.lines().take(64).filter_map(word).collect();
    (!lines.is_empty()).then_some(lines)
}

/// Retired pages: `0x<page> : 0x<size> : R` a line, R for retired; P and F are pending and failed.
fn retired(text: &str) -> Option<Bytes> {
    let mut sum = 0u64;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut fields = line.split(':');
        let size = fields.nth(1).and_then(hex)?;
        if fields.next()?.trim() == "R" {
            sum = sum.checked_add(size)?;
        }
    }
    Some(Bytes(sum))
}

/// What follows from several sources: target, kind and name.
fn conclude(
    host: &dyn Host,
    gpu: &mut Gpu,
    nodes: &[&Node],
    card: Option<&Card>,
    topology: &Topology,
    names: &Names,
) {
    let from_table = gpu.pci_id.as_known().and_then(|id| Some((id.source.clone(), device_of(&id.value)?)));
    if !gpu.gfx.is_known() {
        if let Some((source, device)) = &from_table {
            gpu.gfx = Reading::known(device.gfx.to_owned(), source.clone());
        } else if let (true, Some(why)) = (nodes.is_empty(), &topology.missing) {
            gpu.gfx = Reading::Missing(why.clone());
        }
    }
    if let (true, Some(why)) = (nodes.is_empty(), &topology.missing) {
        gpu.kfd_pool = Reading::Missing(why.clone());
    }
    gpu.apu = apu(host, gpu, nodes, card);
    gpu.name = card.map_or_else(Reading::default, |card| card.awake(host, "product_name", word));
    if !gpu.name.is_known() {
        let listed = gpu.pci_id.text().and_then(|id| names.find(id, gpu.revision.text()));
        if let Some(name) = listed {
            gpu.name = name;
        } else if let Some((source, device)) = from_table {
            gpu.name = Reading::known(device.name.to_owned(), source);
        }
    }
}

/// Whether the GPU shares the host's RAM, with the file that tells.
fn apu(host: &dyn Host, gpu: &Gpu, nodes: &[&Node], card: Option<&Card>) -> Reading<bool> {
    let one_package = nodes.first().map_or_else(Reading::default, |node| node.cpu_and_gpu());
    if one_package.is_known() {
        return one_package;
    }
    let by_target = gpu.gfx.as_known().and_then(|gfx| {
        let apu = is_apu(Some(&gfx.value), gpu.pci_id.text())?;
        Some(Reading::known(apu, gfx.source.clone()))
    });
    if let Some(reading) = by_target {
        return reading;
    }
    // The driver makes these files for cards with memory of their own only.
    if let Some(vendor) = gpu.vram_vendor.source() {
        return Reading::known(false, vendor.clone());
    }
    match card {
        Some(card) => card.awake(host, "board_info", |text| word(text.lines().next()?).map(|_| false)),
        None => one_package,
    }
}

/// libdrm's list of marketing names, by device id and revision.
struct Names(Option<Text>);

impl Names {
    const PATHS: [&str; 2] = ["/usr/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids"];

    fn read(host: &dyn Host, wanted: bool) -> Self {
        let mut lists = Self::PATHS.into_iter().filter(|_| wanted).map(|path| Text::open(host, path));
        Self(lists.find(|list| list.get().is_some()))
    }

    /// A line is `1586,\tC1,\tAMD Radeon 8060S Graphics`.
    fn find(&self, pci_id: &str, revision: Option<&str>) -> Option<Reading<String>> {
        let (list, id) = (self.0.as_ref()?, pci_id.strip_prefix("1002:")?);
        list.get()?.lines().find_map(|line| {
            let mut fields = line.splitn(3, ',').map(str::trim);
            let same =
                fields.next()?.eq_ignore_ascii_case(id) && fields.next()?.eq_ignore_ascii_case(revision?);
            Some(list.found(word(fields.next().filter(|_| same)?)?, line))
        })
    }
}
