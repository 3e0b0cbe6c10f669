//! What is refused, and what the disk refuses: one line, and nothing changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::{ID, apply, differing, host, lay, tree, undo};
use crate::common::{Run, doctor, run, skipped};

fn refused(run: &Run, status: i32, words: &[&str]) {
    assert_eq!(run.status, status, "{run:?}");
    assert_eq!(run.err.lines().count(), 1, "{run:?}");
    for word in words {
        assert!(run.err.contains(word), "{word}: {run:?}");
    }
}

#[test]
fn usage() {
    let host = host();
    let root = host.path();
    refused(&doctor(root, &["--apply", "apu-ttm-limits"]), 2, &["did you mean apu-ttm-limit?"]);
    refused(&doctor(root, &["--undo", "apu-ttm-limits"]), 2, &["did you mean apu-ttm-limit?"]);
    refused(&run(["doctor", "--bundle", "x", "--apply", ID]), 2, &["--bundle"]);
    refused(&run(["doctor", "--no-host", "--log", "x", "--apply", ID]), 2, &["--no-host"]);
    refused(&doctor(root, &["--apply", ID, "--undo", ID]), 2, &[]);
    refused(&doctor(root, &["--yes"]), 2, &["--apply"]);
    refused(&doctor(root, &["--apply", ID]), 2, &["--yes"]);
    let none = doctor(root, &["--apply", "cgroup-oom", "--yes"]);
    assert_eq!((none.status, none.out.as_str()), (0, "nothing to apply: cgroup-oom is not found here\n"));
    let none = doctor(root, &["--undo", "cgroup-oom", "--yes"]);
    assert_eq!((none.status, none.out.as_str()), (0, "nothing to undo: cgroup-oom is not applied here\n"));
}

#[test]
fn a_file_of_another_form() {
    for grub in [
        "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet \\\n amdgpu.gttsize=131072\"\nGRUB_CMDLINE_LINUX=\"amdgpu.gttsize=131072\"\n",
        "GRUB_CMDLINE_LINUX=\"amdgpu.gttsize=131072\"\" quiet\"\n",
    ] {
        let host = host();
        lay(host.path(), &[("etc/default/grub", Some(grub))]);
        let before = tree(host.path());
        let run = apply(host.path());
        refused(&run, 2, &["/etc/default/grub: line 1", "nothing was changed"]);
        assert_eq!(tree(host.path()), before);
    }
}

#[test]
fn what_somebody_else_changed() {
    let host = host();
    let root = host.path();
    assert_eq!(apply(root).status, 0);
    lay(root, &[("etc/default/grub", Some("GRUB_CMDLINE_LINUX=\"mine\"\n"))]);
    let before = tree(root);
    let kept = format!("/var/lib/vramwarden/applied/{ID}.json");
    refused(&undo(root), 2, &["/etc/default/grub: changed by somebody else", &kept]);
    refused(&apply(root), 2, &["/etc/default/grub: changed by somebody else", &kept]);
    assert_eq!(tree(root), before);
}

#[test]
fn a_linked_file_is_changed_where_it_lies() {
    let host = host();
    let root = host.path();
    fs::create_dir(root.join("etc/dotfiles")).unwrap();
    fs::rename(root.join("etc/default/grub"), root.join("etc/dotfiles/grub")).unwrap();
    symlink("/etc/dotfiles/grub", root.join("etc/default/grub")).unwrap();
    let before = tree(root);
    let run = apply(root);
    assert_eq!(run.status, 0, "{run:?}");
    assert!(run.out.contains("/etc/default/grub is a link to /etc/dotfiles/grub."), "{run:?}");
    let changed = differing(&before, &tree(root));
    assert_eq!(changed, ["etc/dotfiles/grub", "etc/modprobe.d/vramwarden-ttm.conf"]);
    assert_eq!(undo(root).status, 0);
    assert_eq!(tree(root), before);
}

#[test]
fn a_missing_modprobe_d_is_made_and_taken_away_again() {
    let host = host();
    let root = host.path();
    fs::remove_dir_all(root.join("etc/modprobe.d")).unwrap();
    let before = tree(root);
    let run = apply(root);
    assert_eq!(run.status, 0, "{run:?}");
    assert!(root.join("etc/modprobe.d/vramwarden-ttm.conf").exists());
    assert_eq!(undo(root).status, 0);
    assert_eq!(differing(&before, &tree(root)), [""; 0]);
}

#[test]
fn mode_and_owner_are_kept() {
    let host = host();
    let root = host.path();
    let grub = root.join("etc/default/grub");
    fs::set_permissions(&grub, fs::Permissions::from_mode(0o640)).unwrap();
    // As root only; else the owner stays this user.
    let _ = std::os::unix::fs::chown(&grub, Some(7), Some(8));
    let before = tree(root);
    assert_eq!(apply(root).status, 0);
    let after = tree(root);
    let (now, was) = (&after["etc/default/grub"], &before["etc/default/grub"]);
    assert_eq!((now.0, now.1, now.2), (was.0, was.1, was.2));
    assert_eq!(after["etc/modprobe.d/vramwarden-ttm.conf"].0 & 0o7777, 0o644);
    assert_eq!(undo(root).status, 0);
    assert_eq!(tree(root), before);
}

#[test]
fn another_run_holds_the_lock() {
    let host = host();
    let root = host.path();
    fs::create_dir(root.join("var/lib/vramwarden")).unwrap();
    let lock = fs::File::create(root.join("var/lib/vramwarden/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let before = tree(root);
    refused(&apply(root), 3, &["/var/lib/vramwarden/lock: another vramwarden"]);
    assert_eq!(tree(root), before);
    drop(lock);
    assert_eq!(apply(root).status, 0);
}

#[test]
fn a_user_who_may_not() {
    if !rustix::process::geteuid().is_root() {
        return skipped("what a user who may not is told: only root can become one");
    }
    let host = host();
    fs::set_permissions(host.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = host.path().join("vramwarden");
    fs::copy(env!("CARGO_BIN_EXE_vramwarden"), &program).unwrap();
    let before = tree(host.path());
    let run = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).arg("doctor");
        crate::common::finish(assert_cmd::Command::from_std(command).args(args))
    };
    let root = host.path().to_str().unwrap();
    refused(&run(&["--root", root, "--apply", ID, "--yes"]), 3, &["sudo"]);
    refused(&run(&["--undo", ID, "--yes"]), 3, &["sudo vramwarden doctor --undo"]);
    assert_eq!(tree(host.path()), before);
}

/// Runs apply in a mount namespace in which `prepare` (a shell's words, `$R` the root) has run; what it printed last
/// is the status.
fn in_namespace(root: &Path, prepare: &str) -> Option<Run> {
    let script = format!(
        "R={}; {prepare} || exit 99; {} doctor --root $R --apply {ID} --yes; s=$?; test -z \"$(find $R -name '*.new')\" || s=98; exit $s",
        root.display(),
        env!("CARGO_BIN_EXE_vramwarden"),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]);
    let run = crate::common::finish(&mut assert_cmd::Command::from_std(command));
    (run.status != 99 && !run.err.contains("unshare")).then_some(run)
}

#[test]
fn a_disk_that_cannot_be_written() {
    let full = "mount -t tmpfs -o size=64k t $R/etc/modprobe.d && dd if=/dev/zero of=$R/etc/modprobe.d/fill bs=4k 2>/dev/null; \
                test -s $R/etc/modprobe.d/fill";
    let cases = [
        ("mount --bind $R/etc $R/etc && mount -o remount,bind,ro $R/etc", "ead-only file system"),
        ("mount --bind $R/var $R/var && mount -o remount,bind,ro $R/var", "ead-only file system"),
        (full, "o space left on device"),
    ];
    for (prepare, why) in cases {
        let host = host();
        let before = tree(host.path());
        let Some(run) = in_namespace(host.path(), prepare) else {
            return skipped("a full and a read-only disk: no mount namespace can be made here");
        };
        refused(&run, 3, &[why]);
        assert_eq!(differing(&before, &tree(host.path())), [""; 0], "{prepare}");
        let record = host.path().join(format!("var/lib/vramwarden/applied/{ID}.json"));
        assert!(!record.exists(), "{prepare}");
    }
}
