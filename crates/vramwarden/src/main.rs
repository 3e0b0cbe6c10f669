//! `vramwarden`: see `vramwarden --help`.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use vramwarden::cli::{Cli, usage};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match usage(&error) {
            Some(line) => {
                let _ = writeln!(std::io::stderr(), "vramwarden: {line}");
                return ExitCode::from(2);
            }
            None => error.exit(),
        },
    };
    match vramwarden::run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Not eprintln: a closed stderr must not turn the status into that of a panic.
            let _ = writeln!(std::io::stderr(), "vramwarden: {failure}");
            failure.status().into()
        }
    }
}
