//! Facts and logs from wherever the user says, joined.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use facts::bundle::Bundle;
use facts::host::{Host, Tree};
use facts::{Facts, Gpu, sheet};
use logs::Scan;

use crate::cli::SourceArgs;
use crate::{Failure, deep, kmsg};

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

/// The host whose files lie under `root`.
///
/// # Errors
/// `root` is no directory, or holds no host.
pub fn under(root: &Path) -> Result<Tree, Failure> {
    let tree = Tree::under(root).map_err(|error| Failure::Input(error.to_string()))?;
    if [tree.list("/proc"), tree.list("/sys")].iter().all(Result::is_err) {
        let root = root.display();
        return Err(Failure::Input(format!(
            "{root}: holds neither proc nor sys; --root takes a directory that stands for /"
        )));
    }
    Ok(tree)
}

fn source(args: &SourceArgs) -> Result<Source, Failure> {
    if let Some(root) = &args.root {
        return Ok(Source::Root(under(root)?));
    }
    if let Some(path) = &args.bundle {
        let (name, input) = open(path)?;
        return Ok(Source::Bundle(Box::new(Bundle::decode(input, &name)?)));
    }
    if args.no_host {
        return Ok(Source::None);
    }
    Tree::live().map(Source::Live).map_err(|error| Failure::Environment(error.to_string()))
}

/// Gathers facts and logs; `deep` also runs the tools that are found here.
///
/// # Errors
/// A source that cannot be read, or is not what it should be.
pub fn gather(args: &SourceArgs, logs: &[impl AsRef<Path>], deep: bool) -> Result<Gathered, Failure> {
    if args.no_host && args.facts.is_none() && args.bundle.is_none() && logs.is_empty() {
        let what = "--no-host: nothing else is given to look at; give a log (--log), a sheet or a bundle";
        return Err(Failure::Input(what.to_owned()));
    }
    gather_with(args, logs, deep, More::default())
}

/// Where the kernel's log of this machine comes from.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum KernelLog {
    /// All of this boot is read.
    #[default]
    Whole,
    /// Somebody else follows it, and gives what matters of it.
    Elsewhere,
}

/// What is known beside what the arguments name.
#[derive(Debug, Default)]
pub struct More {
    /// Logs that are scanned already.
    pub scans: Vec<Scan>,
    /// Facts, of whatever origin.
    pub facts: Facts,
    /// The kernel's log.
    pub kernel: KernelLog,
}

/// The same, with more than what the arguments name.
///
/// # Errors
/// As [`gather`].
pub fn gather_with(
    args: &SourceArgs,
    logs: &[impl AsRef<Path>],
    deep: bool,
    more: More,
) -> Result<Gathered, Failure> {
    let mut gathered = Gathered { scans: more.scans, ..Gathered::default() };
    let mut given = more.facts;
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
        Source::Live(tree) => {
            let host = facts::host::read(tree);
            match more.kernel {
                KernelLog::Whole => live(&mut gathered, host, Some(kmsg::read), given, args.with_host),
                KernelLog::Elsewhere => {
                    live(&mut gathered, host, None::<fn() -> _>, given, args.with_host);
                }
            }
            if deep && gathered.left_out.is_none() {
                run_tools(&mut gathered);
            }
        }
    }
    gathered.facts.complete();
    Ok(gathered)
}

/// What this machine's own tools state.
fn run_tools(gathered: &mut Gathered) {
    let (scans, notes) = deep::run();
    for scan in scans {
        gathered.facts.merge(facts::stated(&scan));
        gathered.scans.push(scan);
    }
    gathered.warnings.extend(notes);
}

fn join(gathered: &mut Gathered, host: &dyn Host, given: Facts) {
    gathered.facts = facts::host::read(host);
    gathered.facts.merge(given);
}

/// This machine, unless what was given is about another one. `kernel_log` is asked only where there is a GPU.
fn live(
    gathered: &mut Gathered,
    host: Facts,
    kernel_log: Option<impl FnOnce() -> Result<Scan, String>>,
    given: Facts,
    keep: bool,
) {
    if !keep && let Some(difference) = another_machine(&host, &given) {
        gathered.left_out = Some(difference);
        gathered.facts = given;
        return;
    }
    let log = kernel_log.filter(|_| !host.gpus.is_empty()).map(|read| read());
    gathered.facts = host;
    match log {
        Some(Ok(scan)) => {
            gathered.facts.merge(facts::stated(&scan));
            gathered.scans.push(scan);
        }
        Some(Err(note)) => gathered.warnings.push(note),
        None => {}
    }
    gathered.facts.merge(given);
}

/// What tells that `given` is about another machine than `host`: GPU, kernel or memory size. `None` where nothing does.
fn another_machine(host: &Facts, given: &Facts) -> Option<String> {
    // With an override programs state the target they were told, whatever the GPU is.
    let overridden = [host, given].iter().any(|facts| facts.env("HSA_OVERRIDE_GFX_VERSION").is_some());
    for gpu in &given.gpus {
        let candidates: Vec<&Gpu> = host.gpus.iter().filter(|have| may_be(have, gpu, overridden)).collect();
        if candidates.is_empty() {
            let name = gpu.gfx.text().or(gpu.name.text()).or(gpu.bdf.text()).unwrap_or("a GPU");
            return Some(format!("what was given tells of {name}, which is not in this machine"));
        }
        if let Some(vram) = gpu.vram_total.get() {
            let other = |have: &&Gpu| have.vram_total.get().is_some_and(|have| !have.near(vram, 2.0));
            if candidates.iter().all(other) {
                return Some(format!(
                    "what was given tells of {vram} of VRAM, and this machine's GPU has another size"
                ));
            }
        }
    }
    if let (Some(have), Some(told)) = (host.kernel.release.text(), given.kernel.release.text())
        && have != told
    {
        return Some(format!("what was given tells of kernel {told}, and this is {have}"));
    }
    if let (Some(have), Some(told)) = (host.memory.total.get(), given.memory.total.get())
        && !have.near(told, 5.0)
    {
        return Some(format!("what was given tells of {told} of RAM, and this machine has {have}"));
    }
    None
}

/// Whether nothing tells the two apart but their sizes, which a BIOS setting may change.
fn may_be(have: &Gpu, told: &Gpu, overridden: bool) -> bool {
    let same = |a: Option<&str>, b: Option<&str>| a.zip(b).is_none_or(|(a, b)| a == b);
    let kind = || have.apu.get().zip(told.apu.get()).is_none_or(|(a, b)| a == b);
    same(have.bdf.text(), told.bdf.text())
        && same(have.pci_id.text(), told.pci_id.text())
        && (overridden || (same(have.gfx.text(), told.gfx.text()) && kind()))
}

#[cfg(test)]
mod tests;
