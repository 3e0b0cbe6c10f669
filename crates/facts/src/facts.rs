//! All readings of one host.

use std::collections::BTreeMap;

use crate::model::*;
use crate::reading::{Known, Missing, Reading, Source};

/// Two sources that disagree.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// Path of the field in `vramwarden.facts/1`, `gpus[0].vram_total_bytes`.
    pub field: String,
    /// The value kept, as text, and its source.
    pub kept: (String, Source),
    /// The other value, as text, and its source.
    pub other: (String, Source),
}

/// All readings of one host, and what its workload is known to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The operating system.
    pub platform: Platform,
    /// The kernel.
    pub kernel: Kernel,
    /// RAM.
    pub memory: Memory,
    /// TTM.
    pub ttm: Ttm,
    /// amdgpu.
    pub amdgpu: Amdgpu,
    /// AMD GPUs, in the order of their PCI addresses or of the statement.
    pub gpus: Vec<Gpu>,
    /// How many AMD GPUs the driver shows; known only where a host was read.
    pub gpus_seen: Reading<u64>,
    /// Who holds GPU memory. Known and empty means nobody; missing means unknown.
    pub processes: Reading<Vec<Process>>,
    /// How many processes hide their open files from this user, so that `processes` may lack some; 0 where all could
    /// be seen. Known only where a host was read.
    pub processes_hidden: Reading<u64>,
    /// The container.
    pub container: Container,
    /// Device nodes.
    pub access: Access,
    /// Versions by program.
    pub software: BTreeMap<String, Known<String>>,
    /// Environment variables.
    pub env: BTreeMap<String, Known<String>>,
    /// Figures that programs show.
    pub shown: Vec<Known<Shown>>,
    /// What runs or ran.
    pub workload: Workload,
    /// Where two sources disagree.
    pub conflicts: Vec<Conflict>,
}

impl Facts {
    /// Joins `other` into these facts. Where both know a value the one of the higher [`crate::Origin`] stays (of equals
    /// the first), and the difference is kept in `conflicts`.
    pub fn merge(&mut self, other: Self) {
        crate::merge::facts(self, other);
    }

    /// Fills in what follows from other values: a device's target and kind from its name or PCI id.
    pub fn complete(&mut self) {
        self.gpus.iter_mut().for_each(crate::targets::complete);
    }

    /// Calls `see` with the path of each field that is missing, as in `vramwarden.facts/1`, and the reason.
    pub fn each_missing(&self, see: &mut dyn FnMut(String, &Missing)) {
        self.platform.each_missing("platform", see);
        self.kernel.each_missing("kernel", see);
        self.memory.each_missing("memory", see);
        self.ttm.each_missing("ttm", see);
        self.amdgpu.each_missing("amdgpu", see);
        for (at, gpu) in self.gpus.iter().enumerate() {
            gpu.each_missing(&format!("gpus[{at}]"), see);
        }
        if let Reading::Missing(why) = &self.processes {
            see("processes".to_owned(), why);
        }
        self.container.each_missing("container", see);
        self.access.each_missing("access", see);
        self.workload.each_missing("workload", see);
    }

    /// Version of `program`, if stated.
    pub fn version(&self, program: &str) -> Option<&str> {
        self.software.get(program).map(|known| known.value.as_str())
    }

    /// Value of environment variable `name`, if set.
    pub fn env(&self, name: &str) -> Option<&Known<String>> {
        self.env.get(name)
    }
}
