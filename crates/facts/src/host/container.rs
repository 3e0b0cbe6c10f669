//! The container and the control group this process runs in.

use units::Bytes;

use super::env;
use super::read::{Text, bytes, file, kib, known, number, word};
use super::{Host, Refusal};
use crate::model::{Container, Gpu};
use crate::reading::{Missing, Reading};

const ROOT: &str = "/sys/fs/cgroup";

/// The mount table, which is asked several things.
pub(super) struct Mounts(Text);

impl Mounts {
    pub(super) fn read(host: &dyn Host) -> Self {
        Self(Text::open(host, "/proc/self/mounts"))
    }

    fn find(&self, place: &str) -> Option<&str> {
        // Later mounts cover earlier ones.
        self.0.get()?.lines().rev().find(|line| line.split(' ').nth(1) == Some(place))
    }

    /// Whether /proc/meminfo is a container manager's.
    pub(super) fn fakes_meminfo(&self) -> bool {
        self.find("/proc/meminfo").is_some_and(|line| line.contains("lxcfs"))
    }

    /// Size of the tmpfs at /dev/shm.
    fn shm(&self) -> Reading<Bytes> {
        let Some(line) = self.find("/dev/shm") else { return self.0.unreadable("has no mount /dev/shm") };
        let options = line.split(' ').nth(3).unwrap_or_default();
        match options.split(',').find_map(|option| size(option.strip_prefix("size=")?)) {
            Some(size) => self.0.found(size, line),
            None => self.0.unreadable(&format!("{line}: no size in bytes; the default is half of the RAM")),
        }
    }
}

/// tmpfs prints `65536k`.
fn size(text: &str) -> Option<Bytes> {
    match text.strip_suffix('k') {
        Some(count) => kib(count),
        None => bytes(text),
    }
}

/// The container's limits; those on VRAM go into the GPUs' records.
pub(super) fn read(host: &dyn Host, mounts: &Mounts, meminfo: &Text, gpus: &mut [Gpu]) -> Container {
    let runtime = runtime(host);
    let cgroup = Text::open(host, "/proc/self/cgroup").entry("0:", group);
    let levels = levels(cgroup.text());
    let (memory_max, at) = lowest(host, &levels, "memory.max");
    let (memory_high, _) = lowest(host, &levels, "memory.high");
    // Use is compared with the limit, so it is that of the group that has the limit.
    let level = at.unwrap_or(0);
    let directory = levels.get(level).map_or(ROOT, String::as_str);
    let seen = |key: &str| {
        if runtime.is_known() { meminfo.entry(key, kib) } else { Reading::default() }
    };
    dmem(host, &levels, gpus);
    Container {
        memory_max,
        memory_high,
        memory_current: file(host, format!("{directory}/memory.current"), bytes),
        memory_total_seen: seen("MemTotal"),
        memory_available_seen: seen("MemAvailable"),
        oom_kills: Text::open(host, format!("{directory}/memory.events")).entry("oom_kill", number),
        shm: mounts.shm(),
        cgroup,
        runtime,
    }
}

/// The path after `0::`. In a cgroup namespace it may lead out of what is mounted, as `/../…`.
fn group(path: &str) -> Option<String> {
    let path = word(path)?;
    (path.starts_with('/') && !path.split('/').any(|part| part == "..")).then_some(path)
}

/// The directories of the group and of those above it, innermost first. A limit of any of them holds.
fn levels(group: Option<&str>) -> Vec<String> {
    let mut path = group.unwrap_or("/").trim_end_matches('/');
    let mut levels = Vec::new();
    while !path.is_empty() && levels.len() < 32 {
        levels.push(format!("{ROOT}{path}"));
        path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    levels.push(ROOT.to_owned());
    levels
}

/// The lowest value of `name` among the levels, and which level has it. `max` is no limit.
fn lowest(host: &dyn Host, levels: &[String], name: &str) -> (Reading<Bytes>, Option<usize>) {
    let mut lowest: Reading<Bytes> = Reading::default();
    let mut at = None;
    let mut first = None;
    for (level, directory) in levels.iter().enumerate() {
        let text = Text::open(host, format!("{directory}/{name}"));
        let limit =
            if text.get() == Some("max") { text.unreadable("max: no limit") } else { text.whole(bytes) };
        match (limit.get(), lowest.get()) {
            (Some(new), have) if have.is_none_or(|have| new < have) => (lowest, at) = (limit, Some(level)),
            (Some(_), _) => {}
            // `max` of the group itself says more than the root's having no such file.
            (None, _) if first.is_none() || text.get().is_some_and(|_| level == 0) => first = Some(limit),
            (None, _) => {}
        }
    }
    if at.is_none() {
        lowest = first.unwrap_or_default();
    }
    (lowest, at)
}

/// Limits on VRAM by the dmem controller: a line per region, `drm/0000:c5:00.0/vram0 1073741824`.
///
/// The form of the region's name is not documented, so it is known by the PCI address in it.
fn dmem(host: &dyn Host, levels: &[String], gpus: &mut [Gpu]) {
    let limits: Vec<Text> =
        levels.iter().map(|directory| Text::open(host, format!("{directory}/dmem.max"))).collect();
    for gpu in gpus.iter_mut() {
        let Some(bdf) = gpu.bdf.text().map(str::to_owned) else { continue };
        let mut lowest: Option<(Bytes, usize)> = None;
        let mut stated = None;
        for (level, text) in limits.iter().enumerate() {
            let reading = region(text, &bdf);
            if let Some(limit) = reading.get() {
                if lowest.is_none_or(|(have, _)| limit < have) {
                    (lowest, stated) = (Some((limit, level)), Some(reading));
                }
            } else if stated.is_none() {
                stated = Some(reading);
            }
        }
        gpu.dmem_max = stated.unwrap_or_default();
        let directory = lowest.and_then(|(_, level)| levels.get(level)).or(levels.first());
        let current = format!("{}/dmem.current", directory.map_or(ROOT, String::as_str));
        gpu.dmem_current = region(&Text::open(host, current), &bdf);
    }
}

fn region(text: &Text, bdf: &str) -> Reading<Bytes> {
    let lines = text.get().unwrap_or_default().lines();
    let line = lines.filter_map(|line| line.rsplit_once(' ')).find(|(name, _)| {
        let name = name.to_ascii_lowercase();
        name.contains(bdf) && name.contains("vram")
    });
    match line {
        Some((_, "max")) => text.unreadable("max: no limit"),
        Some((name, value)) => match bytes(value) {
            Some(value) => text.found(value, &format!("{name} {}", value.0)),
            None => text.unreadable(&format!("found {value:?}")),
        },
        None => text.unreadable(&format!("has no VRAM region of {bdf}")),
    }
}

/// The container's manager, by the marks that each leaves. The most telling mark comes first.
fn runtime(host: &dyn Host) -> Reading<String> {
    let own = host.text("/proc/self/environ").unwrap_or_default();
    if let Some(address) = env::value(&own, "KUBERNETES_SERVICE_HOST") {
        let text = format!("KUBERNETES_SERVICE_HOST={address}");
        return known("kubernetes".to_owned(), "/proc/self/environ", &text);
    }
    for (mark, runtime) in [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")] {
        if host.stat(mark).is_ok() {
            return known(runtime.to_owned(), mark, "");
        }
    }
    // For root only; /run/systemd/container has the same for everyone where systemd is the container's init.
    let first = host.text("/proc/1/environ").unwrap_or_default();
    if let Some(runtime) = env::value(&first, "container").and_then(word) {
        let text = format!("container={runtime}");
        return known(runtime, "/proc/1/environ", &text);
    }
    let systemd = file(host, "/run/systemd/container", word);
    if systemd.is_known() {
        return systemd;
    }
    let groups = Text::open(host, "/proc/self/cgroup");
    for (mark, runtime) in
        [("kubepods", "kubernetes"), ("/docker", "docker"), ("libpod", "podman"), ("/lxc", "lxc")]
    {
        if let Some(line) = groups.get().unwrap_or_default().lines().find(|line| line.contains(mark)) {
            return groups.found(runtime.to_owned(), line);
        }
    }
    match host.list("/proc") {
        Ok(_) => Reading::Missing(Missing::Absent("/.dockerenv".into())),
        Err(Refusal::Denied) => Reading::Missing(Missing::Denied("/proc".into())),
        Err(_) => Reading::Missing(Missing::Absent("/proc".into())),
    }
}
