//! The kernel, the system around it, and whether that is a virtual machine.

use super::Host;
use super::boot;
use super::read::{Text, file, known, missing, value_of, word};
use crate::model::{Kernel, Platform};
use crate::reading::Reading;

/// The running kernel and what the next boot would give it.
pub(super) fn kernel(host: &dyn Host) -> Kernel {
    let release = release(host);
    let (cmdline_configured, cmdline_files) = boot::cmdline(host, release.text());
    Kernel {
        release,
        cmdline: file(host, "/proc/cmdline", word),
        cmdline_configured,
        cmdline_files,
        modules: file(host, "/proc/modules", |text| {
            Some(text.lines().filter_map(|line| word(line.split(' ').next()?)).collect())
        }),
        modprobe_options: boot::modprobe(host),
        log: Reading::default(),
    }
}

/// `/proc/version` is `Linux version 6.14.0-1014-oem (…`.
fn release(host: &dyn Host) -> Reading<String> {
    let release = file(host, "/proc/sys/kernel/osrelease", word);
    if release.is_known() {
        return release;
    }
    let version = Text::open(host, "/proc/version");
    let from_version = version.entry("Linux version", |rest| word(rest.split(' ').next()?));
    if from_version.is_known() { from_version } else { release }
}

/// The system. `release` is the kernel's.
pub(super) fn platform(host: &dyn Host, release: &Reading<String>) -> Platform {
    Platform {
        os: os(host, release),
        distribution: distribution(host),
        virtualized: virtualized(host),
        board: board(host),
    }
}

/// Maker and product, as DMI names them.
fn board(host: &dyn Host) -> Reading<String> {
    let vendor = Text::open(host, "/sys/class/dmi/id/sys_vendor");
    let product = Text::open(host, "/sys/class/dmi/id/product_name");
    let line = |text: &str| word(text.trim());
    match (vendor.whole(line).text(), product.whole(line)) {
        (Some(vendor), Reading::Known(product)) => {
            let text = format!("{vendor} {}", product.value);
            known(text.clone(), &product.source.place, &text)
        }
        (_, product) => product,
    }
}

fn os(host: &dyn Host, release: &Reading<String>) -> Reading<String> {
    let wsl = |text: &str| text.to_ascii_lowercase().contains("microsoft");
    if let Some(known) = release.as_known().filter(|known| wsl(&known.value)) {
        return Reading::known("wsl2".to_owned(), known.source.clone());
    }
    if host.stat("/dev/dxg").is_ok() {
        return known("wsl2".to_owned(), "/dev/dxg", "");
    }
    match release {
        Reading::Known(release) => Reading::known("linux".to_owned(), release.source.clone()),
        Reading::Missing(_) => match host.list("/sys") {
            Ok(_) => known("linux".to_owned(), "/sys", ""),
            Err(refusal) => Reading::Missing(missing(refusal, "/sys")),
        },
    }
}

fn distribution(host: &dyn Host) -> Reading<String> {
    let mut text = Text::open(host, "/etc/os-release");
    if text.get().is_none() {
        let other = Text::open(host, "/usr/lib/os-release");
        if other.get().is_some() {
            text = other;
        }
    }
    let plain = |value: &str| word(value.trim_matches(['"', '\'']));
    let id = text.entry("ID", plain);
    // An image-based variant of a distribution keeps its kernel parameters elsewhere, and says so here only.
    let variant = text.entry("VARIANT_ID", plain);
    let image = text.entry("OSTREE_VERSION", plain).is_known() && !variant.is_known();
    let variant = variant.text().or(image.then_some("ostree"));
    match (id.text(), text.entry("VERSION_ID", plain).text(), variant) {
        (Some(id), Some(version), Some(variant)) => text.found(
            format!("{id} {version} {variant}"),
            &format!("ID={id} VERSION_ID={version} VARIANT_ID={variant}"),
        ),
        (Some(id), Some(version), None) => {
            text.found(format!("{id} {version}"), &format!("ID={id} VERSION_ID={version}"))
        }
        _ => id,
    }
}

/// Makers that stand in the DMI tables of virtual machines.
const HYPERVISORS: &[&str] = &[
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "innotek",
    "Xen",
    "Bochs",
    "Parallels",
    "BHYVE",
    "OpenStack",
    "Google Compute Engine",
    "Amazon EC2",
    "Virtual Machine",
    "Apple Virtualization",
];

fn virtualized(host: &dyn Host) -> Reading<bool> {
    let dmi = "/sys/class/dmi/id";
    let product = Text::open(host, format!("{dmi}/product_name"));
    let vendor = Text::open(host, format!("{dmi}/sys_vendor"));
    for text in [&product, &vendor] {
        if text.get().is_some_and(|text| HYPERVISORS.iter().any(|maker| text.contains(maker))) {
            // EC2 rents whole machines too.
            let metal = product.get().is_some_and(|name| name.contains(".metal"));
            return text.found(!metal, text.get().unwrap_or_default());
        }
    }
    if let Some(name) = vendor.get() {
        return vendor.found(false, name);
    }
    // Last, because the kernel asks every processor for its clock to print this file.
    let cpus = Text::open(host, "/proc/cpuinfo");
    let Some(text) = cpus.get() else { return cpus.whole(|_| None) };
    let flags = text.lines().find_map(|line| value_of(line, "flags"));
    let hypervisor =
        flags.map(|flags| flags.trim_start_matches([':', ' ']).split(' ').any(|flag| flag == "hypervisor"));
    match hypervisor {
        Some(true) => cpus.found(true, "flags: … hypervisor"),
        Some(false) => cpus.found(false, "flags: no hypervisor"),
        None => cpus.unreadable("has no line flags"),
    }
}
