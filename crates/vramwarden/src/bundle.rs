//! `vramwarden bundle`.

use std::fmt::Write;
use std::io::Read;
use std::process::{Command, Stdio};

use facts::bundle::{Bundle, limits};
use facts::host::{Recorder, Tree};
use facts::redact::{Identity, Redactor};
use facts::{host, sheet};

use crate::cli::BundleArgs;
use crate::gather::{open, under};
use crate::{Exit, Failure, kmsg, output};

/// Captures, redacts, and writes or shows.
///
/// # Errors
/// A log that cannot be read, a place that cannot be written.
pub fn run(args: &BundleArgs) -> Result<Exit, Failure> {
    if !args.force && !args.dry_run && args.file.is_file() {
        let file = args.file.display();
        return Err(Failure::Input(format!(
            "{file}: exists; choose another name, or overwrite it with --force"
        )));
    }
    if args.file.as_os_str() == "-" {
        return Err(Failure::Input(
            "-: a bundle is written to a file; name one, such as host.tgz".to_owned(),
        ));
    }
    let tree = match &args.root {
        Some(root) => under(root)?,
        None => Tree::live().map_err(|error| Failure::Environment(error.to_string()))?,
    };
    let recorder = Recorder::new(&tree);
    let facts = host::read(&recorder);
    let mut bundle = Bundle {
        program: concat!("vramwarden ", env!("CARGO_PKG_VERSION")).to_owned(),
        created: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        facts_json: Some(sheet::write(&facts)),
        ..Bundle::default()
    };
    for path in &args.log {
        let (name, input) = open(path)?;
        let mut bytes = Vec::new();
        input
            .take(limits::LOG_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::Environment(format!("{name}: {error}")))?;
        if bytes.len() as u64 > limits::LOG_BYTES {
            return Err(Failure::Input(format!(
                "{name}: larger than {} MiB; cut out the part around the failure",
                limits::LOG_BYTES >> 20
            )));
        }
        bundle.add_log(&name, bytes);
    }
    for unit in &args.unit {
        bundle.add_log(&format!("{unit}.log"), journal(unit)?);
    }
    if args.root.is_none() && !facts.gpus.is_empty() {
        match kmsg::text() {
            Ok(text) => bundle.add_log("kernel.log", text),
            Err(note) => output::note(&note),
        }
    }
    bundle.tape = recorder.into_tape();
    let identity = Identity::of(&tree, &|name| std::env::var(name).ok());
    let bundle = bundle.redacted(&mut Redactor::new(identity), &host::env::concerns_memory);
    if args.dry_run {
        return output::print(&listing(&bundle)).map(|()| Exit::Fine);
    }
    bundle.write(&args.file, args.force)?;
    let redacted: u64 = bundle.redactions.iter().map(|r| r.count).sum();
    output::print(&format!(
        "{}: {} files and answers of this host, {} logs, {redacted} values redacted (--dry-run lists them).\n\
         Read it on another machine with: vramwarden doctor --bundle {0}\n",
        args.file.display(),
        bundle.tape.answers.len(),
        bundle.logs.len(),
    ))?;
    Ok(Exit::Fine)
}

/// What the bundle would hold and what was redacted: where, what kind, how often.
fn listing(bundle: &Bundle) -> String {
    let mut out = String::from("Files and answers of the host:\n");
    for ((path, question), answer) in &bundle.tape.answers {
        let what = match answer {
            Ok(facts::host::Answer::Bytes(bytes)) => format!("{} bytes", bytes.len()),
            Ok(_) => format!("{question:?}").to_lowercase(),
            Err(refusal) => format!("{refusal:?}").to_lowercase(),
        };
        let _ = writeln!(out, "  {path}  ({what})");
    }
    out.push_str("Logs:\n");
    for log in &bundle.logs {
        let _ = writeln!(out, "  {}  ({} bytes)", log.name, log.bytes.len());
    }
    out.push_str("Redacted:\n");
    for redaction in &bundle.redactions {
        let _ = writeln!(
            out,
            "  {}: {} × {}",
            redaction.place,
            redaction.count,
            format!("{:?}", redaction.kind).to_lowercase()
        );
    }
    out.push_str("Nothing was written (--dry-run).\n");
    out
}

/// The journal of a unit, of this boot and the one before.
fn journal(unit: &str) -> Result<Vec<u8>, Failure> {
    let run = Command::new("journalctl")
        .args(["--no-pager", "--quiet", "--output=short-precise", "--lines=20000", "--unit"])
        .arg(unit)
        .stdin(Stdio::null())
        .output();
    match run {
        Ok(done) if done.status.success() => Ok(done.stdout),
        Ok(done) => Err(Failure::Environment(format!(
            "journalctl for {unit}: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        ))),
        Err(error) => {
            Err(Failure::Environment(format!("journalctl: {error}; give the log with --log instead")))
        }
    }
}
