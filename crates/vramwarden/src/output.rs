//! Writing the answer to stdout. A reader that has gone is no error.

use std::io::{self, IsTerminal, Write};

use crate::Failure;

/// Writes `text` to stdout.
///
/// # Errors
/// The device is full or broken; a closed pipe is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Environment(format!("stdout: {error}; the answer could not be written")))
        }
        _ => Ok(()),
    }
}

/// Writes one line about the work to stderr. Where nobody can read it, the answer matters more.
pub fn note(text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(io::stderr(), "vramwarden: {line}");
}

/// Whether stdout shows colour: a terminal, and nobody asked for none (`NO_COLOR`).
pub fn colour() -> bool {
    colour_on(&io::stdout())
}

/// Whether this stream shows colour.
pub fn colour_on(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Columns of the terminal, or 100 where there is none.
pub fn width() -> usize {
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    terminal.filter(|columns| *columns >= 40).unwrap_or(100).min(140)
}
