//! What root would see and this user does not.

use std::sync::Arc;

use crate::facts::Facts;
use crate::reading::Missing;

/// A file or directory that this user may not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hidden {
    /// Its path.
    pub path: Arc<str>,
    /// What it would tell.
    pub adds: &'static str,
}

/// What files tell, by a part of their path.
const TELLS: &[(&str, &str)] = &[
    ("parameters/gttsize", "whether the deprecated gttsize overrides the GTT size"),
    ("/parameters/", "the module parameter in force"),
    ("/sys/kernel/debug", "the firmware versions, MES among them"),
    ("/boot/loader", "the command line of the next boot"),
    ("/etc/default/grub", "the command line of the next boot"),
    ("/etc/kernel", "the command line of the next boot"),
    ("modprobe.d", "module options of the next boot"),
    ("/sys/class/kfd", "the compute topology, which the device cgroup hides"),
    ("memory.", "the limit of the control group"),
    ("dmem.", "the limit on VRAM of the control group"),
];

/// Everything that was denied, each path once, and what reading it would add.
pub fn hidden(facts: &Facts) -> Vec<Hidden> {
    let mut found = Vec::new();
    facts.each_missing(&mut |_, why| {
        if let Missing::Denied(path) = why {
            let adds =
                TELLS.iter().find(|(part, _)| path.contains(part)).map_or("its value", |(_, adds)| adds);
            found.push(Hidden { path: path.clone(), adds });
        }
    });
    if facts.processes_hidden.get().is_some_and(|count| count > 0) {
        found.push(Hidden {
            path: "/proc/<pid>/fd".into(),
            adds: "which processes of other users hold GPU memory",
        });
    }
    found.sort();
    found.dedup();
    found
}
