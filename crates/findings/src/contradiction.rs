//! Where two sources disagree about what a pool is made of: a log of another boot, a parameter that changed since, a
//! tool that is wrong. It decides nothing by itself, and people should see it.

use facts::{Conflict, Facts};
use serde::Serialize;
use units::Bytes;

/// One source's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// What it says.
    pub value: String,
    /// Where.
    pub source: String,
}

/// Two sources that disagree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contradiction {
    /// Field of `vramwarden.facts/1`.
    pub field: String,
    /// What the answer rests on.
    pub used: Word,
    /// What was set aside.
    pub set_aside: Word,
}

/// Fields that pools and diagnoses are made of; what is in use changes from minute to minute and contradicts nothing.
const FIELDS: &[&str] = &[
    "kernel.release",
    "kernel.cmdline",
    "memory.total_bytes",
    "ttm.pages_limit",
    "amdgpu.gttsize_mib",
    ".gfx",
    ".vram_total_bytes",
    ".gtt_total_bytes",
    ".kfd_pool_bytes",
    ".hip_total_bytes",
    ".mes_firmware",
];

/// The contradictions worth telling.
pub fn contradictions(facts: &Facts) -> Vec<Contradiction> {
    facts
        .conflicts
        .iter()
        .filter(|conflict| FIELDS.iter().any(|end| conflict.field.ends_with(end)))
        .filter_map(told)
        .collect()
}

fn told(conflict: &Conflict) -> Option<Contradiction> {
    let sizes = conflict.kept.0.parse::<u64>().ok().zip(conflict.other.0.parse::<u64>().ok());
    // Programs round; within one percent they mean the same size.
    if sizes.is_some_and(|(a, b)| Bytes(a).near(Bytes(b), 1.0)) {
        return None;
    }
    let word = |(value, source): &(String, facts::Source)| {
        let size = value.parse::<u64>().ok().filter(|_| conflict.field.ends_with("_bytes"));
        let shown = size.map_or_else(|| value.trim_matches('"').to_owned(), |bytes| Bytes(bytes).to_string());
        Word { value: shown, source: source.place.to_string() }
    };
    Some(Contradiction {
        field: conflict.field.clone(),
        used: word(&conflict.kept),
        set_aside: word(&conflict.other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(sheet: &str, log: &str) -> Facts {
        let mut facts = facts::sheet::read("s", sheet).unwrap().facts;
        facts.merge(facts::stated(&logs::scan_lines("l", log.lines())));
        facts
    }

    #[test]
    fn a_log_of_another_boot_shows_and_rounding_does_not() {
        let sheet = r#"{"schema": "vramwarden.facts/1", "gpus": [{"gfx": "gfx1151", "gtt_total_bytes": 133143986176, "vram_total_bytes": 536870912}]}"#;
        let found = contradictions(&facts(
            sheet,
            "[drm] amdgpu: 512M of VRAM memory ready\n[drm] amdgpu: 63973M of GTT memory ready.",
        ));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].field, "gpus[0].gtt_total_bytes");
        assert_eq!(
            (found[0].used.value.as_str(), found[0].set_aside.value.as_str()),
            ("124.0 GiB", "62.5 GiB")
        );
        assert_eq!(found[0].set_aside.source, "l:2");
        assert!(contradictions(&facts(sheet, "[drm] amdgpu: 126976M of GTT memory ready.")).is_empty());
    }
}
