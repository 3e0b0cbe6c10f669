//! Whole processes of the release binary: how long, how much memory, beside what they may take.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use comfy_table::{CellAlignment, Table, presets};
use wait4::Wait4;

/// What a run of `doctor` may take.
const WALL: Duration = Duration::from_millis(30);
const PEAK: u64 = 24 << 20;

/// A command line and what it is called.
struct Subject {
    name: &'static str,
    program: &'static str,
    args: &'static [&'static str],
}

const VRAMWARDEN: &str = "vramwarden";

/// What is timed. An empty process comes first: what starting one costs here, and the least peak that can be seen,
/// since a child's peak counts what its parent held when it was started.
const SUBJECTS: &[Subject] = &[
    Subject { name: "an empty process", program: "true", args: &[] },
    Subject { name: "doctor, this host", program: VRAMWARDEN, args: &["doctor"] },
    Subject {
        name: "doctor, recorded host",
        program: VRAMWARDEN,
        args: &["doctor", "--root", "tests/hosts/strix-halo-512m-124g"],
    },
    Subject {
        name: "doctor, recorded host and log",
        program: VRAMWARDEN,
        args: &[
            "doctor",
            "--root",
            "tests/hosts/strix-halo-gttsize-only",
            "--log",
            "tests/hosts/strix-halo-gttsize-only/llama-server.log",
        ],
    },
];

/// Times each subject `runs` times, in turn, and prints medians of the time and the largest peak.
pub fn run(root: &Path, runs: usize) -> Result<()> {
    ensure!(runs > 0, "--runs is at least 1");
    let binary = crate::target(root).join("release").join(VRAMWARDEN);
    ensure!(binary.is_file(), "{}: build it with cargo build --release -p vramwarden", binary.display());
    let mut walls = vec![Vec::with_capacity(runs); SUBJECTS.len()];
    let mut peaks = vec![0; SUBJECTS.len()];
    for _ in 0..runs {
        for (at, subject) in SUBJECTS.iter().enumerate() {
            let program = if subject.program == VRAMWARDEN { &binary } else { Path::new(subject.program) };
            let (wall, peak) =
                once(Command::new(program).args(subject.args).current_dir(root)).context(subject.name)?;
            walls[at].push(wall);
            peaks[at] = peak.max(peaks[at]);
        }
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(["", "MEDIAN", "SLOWEST", "PEAK RSS"]);
    for ((subject, mut walls), peak) in SUBJECTS.iter().zip(walls).zip(peaks) {
        walls.sort_unstable();
        let (median, slowest) = (walls[walls.len() / 2], walls[walls.len() - 1]);
        table.add_row([subject.name.to_owned(), millis(median), millis(slowest), mib(peak)]);
    }
    table.add_row(["budget of doctor".to_owned(), millis(WALL), String::new(), mib(PEAK)]);
    for column in 1..=3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{runs} runs of each, in turn:\n{table}");
    Ok(())
}

/// One run: its time and its peak resident memory. A finding is no failure.
fn once(command: &mut Command) -> Result<(Duration, u64)> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let used = child.wait4()?;
    let wall = start.elapsed();
    ensure!(matches!(used.status.code(), Some(0 | 1)), "it ended with {}", used.status);
    Ok((wall, used.rusage.maxrss))
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
