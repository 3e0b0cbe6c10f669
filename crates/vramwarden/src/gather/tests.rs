//! Whether a log is this machine's, with recorded hosts in the place of this machine.

use super::*;

fn path(host: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hosts").join(host)
}

fn host(name: &str) -> Facts {
    let mut facts = facts::host::read(&under(&path(name)).unwrap());
    facts.complete();
    facts
}

/// What the kernel log of a recorded host states.
fn dmesg(name: &str) -> Facts {
    stated(&scan(&path(name).join("dmesg.log")).unwrap())
}

fn stated(scan: &Scan) -> Facts {
    let mut facts = facts::stated(scan);
    facts.complete();
    facts
}

fn text(lines: &str) -> Facts {
    stated(&logs::scan_reader("run.log", lines.as_bytes()).unwrap())
}

const HOSTS: [&str; 5] = [
    "rx7900xtx-24g",
    "rx9070xt-16g",
    "strix-halo-512m-124g",
    "strix-halo-96g-carveout",
    "strix-halo-gttsize-only",
];

#[test]
fn a_machines_own_kernel_log_keeps_it_and_another_kind_of_machines_leaves_it_out() {
    for here in HOSTS {
        for told in HOSTS {
            let difference = another_machine(&host(here), &dmesg(told));
            // The same machine with another page limit has the same GPU and RAM: nothing tells the two apart.
            let halo = ["strix-halo-512m-124g", "strix-halo-gttsize-only"];
            let same = here == told || (halo.contains(&here) && halo.contains(&told));
            assert_eq!(difference.is_none(), same, "{told} on {here}: {difference:?}");
        }
    }
}

#[test]
fn the_line_says_what_differs() {
    for (here, told, line) in [
        (
            "rx7900xtx-24g",
            dmesg("strix-halo-512m-124g"),
            "what was given tells of 0000:c5:00.0, which is not in this machine",
        ),
        (
            "strix-halo-96g-carveout",
            dmesg("strix-halo-512m-124g"),
            "what was given tells of 512 MiB of VRAM, and this machine's GPU has another size",
        ),
        (
            "rx7900xtx-24g",
            text("  Device 0: AMD Radeon Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32\n"),
            "what was given tells of gfx1151, which is not in this machine",
        ),
        (
            "two-gpus",
            text("  Device 0: AMD Radeon Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32\n"),
            "what was given tells of gfx1151, which is not in this machine",
        ),
        (
            "no-amd-gpu",
            dmesg("rx7900xtx-24g"),
            "what was given tells of 0000:03:00.0, which is not in this machine",
        ),
    ] {
        assert_eq!(another_machine(&host(here), &told).as_deref(), Some(line), "{here}");
    }
}

#[test]
fn another_kernel_or_another_ram_is_another_machine() {
    let here = host("rx7900xtx-24g");
    let sheet = |text: &str| facts::sheet::read("facts", text).unwrap().facts;
    let kernel = sheet(r#"{"kernel": {"release": "5.4.0-1-generic"}}"#);
    let line = another_machine(&here, &kernel).unwrap();
    assert!(line.starts_with("what was given tells of kernel 5.4.0-1-generic, and this is "), "{line}");
    let memory = sheet(r#"{"memory": {"total_bytes": 134217728000}}"#);
    let line = another_machine(&here, &memory).unwrap();
    assert!(line.starts_with("what was given tells of 125.0 GiB of RAM, and this machine has "), "{line}");
    // A little less RAM is a reservation of the kernel, and no statement is no difference.
    let total = here.memory.total.get().unwrap().0;
    let little = sheet(&format!(r#"{{"memory": {{"total_bytes": {}}}}}"#, total / 100 * 98));
    assert_eq!(another_machine(&here, &little), None);
    assert_eq!(another_machine(&here, &Facts::default()), None);
}

#[test]
fn an_overridden_target_is_no_other_gpu() {
    let told = text(concat!(
        "HSA_OVERRIDE_GFX_VERSION=11.0.0 ./llama-cli -m a.gguf\n",
        "  Device 0: AMD Radeon Graphics, gfx1100 (0x1100), VMM: no, Wave Size: 32\n",
    ));
    assert!(told.env("HSA_OVERRIDE_GFX_VERSION").is_some());
    assert_eq!(another_machine(&host("strix-halo-512m-124g"), &told), None);
}

fn quiet() -> Result<Scan, String> {
    Ok(logs::scan_reader("kernel log", &b""[..]).unwrap())
}

#[test]
fn a_foreign_log_is_not_judged_by_this_machines_facts() {
    let foreign = || text("  Device 0: AMD Radeon Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32\n");
    let here = || host("rx7900xtx-24g");
    let mut out = Gathered::default();
    live(
        &mut out,
        here(),
        Some(|| panic!("the kernel log of a host that is left out is not read")),
        foreign(),
        false,
    );
    assert!(out.left_out.is_some());
    assert!(!out.facts.memory.total.is_known(), "nothing of this host stays");
    assert_eq!(out.facts.gpus.len(), 1);
    assert_eq!(out.facts.gpus[0].gfx.text(), Some("gfx1151"));

    let mut kept = Gathered::default();
    live(&mut kept, here(), Some(quiet), foreign(), true);
    assert_eq!(kept.left_out, None);
    assert_eq!(kept.facts.memory.total.get(), here().memory.total.get());
}

#[test]
fn the_machines_own_log_is_joined_with_it() {
    let mut out = Gathered::default();
    live(&mut out, host("rx7900xtx-24g"), Some(quiet), dmesg("rx7900xtx-24g"), false);
    assert_eq!((out.left_out, out.scans.len()), (None, 1));
    assert_eq!(out.facts.gpus.len(), 1, "the log's GPU and the host's are one");
    assert_eq!(out.facts.gpus[0].gfx.text(), Some("gfx1100"));
}

#[test]
fn a_kernel_log_that_may_not_be_read_costs_only_itself() {
    let mut out = Gathered::default();
    live(
        &mut out,
        host("rx7900xtx-24g"),
        Some(|| Err("kernel log not read".to_owned())),
        Facts::default(),
        false,
    );
    assert_eq!(out.warnings, ["kernel log not read"]);
    assert_eq!(out.facts.gpus.len(), 1);
}
