//! What is not what it should be: one line that says what, where and the mend; the contract's status; nothing on stdout.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flate2::{Compression, write::GzEncoder};
use tar::EntryType;

use crate::common::{Run, copy_of, doctor, finish, host, program, run, skipped, write};

const BIN: &str = env!("CARGO_BIN_EXE_vramwarden");

/// A directory to run in, so that messages name short paths.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        write(self.0.path(), name, bytes);
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Run {
        finish(program().current_dir(self.0.path()).args(args))
    }

    /// Runs, and expects this one line and status.
    #[track_caller]
    fn refuses(&self, args: &[&str], status: i32, line: &str) {
        refused(&self.run(args), status, line);
    }
}

#[track_caller]
fn refused(run: &Run, status: i32, line: &str) {
    assert_eq!((run.err.as_str(), run.status), (format!("vramwarden: {line}\n").as_str(), status));
    assert_eq!(run.out, "");
}

const NOTHING: &str = "Nothing known is wrong in what was given, and no AMD GPU is told of in it.\n";

#[test]
fn empty_binary_and_broken_logs_are_logs() {
    let place = Place::new();
    place.file("empty.log", "");
    place.file("broken.log", b"caf\xe9 \xff\xfe\xc3(\n");
    // Deterministic noise with every byte value.
    let mut seed = 1_u32;
    let mut noise = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()[0]
    };
    place.file("binary.log", (0..50_000).map(|_| noise()).collect::<Vec<u8>>());
    for log in ["empty.log", "broken.log"] {
        let run = place.run(&["doctor", "--no-host", "--log", log]);
        assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (0, NOTHING, ""), "{log}");
    }
    let run = place.run(&["doctor", "--no-host", "--log", "binary.log"]);
    let in_part = "Nothing known is wrong in what could be read; see the notes above for what could not.\n";
    assert_eq!((run.status, run.out.as_str()), (0, in_part));
    let note = "vramwarden: binary.log: this looks like a binary file; its text was read all the same\n";
    assert_eq!(run.err, note);
}

#[test]
fn a_broken_byte_does_not_hide_the_line_it_stands_in() {
    let place = Place::new();
    place.file("run.log", b"\xff\xfe caf\xe9\namdgpu 0000:c5:00.0: amdgpu: 512M of VRAM memory ready\n");
    let run = place.run(&["doctor", "--no-host", "--log", "run.log", "--format", "json"]);
    assert_eq!(run.json()["pools"][0]["device"], "0000:c5:00.0");
}

#[test]
fn a_log_that_is_none() {
    let place = Place::new();
    std::fs::create_dir(place.0.path().join("dir")).unwrap();
    place.refuses(&["doctor", "--no-host", "--log", "dir"], 2, "dir: a directory; name a file in it");
    let missing = "nope.log: no such file; check the path, or use - for stdin";
    place.refuses(&["doctor", "--no-host", "--log", "nope.log"], 2, missing);
    place.refuses(&["doctor", "--no-host", "--facts", "nope.log"], 2, missing);
    place.refuses(&["doctor", "--bundle", "nope.log"], 2, missing);
    place.refuses(&["doctor", "--bundle", "dir"], 2, "dir: a directory; name a file in it");
    place.refuses(&["bundle", "x.tgz", "--log", "nope.log"], 2, missing);
    assert!(!place.0.path().join("x.tgz").exists());
}

#[test]
fn a_file_that_may_not_be_read_is_the_environments_fault() {
    let place = Place::new();
    let file = place.file("secret.log", "x\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::set_permissions(place.0.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let line = "secret.log: permission denied; run as a user who may read it";
    for option in ["--log", "--facts", "--bundle"] {
        let mut args = vec!["doctor", option, "secret.log"];
        args.extend((option != "--bundle").then_some("--no-host"));
        let run = if std::fs::File::open(&file).is_err() {
            place.run(&args)
        } else {
            // Root reads everything: as nobody, where the program can be reached by nobody.
            let mut nobody = Command::new("setpriv");
            nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", BIN]);
            nobody.env_clear().current_dir(place.0.path()).args(&args).stdin(Stdio::null());
            match nobody.output() {
                Ok(done) if done.status.code().is_some_and(|code| code < 125) => Run {
                    status: done.status.code().unwrap(),
                    out: String::from_utf8(done.stdout).unwrap(),
                    err: String::from_utf8(done.stderr).unwrap(),
                },
                other => return skipped(&format!("an unreadable file, as root without setpriv: {other:?}")),
            }
        };
        refused(&run, 3, line);
    }
}

#[test]
fn a_sheet_that_is_none() {
    let place = Place::new();
    place.file("wrong.json", "{\n \"memory\": {\"total_bytes\": \"96 GiB\"}\n}\n");
    place.file("later.json", "{\"schema\": \"vramwarden.facts/9\"}");
    place.file("text.json", "Hello\n");
    place.file("cut.json", "{\"gpus\": [");
    place.file("latin.json", b"{\"note\": \"caf\xe9\"}");
    place.file("big.json", vec![b' '; 17 << 20]);
    let nested = "[".repeat(100_000);
    place.file("deep.json", format!("{{\"gpus\": {nested}"));
    place.file("deep-key.json", "{\"gpus\":".repeat(100_000));
    for (name, line) in [
        (
            "wrong.json",
            "wrong.json:2:35: memory.total_bytes: invalid type: string \"96 GiB\", expected u64 (sizes are whole bytes, times are seconds)",
        ),
        (
            "later.json",
            "later.json: schema is \"vramwarden.facts/9\", and this build reads \"vramwarden.facts/1\"; write the sheet anew or use the matching version",
        ),
        (
            "text.json",
            "text.json:1:1: not valid JSON: expected value; a sheet is one JSON object of schema vramwarden.facts/1",
        ),
        (
            "cut.json",
            "cut.json:1:10: not valid JSON: EOF while parsing a list; a sheet is one JSON object of schema vramwarden.facts/1",
        ),
        ("latin.json", "latin.json: not UTF-8 text at byte 13; a facts sheet is JSON"),
        ("big.json", "big.json: larger than 16 MiB; a facts sheet is a few KiB"),
    ] {
        place.refuses(&["doctor", "--no-host", "--facts", name], 2, line);
    }
    for name in ["deep.json", "deep-key.json"] {
        let run = place.run(&["doctor", "--no-host", "--facts", name]);
        assert_eq!((run.status, run.out.as_str(), run.err.lines().count()), (2, "", 1), "{}", run.err);
        assert!(run.err.starts_with(&format!("vramwarden: {name}:1:")), "{}", run.err);
    }
}

#[test]
fn what_is_unknown_in_a_sheet_is_passed_over_with_a_warning() {
    let place = Place::new();
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    place.file(
        "new.json",
        format!(r#"{{"schema": "vramwarden.facts/1", "note": "fine", "gpus": [{{"gfx": "gfx1100", "shade": 2}}], "deep": {nested}}}"#),
    );
    let run = place.run(&["doctor", "--no-host", "--facts", "new.json", "--format", "json"]);
    assert_eq!(run.status, 0);
    assert_eq!(
        run.err,
        "vramwarden: new.json: key gpus[0].shade is not known and was ignored\n\
         vramwarden: new.json: key deep is not known and was ignored\n"
    );
    assert_eq!(run.json()["pools"][0]["device"], "gpu0");
}

#[test]
fn a_root_that_is_none() {
    let place = Place::new();
    place.file("file", "");
    std::fs::create_dir(place.0.path().join("empty")).unwrap();
    for command in [&["doctor"][..], &["bundle", "x.tgz"]] {
        for (root, line) in [
            ("empty", "empty: holds neither proc nor sys; --root takes a directory that stands for /"),
            ("file", "file: Not a directory; --root takes a directory that holds the host's proc and sys"),
            (
                "nope",
                "nope: No such file or directory; --root takes a directory that holds the host's proc and sys",
            ),
        ] {
            place.refuses(&[command, &["--root", root]].concat(), 2, line);
        }
    }
    assert!(!place.0.path().join("x.tgz").exists());
}

#[test]
fn bad_usage_is_one_line_and_names_the_mend() {
    let place = Place::new();
    for (args, line) in [
        (
            &["doctor", "--no-host"][..],
            "--no-host: nothing else is given to look at; give a log (--log), a sheet or a bundle",
        ),
        (
            &["doctor", "--explain", "apu-ttm-limt"],
            "--explain: no finding is named \"apu-ttm-limt\"; did you mean apu-ttm-limit?",
        ),
        (
            &["doctor", "--no-host", "--root", "x"],
            "the argument '--no-host' cannot be used with '--root <DIR>'; see vramwarden --help",
        ),
        (
            &["doctor", "--root", "x", "--bundle", "y"],
            "the argument '--root <DIR>' cannot be used with '--bundle <FILE.tgz>'; see vramwarden --help",
        ),
        (
            &["doctor", "--no-host", "--with-host"],
            "the argument '--no-host' cannot be used with '--with-host'; see vramwarden --help",
        ),
        (
            &["doctor", "--format", "xml"],
            "invalid value 'xml' for '--format <FORMAT>'; [possible values: plain, json, markdown]; see vramwarden --help",
        ),
        (
            &["doctor", "--fromat", "json"],
            "unexpected argument '--fromat' found; tip: a similar argument exists: '--format'; see vramwarden --help",
        ),
        (
            &["doctr"],
            "unrecognized subcommand 'doctr'; tip: a similar subcommand exists: 'doctor'; see vramwarden --help",
        ),
        (
            &["bundle"],
            "the following required arguments were not provided: <FILE.tgz>; see vramwarden --help",
        ),
    ] {
        place.refuses(args, 2, line);
    }
    let run = place.run(&["doctor", "--explain", "zzz"]);
    assert_eq!((run.status, run.out.as_str(), run.err.lines().count()), (2, "", 1));
    assert!(
        run.err.contains("no finding is named \"zzz\"; the ids are ") && run.err.contains("apu-ttm-limit")
    );
}

#[test]
fn help_and_an_explanation_are_answers() {
    for args in
        [&["--help"][..], &["doctor", "--help"], &["--version"], &["doctor", "--explain", "apu-ttm-limit"]]
    {
        let run = run(args);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{args:?}");
        assert!(!run.out.is_empty());
    }
}

const MANIFEST: &[u8] = br#"{"schema": "vramwarden.bundle/1", "program": "x", "created": "y"}"#;

/// An archive's members, without the checks of a tar library.
fn archive(members: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    for (name, kind, bytes) in members {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        gzip.write_all(header.as_bytes()).unwrap();
        gzip.write_all(bytes).unwrap();
        gzip.write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()]).unwrap();
    }
    gzip.write_all(&[0; 1024]).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_bundle_that_somebody_made_to_do_harm() {
    let place = Place::new();
    let again = "make it again with `vramwarden bundle FILE.tgz`";
    let manifest = ("manifest.json", EntryType::Regular, MANIFEST);
    let whole = archive(&[manifest, ("root/proc/meminfo", EntryType::Regular, &[b'x'; 4000])]);
    place.file("text.tgz", "no gzip at all\n");
    place.file("cut.tgz", &whole[..whole.len() / 2]);
    for (name, member) in [
        ("absolute.tgz", ("/etc/passwd", EntryType::Regular, &b"x"[..])),
        ("up.tgz", ("root/../../x", EntryType::Regular, b"x")),
        ("link.tgz", ("root/x", EntryType::Symlink, b"")),
        ("device.tgz", ("root/x", EntryType::Char, b"")),
        ("twice.tgz", ("manifest.json", EntryType::Regular, MANIFEST)),
    ] {
        place.file(name, archive(&[manifest, member]));
    }
    place.file("foreign.tgz", archive(&[("README", EntryType::Regular, b"x")]));
    // 68 MiB of zeros in less than 100 KiB.
    let zeros = vec![0_u8; 4 << 20];
    let names: Vec<String> = (0..17).map(|n| format!("root/{n}")).collect();
    let mut members = vec![manifest];
    members.extend(names.iter().map(|name| (name.as_str(), EntryType::Regular, zeros.as_slice())));
    place.file("bomb.tgz", archive(&members));
    for (name, what) in [
        (
            "text.tgz",
            "is not gzip-compressed, so it is no bundle; give a file that `vramwarden bundle` wrote"
                .to_owned(),
        ),
        ("cut.tgz", format!("is cut short; copy it again, or {again}")),
        ("absolute.tgz", format!("member \"/etc/passwd\" is no plain path below the bundle; {again}")),
        ("up.tgz", format!("member \"root/../../x\" is no plain path below the bundle; {again}")),
        ("link.tgz", format!("member \"root/x\" is a symbolic link; {again}")),
        ("device.tgz", format!("member \"root/x\" is a device; {again}")),
        ("twice.tgz", format!("member \"manifest.json\" is there twice; {again}")),
        ("foreign.tgz", format!("does not begin with manifest.json, so it is no bundle; {again}")),
        ("bomb.tgz", format!("root/ is over the limit of 64 MiB; {again}")),
    ] {
        place.refuses(&["doctor", "--bundle", name], 2, &format!("{name}: {what}"));
    }
    let names: Vec<_> = std::fs::read_dir(place.0.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(names.iter().all(|path| path.extension().is_some_and(|e| e == "tgz")), "{names:?}");
}

#[test]
fn a_place_that_cannot_take_a_bundle() {
    let place = Place::new();
    let root = host("rx7900xtx-24g");
    let root = root.to_str().unwrap();
    place.file("there.tgz", "mine");
    std::fs::create_dir(place.0.path().join("dir")).unwrap();
    let taken = "is there and is no regular file; choose a path where no device, directory or link is";
    for (file, status, line) in [
        ("there.tgz", 2, "there.tgz: exists; choose another name, or overwrite it with --force".to_owned()),
        ("dir", 2, format!("dir: {taken}")),
        ("/dev/full", 2, format!("/dev/full: {taken}")),
        (
            "no/x.tgz",
            3,
            "no/x.tgz: cannot be written: No such file or directory; create its directory or choose another place"
                .to_owned(),
        ),
    ] {
        place.refuses(&["bundle", "--root", root, file], status, &line);
    }
    assert_eq!(std::fs::read(place.0.path().join("there.tgz")).unwrap(), b"mine");
    let forced = place.run(&["bundle", "--root", root, "--force", "there.tgz"]);
    assert_eq!((forced.status, forced.err.as_str()), (0, ""));
    assert!(std::fs::read(place.0.path().join("there.tgz")).unwrap().starts_with(&[0x1f, 0x8b]));
}

/// A file system of 64 KiB, in a mount namespace of its own, so that nothing of it outlives the test.
#[test]
fn a_full_disk_leaves_no_part_of_a_bundle_behind() {
    let place = Place::new();
    let small = place.0.path().join("small");
    std::fs::create_dir(&small).unwrap();
    // Noise, so that compression does not save it.
    let mut seed = 7_u64;
    let noise: String = (0..4_000)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("ring buffer word {:x} end\n", seed >> 20)
        })
        .collect();
    place.file("noise.log", noise.repeat(2));
    let root = host("rx7900xtx-24g");
    let script = format!(
        "mount -t tmpfs -o size=64k tmpfs small || exit 99
         {BIN} bundle --root {} --log noise.log small/host.tgz
         status=$?
         test -z \"$(ls -A small)\" || {{ echo left behind: $(ls -A small); exit 98; }}
         exit $status",
        root.display()
    );
    let done = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .current_dir(place.0.path())
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output();
    let done = match done {
        Ok(done) if done.status.code() != Some(99) && done.status.code() != Some(1) => done,
        other => return skipped(&format!("a full disk: no mount namespace here: {other:?}")),
    };
    let run = Run {
        status: done.status.code().unwrap(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    };
    let line = "small/host.tgz: cannot be written: No space left on device; nothing was left behind; make room or choose another place";
    refused(&run, 3, line);
}

/// Runs `doctor` in a shell, for what happens around it.
fn shell(script: &str, root: &Path) -> (Option<i32>, String, String) {
    let done = Command::new("sh")
        .args(["-c", script, BIN])
        .arg(root)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    // The status of doctor itself, by way of stderr: that of a pipe is its last command's.
    let script =
        r#"{ "$0" doctor --root "$1" -v --format json; echo "status $?" >&2; } | head -c1 >/dev/null"#;
    let (_, _, err) = shell(script, &host("two-gpus"));
    assert_eq!(err, "status 0\n");
    // Nobody reads at all.
    let script = r#"{ sleep 0.2; "$0" doctor --root "$1"; echo "status $?" >&2; } | true"#;
    let (_, _, err) = shell(script, &host("two-gpus"));
    assert_eq!(err, "status 0\n");
}

#[test]
fn a_full_stdout_is_one_and_a_full_or_closed_stderr_is_none() {
    let (status, _, err) = shell(r#""$0" doctor --root "$1" >/dev/full"#, &host("two-gpus"));
    let line = "vramwarden: stdout: No space left on device; the answer could not be written\n";
    assert_eq!((status, err.as_str()), (Some(3), line));
    for to in [">/dev/full", ">&-"] {
        let script = format!(r#"printf '{{"x": 1}}' | "$0" doctor --root "$1" --facts - 2{to}"#);
        let (status, out, _) = shell(&script, &host("two-gpus"));
        assert_eq!(status, Some(0), "stderr {to}");
        assert!(out.contains("0000:03:00.0"), "stderr {to}");
        let (status, out, _) = shell(&format!(r#""$0" doctor --log /nonexistent 2{to}"#), &host("two-gpus"));
        assert_eq!((status, out.as_str()), (Some(2), ""), "stderr {to}");
    }
}

#[test]
fn stdin_is_a_file_like_any_other() {
    let log = "amdgpu 0000:c5:00.0: amdgpu: 512M of VRAM memory ready\n";
    let run =
        finish(program().args(["doctor", "--no-host", "--format", "json", "--log", "-"]).write_stdin(log));
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    assert_eq!(run.json()["pools"][0]["device"], "0000:c5:00.0");

    let sheet =
        r#"{"schema": "vramwarden.facts/1", "gpus": [{"gfx": "gfx1100", "vram_total_bytes": 25753026560}]}"#;
    let run = finish(
        program().args(["doctor", "--no-host", "--format", "json", "--facts", "-"]).write_stdin(sheet),
    );
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    assert_eq!(run.json()["pools"][0]["total_bytes"], 25_753_026_560_u64);

    let empty = finish(program().args(["doctor", "--no-host", "--facts", "-"]).write_stdin(""));
    let line = "-:1:1: not valid JSON: EOF while parsing a value; a sheet is one JSON object of schema vramwarden.facts/1";
    assert_eq!((empty.status, empty.out.as_str()), (2, ""));
    assert!(empty.err.replace("-:1:0", "-:1:1").contains(line), "{}", empty.err);
}

#[test]
fn the_same_line_a_hundred_thousand_times_is_told_once() {
    let place = Place::new();
    let line =
        "amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=302899, emitted seq=302901\n";
    place.file("run.log", line.repeat(100_000));
    let root = host("rx7900xtx-24g");
    let run =
        place.run(&["doctor", "--root", root.to_str().unwrap(), "--log", "run.log", "--format", "json"]);
    assert!(run.out.len() < 20_000, "{} bytes", run.out.len());
    let told = run.out.matches("ring gfx_0.0.0 timeout").count();
    assert!(told <= 3, "told {told} times");
    assert!(run.out.contains("run.log:1 (100000 times)"), "{}", run.out);
}

#[test]
fn a_host_of_broken_files_is_still_answered() {
    let copy = copy_of("rx7900xtx-24g");
    for file in ["proc/meminfo", "proc/cmdline", "proc/modules", "proc/self/status", "etc/os-release"] {
        write(copy.path(), file, b"\xff\xfe\x00\x1b[31m nonsense = : \n\n999999999999999999999999 kB\n");
    }
    for format in ["plain", "json", "markdown"] {
        let run = doctor(copy.path(), &["-v", "--format", format]);
        assert!(matches!(run.status, 0 | 1), "{run:?}");
        assert!(!run.out.contains('\x1b') && !run.out.contains('\0'), "{}", run.out);
    }
}
