//! A large mixed log, read by `doctor` and by ripgrep with the same patterns, in turn. A report, not a test.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wait4::Wait4;

/// What `doctor` may take at the most, from a file or a pipe.
const PEAK: u64 = 48 << 20;
/// How much faster than ripgrep it has to be.
const RATIO: f64 = 1.5;

/// Lines as logs of such machines are full of; `#` stands for a number.
const NOISE: &[&str] = &[
    "[    #.#] amdgpu 0000:c5:00.0: [drm] ring gfx_0.0.0 uses VM inv eng # on hub 0",
    "[    #.#] usb 1-#: new high-speed USB device number # using xhci_hcd",
    "Nov 30 12:#:# host systemd[1]: Started session-#.scope - Session # of User root.",
    "llama_model_loader: - kv  #:                 llama.attention.head_count u32              = #",
    "load_tensors: layer # assigned to device ROCm0, is_swa = 0",
    "slot update_slots: id  # | task # | prompt processing progress, n_tokens = #, batch.n_tokens = #, progress = 0.#",
    "srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 200",
    "INFO 11-30 15:#:# [loggers.py:#] Engine 000: Avg prompt throughput: #.# tokens/s, Running: # reqs, GPU KV cache usage: #.#%",
    "eval time = #.# ms / # tokens (#.# ms per token, #.# tokens per second)",
    "{\"level\":\"info\",\"msg\":\"request\",\"model\":\"some-8b\",\"tokens\":#}",
];

/// Numbers without a crate for them: a linear congruence, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Files that go away with the value.
struct Files {
    log: PathBuf,
    patterns: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.log);
        let _ = std::fs::remove_file(&self.patterns);
    }
}

fn write(directory: &Path, bytes: u64) -> Result<Files> {
    let files = Files { log: directory.join("scan.log"), patterns: directory.join("scan.patterns") };
    let mut patterns = BufWriter::new(File::create(&files.patterns)?);
    for signature in logs::signatures() {
        // One alternation may not name a group twice.
        let mut plain = String::new();
        let mut rest = signature.pattern;
        while let Some((before, after)) = rest.split_once("(?P<") {
            plain.push_str(before);
            plain.push_str("(?:");
            rest = after.split_once('>').map_or("", |(_, after)| after);
        }
        writeln!(patterns, "{plain}{rest}")?;
    }
    patterns.flush()?;
    let examples: Vec<&str> = logs::signatures().map(|s| s.example).filter(|e| !e.contains('\n')).collect();
    let mut numbers = Numbers(1);
    let mut log = BufWriter::with_capacity(1 << 20, File::create(&files.log)?);
    let mut written = 0_u64;
    let mut line = String::new();
    while written < bytes {
        line.clear();
        // A known line in a million bytes or so.
        if numbers.below(10_000) == 0 {
            line.push_str(examples[numbers.below(examples.len() as u64) as usize]);
        } else {
            for c in NOISE[numbers.below(NOISE.len() as u64) as usize].chars() {
                match c {
                    '#' => line.push_str(&numbers.below(10_000).to_string()),
                    c => line.push(c),
                }
            }
        }
        line.push('\n');
        log.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    log.flush()?;
    Ok(files)
}

/// One run: wall time and peak resident memory.
fn once(command: &mut Command) -> Result<(Duration, u64)> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let used = child.wait4()?;
    ensure!(matches!(used.status.code(), Some(0 | 1)), "it ended with {}", used.status);
    Ok((start.elapsed(), used.rusage.maxrss))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Writes a log of `mib` MiB under `directory` and reads it `rounds` times with each program, in turn.
pub fn run(root: &Path, directory: &Path, mib: u64, rounds: usize) -> Result<()> {
    ensure!(rounds > 0, "--rounds is at least 1");
    let binary = crate::target(root).join("release/vramwarden");
    ensure!(binary.is_file(), "{}: build it with cargo build --release -p vramwarden", binary.display());
    let files = write(directory, mib << 20)
        .with_context(|| format!("{}: a log of {mib} MiB", directory.display()))?;
    let rg = Command::new("rg").arg("--version").output().is_ok();
    if !rg {
        println!("SKIPPED: ripgrep is not installed (apt-get install ripgrep): no comparison");
    }
    let (mut ours, mut piped, mut theirs, mut peaks) = (Vec::new(), Vec::new(), Vec::new(), [0, 0]);
    let doctor = || {
        let mut command = Command::new(&binary);
        command.args(["doctor", "--no-host", "--format", "json", "--log"]);
        command
    };
    for _ in 0..rounds {
        let (time, peak) = once(doctor().arg(&files.log).stdin(Stdio::null()))?;
        ours.push(time);
        peaks[0] = peak.max(peaks[0]);
        let mut cat = Command::new("cat").arg(&files.log).stdout(Stdio::piped()).spawn()?;
        let pipe = cat.stdout.take().context("cat's output")?;
        let (time, peak) = once(doctor().arg("-").stdin(pipe))?;
        cat.wait()?;
        piped.push(time);
        peaks[1] = peak.max(peaks[1]);
        if rg {
            let mut command = Command::new("rg");
            command.args(["-c", "-j1", "-f"]).arg(&files.patterns).arg(&files.log).stdin(Stdio::null());
            theirs.push(once(&mut command)?.0);
        }
    }
    let speed = |time: Duration| format!("{:>6.0} MiB/s", mib as f64 / time.as_secs_f64());
    let peak = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    println!("{mib} MiB, medians of {rounds} rounds in turn, {} patterns:", logs::signatures().count());
    println!(
        "  doctor --log FILE   {}   peak {} (budget {})",
        speed(median(ours.clone())),
        peak(peaks[0]),
        peak(PEAK)
    );
    println!(
        "  doctor --log -      {}   peak {} (budget {})",
        speed(median(piped)),
        peak(peaks[1]),
        peak(PEAK)
    );
    if rg {
        let ratio = median(theirs.clone()).as_secs_f64() / median(ours).as_secs_f64();
        println!("  rg -c -f            {}", speed(median(theirs)));
        println!("  doctor is {ratio:.2} times as fast (budget {RATIO})");
    }
    Ok(())
}
