//! Whether this user may use the device nodes. No device is opened.
//!
//! Git keeps no device nodes, so in a recorded tree a regular file stands for one: its text is mode, owner and group
//! (`0660 0 992`), and an empty file is a node that everybody may open.

use units::Bytes;

use super::read::{Text, file, known, missing, numbered, switch};
use super::{Host, Kind, Refusal};
use crate::model::{Access, Gpu, NodeAccess};
use crate::reading::{Missing, Reading};

const KFD: &str = "/dev/kfd";
const STATUS: &str = "/proc/self/status";

/// Who asks.
struct User {
    uid: Option<u64>,
    gids: Vec<u64>,
}

/// A node, and what its permission bits say to the user.
struct Node {
    access: Reading<NodeAccess>,
    gid: Reading<u64>,
}

/// Access to KFD and to the render nodes; each GPU's own goes into its record.
pub(super) fn read(host: &dyn Host, gpus: &mut [Gpu]) -> Access {
    let status = Text::open(host, STATUS);
    // The second id is the effective one, with which files are opened.
    let effective = |ids: &str| ids.split_whitespace().nth(1)?.parse().ok();
    let uid: Reading<u64> = status.entry("Uid", effective);
    let gids = status.entry("Groups", |ids| {
        let mut gids: Vec<u64> = ids.split_whitespace().map(|gid| gid.parse().ok()).collect::<Option<_>>()?;
        gids.extend(status.entry("Gid", effective).get().filter(|gid| !gids.contains(gid)));
        Some(gids)
    });
    let user = User { uid: uid.get(), gids: gids.value().cloned().unwrap_or_default() };
    let kfd = node(host, KFD, &user);
    let mut render_nodes = Vec::new();
    for gpu in gpus.iter_mut() {
        if let Some(minor) = gpu.render_minor.get() {
            let node = node(host, &format!("/dev/dri/renderD{minor}"), &user);
            gpu.render_access = node.access.clone();
            render_nodes.push(node);
        }
    }
    if render_nodes.is_empty() {
        render_nodes = all_render_nodes(host, &user);
    }
    // One that works is enough to work with.
    let rank = |node: &Node| match node.access.get() {
        Some(NodeAccess::Ok) => 0,
        Some(NodeAccess::Denied) => 1,
        Some(_) => 2,
        None => 3,
    };
    let best = render_nodes.into_iter().min_by_key(rank);
    let (render, render_gid) = best.map_or_else(Default::default, |node| (node.access, node.gid));
    Access {
        kfd: kfd.access,
        kfd_gid: kfd.gid,
        render,
        render_gid,
        selinux: file(host, "/sys/fs/selinux/enforce", |text| {
            switch(text).map(|on| if on { "enforcing" } else { "permissive" }.to_owned())
        }),
        // Value in force, then the pending one.
        container_use_devices: file(host, "/sys/fs/selinux/booleans/container_use_devices", |text| {
            switch(text.split_whitespace().next()?)
        }),
        groups: group_names(host, &gids),
        gids,
        uid,
        memlock: memlock(host),
        iommu_groups: match host.list("/sys/kernel/iommu_groups") {
            Ok(names) => {
                known(names.len() as u64, "/sys/kernel/iommu_groups", &format!("{} groups", names.len()))
            }
            Err(refusal) => Reading::Missing(missing(refusal, "/sys/kernel/iommu_groups")),
        },
    }
}

fn all_render_nodes(host: &dyn Host, user: &User) -> Vec<Node> {
    let directory = "/dev/dri";
    let names = host.list(directory).unwrap_or_default();
    let nodes = names.iter().filter(|name| numbered(name, "renderD").is_some());
    let nodes: Vec<Node> = nodes.map(|name| node(host, &format!("{directory}/{name}"), user)).collect();
    if nodes.is_empty() { vec![node(host, "/dev/dri/renderD128", user)] } else { nodes }
}

fn node(host: &dyn Host, path: &str, user: &User) -> Node {
    let stat = match host.stat(path) {
        Ok(stat) => stat,
        Err(refusal) => {
            let access = match refusal {
                // A recorded tree without /dev says nothing about its nodes.
                Refusal::Absent if host.list("/dev").is_ok() => {
                    known(NodeAccess::Missing, path, "no such node")
                }
                Refusal::Denied => known(NodeAccess::Denied, path, "its directory may not be entered"),
                other => Reading::Missing(missing(other, path)),
            };
            let gid = Reading::Missing(Missing::Absent(path.into()));
            return Node { access, gid };
        }
    };
    let (mode, uid, gid) = match stat.kind {
        Kind::CharDevice => (stat.mode, u64::from(stat.uid), u64::from(stat.gid)),
        Kind::File => match stand_in(host, path) {
            Some(node) => node,
            None => {
                let why = Missing::Unreadable(path.into(), "is no device node".into());
                return Node { access: Reading::Missing(why.clone()), gid: Reading::Missing(why) };
            }
        },
        // Docker makes a directory where a node to be mounted is missing.
        Kind::Directory | Kind::Other => {
            let access = known(NodeAccess::Invalid, path, "is no device node");
            return Node {
                access,
                gid: Reading::Missing(Missing::Unreadable(path.into(), "is no device node".into())),
            };
        }
    };
    let shown = format!("mode {mode:04o}, owner {uid}, group {gid}");
    let access = match (stat.granted, user.uid) {
        (Some(granted), _) => known(if granted { NodeAccess::Ok } else { NodeAccess::Denied }, path, &shown),
        (None, Some(me)) => {
            let bits = if me == uid {
                mode >> 6
            } else if user.gids.contains(&gid) {
                mode >> 3
            } else {
                mode
            };
            let allowed = me == 0 || bits & 0o6 == 0o6;
            known(if allowed { NodeAccess::Ok } else { NodeAccess::Denied }, path, &shown)
        }
        (None, None) if mode & 0o666 == 0o666 => known(NodeAccess::Ok, path, &shown),
        (None, None) => {
            Reading::Missing(Missing::Unreadable(STATUS.into(), "does not state the user".into()))
        }
    };
    Node { access, gid: known(gid, path, &shown) }
}

fn stand_in(host: &dyn Host, path: &str) -> Option<(u32, u64, u64)> {
    let text = host.text(path).ok()?;
    if text.is_empty() {
        return Some((0o666, 0, 0));
    }
    let mut fields = text.split_whitespace();
    let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
    Some((mode, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Names of the groups; a number where /etc/group has none for it.
fn group_names(host: &dyn Host, gids: &Reading<Vec<u64>>) -> Reading<Vec<String>> {
    let gids = match gids {
        Reading::Known(gids) => gids,
        Reading::Missing(why) => return Reading::Missing(why.clone()),
    };
    let groups = Text::open(host, "/etc/group");
    let name = |gid: &u64| {
        groups.get().unwrap_or_default().lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = super::read::word(fields.next()?)?;
            (fields.nth(1)?.parse() == Ok(*gid)).then_some(name)
        })
    };
    let names: Vec<String> =
        gids.value.iter().take(256).map(|gid| name(gid).unwrap_or_else(|| gid.to_string())).collect();
    Reading::known(names, gids.source.clone())
}

/// The soft limit on locked memory, in bytes.
fn memlock(host: &dyn Host) -> Reading<Bytes> {
    Text::open(host, "/proc/self/limits").entry("Max locked memory", |rest| {
        // Without a limit there is no number of bytes to state.
        rest.split_whitespace().next()?.parse().ok().map(Bytes)
    })
}
