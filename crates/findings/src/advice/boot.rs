//! Module and kernel parameters, by the way this distribution keeps them.

use facts::Facts;

use crate::finding::{Fix, FixKind};

/// How a distribution family keeps module parameters and rebuilds the initramfs.
enum Family {
    Debian,
    Fedora,
    Arch,
    Suse,
    Nixos,
    Ostree,
    Unknown,
}

fn family(facts: &Facts) -> Family {
    let name = facts.platform.distribution.text().unwrap_or_default().to_ascii_lowercase();
    let is = |names: &[&str]| names.iter().any(|n| name.contains(n));
    if is(&["silverblue", "kinoite", "bazzite", "bluefin", "aurora", "coreos", "ostree"]) {
        Family::Ostree
    } else if is(&["debian", "ubuntu", "mint", "pop", "proxmox", "zorin"]) {
        Family::Debian
    } else if is(&["fedora", "rhel", "rocky", "alma", "centos", "nobara", "oracle"]) {
        Family::Fedora
    } else if is(&["arch", "cachyos", "manjaro", "endeavour", "garuda"]) {
        Family::Arch
    } else if is(&["suse"]) {
        Family::Suse
    } else if is(&["nixos"]) {
        Family::Nixos
    } else {
        Family::Unknown
    }
}

/// The TTM module of this host: `amdttm` where the out-of-tree driver is loaded.
pub fn ttm_module(facts: &Facts) -> &str {
    let loaded = facts.kernel.modules.value().is_some_and(|list| list.iter().any(|m| m == "amdttm"));
    match facts.ttm.module.text() {
        Some(module) => module,
        None if loaded => "amdttm",
        None => "ttm",
    }
}

/// Sets `parameter` of `module` (named `ttm` in general; the host's own TTM module is used) to `value` for the next boot.
pub fn module_parameter(facts: &Facts, module: &str, parameter: &str, value: &str, text: String) -> Fix {
    let module = if module == "ttm" { ttm_module(facts) } else { module };
    let file = format!("/etc/modprobe.d/{module}.conf");
    let write = format!("echo 'options {module} {parameter}={value}' | sudo tee {file}");
    let karg = format!("{module}.{parameter}={value}");
    let check = format!("cat /sys/module/{module}/parameters/{parameter}   # after the reboot: {value}");
    let undo_file = |rebuild: &str| format!("sudo rm {file} && {rebuild} && sudo reboot");
    let fix = Fix::new(FixKind::KernelParam, text)
        .risk("needs a reboot; RAM promised to the GPU is not there for programs while the GPU holds it")
        .check(check);
    let with_file = |fix: Fix, rebuild: &str| {
        fix.command(format!("{write} && {rebuild} && sudo reboot")).undo(undo_file(rebuild))
    };
    match family(facts) {
        Family::Debian => with_file(fix, "sudo update-initramfs -u -k all"),
        Family::Arch => with_file(fix, "sudo mkinitcpio -P"),
        Family::Suse => with_file(fix, "sudo dracut --force --regenerate-all"),
        Family::Fedora => fix
            .command(format!("sudo grubby --update-kernel=ALL --args='{karg}' && sudo reboot"))
            .undo(format!("sudo grubby --update-kernel=ALL --remove-args='{karg}' && sudo reboot")),
        Family::Ostree => fix
            .command(format!("sudo rpm-ostree kargs --append-if-missing='{karg}' && sudo systemctl reboot"))
            .undo(format!("sudo rpm-ostree kargs --delete='{karg}' && sudo systemctl reboot")),
        Family::Nixos => fix
            .command(format!("# configuration.nix: boot.kernelParams = [ \"{karg}\" ];\nsudo nixos-rebuild boot && sudo reboot"))
            .undo("remove the entry, then: sudo nixos-rebuild boot && sudo reboot"),
        Family::Unknown => {
            let mut fix = fix
                .command(write)
                .undo(format!("sudo rm {file}"));
            fix.text += " Then rebuild the initramfs, because the module is usually loaded from it (Debian, Ubuntu: sudo update-initramfs -u -k all; \
                          Arch: sudo mkinitcpio -P; Fedora: sudo dracut --force), and reboot.";
            fix
        }
    }
}

/// Rebuilds the initramfs the way this distribution does it.
pub fn rebuild_initramfs(facts: &Facts) -> Fix {
    let text = "Rebuild the initramfs, because ttm is usually loaded from it, and reboot.";
    let fix = Fix::new(FixKind::Command, text).risk("needs a reboot");
    match family(facts) {
        Family::Debian => fix.command("sudo update-initramfs -u -k all && sudo reboot"),
        Family::Arch => fix.command("sudo mkinitcpio -P && sudo reboot"),
        Family::Fedora | Family::Suse => fix.command("sudo dracut --force --regenerate-all && sudo reboot"),
        Family::Nixos => fix.command("sudo nixos-rebuild boot && sudo reboot"),
        Family::Ostree => fix.command("sudo rpm-ostree initramfs --enable && sudo systemctl reboot"),
        Family::Unknown => {
            let mut fix = fix;
            fix.text = "Rebuild the initramfs, because ttm is usually loaded from it, and reboot (Debian, Ubuntu: sudo update-initramfs -u -k all; \
                        Arch: sudo mkinitcpio -P; Fedora: sudo dracut --force)."
                .to_owned();
            fix
        }
    }
}
