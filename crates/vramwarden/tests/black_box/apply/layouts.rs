//! Where distributions keep parameters: applied, looked at, taken back.

use std::fs;

use super::{ID, apply, differing, host, lay, tree, undo};
use crate::common::{doctor, repository, skipped};

struct Layout {
    /// Files to put in place, or (without content) to take away.
    files: Vec<(&'static str, Option<String>)>,
    /// Files that are then to hold this.
    after: Vec<(&'static str, String)>,
    /// What is left to type.
    then: &'static str,
}

const CONF: (&str, &str) = ("etc/modprobe.d/vramwarden-ttm.conf", "options ttm pages_limit=29622272\n");

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn check(name: &str, layout: &Layout) {
    let host = host();
    let root = host.path();
    let files: Vec<_> = layout.files.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    lay(root, &files);
    let before = tree(root);
    let shown = doctor(root, &["--apply", ID]);
    assert_eq!(shown.status, 2, "{name}: {shown:?}");
    assert_eq!(tree(root), before, "{name}: showing changes nothing");

    let run = apply(root);
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{name}: {run:?}");
    assert!(run.out.contains(layout.then), "{name}: {}", run.out);
    let applied = tree(root);
    let mut changed: Vec<&str> = layout.after.iter().map(|(path, _)| *path).collect();
    changed.sort_unstable();
    let seen = differing(&before, &applied);
    let seen: Vec<&str> = seen.iter().map(String::as_str).filter(|path| *path != "etc/modprobe.d").collect();
    assert_eq!(seen, changed, "{name}");
    for (path, want) in &layout.after {
        assert_eq!(fs::read_to_string(root.join(path)).unwrap(), *want, "{name}: {path}");
    }

    let again = apply(root);
    assert_eq!(again.status, 0, "{name}: {again:?}");
    assert!(again.out.starts_with("nothing to apply"), "{name}: {again:?}");
    assert_eq!(tree(root), applied, "{name}");

    let looked = doctor(root, &["--format", "json"]).json();
    let findings = looked["findings"].as_array().unwrap();
    if let Some(finding) = findings.iter().find(|finding| finding["id"] == ID) {
        let title = finding["title"].as_str().unwrap();
        let due = title.contains("in force");
        // NixOS keeps it in a language of its own, which the doctor does not read.
        assert!(due || name == "NixOS", "{name}: {title}");
    }

    let run = undo(root);
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{name}: {run:?}");
    assert_eq!(differing(&before, &tree(root)), [""; 0], "{name}");
    assert!(undo(root).out.starts_with("nothing to undo"), "{name}");
}

/// The file of Debian 12's grub2-common, as ucf puts it to /etc/default/grub, here abridged.
const DEBIAN: &str = "# If you change this file, run 'update-grub' afterwards to update\n\
    # /boot/grub/grub.cfg.\n\nGRUB_DEFAULT=0\nGRUB_TIMEOUT=5\n\
    GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`\n\
    GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n\n#GRUB_TERMINAL=console\n";

fn debian(grub: &str) {
    assert!(grub.contains("LINUX_DEFAULT=\"quiet\"\n"), "{grub}");
    let now = grub.replace("=\"quiet\"", "=\"quiet amdgpu.gttsize=131072\"");
    let layout = Layout {
        files: vec![
            ("etc/os-release", text("ID=debian\nVERSION_ID=\"12\"\n")),
            ("etc/default/grub", Some(now)),
        ],
        after: vec![("etc/default/grub", grub.to_owned()), (CONF.0, CONF.1.to_owned())],
        then: "\n  sudo update-initramfs -u -k all && sudo update-grub && sudo reboot\n",
    };
    check("Debian", &layout);
}

#[test]
fn debian_with_grub_and_modprobe_d() {
    debian(DEBIAN);
    let real = repository().join("target/debian/usr/share/grub/default/grub");
    match fs::read_to_string(&real) {
        Ok(grub) => debian(&grub),
        Err(_) => skipped("Debian's own /etc/default/grub is not here; tests/debian-grub fetches it"),
    }
}

/// Ubuntu 24.04: help.ubuntu.com/community/Grub2/Setup; the recorded host's own files.
#[test]
fn ubuntu_with_grub_and_modprobe_d() {
    let grub = "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\nGRUB_CMDLINE_LINUX=\"\"\n";
    let layout = Layout {
        files: vec![],
        after: vec![("etc/default/grub", grub.to_owned()), (CONF.0, CONF.1.to_owned())],
        then: "\n  sudo update-initramfs -u -k all && sudo update-grub && sudo reboot\n",
    };
    check("Ubuntu", &layout);
}

/// Fedora 43, "Working with the GRUB 2 Boot Loader" (docs.fedoraproject.org): entries of two kernels in
/// /boot/loader/entries, /etc/kernel/cmdline for the next kernel's, both kept by grubby. Here with a limit on the line.
#[test]
fn fedora_with_entries_and_kernel_cmdline() {
    let entry = |version: &str, words: &str| {
        format!(
            "title Fedora Linux ({version}) 43 (Workstation Edition)\nversion {version}\nlinux /vmlinuz-{version}\n\
             initrd /initramfs-{version}.img\noptions root=UUID=6d1c ro rootflags=subvol=root {words}\n\
             grub_users $grub_users\ngrub_arg --unrestricted\ngrub_class fedora\n"
        )
    };
    let line = |words: &str| format!("root=UUID=6d1c ro rootflags=subvol=root {words}\n");
    let old = "amdgpu.gttsize=131072 ttm.pages_limit=1048576 rhgb quiet";
    let new = "ttm.pages_limit=29622272 rhgb quiet";
    const A: &str = "boot/loader/entries/6b2f-6.18.6.conf";
    const B: &str = "boot/loader/entries/6b2f-6.18.5.conf";
    let layout = Layout {
        files: vec![
            ("etc/os-release", text("NAME=\"Fedora Linux\"\nID=fedora\nVERSION_ID=43\n")),
            ("etc/default/grub", None),
            (A, Some(entry("6.18.6", old))),
            (B, Some(entry("6.18.5", old))),
            ("etc/kernel/cmdline", Some(line(old))),
            // It booted with that line.
            ("proc/cmdline", Some(format!("BOOT_IMAGE=(hd0,gpt2)/vmlinuz-6.18.6 {}", line(old)))),
            ("sys/module/ttm/parameters/pages_limit", text("1048576\n")),
        ],
        after: vec![(A, entry("6.18.6", new)), (B, entry("6.18.5", new)), ("etc/kernel/cmdline", line(new))],
        then: "\n  sudo reboot\n",
    };
    check("Fedora", &layout);
}

/// Arch with systemd-boot: wiki.archlinux.org/title/Systemd-boot, "Adding loaders"; ESP at /boot.
#[test]
fn arch_with_entries_of_systemd_boot() {
    let entry = |words: &str| {
        format!(
            "title   Arch Linux\nlinux   /vmlinuz-linux\ninitrd  /initramfs-linux.img\noptions root=UUID=6d1c rw{words}"
        )
    };
    const ARCH: &str = "boot/loader/entries/arch.conf";
    let layout = Layout {
        files: vec![
            ("etc/os-release", text("NAME=\"Arch Linux\"\nID=arch\n")),
            ("etc/default/grub", None),
            (ARCH, Some(entry(" amdgpu.gttsize=131072"))),
        ],
        after: vec![(ARCH, entry("")), (CONF.0, CONF.1.to_owned())],
        then: "\n  sudo mkinitcpio -P && sudo reboot\n",
    };
    check("Arch, systemd-boot", &layout);
}

/// Arch with GRUB: the file of its package grub 2:2.12, abridged (wiki.archlinux.org/title/GRUB, "Configuration").
#[test]
fn arch_with_grub_and_no_modprobe_d() {
    let grub = |words: &str| {
        format!(
            "# GRUB boot loader configuration\n\nGRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_DISTRIBUTOR=\"Arch\"\n\
             GRUB_CMDLINE_LINUX_DEFAULT=\"loglevel=3 quiet{words}\"\nGRUB_CMDLINE_LINUX=\"\"\n\n\
             # Preload both GPT and MBR modules so that they are not missed\n\
             GRUB_PRELOAD_MODULES=\"part_gpt part_msdos\"\n"
        )
    };
    let layout = Layout {
        files: vec![
            ("etc/os-release", text("NAME=\"Arch Linux\"\nID=arch\n")),
            ("etc/default/grub", Some(grub(" amdgpu.gttsize=131072"))),
        ],
        after: vec![("etc/default/grub", grub("")), (CONF.0, CONF.1.to_owned())],
        then: "\n  sudo mkinitcpio -P && sudo grub-mkconfig -o /boot/grub/grub.cfg && sudo reboot\n",
    };
    check("Arch, GRUB", &layout);
}

/// NixOS 25.05: its manual, "Modularity" (imports) and the option boot.kernelParams.
#[test]
fn nixos_with_a_module_of_its_own() {
    let layout = Layout {
        files: vec![
            ("etc/os-release", text("NAME=NixOS\nID=nixos\nVERSION_ID=\"25.05\"\n")),
            ("etc/default/grub", None),
            (
                "etc/nixos/configuration.nix",
                text(
                    "{ config, pkgs, ... }:\n{\n  imports = [ ./hardware-configuration.nix ];\n  \
                     boot.kernelParams = [ \"amdgpu.gttsize=131072\" ];\n}\n",
                ),
            ),
        ],
        after: vec![(
            "etc/nixos/vramwarden.nix",
            "{ ... }: {\n  boot.kernelParams = [ \"ttm.pages_limit=29622272\" ];\n}\n".to_owned(),
        )],
        then: "\n  first name ./vramwarden.nix under imports in /etc/nixos/configuration.nix, then\n  sudo nixos-rebuild boot && sudo reboot\n",
    };
    check("NixOS", &layout);
}

/// Fedora Silverblue: rpm-ostree(1), `kargs`; its parameters stand in no file that may be edited.
#[test]
fn image_based_fedora_gets_commands_only() {
    let host = host();
    let release =
        "NAME=\"Fedora Linux\"\nID=fedora\nVARIANT_ID=silverblue\nVERSION_ID=43\nOSTREE_VERSION='43.1'\n";
    lay(host.path(), &[("etc/os-release", Some(release)), ("etc/default/grub", None)]);
    if !doctor(host.path(), &[]).out.contains("rpm-ostree") {
        skipped("this doctor does not tell image-based Fedora by its os-release");
        lay(host.path(), &[("etc/os-release", Some("ID=bazzite\nVERSION_ID=43\n"))]);
    }
    let before = tree(host.path());
    let run = apply(host.path());
    assert_eq!((run.status, run.out.as_str()), (2, ""), "{run:?}");
    assert!(run.err.contains("sudo rpm-ostree kargs") && run.err.lines().count() == 1, "{run:?}");
    assert_eq!(tree(host.path()), before);
}
