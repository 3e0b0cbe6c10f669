//! Trees of real machines that lie beside the checkout, where they do.

use serde_json::{Value, json};

use crate::common::{doctor, folders, repository, run, skipped};

fn trees() -> Vec<(String, std::path::PathBuf)> {
    let trees = folders(&repository().join("../shared/hosts/recorded"));
    if trees.is_empty() {
        skipped("no recorded trees in ../shared/hosts/recorded beside the checkout");
    }
    trees
}

#[test]
fn every_command_answers_on_every_recorded_tree() {
    for (name, root) in trees() {
        for more in [&[][..], &["-v"], &["--format", "markdown"], &["--format", "json"]] {
            let run = doctor(&root, more);
            assert!(matches!(run.status, 0 | 1), "{name} {more:?}: {run:?}");
            assert!(!run.out.is_empty() && run.err.is_empty(), "{name} {more:?}: {run:?}");
        }
        let document = doctor(&root, &["--format", "json"]).json();
        assert_eq!(document["schema"], "vramwarden.doctor/1", "{name}");
        assert!(document["pools"].as_array().is_some_and(|pools| !pools.is_empty()), "{name}");
        // A tree without memory files says "unknown" and not zero.
        for pool in document["pools"].as_array().unwrap() {
            assert_ne!(pool["total_bytes"], 0, "{name}");
        }
    }
}

/// Name and size of each ceiling of each pool.
fn ceilings(document: &Value) -> Vec<(String, Vec<(String, u64)>)> {
    let pools = document["pools"].as_array().unwrap().iter();
    let of = |pool: &Value| {
        let ceilings = pool["ceilings"].as_array().unwrap().iter();
        let plain = |c: &Value| (c["name"].as_str().unwrap().to_owned(), c["bytes"].as_u64().unwrap());
        (pool["api"].as_str().unwrap().to_owned(), ceilings.map(plain).collect())
    };
    pools.map(of).collect()
}

#[test]
fn a_tree_and_a_sheet_of_the_same_machine_give_the_same_ceilings() {
    let Some((_, root)) = trees().into_iter().find(|(name, _)| name == "phoenix") else { return };
    let sheet = json!({
        "schema": "vramwarden.facts/1",
        "gpus": [{
            "gfx": "gfx1103", "apu": true, "vram_total_bytes": 4_294_967_296_u64,
            "gtt_total_bytes": 31_433_977_856_u64, "kfd_pool_bytes": 31_433_977_856_u64,
        }],
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), sheet.to_string()).unwrap();
    let sheet = run(["doctor", "--no-host", "--format", "json", "--facts", file.path().to_str().unwrap()]);
    let (tree, sheet) = (doctor(&root, &["--format", "json"]).json(), sheet.json());
    assert_eq!(ceilings(&tree), ceilings(&sheet));
    assert_eq!(tree["pools"][0]["total_bytes"], 31_433_977_856_u64);
    assert_eq!(sheet["pools"][0]["total_bytes"], 31_433_977_856_u64);
}
