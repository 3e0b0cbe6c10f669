//! The binary's parts: the command line, the commands, and what renders their answers.

mod apply;
pub mod bundle;
pub mod cli;
mod deep;
pub mod doctor;
mod exit;
mod gather;
mod kmsg;
mod output;
mod program;
mod render;
mod signals;
mod watch;

pub use exit::{Exit, Failure};

/// Runs the command that `cli` names.
///
/// # Errors
/// Bad input or usage (exit status 2), or an environment that failed us (3); the text is one line with the mend.
pub fn run(cli: cli::Cli) -> Result<Exit, Failure> {
    match cli.command {
        cli::Command::Doctor(args) => doctor::run(&args),
        cli::Command::Bundle(args) => bundle::run(&args),
    }
}
