//! `doctor -- CMD`: the program runs as it would without us, and the answer tells how it ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Run, copy_of, finish, host, program, write};

/// A shell script under the doctor, on a recorded host without trouble.
fn script(options: &[&str], script: &str) -> Run {
    let root = host("rx7900xtx-24g");
    let mut command = program();
    command.arg("doctor").arg("--root").arg(root).args(options).args(["--", "sh", "-c", script]);
    finish(&mut command)
}

/// The same, still running, with pipes to everything.
fn running(options: &[&str], script: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramwarden"));
    command.arg("doctor").arg("--root").arg(host("rx7900xtx-24g")).args(options);
    command
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Polls for what must come.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Whether the process runs; a zombie does not.
fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn first_line(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    (line.trim().to_owned(), out)
}

#[test]
fn bytes_pass_unchanged_on_both_streams() {
    let folder = tempfile::tempdir().unwrap();
    // Every byte, in an order without pattern, more than a pipe holds.
    let mut state = 1_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(300_000)
    .collect();
    let file = folder.path().join("bytes");
    std::fs::write(&file, &bytes).unwrap();
    let report = folder.path().join("report.json");
    let done = program()
        .args(["doctor", "--no-host", "--format", "json", "--report"])
        .arg(&report)
        .args(["--", "sh", "-c", "cat \"$0\"; cat \"$0\" >&2"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(done.stdout == bytes && done.stderr.starts_with(&bytes));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["schema"], "vramwarden.doctor/1");
    assert_eq!((&report["run"]["exit_status"], &report["run"]["program"]), (&0.into(), &"sh".into()));
}

#[test]
fn stdin_is_the_programs() {
    let mut command = program();
    command.args(["doctor", "--no-host", "--", "cat"]).write_stdin("given");
    assert_eq!(finish(&mut command).out, "given");
}

#[test]
fn the_answer_says_how_it_ended_and_the_status_is_that_of_the_findings() {
    for (how, status) in [
        ("exit 0", "status 0 "),
        ("exit 1", "status 1 "),
        ("kill -SEGV $$", "status 139 (SIGSEGV)"),
        ("kill -KILL $$", "status 137 (SIGKILL)"),
        ("kill -ABRT $$", "status 134 (SIGABRT)"),
    ] {
        let run = script(&[], how);
        assert!(run.err.contains(status), "{how}: {run:?}");
        assert_eq!((run.status, run.out.as_str()), (0, ""), "{how}: no finding is an error");
    }
}

#[test]
fn what_it_printed_is_diagnosed_together_with_the_host() {
    let oom = "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 72404.13 MiB on device 0: cudaMalloc failed: out of memory";
    let load = "llama_model_load: error loading model: unable to allocate ROCm0 buffer";
    let run = script(&[], &format!("echo start; echo '{oom}' >&2; echo '{load}' >&2; exit 1"));
    assert_eq!((run.status, run.out.as_str()), (1, "start\n"), "{run:?}");
    assert!(run.err.contains("weights-exceed-pool") && run.err.contains("stderr:1"), "{run:?}");
}

#[test]
fn facts_may_come_from_a_sheet_and_logs_besides() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "sheet.json",
        r#"{"schema": "vramwarden.facts/1", "gpus": [{"gfx": "gfx1100", "apu": false, "vram_total_bytes": 25753026560}]}"#,
    );
    let sheet = folder.path().join("sheet.json");
    let mut command = program();
    command
        .args(["doctor", "--no-host", "--facts"])
        .arg(&sheet)
        .args(["--format", "json", "--", "sh", "-c", "exit 3"]);
    let run = finish(&mut command);
    let document: serde_json::Value = serde_json::from_str(&run.err).unwrap();
    assert_eq!(document["pools"][0]["ceilings"][0]["bytes"], 25_753_026_560_u64, "{document}");
    assert_eq!(document["run"]["exit_status"], 3);
}

#[test]
fn an_oom_kill_counts_only_if_it_came_meanwhile() {
    let copy = copy_of("rx7900xtx-24g");
    let events = "sys/fs/cgroup/a/memory.events";
    write(copy.path(), "proc/self/cgroup", "0::/a\n");
    write(copy.path(), "sys/fs/cgroup/a/memory.max", "8589934592\n");
    write(copy.path(), events, "oom 7\noom_kill 7\n");
    let run = |script: String| {
        let mut command = program();
        command.arg("doctor").arg("--root").arg(copy.path()).args(["--", "sh", "-c", &script]);
        finish(&mut command)
    };
    let before = run("exit 0".to_owned());
    assert!(before.status == 0 && !before.err.contains("cgroup-oom"), "{before:?}");
    let file = copy.path().join(events);
    let during = run(format!("printf 'oom 9\\noom_kill 8\\n' > {}; kill -KILL $$", file.display()));
    assert!(during.status == 1 && during.err.contains("cgroup-oom"), "{during:?}");
    assert!(during.err.contains("reached its memory limit 2 times, and 1 processes"), "{during:?}");
}

#[test]
fn silence_is_reported_once() {
    let run = script(&["--silence", "1"], "sleep 2.4");
    assert_eq!(run.err.matches("has printed nothing for").count(), 1, "{run:?}");
    let run = script(&["--silence", "60"], "echo x");
    assert!(!run.err.contains("has printed nothing"), "{run:?}");
}

#[test]
fn a_grandchild_that_holds_the_pipe_open_holds_nothing_up() {
    let start = Instant::now();
    let run = script(&[], "sleep 600 & echo $!; echo last");
    assert!(start.elapsed() < Duration::from_secs(20));
    let (pid, rest) = run.out.split_once('\n').unwrap();
    assert_eq!(rest, "last\n", "what was printed before the end is passed on");
    assert!(run.err.contains("still holds its output open"), "{run:?}");
    signal(pid.parse().unwrap(), "KILL");
}

#[test]
fn a_program_that_closes_its_streams_early_is_waited_for() {
    let run = script(&[], "exec >&- 2>&-; sleep 0.3; exit 1");
    assert!(run.err.contains("status 1 "), "{run:?}");
}

#[test]
fn output_without_end_takes_no_memory() {
    let mut child =
        running(&[], "yes 'ggml_cuda: cudaMalloc failed: out of memory, line after line' | head -c 64000000");
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    let counted = std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()).unwrap());
    let rest = std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()).unwrap());
    let pid = child.id();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = high.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(counted.join().unwrap(), 64_000_000);
    rest.join().unwrap();
    assert!(peak > 0 && peak < 48 << 10, "{peak} KiB");
}

#[test]
fn a_reader_that_goes_ends_the_program_as_without_us() {
    let mut child = running(&[], "echo $$; yes");
    let (_, out) = first_line(&mut child);
    drop(out);
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let status = child.wait().unwrap();
    assert!(err.contains("status 141 (SIGPIPE)") || err.contains("status 1 "), "{err}");
    assert_eq!(status.code(), Some(0), "{err}");
}

#[test]
fn term_and_int_reach_the_program_once_and_the_answer_still_comes() {
    for name in ["TERM", "INT"] {
        let trap = format!("trap 'echo got' {name}; echo $$; while :; do sleep 0.05; done");
        let mut child = running(&[], &trap);
        let (pid, mut out) = first_line(&mut child);
        signal(child.id(), name);
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "got\n");
        signal(pid.parse().unwrap(), "KILL");
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{name} came twice");
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        child.wait().unwrap();
        assert!(err.contains("status 137"), "{err}");
    }
}

#[test]
fn a_reader_that_reads_nothing_does_not_keep_us_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    // More than our stdout's pipe holds, less than that and the program's own.
    let mut child = running(&["--report", report.to_str().unwrap()], "sleep 0.3; head -c 100000 /dev/zero");
    let unread = child.stdout.take();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    until("the program has started", || std::fs::read_to_string(&children).is_ok_and(|c| !c.is_empty()));
    until("the program has ended", || std::fs::read_to_string(&children).is_ok_and(|c| c.is_empty()));
    assert!(child.try_wait().unwrap().is_none(), "it waits for the reader");
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(std::fs::read_to_string(report).unwrap().contains("status 0 "));
    drop(unread);
}

#[test]
fn a_program_that_ends_as_it_is_asked_to_is_in_no_trouble() {
    let mut child = running(&[], "echo $$; exec sleep 600");
    let (_, _out) = first_line(&mut child);
    signal(child.id(), "TERM");
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(err.contains("status 143 (SIGTERM)") && err.contains("Nothing is wrong"), "{err}");
}

#[test]
fn the_program_ends_with_us() {
    let mut child = running(&[], "echo $$; exec sleep 600");
    let (pid, _out) = first_line(&mut child);
    let pid: u32 = pid.parse().unwrap();
    assert!(alive(pid));
    signal(child.id(), "KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    until("the program has ended", || !alive(pid));
}

#[test]
fn a_program_that_cannot_be_started_is_bad_usage() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "plain", "x");
    let plain = folder.path().join("plain");
    for (name, says) in [(Path::new("/no/such"), "no such program"), (&plain, "may not be executed")] {
        let mut command = program();
        command.args(["doctor", "--no-host", "--"]).arg(name);
        let run = finish(&mut command);
        assert_eq!((run.status, run.err.lines().count(), run.out.as_str()), (2, 1, ""), "{run:?}");
        assert!(run.err.contains(says), "{run:?}");
    }
}

#[test]
fn bad_input_costs_no_run() {
    for options in [
        &["--facts", "/no/such"] as &[_],
        &["--log", "/no/such"],
        &["--log", "-"],
        &["--report", "/no/such/report"],
        &["--watch"],
    ] {
        let run = script(options, "echo started");
        assert!([2, 3].contains(&run.status) && run.out.is_empty(), "{options:?}: {run:?}");
        assert_eq!(run.err.lines().count(), 1, "{options:?}: {run:?}");
    }
}

#[test]
fn on_a_terminal_the_program_has_a_terminal() {
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
        return crate::common::skipped("script(1) is not installed");
    }
    let line = format!(
        "{} doctor --root {} -- sh -c 'test -t 1 && test -t 2 && printf \"both\\n\"'",
        env!("CARGO_BIN_EXE_vramwarden"),
        host("rx7900xtx-24g").display()
    );
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    let _ = stdin.write_all(b"");
    child.wait().unwrap();
    assert!(out.starts_with("both\r\n"), "{out:?}");
}
