//! The engine on a disk that stops after N operations, for every N.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::*;
use crate::apply::disk::{Present, Root};
use crate::apply::journal::make_home;

/// A disk that does `left` operations and then nothing any more, as if the program had been killed. The last one may
/// have been half done: then a staged file has half its content.
struct Stopping {
    inner: Root,
    left: usize,
    /// The operation that fails, once, instead of all that follow.
    once: bool,
}

impl Stopping {
    fn step(&mut self, path: &str) -> Result<(), Fault> {
        if self.left == 0 {
            if self.once {
                self.left = usize::MAX;
            }
            return Err(Fault { path: path.to_owned(), error: io::Error::other("stopped") });
        }
        self.left -= 1;
        Ok(())
    }
}

impl Disk for Stopping {
    fn look(&self, path: &str) -> Result<Look, Fault> {
        self.inner.look(path)
    }
    fn follow(&self, path: &str) -> Result<String, Fault> {
        self.inner.follow(path)
    }
    fn direct(&self, path: &str) -> bool {
        self.inner.direct(path)
    }
    fn make_directory(&mut self, path: &str, mode: u32) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.make_directory(path, mode)
    }
    fn stage(&mut self, path: &str, content: &str, like: Option<&Present>) -> Result<(), Fault> {
        if let Err(fault) = self.step(path) {
            let half = content.len() / 2;
            self.inner.stage(path, content.get(..half).unwrap_or_default(), like)?;
            return Err(fault);
        }
        self.inner.stage(path, content, like)
    }
    fn publish(&mut self, path: &str) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.publish(path)
    }
    fn unstage(&mut self, path: &str) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.unstage(path)
    }
    fn remove(&mut self, path: &str) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.remove(path)
    }
    fn remove_directory(&mut self, path: &str) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.remove_directory(path)
    }
    fn sync_directory(&mut self, path: &str) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.sync_directory(path)
    }
    fn overwrite(&mut self, path: &str, content: &str) -> Result<(), Fault> {
        self.step(path)?;
        self.inner.overwrite(path, content)
    }
}

/// Every file and directory outside our own, with content and mode.
fn tree(root: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    fn walk(root: &Path, at: &Path, all: &mut BTreeMap<String, (u32, Vec<u8>)>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == "var" {
                continue;
            }
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            all.insert(name, (meta.mode(), content));
            if meta.is_dir() {
                walk(root, &path, all);
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

struct Stage {
    dir: tempfile::TempDir,
    journal: Journal,
}

/// Two files with modes of their own, one to be made in a directory to be made, and a value of sysfs.
fn stage() -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let write = |path: &str, text: &str, mode: u32| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("etc/default/grub", "old grub\n", 0o640);
    write("etc/kernel/cmdline", "old line", 0o604);
    write("sys/carveout", "1\n", 0o600);
    let disk = Root::open(Some(root)).unwrap();
    let entry = |path: &str, after: &str, made_directory: bool, sysfs: bool| {
        let before = match disk.look(path).unwrap() {
            Look::File(present) => Before::File(present),
            _ => Before::Absent,
        };
        Entry { path: path.to_owned(), before, after: after.to_owned(), made_directory, sysfs }
    };
    let files = vec![
        entry("/etc/default/grub", "new grub, longer\n", false, false),
        entry("/etc/modprobe.d/vramwarden-ttm.conf", "options\n", true, false),
        entry("/etc/kernel/cmdline", "new", false, false),
        entry("/sys/carveout", "2\n", false, true),
    ];
    let journal = Journal::new("apu-ttm-limit", files, "sudo reboot".to_owned());
    Stage { dir, journal }
}

impl Stage {
    fn disk(&self, left: usize, once: bool) -> Stopping {
        Stopping { inner: Root::open(Some(self.dir.path())).unwrap(), left, once }
    }

    /// Each file is old or new, whole, with its mode; what each is.
    fn whole(&self) -> Vec<Now> {
        let states = survey(&self.disk(0, false), &self.journal).unwrap();
        for entry in &self.journal.files {
            let look = self.disk(0, false).look(&entry.path).unwrap();
            match (look, &entry.before) {
                (Look::File(now), Before::File(before)) => {
                    assert_eq!((now.mode, now.uid, now.gid), (before.mode, before.uid, before.gid));
                }
                (Look::File(now), Before::Absent) => assert_eq!(now.mode, 0o644),
                _ => {}
            }
        }
        states
    }

    fn record(&self) -> Option<Journal> {
        Journal::load(&self.disk(0, false), &self.journal.id).unwrap()
    }
}

/// Runs `act` on stages that stop after 0, 1, 2, … operations, until one is done before it stops; `then` looks at each.
fn at_every_step(
    prepare: impl Fn(&Stage),
    act: impl Fn(&mut dyn Disk, &Journal) -> bool,
    then: impl Fn(&Stage, &BTreeMap<String, (u32, Vec<u8>)>),
) -> usize {
    for left in 0..200 {
        let stage = stage();
        let before = tree(stage.dir.path());
        make_home(&mut stage.disk(usize::MAX, false)).unwrap();
        prepare(&stage);
        let done = act(&mut stage.disk(left, false), &stage.journal);
        then(&stage, &before);
        if done {
            return left;
        }
    }
    panic!("it never ends");
}

fn is_new(stage: &Stage) {
    assert!(stage.whole().iter().all(|now| *now == Now::After));
}

fn apply_all(stage: &Stage) {
    apply(&mut stage.disk(usize::MAX, false), &stage.journal).unwrap();
    is_new(stage);
}

fn undo_all(stage: &Stage, before: &BTreeMap<String, (u32, Vec<u8>)>) {
    undo(&mut stage.disk(usize::MAX, false), &stage.journal).unwrap();
    assert_eq!(tree(stage.dir.path()), *before);
    assert_eq!(stage.record(), None);
}

#[test]
fn killed_at_any_step_of_apply_both_ways_lead_on() {
    for complete in [true, false] {
        let steps = at_every_step(
            |_| {},
            |disk, journal| apply(disk, journal).is_ok(),
            |stage, before| {
                let changed = stage.whole().contains(&Now::After);
                // The record is there before the first file has changed.
                assert!(!changed || stage.record().as_ref() == Some(&stage.journal));
                if complete {
                    apply_all(stage);
                }
                undo_all(stage, before);
            },
        );
        assert!(steps > 10, "{steps}");
    }
}

#[test]
fn killed_at_any_step_of_undo_both_ways_lead_on() {
    for back in [true, false] {
        let steps = at_every_step(
            apply_all,
            |disk, journal| undo(disk, journal).is_ok(),
            |stage, before| {
                stage.whole();
                if stage.record().is_none() {
                    assert_eq!(tree(stage.dir.path()), *before);
                }
                if back {
                    apply_all(stage);
                }
                undo_all(stage, before);
            },
        );
        assert!(steps > 10, "{steps}");
    }
}

#[test]
fn an_operation_that_fails_is_rolled_back() {
    for left in 0..200 {
        let stage = stage();
        let before = tree(stage.dir.path());
        make_home(&mut stage.disk(usize::MAX, false)).unwrap();
        match apply(&mut stage.disk(left, true), &stage.journal) {
            Ok(()) => return assert!(left > 10),
            // The record's own last step: nothing has begun, the next run finds it and goes on.
            Err(Trouble::RolledBack(_)) => assert_eq!(tree(stage.dir.path()), before, "{left}"),
            Err(trouble) => panic!("{left}: {trouble:?}"),
        }
    }
    panic!("it never ends");
}

#[test]
fn a_file_that_somebody_else_changed_is_left_alone() {
    let stage = stage();
    make_home(&mut stage.disk(usize::MAX, false)).unwrap();
    apply_all(&stage);
    fs::write(stage.dir.path().join("etc/default/grub"), "mine\n").unwrap();
    let failure = survey(&stage.disk(0, false), &stage.journal).unwrap_err();
    assert_eq!(failure.status(), 2);
    let text = failure.to_string();
    assert!(text.starts_with("/etc/default/grub: changed by somebody else"), "{text}");
    assert!(text.contains("/var/lib/vramwarden/applied/apu-ttm-limit.json"), "{text}");
}

#[test]
fn links_and_paths_stay_below_the_root() {
    use std::os::unix::fs::symlink;
    let stage = stage();
    let root = stage.dir.path();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "x").unwrap();
    symlink(outside.path(), root.join("etc/out")).unwrap();
    symlink("../../../../default/grub", root.join("etc/kernel/up")).unwrap();
    symlink("/etc/kernel/cmdline", root.join("etc/kernel/absolute")).unwrap();
    symlink("absolute", root.join("etc/kernel/twice")).unwrap();
    symlink("round", root.join("etc/kernel/round")).unwrap();
    let mut disk = Root::open(Some(root)).unwrap();
    assert_eq!(disk.look("/etc/out/f").unwrap(), Look::NoDirectory);
    assert!(disk.stage("/etc/out/f", "y", None).is_err());
    assert_eq!(disk.follow("/etc/kernel/twice").unwrap(), "/etc/kernel/cmdline");
    let up = disk.follow("/etc/kernel/up").unwrap();
    assert_eq!(disk.look(&up).unwrap(), Look::NoDirectory);
    assert!(disk.follow("/etc/kernel/round").is_err());
    // What is a link is never written through.
    assert!(disk.look("/etc/kernel/absolute").is_err());
    assert_eq!(fs::read(outside.path().join("f")).unwrap(), b"x");
}
