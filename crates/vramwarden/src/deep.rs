//! `--deep`: the tools that are found here, each with a time limit. What they print is a log like any other.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use logs::{Scan, Scanner};
use rustix::process::{Pid, Signal, kill_process_group};

/// A tool that hangs on a broken driver must not hang the doctor.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The most that is read of one tool.
const OUTPUT_LIMIT: u64 = 8 << 20;

/// Programs and arguments. They read; none of them changes anything.
const TOOLS: &[&[&str]] = &[
    &["rocminfo"],
    &["amd-smi", "static", "--vram", "--driver"],
    &["amd-smi", "metric", "--mem-usage"],
    &["rocm-smi", "--showmeminfo", "vram", "gtt"],
    &["vulkaninfo"],
    &["dpkg-query", "-W", "linux-firmware", "firmware-amd-graphics", "mesa-vulkan-drivers"],
    &["rpm", "-q", "linux-firmware", "amd-gpu-firmware", "mesa-vulkan-drivers"],
    &["pacman", "-Q", "linux-firmware", "linux-firmware-amdgpu", "vulkan-radeon"],
];

/// Runs each tool that is found; returns what they printed, scanned, and a line for each that was ended or failed.
pub fn run() -> (Vec<Scan>, Vec<String>) {
    let (mut scans, mut notes) = (Vec::new(), Vec::new());
    for tool in TOOLS {
        let name = tool.join(" ");
        match one(&name, tool) {
            Ok(Some(scan)) => scans.push(scan),
            Ok(None) => {}
            Err(note) => notes.push(note),
        }
    }
    (scans, notes)
}

/// Runs one tool. `None` where it is not installed.
fn one(name: &str, tool: &[&str]) -> Result<Option<Scan>, String> {
    let mut command = Command::new(tool[0]);
    command.args(&tool[1..]).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A group of its own, so that what the tool starts ends with it.
    command.process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{name}: {error}; left out")),
    };
    let Some(mut out) = child.stdout.take() else { return Ok(None) };
    let (sender, output) = channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = out.by_ref().take(OUTPUT_LIMIT).read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    });
    let result = output.recv_timeout(TIME_LIMIT);
    end(&mut child);
    match result {
        Ok(Ok(bytes)) => {
            let mut scanner = Scanner::new(name);
            scanner.feed(&bytes);
            Ok(Some(scanner.finish()))
        }
        Ok(Err(error)) => Err(format!("{name}: {error}; left out")),
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("{name}: no answer within {} s, ended; a tool that hangs is itself a sign of a hanging driver", TIME_LIMIT.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => Err(format!("{name}: its output could not be read; left out")),
    }
}

/// Ends the tool and what it started, and reaps it. One stuck in the kernel is left to init.
fn end(child: &mut Child) {
    if let Ok(Some(_)) = child.try_wait() {
        return;
    }
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // KILL is delivered at once unless the process is in an uninterruptible wait; then waiting would hang with it.
    for _ in 0..50 {
        if let Ok(Some(_)) = child.try_wait() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
