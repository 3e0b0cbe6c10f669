//! `doctor --watch`: speaks once of what is new, and is silent otherwise.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::common::{copy_of, finish, program, write};

const OOM: &str = "Out of memory: Killed process 4242 (llama-server) total-vm:140000000kB, anon-rss:1200000kB, file-rss:0kB\n";
const OTHER: &str = "OSError: [Errno 28] No space left on device\n";
const CGROUP: &str = "Memory cgroup out of memory: Killed process 3331821 (git) anon-rss:12329416kB\n";

struct Watching {
    child: Child,
    lines: Receiver<String>,
    _errors: Receiver<String>,
    root: tempfile::TempDir,
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

impl Watching {
    /// Watches `log` in NDJSON on a copy of a sound host; returns once it watches.
    fn start(log: &Path, more: &[&str]) -> Self {
        let root = copy_of("rx7900xtx-24g");
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramwarden"))
            .args(["doctor", "--watch", "--every", "1", "--format", "json", "--root"])
            .arg(root.path())
            .arg("--log")
            .arg(log)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = lines(child.stdout.take().unwrap());
        let errors = lines(child.stderr.take().unwrap());
        let header = errors.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(header.contains("watching ") && header.contains("Nothing is wrong now"), "{header}");
        Self { child, lines: out, _errors: errors, root }
    }

    fn event(&self) -> (String, String) {
        let line = self.lines.recv_timeout(Duration::from_secs(20)).expect("it speaks");
        let event: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(event["schema"], "vramwarden.watch/1");
        assert!(event["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&event["event"]), text(&event["finding"]["id"]))
    }

    fn expect(&self, event: &str, id: &str) {
        assert_eq!(self.event(), (event.to_owned(), id.to_owned()));
    }

    /// Ends it as asked; nothing more was said.
    fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(self.lines.iter().collect::<Vec<_>>(), Vec::<String>::new());
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn append(path: &Path, text: &str) {
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn log() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    (folder, path)
}

#[test]
fn it_speaks_once_of_a_line_and_not_of_what_was_there() {
    let (_folder, path) = log();
    append(&path, OTHER);
    let watching = Watching::start(&path, &[]);
    append(&path, "loading\n");
    append(&path, OOM);
    watching.expect("appeared", "host-memory-exhausted");
    // The same again says nothing; another one says something, so the first has been looked at before.
    append(&path, OOM);
    append(&path, OTHER);
    watching.expect("appeared", "disk-full");
    watching.end();
}

#[test]
fn a_rotated_a_truncated_and_a_late_log_are_followed() {
    let (folder, path) = log();
    let watching = Watching::start(&path, &[]);
    append(&path, "a first line that makes the file long enough to be shorter afterwards\n");
    append(&path, OOM);
    watching.expect("appeared", "host-memory-exhausted");
    std::fs::rename(&path, folder.path().join("server.log.1")).unwrap();
    append(&path, OTHER);
    watching.expect("appeared", "disk-full");
    std::fs::write(&path, "").unwrap();
    append(&path, CGROUP);
    watching.expect("appeared", "cgroup-oom");
    watching.end();
}

#[test]
fn what_the_host_shows_appears_and_is_gone() {
    let (_folder, path) = log();
    let watching = Watching::start(&path, &[]);
    let meminfo = std::fs::read_to_string(watching.root.path().join("proc/meminfo")).unwrap();
    let low: String = meminfo
        .lines()
        .map(|line| {
            if line.starts_with("MemAvailable:") {
                "MemAvailable: 300000 kB\n".into()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    write(watching.root.path(), "proc/meminfo.new", low);
    let rename = |from: &str| {
        let root = watching.root.path();
        std::fs::rename(root.join(from), root.join("proc/meminfo")).unwrap();
    };
    rename("proc/meminfo.new");
    watching.expect("appeared", "host-memory-exhausted");
    write(watching.root.path(), "proc/meminfo.old", meminfo);
    rename("proc/meminfo.old");
    watching.expect("gone", "host-memory-exhausted");
    watching.end();
}

#[test]
fn once_found_ends_with_the_first_error() {
    let (_folder, path) = log();
    let mut watching = Watching::start(&path, &["--once-found"]);
    append(&path, OOM);
    watching.expect("appeared", "host-memory-exhausted");
    assert_eq!(watching.child.wait().unwrap().code(), Some(1));
}

#[test]
fn plain_speech_begins_with_the_time_and_the_verdict() {
    let (_folder, path) = log();
    let root = copy_of("rx7900xtx-24g");
    let mut child = Command::new(env!("CARGO_BIN_EXE_vramwarden"))
        .args(["doctor", "--watch", "--once-found", "--root"])
        .arg(root.path())
        .arg("--log")
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = lines(child.stdout.take().unwrap());
    let header = out.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(header.contains("(not there yet)") && header.contains("(every 5 s)"), "{header}");
    append(&path, OOM);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let said: Vec<String> = out.iter().collect();
    assert!(
        said[0].ends_with("Z The host ran out of RAM, and llama-server (pid 4242) was killed for it."),
        "{said:?}"
    );
    assert!(said.iter().any(|line| line.contains("server.log:1")), "{said:?}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    for (options, says) in [
        (&["--format", "markdown"] as &[_], "not markdown"),
        (&["--log", "-"], "stdin cannot be followed"),
        (&["--log", "/"], "a directory"),
        (&["--no-host"], "nothing is left to watch"),
        (&["--every", "0"], "0 is not in"),
    ] {
        let run = finish(program().args(["doctor", "--watch"]).args(options));
        assert_eq!((run.status, run.err.lines().count()), (2, 1), "{run:?}");
        assert!(run.err.contains(says), "{run:?}");
    }
}
