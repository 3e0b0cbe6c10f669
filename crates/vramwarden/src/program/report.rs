//! What is said of a program that has ended, or is silent.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use facts::pool::Pool;
use findings::{Diagnosis, Severity};
use units::Bytes;

use crate::cli::{DoctorArgs, Format};
use crate::gather::Gathered;
use crate::render::{self, plain};
use crate::{Failure, output};

/// Less than this is not called a change of a pool.
const CHANGE: Bytes = Bytes::mib(64);

/// How the program ended, beside the diagnosis.
pub struct Outcome {
    /// The program.
    pub program: String,
    /// Its exit status; 128+N after signal N.
    pub exit_status: i32,
    /// How long it ran.
    pub seconds: f64,
    /// The pools before it started.
    pub pools_before: Vec<Pool>,
}

/// Where the report goes.
pub struct Target {
    file: Option<(String, File)>,
}

impl Target {
    /// Opens it before the program starts, so that a wrong path costs nobody a run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(args: &DoctorArgs) -> Result<Self, Failure> {
        let Some(path) = &args.report else { return Ok(Self { file: None }) };
        let name = path.display().to_string();
        let file = File::create(path).map_err(|error| {
            Failure::Environment(format!("{name}: {error}; name a file that can be written"))
        })?;
        Ok(Self { file: Some((name, file)) })
    }

    /// Writes the report: to the file, or to stderr, where a program without trouble gets one line.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(
        &mut self,
        args: &DoctorArgs,
        gathered: &Gathered,
        diagnosis: &Diagnosis,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        let page = plain::Page {
            colour: self.file.is_none() && output::colour_on(&io::stderr()),
            width: output::width(),
            verbose: args.verbose,
        };
        let lines = outcome.lines(diagnosis);
        let text = match args.format {
            Format::Json => render::json::document_of(diagnosis, Some(outcome)),
            Format::Markdown => {
                format!("{}\n{}", lines.join("\n"), render::markdown::document(gathered, diagnosis))
            }
            Format::Plain => format!("{}\n\n{}", lines.join("\n"), page.document(gathered, diagnosis)),
        };
        let Some((name, file)) = &mut self.file else {
            let quiet = args.format == Format::Plain
                && !args.verbose
                && diagnosis.findings.iter().all(|finding| finding.severity == Severity::Info);
            if quiet {
                output::note(&format!("{} {}", lines.join(" "), plain::verdict(gathered, diagnosis)));
            } else {
                let _ = io::stderr().lock().write_all(text.as_bytes());
            }
            return Ok(());
        };
        file.write_all(text.as_bytes()).map_err(|error| {
            Failure::Environment(format!("{name}: {error}; the report could not be written"))
        })
    }
}

impl Outcome {
    fn lines(&self, diagnosis: &Diagnosis) -> Vec<String> {
        let signal = match self.exit_status {
            129 => " (SIGHUP)",
            130 => " (SIGINT)",
            134 => " (SIGABRT)",
            135 => " (SIGBUS)",
            136 => " (SIGFPE)",
            137 => " (SIGKILL)",
            139 => " (SIGSEGV)",
            141 => " (SIGPIPE)",
            143 => " (SIGTERM)",
            _ => "",
        };
        let program = render::harmless::text(&self.program);
        let mut lines = vec![format!(
            "{program} ended with status {}{signal} after {:.1} s.",
            self.exit_status, self.seconds
        )];
        for before in &self.pools_before {
            let same = |pool: &&Pool| pool.device == before.device && pool.api == before.api;
            let after = diagnosis.pools.iter().find(same).and_then(|pool| pool.free);
            if let (Some(was), Some(is)) = (before.free, after)
                && was.0.abs_diff(is.0) >= CHANGE.0
            {
                let (device, api) = (&before.device, plain::api(before));
                lines.push(format!("{device} {api}: {was} were free before it ran, and {is} are now."));
            }
        }
        lines
    }
}

/// Says once that the program is silent, and what the doctor would look at.
pub fn silent(pid: u32, time: Duration) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or(" unknown").trim();
    output::note(&format!(
        "the program (pid {pid}, state {state}) has printed nothing for {} s. Worth a look, in another terminal: \
         vramwarden doctor; sudo dmesg | tail (a ring timeout or a reset); cat /proc/{pid}/wchan; whether it reads \
         its model (grep read_bytes /proc/{pid}/io, twice)",
        time.as_secs()
    ));
}
