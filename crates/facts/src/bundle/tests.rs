use std::io::{self, Read, Write};

use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::*;
use crate::host::{Answer, Host, Kind, Question, Refusal, Stat};
use crate::redact::{Identity, Redactor};

pub(super) fn small() -> Bundle {
    let mut bundle = Bundle {
        program: "vramwarden 0.1.0".to_owned(),
        created: "2026-01-02T03:04:05Z".to_owned(),
        facts_json: Some("{\"schema\": \"vramwarden.facts/1\"}\n".to_owned()),
        notes: vec!["a note".to_owned()],
        ..Bundle::default()
    };
    let long = format!("/sys/{}/mem_info_vram_total", ["devices/pci0000:00/0000:00:08.1"; 8].join("/"));
    let stat = Stat { kind: Kind::CharDevice, mode: 0o660, uid: 0, gid: 992, granted: None };
    for (path, question, answer) in [
        ("/proc/meminfo", Question::Read, Ok(Answer::Bytes(b"MemTotal: 131072 kB\n".to_vec()))),
        (&long, Question::Read, Ok(Answer::Bytes(b"536870912\n".to_vec()))),
        ("/sys/a/../b", Question::Read, Ok(Answer::Bytes(b"kept in the manifest\n".to_vec()))),
        ("/sys/empty", Question::Read, Ok(Answer::Bytes(Vec::new()))),
        (
            "/sys/class/drm",
            Question::List,
            Ok(Answer::Names(vec!["card0".to_owned(), "renderD128".to_owned()])),
        ),
        ("/sys/class/drm/card0/device", Question::Link, Ok(Answer::Target("../../0000:c5:00.0".to_owned()))),
        ("/dev/kfd", Question::Stat, Ok(Answer::Stat(stat))),
        ("/dev/kfd", Question::Read, Err(Refusal::Denied)),
        ("/sys/none", Question::Read, Err(Refusal::Absent)),
        ("/sys/bad", Question::Read, Err(Refusal::Failed("Input/output error".to_owned()))),
    ] {
        bundle.tape.answers.insert((path.to_owned(), question), answer);
    }
    bundle.add_log("kernel.log", b"amdgpu: 512M of VRAM memory ready\n".to_vec());
    bundle.add_log("/tmp/other/kernel.log", b"\xff\x00 not text\n".to_vec());
    bundle
}

pub(super) fn encoded(bundle: &Bundle) -> Vec<u8> {
    let mut bytes = Vec::new();
    bundle.encode(&mut bytes).unwrap();
    bytes
}

pub(super) fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let mut tar = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut tar).unwrap();
    tar
}

/// Takes `room` bytes, then the disk is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let n = buf.len().min(self.0);
        self.0 -= n;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_written_is_read() {
    let bundle = small();
    assert_eq!(bundle.logs[1].name, "2-kernel.log");
    let read = Bundle::decode(&*encoded(&bundle), "x.tgz").unwrap();
    assert_eq!(read, bundle);
    assert_eq!(encoded(&read), encoded(&bundle), "the same bundle is the same bytes");
    assert_eq!(read.tape.text("/proc/meminfo").as_deref(), Ok("MemTotal: 131072 kB"));
}

#[test]
fn people_can_look_into_it_with_tar() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.tgz");
    small().write(&path, false).unwrap();
    let Ok(out) = std::process::Command::new("tar").arg("tzf").arg(&path).output() else { return };
    let names = String::from_utf8(out.stdout).unwrap();
    let names: Vec<_> = names.lines().collect();
    assert_eq!(names[0], "manifest.json");
    assert!(names.contains(&"root/proc/meminfo") && names.contains(&"logs/kernel.log"));
    assert_eq!(*names.last().unwrap(), "facts.json");
}

#[test]
fn a_bundle_packed_again_by_tar_is_still_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.tgz");
    let bundle = small();
    bundle.write(&path, false).unwrap();
    for format in ["gnu", "pax"] {
        let script = format!(
            "mkdir {format} && tar xzf b.tgz -C {format} && cd {format} && \
             tar c --format={format} manifest.json root logs facts.json | gzip > ../{format}.tgz"
        );
        let done = std::process::Command::new("sh").arg("-c").arg(script).current_dir(dir.path()).output();
        if !done.is_ok_and(|out| out.status.success()) {
            continue;
        }
        let mut read = Bundle::read(&dir.path().join(format!("{format}.tgz"))).unwrap();
        read.logs.sort_by_key(|log| std::cmp::Reverse(log.name.clone()));
        assert_eq!(read, bundle, "{format}");
    }
}

#[test]
fn it_is_whole_or_not_there_whenever_the_writer_fails() {
    let bundle = small();
    let whole = encoded(&bundle).len();
    for room in 0..whole {
        assert!(bundle.encode(Full(room)).is_err(), "{room} of {whole}");
    }
    bundle.encode(Full(whole)).unwrap();
}

#[test]
fn it_takes_no_place_that_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("b.tgz");
    std::fs::write(&path, "mine").unwrap();
    let error = small().write(&path, false).unwrap_err();
    assert_eq!(error.fault, Fault::Input);
    assert_eq!(
        error.to_string(),
        format!("{}: exists; choose another name or allow overwriting", path.display())
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    small().write(&path, true).unwrap();
    assert_eq!(Bundle::read(&path).unwrap(), small());
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["b.tgz"]);
    for (place, overwrite) in [("/dev/full", true), ("/dev/null", true), ("/", true)] {
        let error = small().write(std::path::Path::new(place), overwrite).unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }
    let error = small().write(&dir.path().join("none/b.tgz"), false).unwrap_err();
    assert!(error.to_string().ends_with("create its directory or choose another place"), "{error}");
    assert_eq!(error.fault, Fault::Environment);
}

/// Needs the right to mount; says nothing elsewhere.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mount = |args: &[&str]| {
        let status = std::process::Command::new(args[0]).args(&args[1..]).arg(dir.path()).output();
        status.is_ok_and(|out| out.status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]) {
        return;
    }
    let mut bundle = small();
    let mut noise = 1u32;
    let bytes = (0..200_000).map(|_| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    });
    bundle.add_log("noise", bytes.collect());
    let error = bundle.write(&dir.path().join("b.tgz"), false);
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    let fits = small().write(&dir.path().join("c.tgz"), false);
    assert!(mount(&["umount"]));
    assert_eq!(left.len(), 0);
    let error = error.unwrap_err();
    assert!(
        error.to_string().contains("No space left on device; nothing was left behind; make room"),
        "{error}"
    );
    assert_eq!(error.fault, Fault::Environment);
    fits.unwrap();
}

#[test]
fn what_it_cannot_carry_is_left_out_with_a_note() {
    let mut bundle = small();
    let whole = bundle.clone();
    let mut add =
        |path: &str, question, answer| bundle.tape.answers.insert((path.to_owned(), question), Ok(answer));
    add("/sys/evil\u{1b}[2J", Question::Read, Answer::Bytes(b"x".to_vec()));
    add("/sys/list", Question::List, Answer::Names(vec!["a\nb".to_owned()]));
    let mut read = Bundle::decode(&*encoded(&bundle), "x").unwrap();
    assert!(read.notes.pop().unwrap().starts_with("2 answers have names"));
    assert_eq!(read, whole);
}

#[test]
fn a_host_with_more_processes_than_fit_is_still_a_bundle() {
    let mut bundle = small();
    for pid in 0..limits::ENTRIES {
        let key = (format!("/proc/{pid}/comm"), Question::Read);
        bundle.tape.answers.insert(key, Ok(Answer::Bytes(b"sh\n".to_vec())));
    }
    for pid in 0..limits::RECORDS {
        bundle.tape.answers.insert((format!("/proc/{pid}/fd"), Question::List), Err(Refusal::Denied));
    }
    let read = Bundle::decode(&*encoded(&bundle), "x").unwrap();
    assert!(read.notes.iter().any(|note| note.contains("did not fit")), "{:?}", read.notes);
    for (key, answer) in &small().tape.answers {
        assert_eq!(read.tape.answers.get(key), Some(answer));
    }
    let mut large = small();
    large.add_log("x", vec![0; usize::try_from(limits::LOG_BYTES).unwrap() + 1]);
    let error = large.write(std::path::Path::new("/nonexistent/x"), false).unwrap_err();
    assert!(error.to_string().contains("over the limit of 256 MiB"), "{error}");
}

fn answers() -> impl Strategy<Value = ((String, Question), Result<Answer, Refusal>)> {
    let path = "/(proc|sys|etc)(/[a-z0-9:._ é-]{1,12}){1,12}";
    let answer = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300).prop_map(|b| (Question::Read, Ok(Answer::Bytes(b)))),
        prop::collection::vec("[a-z0-9é:.-]{0,9}", 0..5).prop_map(|n| (Question::List, Ok(Answer::Names(n)))),
        "[a-z./]{0,40}".prop_map(|target| (Question::Link, Ok(Answer::Target(target)))),
        (0u32..0o7777, any::<u32>()).prop_map(|(mode, id)| {
            (
                Question::Stat,
                Ok(Answer::Stat(Stat { kind: Kind::File, mode, uid: id, gid: id, granted: None })),
            )
        }),
        Just((Question::Read, Err(Refusal::Denied))),
        "[ -~]{0,20}".prop_map(|why| (Question::List, Err(Refusal::Failed(why)))),
    ];
    (path, answer).prop_map(|(path, (question, answer))| ((path, question), answer)).prop_filter(
        "bytes under a path that only a manifest can hold must be text",
        |((path, question), answer)| {
            let plain = super::names::is_plain(&path[1..]);
            let text = matches!(answer, Ok(Answer::Bytes(bytes)) if std::str::from_utf8(bytes).is_ok());
            *question != Question::Read || plain || text || answer.is_err()
        },
    )
}

thread_local! {
    /// Compiling one costs more than a case.
    static REDACTOR: std::cell::RefCell<Redactor> = Redactor::new(Identity::default()).into();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bundle_comes_back_as_it_was_after_redaction(
        answers in prop::collection::btree_map(Just(()), answers(), 0..2),
        more in prop::collection::vec(answers(), 0..20),
        logs in prop::collection::vec(("[ -~]{0,20}", prop::collection::vec(any::<u8>(), 0..500)), 0..4),
        facts in prop::option::of("[ -~]{0,200}"),
    ) {
        let mut bundle = Bundle { facts_json: facts, ..small() };
        bundle.tape.answers.extend(answers.into_values().chain(more));
        for (name, bytes) in logs {
            bundle.add_log(&name, bytes);
        }
        let redacted = REDACTOR.with_borrow_mut(|redactor| bundle.redacted(redactor, &|_| false));
        prop_assert_eq!(Bundle::decode(&*encoded(&redacted), "x").unwrap(), redacted);
    }
}
