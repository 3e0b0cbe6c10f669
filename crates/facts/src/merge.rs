//! Joining facts of several sources: precedence by origin, contradictions kept.

use std::collections::BTreeMap;
use std::mem::take;

use serde::Serialize;

use crate::facts::{Conflict, Facts};
use crate::model::Gpu;
use crate::reading::{Known, Missing, Reading};

/// Joins one reading. The higher origin wins; of equal origins the one that was there.
pub(crate) fn reading<T: PartialEq + Serialize>(
    mine: &mut Reading<T>,
    other: Reading<T>,
    path: &str,
    key: &str,
    conflicts: &mut Vec<Conflict>,
) {
    *mine = match (take(mine), other) {
        (Reading::Known(have), Reading::Known(new)) => {
            let (kept, lost) = if new.source.origin < have.source.origin { (new, have) } else { (have, new) };
            if kept.value != lost.value {
                conflicts.push(conflict(format!("{path}.{key}"), &kept, &lost));
            }
            Reading::Known(kept)
        }
        (known @ Reading::Known(_), _) | (_, known @ Reading::Known(_)) => known,
        (Reading::Missing(Missing::NotStated), why) => why,
        (why, _) => why,
    };
}

fn conflict<T: Serialize>(field: String, kept: &Known<T>, lost: &Known<T>) -> Conflict {
    let side =
        |known: &Known<T>| (serde_json::to_string(&known.value).unwrap_or_default(), known.source.clone());
    Conflict { field, kept: side(kept), other: side(lost) }
}

/// Joins whole facts, record by record.
pub(crate) fn facts(mine: &mut Facts, other: Facts) {
    let conflicts = &mut mine.conflicts;
    mine.platform.merge(other.platform, "platform", conflicts);
    mine.kernel.merge(other.kernel, "kernel", conflicts);
    mine.memory.merge(other.memory, "memory", conflicts);
    mine.ttm.merge(other.ttm, "ttm", conflicts);
    mine.amdgpu.merge(other.amdgpu, "amdgpu", conflicts);
    mine.container.merge(other.container, "container", conflicts);
    mine.access.merge(other.access, "access", conflicts);
    mine.workload.merge(other.workload, "workload", conflicts);
    reading(&mut mine.gpus_seen, other.gpus_seen, "gpus", "seen", conflicts);
    reading(&mut mine.processes, other.processes, "processes", "list", conflicts);
    reading(&mut mine.processes_hidden, other.processes_hidden, "processes", "hidden", conflicts);
    map(&mut mine.software, other.software, "software", conflicts);
    map(&mut mine.env, other.env, "env", conflicts);
    mine.shown.extend(other.shown);
    let only_pair = mine.gpus.len() == 1 && other.gpus.len() == 1;
    for (position, gpu) in other.gpus.into_iter().enumerate() {
        match find(&mine.gpus, &gpu, position, only_pair) {
            Some(at) => mine.gpus[at].merge(gpu, &format!("gpus[{at}]"), conflicts),
            None => mine.gpus.push(gpu),
        }
    }
    mine.conflicts.extend(other.conflicts);
}

fn map(
    mine: &mut BTreeMap<String, Known<String>>,
    other: BTreeMap<String, Known<String>>,
    path: &str,
    conflicts: &mut Vec<Conflict>,
) {
    for (key, new) in other {
        let mut joined = mine.remove(&key).map_or_else(Reading::default, Reading::Known);
        reading(&mut joined, Reading::Known(new), path, &key, conflicts);
        if let Reading::Known(known) = joined {
            mine.insert(key, known);
        }
    }
}

/// The device among `mine` that `gpu` describes: by PCI address, then by target, then by position.
fn find(mine: &[Gpu], gpu: &Gpu, position: usize, only_pair: bool) -> Option<usize> {
    if let Some(bdf) = gpu.bdf.text()
        && let Some(at) = mine.iter().position(|have| have.bdf.text() == Some(bdf))
    {
        return Some(at);
    }
    let can_be_same = |have: &Gpu| {
        let differ = |a: Option<&str>, b: Option<&str>| matches!((a, b), (Some(a), Some(b)) if a != b);
        !differ(have.bdf.text(), gpu.bdf.text())
            && !differ(have.pci_id.text(), gpu.pci_id.text())
            && (only_pair || !differ(have.gfx.text(), gpu.gfx.text()))
    };
    if mine.get(position).is_some_and(can_be_same) {
        return Some(position);
    }
    let mut same = mine
        .iter()
        .enumerate()
        .filter(|(_, have)| can_be_same(have) && gpu.gfx.is_known() && have.gfx.text() == gpu.gfx.text());
    match (same.next(), same.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Origin, Source};

    fn at<T>(value: T, origin: Origin) -> Reading<T> {
        Reading::known(value, Source::new(origin, format!("{origin:?}"), ""))
    }

    #[test]
    fn a_sheet_overrides_the_host_and_the_host_a_log_whatever_the_order() {
        use Origin::{Host, Log, Sheet};
        for order in [[Sheet, Host, Log], [Log, Host, Sheet], [Host, Log, Sheet], [Log, Sheet, Host]] {
            let (mut joined, mut conflicts) = (Reading::default(), Vec::new());
            for origin in order {
                let value = match origin {
                    Sheet => 1_u64,
                    Host => 2,
                    Log => 3,
                };
                reading(&mut joined, at(value, origin), "memory", "total_bytes", &mut conflicts);
            }
            assert_eq!(joined.get(), Some(1), "{order:?}");
            assert_eq!(conflicts.len(), 2, "{order:?}");
            assert_eq!(conflicts[0].field, "memory.total_bytes");
        }
    }

    #[test]
    fn equal_values_are_no_contradiction_and_a_reason_beats_silence() {
        let (mut joined, mut conflicts) = (Reading::<u64>::default(), Vec::new());
        let denied = Reading::Missing(Missing::Denied("/sys/x".into()));
        reading(&mut joined, denied.clone(), "a", "b", &mut conflicts);
        assert_eq!(joined, denied);
        reading(&mut joined, at(7, Origin::Log), "a", "b", &mut conflicts);
        reading(&mut joined, at(7, Origin::Host), "a", "b", &mut conflicts);
        assert_eq!(joined.source().map(|s| s.origin), Some(Origin::Host));
        assert!(conflicts.is_empty());
    }

    fn gpu(bdf: Option<&str>, gfx: Option<&str>) -> Gpu {
        let text = |t: Option<&str>| t.map_or_else(Reading::default, |t| at(t.to_owned(), Origin::Host));
        Gpu { bdf: text(bdf), gfx: text(gfx), ..Gpu::default() }
    }

    #[test]
    fn devices_are_matched_by_address_then_target_then_place() {
        let mine = [gpu(Some("0000:03:00.0"), Some("gfx1201")), gpu(Some("0000:c5:00.0"), Some("gfx1103"))];
        assert_eq!(find(&mine, &gpu(Some("0000:c5:00.0"), None), 0, false), Some(1));
        assert_eq!(find(&mine, &gpu(None, Some("gfx1103")), 0, false), Some(1));
        assert_eq!(find(&mine, &gpu(None, None), 1, false), Some(1));
        assert_eq!(find(&mine, &gpu(None, Some("gfx942")), 0, false), None);
    }
}
