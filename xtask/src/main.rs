//! Work on the project itself: `cargo run -p xtask -- --help`.

mod bench;
mod dist;
mod scan;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Work on the project itself.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the release tarball under target/dist, with its checksum.
    Dist {
        /// Check the tarball that is there instead: its members, that the binary is static and runs in an empty root.
        #[arg(long)]
        check: bool,
    },
    /// Time whole processes of the release binary, beside their budgets. A report, not a test.
    Bench {
        /// Runs of each command; they take turns.
        #[arg(long, default_value_t = 40)]
        runs: usize,
    },
    /// Read a large mixed log with doctor and with ripgrep, by the same patterns. A report, not a test.
    Scan {
        /// Where the log is written, and removed after; best a file system in memory.
        #[arg(long, default_value = "/dev/shm")]
        directory: PathBuf,
        /// Size of the log, MiB.
        #[arg(long, default_value_t = 1024)]
        mib: u64,
        /// Rounds; the programs take turns.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
}

fn main() -> Result<()> {
    let root = root();
    match Cli::parse().command {
        Command::Dist { check: false } => dist::build(&root),
        Command::Dist { check: true } => dist::check::run(&root),
        Command::Bench { runs } => bench::run(&root, runs),
        Command::Scan { directory, mib, rounds } => scan::run(&root, &directory, mib, rounds),
    }
}

/// The checkout.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo builds.
fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

/// The cargo that runs us.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
