//! `vramwarden`: see `vramwarden --help`.

use std::process::ExitCode;

use clap::Parser;
use vramwarden::cli::Cli;

fn main() -> ExitCode {
    match vramwarden::run(Cli::parse()) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("vramwarden: {failure}");
            failure.status().into()
        }
    }
}
