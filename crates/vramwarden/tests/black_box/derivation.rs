//! The same host gives the same answer, and pools follow from the machine and not from what a program says of it.

use serde_json::Value;

use crate::common::{doctor, finish, hosts, program, run};

#[test]
fn the_same_host_gives_the_same_bytes() {
    for (name, root) in hosts() {
        let json = || doctor(&root, &["--format", "json"]).out;
        assert_eq!(json(), json(), "{name}");
    }
}

/// The facts sheet that a bundle of `root` holds.
fn sheet_of(root: &std::path::Path) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("host.tgz");
    let run = finish(program().arg("bundle").arg("--root").arg(root).arg(&file));
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{}", run.out);
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()));
    let mut entries = archive.entries().unwrap().map(|entry| entry.unwrap());
    let facts = entries.find(|entry| entry.path_bytes().as_ref() == b"facts.json").expect("facts.json");
    serde_json::from_reader(facts).unwrap()
}

fn by_sheet(sheet: &Value) -> Value {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(file.path(), sheet.to_string()).unwrap();
    let run = run(["doctor", "--no-host", "--format", "json", "--facts", file.path().to_str().unwrap()]);
    assert!(run.err.is_empty(), "a sheet that was written is read without a warning: {}", run.err);
    run.json()
}

/// Device, API, and what a pool amounts to.
fn sizes(document: &Value) -> Vec<[Value; 6]> {
    let of = |pool: &Value| {
        ["device", "api", "total_bytes", "used_bytes", "free_bytes", "limited_by"]
            .map(|key| pool[key].clone())
    };
    document["pools"].as_array().unwrap().iter().map(of).collect()
}

fn ids(document: &Value) -> Vec<Value> {
    document["findings"].as_array().unwrap().iter().map(|finding| finding["id"].clone()).collect()
}

#[test]
fn a_host_and_its_own_sheet_give_the_same_pools_and_findings() {
    for (name, root) in hosts() {
        let (host, sheet) = (doctor(&root, &["--format", "json"]).json(), by_sheet(&sheet_of(&root)));
        assert_eq!(sizes(&host), sizes(&sheet), "{name}");
        assert_eq!(ids(&host), ids(&sheet), "{name}");
    }
}

#[test]
fn pools_stay_without_what_programs_and_kfd_say() {
    for (name, root) in hosts() {
        let whole = sheet_of(&root);
        let mut bare = whole.clone();
        for gpu in bare["gpus"].as_array_mut().unwrap() {
            for told in ["kfd_pool_bytes", "hip_total_bytes", "hip_free_bytes"] {
                gpu.as_object_mut().unwrap().remove(told);
            }
        }
        let (whole, bare) = (sizes(&by_sheet(&whole)), sizes(&by_sheet(&bare)));
        assert_eq!(whole.len(), bare.len(), "{name}");
        for (whole, bare) in whole.iter().zip(&bare) {
            // A sleeping card's size is known from KFD alone: without it, it is unknown.
            if name == "laptop-dgpu-asleep" && whole[0] == "0000:03:00.0" {
                assert!(bare[2].is_null(), "{name}: {bare:?}");
            } else {
                assert_eq!(whole, bare, "{name}");
            }
        }
    }
}
