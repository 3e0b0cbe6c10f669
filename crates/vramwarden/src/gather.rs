//! Facts and logs from wherever the user says, joined.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use facts::bundle::Bundle;
use facts::host::{Host, Tree};
use facts::{Facts, Origin, sheet};
use logs::Scan;

use crate::cli::SourceArgs;
use crate::{Failure, kmsg};

/// The largest facts sheet read.
const SHEET_LIMIT: u64 = 16 << 20;

/// What there is to look at.
#[derive(Debug, Default)]
pub struct Gathered {
    /// All facts, joined.
    pub facts: Facts,
    /// Scanned logs, in the order given.
    pub scans: Vec<Scan>,
    /// Lines for the user: keys ignored, logs cut short.
    pub warnings: Vec<String>,
    /// Why this host was left out, if it was.
    pub left_out: Option<String>,
}

/// Opens `path`, or stdin for `-`, and tells its name.
///
/// # Errors
/// The file is missing, unreadable, or no file.
pub fn open(path: &Path) -> Result<(String, Box<dyn Read>), Failure> {
    if path.as_os_str() == "-" {
        return Ok(("-".to_owned(), Box::new(io::stdin().lock())));
    }
    let name = path.display().to_string();
    let refuse = |what: String| Failure::Environment(format!("{name}: {what}"));
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::Input(format!("{name}: no such file; check the path, or use - for stdin"))
        }
        io::ErrorKind::PermissionDenied => {
            refuse("permission denied; run as a user who may read it".to_owned())
        }
        _ => refuse(error.to_string()),
    })?;
    match file.metadata() {
        Ok(meta) if meta.is_dir() => Err(Failure::Input(format!("{name}: a directory; name a file in it"))),
        Ok(_) => Ok((name, Box::new(file))),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// Scans one log.
///
/// # Errors
/// The log cannot be opened or read.
pub fn scan(path: &Path) -> Result<Scan, Failure> {
    let (name, input) = open(path)?;
    let shown = path.file_name().map_or_else(|| name.clone(), |f| f.to_string_lossy().into_owned());
    logs::scan_reader(&shown, input)
        .map_err(|error| Failure::Environment(format!("{name}: {error}; the log was not read to its end")))
}

fn read_sheet(path: &Path) -> Result<sheet::Sheet, Failure> {
    let (name, input) = open(path)?;
    let mut bytes = Vec::new();
    input
        .take(SHEET_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Environment(format!("{name}: {error}")))?;
    if bytes.len() as u64 > SHEET_LIMIT {
        return Err(Failure::Input(format!(
            "{name}: larger than {} MiB; a facts sheet is a few KiB",
            SHEET_LIMIT >> 20
        )));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::Input(format!(
            "{name}: not UTF-8 text at byte {}; a facts sheet is JSON",
            error.utf8_error().valid_up_to()
        ))
    })?;
    let shown = path.file_name().map_or_else(|| name.clone(), |f| f.to_string_lossy().into_owned());
    sheet::read(&shown, &text).map_err(|error| Failure::Input(error.to_string()))
}

/// The host that the arguments name; `None` with `--no-host`.
enum Source {
    None,
    Live(Tree),
    Root(Tree),
    Bundle(Box<Bundle>),
}

fn source(args: &SourceArgs) -> Result<Source, Failure> {
    if let Some(root) = &args.root {
        let tree = Tree::under(root).map_err(|error| Failure::Input(error.to_string()))?;
        if [tree.list("/proc"), tree.list("/sys")].iter().all(Result::is_err) {
            return Err(Failure::Input(format!(
                "{}: holds neither proc nor sys; --root takes a directory that stands for /",
                root.display()
            )));
        }
        return Ok(Source::Root(tree));
    }
    if let Some(path) = &args.bundle {
        let bundle = Bundle::read(path)?;
        return Ok(Source::Bundle(Box::new(bundle)));
    }
    if args.no_host {
        return Ok(Source::None);
    }
    Tree::live().map(Source::Live).map_err(|error| Failure::Environment(error.to_string()))
}

/// Gathers facts and logs.
///
/// # Errors
/// A source that cannot be read, or is not what it should be.
pub fn gather(args: &SourceArgs, logs: &[impl AsRef<Path>]) -> Result<Gathered, Failure> {
    let mut gathered = Gathered::default();
    let mut given = Facts::default();
    if let Some(path) = &args.facts {
        let sheet = read_sheet(path)?;
        gathered.warnings.extend(sheet.warnings);
        given.merge(sheet.facts);
    }
    for log in logs {
        gathered.scans.push(scan(log.as_ref())?);
    }
    // Log lines inside a sheet are a log like any other.
    if let Some(lines) = given.kernel.log.value() {
        gathered.scans.push(logs::scan_lines("kernel.log", lines.iter().map(String::as_str)));
    }
    let source = source(args)?;
    if let Source::Bundle(bundle) = &source {
        for log in &bundle.logs {
            let scan = logs::scan_reader(&log.name, log.bytes.as_slice());
            gathered.scans.push(scan.map_err(|error| Failure::Input(format!("{}: {error}", log.name)))?);
        }
    }
    for scan in &gathered.scans {
        given.merge(facts::stated(scan));
        gathered.warnings.extend(scan.notes.iter().cloned());
    }
    given.complete();
    match &source {
        Source::None => gathered.facts = given,
        Source::Root(tree) => join(&mut gathered, tree, given),
        Source::Bundle(bundle) => join(&mut gathered, &bundle.tape, given),
        Source::Live(tree) => live(&mut gathered, tree, given, args.with_host),
    }
    gathered.facts.complete();
    Ok(gathered)
}

fn join(gathered: &mut Gathered, host: &dyn Host, given: Facts) {
    gathered.facts = facts::host::read(host);
    gathered.facts.merge(given);
}

/// This machine, unless what was given is about another one.
fn live(gathered: &mut Gathered, tree: &Tree, given: Facts, keep: bool) {
    let host = facts::host::read(tree);
    if !keep {
        if let Some(difference) = another_machine(&host, &given) {
            gathered.left_out = Some(difference);
            gathered.facts = given;
            return;
        }
    }
    if !host.gpus.is_empty() {
        match kmsg::read() {
            Ok(scan) => {
                gathered.facts = host;
                gathered.facts.merge(facts::stated(&scan));
                gathered.scans.push(scan);
            }
            Err(note) => {
                gathered.warnings.push(note);
                gathered.facts = host;
            }
        }
    } else {
        gathered.facts = host;
    }
    gathered.facts.merge(given);
}

/// What tells that `given` is about another machine than `host`: GPU, kernel or memory size. `None` where nothing does.
pub fn another_machine(host: &Facts, given: &Facts) -> Option<String> {
    for gpu in &given.gpus {
        let here = |have: &facts::Gpu| {
            let differ = |a: Option<&str>, b: Option<&str>| matches!((a, b), (Some(a), Some(b)) if a != b);
            !differ(have.gfx.text(), gpu.gfx.text())
                && !differ(have.pci_id.text(), gpu.pci_id.text())
                && same_kind(have, gpu)
        };
        if !host.gpus.iter().any(here) {
            let name = gpu.gfx.text().or(gpu.name.text()).or(gpu.bdf.text()).unwrap_or("a GPU");
            return Some(format!("it tells of {name}, which is not in this machine"));
        }
        if let (Some(vram), true) = (gpu.vram_total.get(), host.gpus.len() == 1) {
            if host.gpus[0].vram_total.get().is_some_and(|have| !have.near(vram, 2.0)) {
                return Some(format!("it tells of {vram} of VRAM, and this machine's GPU has another size"));
            }
        }
    }
    if let (Some(have), Some(told)) = (host.kernel.release.text(), given.kernel.release.text()) {
        if have != told {
            return Some(format!("it tells of kernel {told}, and this is {have}"));
        }
    }
    if let (Some(have), Some(told)) = (host.memory.total.get(), given.memory.total.get()) {
        if !have.near(told, 5.0) && given.memory.total.source().is_some_and(|s| s.origin != Origin::Host) {
            return Some(format!("it tells of {told} of RAM, and this machine has {have}"));
        }
    }
    None
}

fn same_kind(a: &facts::Gpu, b: &facts::Gpu) -> bool {
    a.apu.get().zip(b.apu.get()).is_none_or(|(a, b)| a == b)
}
