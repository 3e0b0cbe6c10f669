//! Killed at any moment, by the kernel and not by a test double.

use std::collections::BTreeMap;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{ID, Tree, apply, differing, host, tree, undo};

/// The same sequence every time (an LCG of Numerical Recipes).
struct Dice(u32);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u64::from(self.0 >> 8) % limit.max(1)
    }
}

const FILES: [&str; 2] = ["etc/default/grub", "etc/modprobe.d/vramwarden-ttm.conf"];

type Sides = BTreeMap<&'static str, [Option<Vec<u8>>; 2]>;

fn whole(sides: &Sides, now: &Tree, round: u32) {
    for (path, sides) in sides {
        let now = now.get(*path).map(|(.., content)| content.clone());
        assert!(sides.contains(&now), "round {round}: {path} is {now:?}");
    }
}

#[test]
fn a_killed_run_leaves_each_file_old_or_new() {
    let host = host();
    let root = host.path();
    let before = tree(root);
    let clock = Instant::now();
    assert_eq!(apply(root).status, 0);
    let whole_run = u64::try_from(clock.elapsed().as_micros()).unwrap();
    let after = tree(root);
    let content = |tree: &Tree, path: &str| tree.get(path).map(|(.., content)| content.clone());
    let sides: Sides =
        FILES.iter().map(|path| (*path, [content(&before, path), content(&after, path)])).collect();
    assert_eq!(undo(root).status, 0);
    let mut dice = Dice(7);
    let started = Instant::now();
    let (mut rounds, mut partial) = (0, 0);
    while rounds < 100 && started.elapsed() < Duration::from_secs(60) {
        for option in ["--apply", "--undo"] {
            let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_vramwarden"))
                .args(["doctor", option, ID, "--yes", "--root"])
                .arg(root)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_micros(dice.below(whole_run)));
            let _ = child.kill();
            child.wait().unwrap();
            let now = tree(root);
            whole(&sides, &now, rounds);
            partial += usize::from(now != before && now != after);
        }
        // Whatever was left of the two, it leads on, and back.
        if dice.below(2) == 0 {
            let run = apply(root);
            assert_eq!(run.status, 0, "round {rounds}: {run:?}");
            assert_eq!(differing(&after, &tree(root)), [""; 0], "round {rounds}");
        }
        let run = undo(root);
        assert_eq!(run.status, 0, "round {rounds}: {run:?}");
        assert_eq!(differing(&before, &tree(root)), [""; 0], "round {rounds}");
        rounds += 1;
    }
    let kept: Vec<_> = fs::read_dir(root.join("var/lib/vramwarden/applied"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    assert_eq!(kept, [""; 0]);
    assert!(rounds >= 10, "only {rounds} rounds in a minute ({partial} kills fell between two files)");
}
