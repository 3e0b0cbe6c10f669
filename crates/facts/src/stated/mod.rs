//! Facts stated inside logs: sizes the kernel printed, a pool in `rocminfo`, a total in a PyTorch or ggml line, …
//!
//! Each becomes a reading of origin [`Origin::Log`] with its line as source. Devices are named differently by every
//! program (PCI address, HIP index, rocminfo agent, rocm-smi index), so they are collected by name first and joined at
//! the end by what can only be the same device.

mod kernel;
mod programs;
mod rocminfo;
mod tools;
mod vulkaninfo;

use std::collections::BTreeMap;

use logs::{Hit, Scan};
use serde::Serialize;

use crate::Facts;
use crate::model::Gpu;
use crate::reading::{Known, Origin, Reading, Source};

/// How a program names a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    /// PCI address.
    Address(String),
    /// The kernel's lines without an address, by PCI device number where one was announced.
    Kernel(Option<String>),
    /// `GPU[n]` of rocm-smi and the files of sysfs pasted without a path.
    Tool(u64),
    /// Agent of rocminfo, in order.
    Agent(u64),
    /// HIP's index.
    Hip(u64),
    /// Vulkan's index.
    Vulkan(u64),
}

/// Facts while a log is read.
#[derive(Default)]
struct Draft {
    facts: Facts,
    gpus: BTreeMap<Name, Gpu>,
}

impl Draft {
    fn gpu(&mut self, name: Name) -> &mut Gpu {
        self.gpus.entry(name).or_default()
    }

    /// Joins the devices: first those with an address, then each program's, where they can only be the same.
    fn finish(mut self) -> Facts {
        let mut groups: [Vec<Gpu>; 6] = Default::default();
        for (name, gpu) in self.gpus {
            let group = match name {
                Name::Address(_) => 0,
                Name::Kernel(_) => 1,
                Name::Tool(_) => 2,
                Name::Agent(_) => 3,
                Name::Hip(_) => 4,
                Name::Vulkan(_) => 5,
            };
            groups[group].push(gpu);
        }
        for gpus in groups {
            self.facts.merge(Facts { gpus, ..Facts::default() });
        }
        self.facts.complete();
        self.facts
    }
}

/// The source that a line of a log is.
fn source(hit: &Hit) -> Source {
    Source::new(Origin::Log, format!("{}:{}", hit.line.log, hit.line.number), hit.text.as_str())
}

/// Sets `reading` to `value`, if there is one; the latest line of a log counts, as it is about the latest boot or run.
fn set<T>(reading: &mut Reading<T>, value: Option<T>, hit: &Hit) {
    if let Some(value) = value {
        *reading = Reading::known(value, source(hit));
    }
}

/// As [`set`], for a device-independent map.
fn note(map: &mut BTreeMap<String, Known<String>>, key: &str, value: Option<&str>, hit: &Hit) {
    if let Some(value) = value {
        map.insert(key.to_owned(), Known { value: value.to_owned(), source: source(hit) });
    }
}

fn text(hit: &Hit, field: &str) -> Option<String> {
    hit.field(field).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn known<T: Serialize>(value: T, hit: &Hit) -> Known<T> {
    Known { value, source: source(hit) }
}

/// The facts that a scanned log states.
pub fn stated(scan: &Scan) -> Facts {
    let mut draft = Draft::default();
    let (mut dmesg, mut agents, mut vulkan) =
        (kernel::Lines::default(), rocminfo::Lines::default(), vulkaninfo::Lines::default());
    for hit in &scan.hits {
        let taken = dmesg.take(&mut draft, hit)
            || agents.take(&mut draft, hit)
            || vulkan.take(&mut draft, hit)
            || tools::take(&mut draft, hit);
        if !taken {
            programs::take(&mut draft, hit);
        }
    }
    agents.finish(&mut draft);
    vulkan.finish(&mut draft);
    draft.finish()
}

#[cfg(test)]
mod tests;
