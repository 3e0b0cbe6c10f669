//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// GPU memory of AMD machines under Linux: what is wrong and how to mend it.
#[derive(Debug, Parser)]
#[command(name = "vramwarden", version, propagate_version = true, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what is wrong with GPU memory here, why, how sure that is, and the exact fix.
    Doctor(DoctorArgs),
    /// Capture this host's facts and logs, redacted, in one file for another machine.
    Bundle(BundleArgs),
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Plain,
    /// One JSON document (`vramwarden.doctor/1`).
    Json,
    /// For pasting into an issue.
    Markdown,
}

/// Where facts come from.
#[derive(Clone, Debug, Default, Args)]
pub struct SourceArgs {
    /// Read /proc, /sys, /etc and /dev under DIR instead of /.
    #[arg(long, value_name = "DIR", conflicts_with = "bundle")]
    pub root: Option<PathBuf>,
    /// Read a host that `vramwarden bundle` captured.
    #[arg(long, value_name = "FILE.tgz")]
    pub bundle: Option<PathBuf>,
    /// Read facts from a vramwarden.facts/1 sheet (`-` for stdin); they override what the host says.
    #[arg(long, value_name = "FILE.json")]
    pub facts: Option<PathBuf>,
    /// Use only what is given, never this machine.
    #[arg(long, conflicts_with_all = ["root", "with_host"])]
    pub no_host: bool,
    /// Keep this host's facts although a log or sheet tells of another machine.
    #[arg(long)]
    pub with_host: bool,
}

impl SourceArgs {
    /// Whether this machine is looked at.
    pub fn is_live(&self) -> bool {
        self.root.is_none() && self.bundle.is_none() && !self.no_host
    }
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  vramwarden doctor                              look at this machine
  vramwarden doctor --log run.log                …and at what a program printed
  journalctl -k -b | vramwarden doctor --log -   …or at the kernel's log
  vramwarden doctor --no-host --log pasted.txt   somebody else's log, without this machine
  vramwarden doctor --bundle host.tgz            a machine without network, carried out as a file
  vramwarden doctor --format markdown            to paste into an issue
  vramwarden doctor -- llama-server -m x.gguf    run a program, and say what went wrong with it
  vramwarden doctor --report r.md --format markdown --silence 300 -- python3 main.py
  vramwarden doctor --watch --log server.log     stay, and speak when something goes wrong
  sudo vramwarden doctor --apply apu-ttm-limit   show the change that mends it, ask, and make it
  sudo vramwarden doctor --undo apu-ttm-limit    put the files back as they were

Exit status: 0 nothing wrong, 1 a finding of severity error, 2 bad usage or input, 3 the environment failed.";

/// Arguments of `doctor`.
#[derive(Debug, Default, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct DoctorArgs {
    /// Sources of facts.
    #[command(flatten)]
    pub source: SourceArgs,
    /// A log to read: program output, dmesg, journalctl, rocminfo, rocm-smi, vulkaninfo, a pasted issue; plain, .gz or
    /// journal JSON (`-` for stdin). Repeatable.
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// How to write the answer.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also run the tools that are found (rocminfo, amd-smi, vulkaninfo, …), each with a time limit.
    #[arg(long, conflicts_with_all = ["no_host", "root", "bundle"])]
    pub deep: bool,
    /// Explain a finding id instead of looking at anything.
    #[arg(long, value_name = "ID")]
    pub explain: Option<String>,
    /// Make the changes of files that mend finding ID: shows them, what is left to type and how to undo it, and asks.
    /// With --root the files under DIR are changed.
    #[arg(long, value_name = "ID", group = "change", conflicts_with_all = ["bundle", "no_host", "explain", "format"])]
    pub apply: Option<String>,
    /// Put the files that --apply ID changed back as they were.
    #[arg(long, value_name = "ID", group = "change",
        conflicts_with_all = ["bundle", "no_host", "explain", "format", "facts", "log", "deep"])]
    pub undo: Option<String>,
    /// With --apply or --undo: do not ask.
    #[arg(short, long, requires = "change")]
    pub yes: bool,
    /// Also list every ceiling, and what could not be read and why.
    #[arg(short, long)]
    pub verbose: bool,
    /// Stay: follow the logs as tail -F does, the kernel's log and this host, and speak when a finding appears, gets
    /// worse or is gone. With --format json each event is one line (vramwarden.watch/1).
    #[arg(long, conflicts_with_all = ["bundle", "explain", "deep", "program"])]
    pub watch: bool,
    /// With --watch: read the host every so many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, requires = "watch", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub every: u64,
    /// With --watch: end with status 1 at the first error spoken of.
    #[arg(long, requires = "watch")]
    pub once_found: bool,
    /// With -- CMD: say so when the program has printed nothing for so long.
    #[arg(long, value_name = "SECONDS", requires = "program", value_parser = clap::value_parser!(u64).range(1..))]
    pub silence: Option<u64>,
    /// With -- CMD: write the answer to FILE, in --format, instead of stderr.
    #[arg(long, value_name = "FILE", requires = "program")]
    pub report: Option<PathBuf>,
    /// A program to run. Its output is passed through; the answer goes to stderr. Without a terminal on stdout, or with
    /// another --format than plain, the program writes to pipes.
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["explain"])]
    pub program: Vec<OsString>,
}

const BUNDLE_EXAMPLES: &str = "\
Examples:
  vramwarden bundle host.tgz                       facts of this host
  vramwarden bundle host.tgz --log run.log         …with a program's output
  vramwarden bundle host.tgz --unit ollama         …with a systemd unit's journal
  vramwarden bundle host.tgz --dry-run             show what would be in it, and what is redacted
  vramwarden doctor --bundle host.tgz              on the other machine";

/// Arguments of `bundle`.
#[derive(Debug, Args)]
#[command(after_help = BUNDLE_EXAMPLES)]
pub struct BundleArgs {
    /// The file to write.
    #[arg(value_name = "FILE.tgz")]
    pub file: PathBuf,
    /// Read /proc, /sys, /etc and /dev under DIR instead of /.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// A log to take along. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// A systemd unit whose journal to take along (runs journalctl). Repeatable.
    #[arg(long, value_name = "UNIT", conflicts_with = "root")]
    pub unit: Vec<String>,
    /// Show what would be written and redacted, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Overwrite FILE if it exists.
    #[arg(long)]
    pub force: bool,
}

/// Bad usage in one line: what, and the mend. `None` for help and version, which are no errors.
pub fn usage(error: &clap::Error) -> Option<String> {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return None;
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // After the usage come only the words that --help says better.
    // A misspelt option is not meant as the name of a program to run.
    let said: Vec<&str> = lines
        .filter(|line| !(line.starts_with("tip: to pass ") && line.contains("as a value, use '-- ")))
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .map(|line| line.strip_prefix("error: ").unwrap_or(line))
        .collect();
    let line: String = said.join("; ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(format!("{}; see vramwarden --help", line.replace(":; ", ": ")))
}
