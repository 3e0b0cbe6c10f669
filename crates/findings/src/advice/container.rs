//! What the container runtimes call the things that a program in them needs.

use facts::Facts;

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

/// Raises the container's limit on host memory.
pub fn more_memory(runtime: Runtime) -> Fix {
    let what = "above what loading needs: model file, pinned buffers and the program";
    match runtime {
        Runtime::Kubernetes => Fix::new(
            FixKind::Flag,
            format!(
                "Raise the pod's memory limit (resources.limits.memory, which becomes memory.max) {what}."
            ),
        )
        .command("kubectl set resources deployment NAME --limits=memory=64Gi")
        .check("kubectl describe pod NAME   # no OOMKilled"),
        Runtime::Lxc => Fix::new(
            FixKind::Flag,
            format!("Raise the container's memory limit (limits.memory; memory.max) {what}."),
        )
        .command("incus config set NAME limits.memory 64GiB")
        .check("cat /sys/fs/cgroup/memory.events   # inside: oom_kill stays"),
        Runtime::Podman | Runtime::Distrobox => Fix::new(
            FixKind::Flag,
            format!("Raise the container's memory limit (--memory; memory.max) {what}."),
        )
        .command("podman update --memory 64g NAME")
        .check("cat /sys/fs/cgroup/memory.events   # inside: oom_kill stays"),
        Runtime::Docker => Fix::new(
            FixKind::Flag,
            format!("Raise the container's memory limit (--memory; memory.max) {what}."),
        )
        .command("docker update --memory 64g --memory-swap 64g NAME")
        .check("cat /sys/fs/cgroup/memory.events   # inside: oom_kill stays"),
    }
}
