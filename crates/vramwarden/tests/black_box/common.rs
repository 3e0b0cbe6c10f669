//! Running the program, and the hosts it is run on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of a recorded host.
pub fn host(name: &str) -> PathBuf {
    repository().join("tests/hosts").join(name)
}

/// Sorted folders of `directory`, with their names; empty where there is no such directory.
pub fn folders(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut folders: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .collect();
    folders.sort();
    folders
}

/// Sorted files of `directory` whose names end in `.extension`; empty where there is no such directory.
pub fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|have| have == extension))
        .collect();
    files.sort();
    files
}

/// Every host in `tests/hosts`.
pub fn hosts() -> Vec<(String, PathBuf)> {
    let hosts = folders(&repository().join("tests/hosts"));
    assert!(!hosts.is_empty(), "no recorded hosts");
    hosts
}

/// How a run ended.
#[derive(Debug)]
pub struct Run {
    /// Exit status; 128 + N after a signal.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// The document on stdout.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The program with a small, fixed environment.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramwarden"));
    command.env_clear().env("PATH", "/usr/bin:/bin").timeout(Duration::from_secs(60));
    command
}

/// Runs the program to its end.
pub fn finish(command: &mut Command) -> Run {
    use std::os::unix::process::ExitStatusExt;
    let done = command.output().unwrap();
    let status = done.status.code().or(done.status.signal().map(|n| 128 + n)).unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let run = Run { status, out: text(done.stdout), err: text(done.stderr) };
    assert!(!run.err.contains("panicked"), "{}", run.err);
    run
}

/// Runs the program with these arguments.
pub fn run<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> Run {
    finish(program().args(args))
}

/// `doctor --root ROOT` with more arguments.
pub fn doctor(root: &Path, more: &[&str]) -> Run {
    finish(program().arg("doctor").arg("--root").arg(root).args(more))
}

/// A copy of a recorded host, with its links, to change.
pub fn copy_of(name: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let status =
        std::process::Command::new("cp").arg("-a").arg(host(name).join(".")).arg(copy.path()).status();
    assert!(status.unwrap().success(), "cp -a of {name} failed");
    copy
}

/// Writes a file below `root`, with the directories it needs.
pub fn write(root: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Says loudly that something was not tested; cargo shows it with `--nocapture`.
pub fn skipped(why: &str) {
    use std::io::Write;
    // Not by eprintln, which the test harness swallows.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}
