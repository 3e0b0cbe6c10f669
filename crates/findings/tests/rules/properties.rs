//! What holds for any host and any lines.

use std::sync::LazyLock;

use findings::Diagnosis;
use proptest::prelude::*;
use serde_json::{Value, json};
use units::{Bytes, GIB};

use crate::{cases, doctor};

/// Pages of 4 KiB in a GiB.
const PAGES: u64 = 262_144;

/// The sheets of all cases, read once.
static SHEETS: LazyLock<Vec<Value>> =
    LazyLock::new(|| cases::all().into_iter().map(|case| case.sheet().clone()).collect());

/// The lines of all cases and every signature's example.
static LINES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let examples = logs::signatures().flat_map(|signature| signature.example.lines().map(str::to_owned));
    cases::all().into_iter().flat_map(|case| case.log).chain(examples).collect()
});

/// An APU whose limit is TTM's default, half of its RAM.
fn apu(ram: u64, pages: u64) -> Value {
    json!({
        "kernel": {"release": "6.18.4"},
        "memory": {"total_bytes": ram, "available_bytes": ram / 10 * 9},
        "ttm": {"module": "ttm", "pages_limit": pages},
        "gpus": [{"gfx": "gfx1150", "apu": true, "vram_total_bytes": 512 << 20, "gtt_total_bytes": pages * 4096}],
        "workload": {"program": "llama.cpp", "api": "hip"},
    })
}

/// What llama.cpp prints when a buffer of `size` bytes is refused.
fn refused(size: u64) -> Vec<String> {
    let mib = size as f64 / f64::from(1 << 20);
    vec![
        format!(
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating {mib:.2} MiB on device 0: cudaMalloc failed: out of memory"
        ),
        format!("alloc_tensor_range: failed to allocate ROCm0 buffer of size {size}"),
    ]
}

/// The page limit that the first finding's fixes name.
fn named_limit(diagnosis: &Diagnosis) -> Option<u64> {
    let fixes = &diagnosis.findings.first()?.fixes;
    let text = fixes.iter().find_map(|fix| fix.text.split_once("pages_limit=").map(|(_, rest)| rest))?;
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// HIP's pool of the first device.
fn hip_pool(diagnosis: &Diagnosis) -> Option<Bytes> {
    diagnosis.pools.iter().find(|pool| pool.api == facts::pool::Api::Hip)?.total
}

/// A figure replaced by one of the extremes, under keys of sizes only: other keys have their own types.
fn extreme(value: &mut Value, picks: &mut impl Iterator<Item = u8>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key.ends_with("_bytes") && value.is_u64() {
                    *value = match picks.next() {
                        Some(0) => 0.into(),
                        Some(1) => 1.into(),
                        Some(2) => (1_u64 << 62).into(),
                        Some(3) => ((1_u64 << 53) + 1).into(),
                        _ => continue,
                    };
                } else {
                    extreme(value, picks);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|value| extreme(value, picks)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_larger_machine_with_a_larger_model_gets_the_same_answer_with_its_own_numbers(
        gib in 16_u64..600,
        odd in 0_u64..GIB,
        share in 55_u64..70,
    ) {
        let ram = gib * GIB + odd / 4096 * 4096;
        let need = ram / 100 * share;
        let before = ram / 2 / 4096;
        let lines = refused(need);
        let got = doctor::diagnose(&apu(ram, before), &lines);
        prop_assert_eq!(got.findings[0].id, "apu-ttm-limit");
        let pages = named_limit(&got).expect("a page limit in the fix");
        prop_assert_eq!(pages % PAGES, 0, "whole GiB");
        let reserve = (ram / 10).max(4 * GIB);
        let tight = (ram / 32).max(3 * GIB);
        prop_assert!(pages * 4096 <= ram, "more than there is");
        let left = ram - pages * 4096;
        prop_assert!(left >= if need <= ram - reserve - GIB { reserve } else { tight }, "{left} left of {ram}");
        // With the limit in force the pool is larger and holds it, and nothing speaks of the limit any more.
        let after = doctor::diagnose(&apu(ram, pages), &lines);
        prop_assert!(hip_pool(&after) > hip_pool(&got));
        prop_assert!(hip_pool(&after) >= Some(Bytes(need)));
        prop_assert!(after.findings.iter().all(|f| f.id != "apu-ttm-limit" && !doctor::accuses(f)));
    }

    #[test]
    fn a_card_of_any_size_is_told_what_exceeds_it(gib in 4_u64..200, over in 101_u64..300) {
        let vram = gib * GIB;
        let sheet = json!({
            "gpus": [{"gfx": "gfx1100", "apu": false, "vram_total_bytes": vram}],
            "workload": {"program": "llama.cpp", "api": "hip"},
        });
        let got = doctor::diagnose(&sheet, &refused(vram / 100 * over));
        prop_assert_eq!(got.findings[0].id, "weights-exceed-pool");
        prop_assert!(!got.findings[0].fixes.iter().any(|fix| fix.text.contains("pages_limit")));
        // What fits the empty card says nothing of capacity.
        let fits = doctor::diagnose(&sheet, &refused(vram / 2));
        prop_assert_eq!(fits.findings[0].id, "insufficient-evidence");
    }

    #[test]
    fn nothing_breaks_whatever_comes_together(
        (base, over) in (0..10_000_usize, 0..10_000_usize),
        lines in prop::collection::vec(0..10_000_usize, 0..12),
        picks in prop::collection::vec(0_u8..24, 40),
    ) {
        let mut sheet = SHEETS[base % SHEETS.len()].clone();
        doctor::lay(&mut sheet, &SHEETS[over % SHEETS.len()]);
        extreme(&mut sheet, &mut picks.into_iter());
        let lines: Vec<String> = lines.into_iter().map(|at| LINES[at % LINES.len()].clone()).collect();
        let got = doctor::diagnose(&sheet, &lines);
        let wrong = doctor::broken(&got);
        prop_assert!(wrong.is_empty(), "{wrong:?} of {sheet} {lines:#?} {:#?}", got.findings);
        let again = doctor::diagnose(&sheet, &lines);
        prop_assert_eq!(got.findings, again.findings);
        prop_assert_eq!(got.ask_for, again.ask_for);
    }

    #[test]
    fn a_model_that_fits_and_runs_is_no_trouble_whatever_else_the_machine_is(
        gib in 16_u64..256,
        percent in 5_u64..90,
        discrete: bool,
    ) {
        let size = gib * GIB;
        let used = size / 100 * percent;
        let gpu = if discrete {
            json!({"gfx": "gfx1100", "apu": false, "vram_total_bytes": size, "vram_used_bytes": used})
        } else {
            json!({"gfx": "gfx1151", "apu": true, "vram_total_bytes": 512 << 20, "gtt_total_bytes": size, "gtt_used_bytes": used})
        };
        let holds = if discrete { "vram_bytes" } else { "gtt_bytes" };
        let sheet = json!({
            "kernel": {"release": "6.18.4"},
            "memory": {"total_bytes": size + size / 4, "available_bytes": (size + size / 4 - used).max(size / 8)},
            "gpus": [gpu],
            "processes": [{"pid": 7, "name": "llama-server", "alive": true, holds: used / 100 * 97}],
            "workload": {"program": "llama.cpp", "api": "hip", "model_bytes": used / 10 * 9},
        });
        let lines = ["load_tensors: offloaded 49/49 layers to GPU", "llama_context: graph splits = 2"].map(str::to_owned);
        let got = doctor::diagnose(&sheet, &lines);
        let loud: Vec<_> = got.findings.iter().filter(|f| f.severity != findings::Severity::Info).collect();
        prop_assert!(loud.is_empty(), "{loud:#?}");
    }
}
