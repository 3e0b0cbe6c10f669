//! A GPU that sleeps is not woken to be measured.

use crate::common::{doctor, host};

#[test]
fn the_use_of_a_sleeping_gpu_is_unknown_and_verbose_says_why() {
    let root = host("laptop-dgpu-asleep");
    let document = doctor(&root, &["--format", "json"]).json();
    let pools = document["pools"].as_array().unwrap();
    let asleep: Vec<_> = pools.iter().filter(|pool| pool["device"] == "0000:03:00.0").collect();
    assert_eq!(asleep.len(), 1, "no Vulkan pool: its size stands in files that would wake it");
    let pool = asleep[0];
    assert!(pool.get("used_bytes").is_none() && pool.get("free_bytes").is_none(), "{pool}");
    // KFD's topology is the kernel's own memory and says the size without waking the device.
    let sources: Vec<_> = pool["ceilings"].as_array().unwrap().iter().map(|c| c["source"].clone()).collect();
    assert_eq!(sources, ["/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties"]);

    let plain = doctor(&root, &[]).out;
    let row = plain.lines().find(|line| line.contains("0000:03:00.0")).unwrap();
    let row: Vec<_> = row.split_ascii_whitespace().collect();
    assert_eq!(row, ["0000:03:00.0", "HIP", "8.0", "GiB", "unknown", "unknown", "vram"]);

    let verbose = doctor(&root, &["-v"]).out;
    let why = "files were not read: the GPU sleeps and reading would wake it";
    assert!(verbose.contains(why), "{verbose}");
    assert!(verbose.contains("/sys/class/drm/card2: "), "{verbose}");
}
