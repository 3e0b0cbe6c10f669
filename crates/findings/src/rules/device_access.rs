//! The program cannot open the GPU.

use super::prelude::*;
use crate::advice::container::{self, Runtime};

rule!("device-access", Host, 10);

/// Lines that tell of a refused or missing device.
const LINES: &[&str] = &[
    "rocminfo-kfd-permission-denied",
    "rocminfo-kfd-no-such-file",
    "rocminfo-kfd-invalid-argument",
    "rocminfo-kfd-cannot-allocate",
    "rocminfo-kfd-operation-not-permitted",
    "rocminfo-rock-not-loaded",
    "rocminfo-not-in-group",
    "selinux-device-denied",
    "device-node-denied",
    "kernel-gpu-init-failed",
    "ggml-vulkan-no-devices",
    "vk-incompatible-driver",
    "hip-no-device",
    "rocblas-no-devices",
    "hsa-out-of-resources-rocminfo",
    "ggml-cuda-init-failed",
];

/// The ways to be kept out, and their steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Group,
    Missing,
    Selinux,
    ContainerRule,
    Driver,
    VulkanDriver,
    Hidden,
    Unclear,
}

fn check(case: &Case<'_>, report: &mut Report) {
    // Without its firmware the device does not start: that is the cause.
    if super::firmware_bad::missing(case).is_some() {
        return;
    }
    let access = &case.facts.access;
    let line = case.hits.iter().find(|hit| LINES.contains(&hit.signature.id)).copied();
    let telling = case
        .hits
        .iter()
        .filter(|hit| LINES.contains(&hit.signature.id))
        .map(|hit| kept_by(hit))
        .find(|k| *k != Kept::Unclear);
    let node = [&access.kfd, &access.render]
        .into_iter()
        .find(|node| node.get().is_some_and(|n| n != NodeAccess::Ok));
    let by_node = node.and_then(Reading::get).map(|node| match node {
        NodeAccess::Ok => Kept::Unclear,
        NodeAccess::Missing => Kept::Missing,
        NodeAccess::Denied => Kept::Group,
        NodeAccess::Invalid | NodeAccess::NoMemory => Kept::Driver,
    });
    let vulkan = case.api == Some(facts::pool::Api::Vulkan);
    let Some(mut kept) = telling.or(by_node).or(line.map(|_| Kept::Unclear)) else { return };
    if line.is_none() {
        // Vulkan needs no /dev/kfd, and a host without an AMD GPU has none to open.
        let only_kfd =
            access.kfd.get() != Some(NodeAccess::Ok) && access.render.get() == Some(NodeAccess::Ok);
        if (vulkan && only_kfd) || case.facts.gpus.is_empty() {
            return;
        }
    }
    if kept == Kept::Unclear && hidden(case).is_some() {
        kept = Kept::Hidden;
    }
    let selinux = access.selinux.text() == Some("enforcing") && is_container(case);
    if kept == Kept::ContainerRule && selinux {
        kept = Kept::Selinux;
    }
    // A node that this user cannot open hurts when a program fails on it; a missing one too.
    let severity = if line.is_some() || case.is_troubled() { Severity::Error } else { Severity::Warning };
    let confidence = if kept == Kept::Unclear { Confidence::Likely } else { Confidence::Certain };
    let finding = RULE
        .finding(severity, confidence, title(kept), why(kept))
        .because_of(line.map(Evidence::line))
        .because_of(node.and_then(Reading::as_known).map(|known| {
            Evidence::fact(&known.source, format!("device node: {:?}", known.value).to_lowercase())
        }))
        .because_of(fact(&case.facts.container.runtime, "container"))
        .because_of(fact(&access.selinux, "SELinux").filter(|_| kept == Kept::Selinux))
        .because_of(hidden(case).filter(|_| kept == Kept::Hidden))
        .fixes(steps(case, kept));
    report.add(finding);
}

fn kept_by(hit: &logs::Hit) -> Kept {
    match hit.signature.id {
        "rocminfo-kfd-permission-denied" | "rocminfo-not-in-group" | "device-node-denied" => Kept::Group,
        "rocminfo-kfd-no-such-file" | "rocminfo-rock-not-loaded" => Kept::Missing,
        "rocminfo-kfd-operation-not-permitted" => Kept::ContainerRule,
        "rocminfo-kfd-invalid-argument" | "rocminfo-kfd-cannot-allocate" | "kernel-gpu-init-failed" => {
            Kept::Driver
        }
        "selinux-device-denied" => Kept::Selinux,
        "ggml-vulkan-no-devices" | "vk-incompatible-driver" => Kept::VulkanDriver,
        _ => Kept::Unclear,
    }
}

fn is_container(case: &Case<'_>) -> bool {
    case.facts.container.runtime.text().is_some_and(|runtime| runtime != "none")
}

/// A visibility variable that hides every device.
fn hidden(case: &Case<'_>) -> Option<Evidence> {
    ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"].iter().find_map(|name| {
        let known = case.facts.env(name)?;
        let hides = matches!(known.value.trim(), "" | "-1")
            || known.value.trim().parse::<usize>().is_ok_and(|n| n >= case.facts.gpus.len().max(1));
        hides.then(|| Evidence::fact(&known.source, format!("{name}={}", known.value)))
    })
}

fn title(kept: Kept) -> &'static str {
    match kept {
        Kept::Group => "this user may not open the GPU: not in the group that owns the device node",
        Kept::Missing => "the GPU's device node is not there, or was not passed into the container",
        Kept::Selinux => "SELinux keeps the container from the GPU",
        Kept::ContainerRule => "the container's device rules keep the program from the GPU",
        Kept::Driver => "the driver refuses the device: it is not initialised, or does not support it",
        Kept::VulkanDriver => "no Vulkan driver or device is visible to the program",
        Kept::Hidden => "a visibility variable hides every GPU from the program",
        Kept::Unclear => "the program sees no usable GPU",
    }
}

fn why(kept: Kept) -> &'static str {
    match kept {
        Kept::Group => {
            "HIP opens /dev/kfd and /dev/dri/renderD*; both belong to a group (render, or video). In a container the numeric group counts, not its name."
        }
        Kept::Missing => {
            "HIP needs /dev/kfd and /dev/dri/renderD*. Without them programs fall back to the CPU and to the host's RAM, or end with an error that speaks of resources."
        }
        Kept::Selinux => "The device nodes carry a label that confined containers may not use.",
        Kept::ContainerRule => {
            "open() was refused with EPERM, which means a device control group, seccomp or a security module, not file permissions."
        }
        Kept::Driver => {
            "open() on /dev/kfd was answered with an error of the driver itself; the kernel log says more."
        }
        Kept::VulkanDriver => {
            "Vulkan needs /dev/dri/renderD* and a driver file (ICD) with its libraries; a container image often has neither."
        }
        Kept::Hidden => {
            "HIP_VISIBLE_DEVICES and its kin choose devices by index; an index that does not exist leaves none."
        }
        Kept::Unclear => {
            "HIP found no device. Access, the driver, and visibility variables come first; it is not a lack of memory."
        }
    }
}

fn steps(case: &Case<'_>, kept: Kept) -> Vec<Fix> {
    let runtime = container::runtime(case.facts).unwrap_or(Runtime::Docker);
    let podman = if runtime == Runtime::Podman { "podman" } else { "docker" };
    match kept {
        Kept::Group if is_container(case) => {
            let host_user = Fix::new(
                FixKind::Command,
                "In a rootless container your own user has to be in the group on the host, too.",
            )
            .command("sudo usermod -aG render,video $USER   # on the host; then log in again")
            .undo("sudo gpasswd -d $USER render; sudo gpasswd -d $USER video");
            let rootless = matches!(runtime, Runtime::Podman | Runtime::Distrobox);
            std::iter::once(container::pass_devices(case.facts, runtime)).chain(rootless.then_some(host_user)).collect()
        }
        Kept::Group => vec![
            Fix::new(FixKind::Command, "Add the user to the groups render and video, and log in again.")
                .command("sudo usermod -aG render,video $USER")
                .undo("sudo gpasswd -d $USER render; sudo gpasswd -d $USER video")
                .check("ls -ln /dev/kfd; id"),
        ],
        Kept::Missing if is_container(case) => vec![
            container::pass_devices(case.facts, runtime),
            Fix::new(FixKind::Command, "If the host has no /dev/kfd either, load the driver there.").command("sudo modprobe amdgpu"),
        ],
        Kept::Missing => vec![
            Fix::new(FixKind::Command, "Load the driver, and look at what it says. In a container pass --device /dev/kfd --device /dev/dri.")
                .command("sudo modprobe amdgpu && sudo dmesg | grep -i -e amdgpu -e kfd")
                .check("ls -l /dev/kfd /dev/dri"),
        ],
        Kept::Selinux => vec![
            Fix::new(FixKind::Command, "Allow containers to use devices (a recent container-selinux has the rule for GPU nodes), or run this one without the label.")
                .command("sudo setsebool -P container_use_devices on")
                .undo("sudo setsebool -P container_use_devices off")
                .check("getsebool container_use_devices"),
            Fix::new(FixKind::Flag, "Or only for this container:")
                .command(format!("{podman} run --security-opt label=disable --device /dev/kfd --device /dev/dri IMAGE"))
                .risk("the container runs without SELinux separation"),
        ],
        Kept::ContainerRule => vec![
            Fix::new(FixKind::Flag, "Pass the devices with --device (a bind mount is not enough: the device control group has to allow them).")
                .command(format!("{podman} run --device /dev/kfd --device /dev/dri --security-opt seccomp=unconfined IMAGE")),
            Fix::new(FixKind::Command, "With SELinux: allow containers to use devices.").command("sudo setsebool -P container_use_devices on"),
        ],
        Kept::Driver => vec![
            Fix::new(FixKind::Command, "See what the driver says, then reboot; if it stays, upgrade the kernel and linux-firmware together.")
                .command("sudo dmesg | grep -i -e amdgpu -e kfd | tail -n 50"),
        ],
        Kept::VulkanDriver => {
            let mut fixes = Vec::new();
            if is_container(case) {
                fixes.push(
                    Fix::new(FixKind::Flag, "Pass /dev/dri into the container.")
                        .command(format!("{podman} run --device /dev/dri IMAGE"))
                        .check("ls -l /dev/dri   # inside the container"),
                );
            }
            fixes.push(
                Fix::new(FixKind::Package, "Install the Vulkan driver (ICD) where the program runs: mesa-vulkan-drivers and libglvnd (libgl1, libegl1).")
                    .command("sudo apt-get install mesa-vulkan-drivers libvulkan1 libglvnd0")
                    .check("vulkaninfo --summary"),
            );
            fixes
        }
        Kept::Hidden => vec![
            Fix::new(FixKind::Env, "Remove the variable, or name a device that exists (counting from 0).")
                .command("unset HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES")
                .check("rocminfo | grep -c 'Device Type: *GPU'"),
        ],
        Kept::Unclear => vec![
            Fix::new(FixKind::Command, "Look at the nodes, their owner and your groups; in a container pass --device /dev/kfd --device /dev/dri and the render group.")
                .command("ls -ln /dev/kfd /dev/dri; id; env | grep VISIBLE_DEVICES"),
        ],
    }
}
