//! How distributions keep module and kernel parameters, and what has to be run after a change.
//!
//! Sources: Debian and Ubuntu, initramfs-tools(7), update-initramfs(8), update-grub(8), modprobe.d(5); Fedora, its
//! kernel documentation (grubby, BLS entries, dracut(8)); Arch, its wiki pages "Kernel module", "Kernel parameters" and
//! "mkinitcpio"; openSUSE, dracut(8) and grub2-mkconfig; NixOS, its manual's boot.kernelParams and
//! boot.extraModprobeConfig; image-based Fedora, rpm-ostree(1) kargs.

use facts::Facts;

/// A family of distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Debian,
    Fedora,
    Arch,
    Suse,
    Nixos,
    Ostree,
    Unknown,
}

/// The family of the host's distribution, by `ID VERSION_ID` of os-release.
pub(super) fn family(facts: &Facts) -> Family {
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

impl Family {
    /// Rebuilds the initramfs, which usually holds the module; `None` where the family is not known.
    pub(super) fn rebuild(self) -> Option<&'static str> {
        Some(match self {
            Self::Debian => "sudo update-initramfs -u -k all",
            Self::Fedora | Self::Suse => "sudo dracut --force --regenerate-all",
            Self::Arch => "sudo mkinitcpio -P",
            Self::Nixos => "sudo nixos-rebuild boot",
            Self::Ostree => "sudo rpm-ostree initramfs --enable",
            Self::Unknown => return None,
        })
    }

    /// Makes grub.cfg anew from /etc/default/grub.
    pub(super) fn update_grub(self) -> &'static str {
        match self {
            Self::Debian | Self::Unknown => "sudo update-grub",
            Self::Fedora | Self::Suse | Self::Ostree => "sudo grub2-mkconfig -o /boot/grub2/grub.cfg",
            Self::Arch | Self::Nixos => "sudo grub-mkconfig -o /boot/grub/grub.cfg",
        }
    }

    /// Makes the boot entries anew from /etc/kernel/cmdline.
    pub(super) fn update_entries(self) -> &'static str {
        match self {
            Self::Arch => "sudo mkinitcpio -P",
            _ => "sudo kernel-install add \"$(uname -r)\" \"/usr/lib/modules/$(uname -r)/vmlinuz\"",
        }
    }
}

/// The rebuild commands by name, for text where the family is not known.
pub(super) const REBUILD_BY_NAME: &str =
    "Debian, Ubuntu: sudo update-initramfs -u -k all; Arch: sudo mkinitcpio -P; Fedora: sudo dracut --force";
