//! What the container runtimes call the things that a program in them needs.

use facts::Facts;
use units::GIB;

use crate::finding::{Fix, FixKind};

/// The runtimes whose options are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// Docker, and what takes its options.
    Docker,
    /// Podman, also rootless.
    Podman,
    /// Kubernetes.
    Kubernetes,
    /// LXC: Incus, LXD, Proxmox.
    Lxc,
    /// Distrobox and Toolbx.
    Distrobox,
}

/// The runtime of these facts; `None` on the bare host or where it is unknown.
pub fn runtime(facts: &Facts) -> Option<Runtime> {
    let name = facts.container.runtime.text()?.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if name == "none" || name.is_empty() {
        None
    } else if is(&["kube", "k8s", "k3s", "cri-o"]) {
        Some(Runtime::Kubernetes)
    } else if is(&["lxc", "lxd", "incus", "proxmox"]) {
        Some(Runtime::Lxc)
    } else if is(&["distrobox", "toolbox", "toolbx"]) {
        Some(Runtime::Distrobox)
    } else if is(&["podman", "rootless"]) {
        Some(Runtime::Podman)
    } else {
        Some(Runtime::Docker)
    }
}

/// The group that owns the device nodes, by number where it is known.
fn group(facts: &Facts) -> String {
    match facts.access.kfd_gid.get() {
        Some(gid) => gid.to_string(),
        None => "$(stat -c %g /dev/kfd)".to_owned(),
    }
}

/// Passes the GPU into the container, with the group that may open it.
pub fn pass_devices(facts: &Facts, runtime: Runtime) -> Fix {
    let group = group(facts);
    let check = "ls -ln /dev/kfd /dev/dri; id   # inside: one of the groups owns the nodes";
    let flag = |text: &str, command: String| Fix::new(FixKind::Flag, text).command(command).check(check);
    match runtime {
        Runtime::Docker => flag(
            "Pass both devices into the container, and the group that owns them, by number (render).",
            format!("docker run --device /dev/kfd --device /dev/dri --group-add {group} IMAGE"),
        ),
        Runtime::Podman => flag(
            "Pass both devices into the container and keep your own groups; you have to be in the group render on the host.",
            "podman run --device /dev/kfd --device /dev/dri --group-add keep-groups IMAGE".to_owned(),
        ),
        Runtime::Kubernetes => flag(
            "Ask for a GPU (AMD's device plugin passes /dev/kfd and /dev/dri), and give the pod the group that owns the nodes on that node, by number.",
            format!("kubectl patch deployment NAME --patch '{{\"spec\":{{\"template\":{{\"spec\":{{\"securityContext\":{{\"supplementalGroups\":[{}]}},\"containers\":[{{\"name\":\"CONTAINER\",\"resources\":{{\"limits\":{{\"amd.com/gpu\":1}}}}}}]}}}}}}}}'",
                facts.access.kfd_gid.get().map_or_else(|| "GID".to_owned(), |gid| gid.to_string())),
        ),
        Runtime::Lxc => flag(
            "Pass both devices into the container, owned by its render group (Proxmox: dev0: /dev/kfd,gid=GID in its configuration; Incus, LXD: as below).",
            format!("incus config device add NAME kfd unix-char source=/dev/kfd path=/dev/kfd gid={group} && incus config device add NAME gpu gpu gid={group}"),
        ),
        Runtime::Distrobox => flag(
            "Make the box with both devices passed in.",
            "distrobox create --image IMAGE --additional-flags '--device /dev/kfd --device /dev/dri --group-add keep-groups'".to_owned(),
        ),
    }
}

/// A limit that holds more than the present one and still leaves the host a fifth; a word where that is not known.
fn larger_limit(facts: &Facts) -> String {
    let (Some(now), Some(host)) = (facts.container.memory_max.get(), facts.memory.total.get()) else {
        return "LIMIT".to_owned();
    };
    let most = host.0 / 5 * 4 / GIB;
    let wanted =
        (now.0.saturating_mul(2) / GIB).max(facts.workload.model.get().map_or(0, |model| model.0 / GIB + 8));
    match wanted.min(most) {
        0 => "LIMIT".to_owned(),
        gib => gib.to_string(),
    }
}

/// Raises the container's limit on host memory.
pub fn more_memory(facts: &Facts, runtime: Runtime) -> Fix {
    let limit = larger_limit(facts);
    let (option, command, check) = match runtime {
        Runtime::Kubernetes => (
            "resources.limits.memory, which becomes memory.max",
            format!("kubectl set resources deployment NAME --limits=memory={limit}Gi"),
            "kubectl describe pod NAME   # no OOMKilled",
        ),
        Runtime::Lxc => {
            ("limits.memory; memory.max", format!("incus config set NAME limits.memory {limit}GiB"), EVENTS)
        }
        Runtime::Podman | Runtime::Distrobox => {
            ("--memory; memory.max", format!("podman update --memory {limit}g NAME"), EVENTS)
        }
        Runtime::Docker => (
            "--memory; memory.max",
            format!("docker update --memory {limit}g --memory-swap {limit}g NAME"),
            EVENTS,
        ),
    };
    let text = format!(
        "Raise the container's memory limit ({option}) above what loading needs: model file, pinned buffers and the \
         program; and leave the host its own."
    );
    Fix::new(FixKind::Flag, text).command(command).check(check)
}

/// Where the container's own counters stand.
const EVENTS: &str = "cat /sys/fs/cgroup/memory.events   # inside: oom_kill stays";
