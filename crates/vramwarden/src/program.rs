//! `vramwarden doctor -- CMD…`: runs a program, passes its output through, and says what went wrong.

mod child;
mod pump;
mod report;
mod workload;

use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use facts::{Facts, Symptom};
use findings::{Severity, diagnose};
use rustix::process::Signal;

use crate::cli::{DoctorArgs, Format};
use crate::gather::{Gathered, KernelLog, More, gather_with};
use crate::signals::{Signals, wait};
use crate::{Exit, Failure, kmsg, output, render};
use child::Running;
use pump::{Clock, Passed, Pump};
pub use report::Outcome;

/// Runs the program and diagnoses it.
///
/// # Errors
/// Bad input, before the program is started; a program that cannot be started; output that cannot be written.
pub fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    for (option, path) in
        [("--log", args.log.iter().find(|l| l.as_os_str() == "-")), ("--facts", args.source.facts.as_ref())]
    {
        if path.is_some_and(|path| path.as_os_str() == "-") {
            return Err(Failure::Input(format!("{option} -: stdin is the program's; name a file")));
        }
    }
    let kernel = args.source.is_live().then(kmsg::Follow::open);
    let (mut kernel, note) = match kernel {
        Some(Ok(kernel)) => (Some(kernel), None),
        Some(Err(note)) => (None, Some(note)),
        None => (None, None),
    };
    // What the kernel's log states of the machine is used; what went wrong before is not this program's doing.
    let mut known = workload::facts(&args.program);
    if kernel.is_some()
        && let Ok(scan) = kmsg::read()
    {
        known.merge(facts::stated(&scan));
    }
    let before = gather_with(&args.source, &args.log, false, more(&known, Vec::new()))?;
    let mut report = report::Target::open(args)?;
    before.warnings.iter().chain(&note).for_each(|warning| output::note(warning));
    let counters = Counters::read(args, &before.facts);

    let mut signals = Signals::catch()?;
    let terminals = args.format == Format::Plain && std::io::stdout().is_terminal();
    let clock = Clock::start();
    let running = child::start(&args.program, terminals)?;
    let mut ended = accompany(running, &mut signals, kernel.as_mut(), &clock, args.silence)?;
    let ran = clock.elapsed();

    let (mut failed, mut held) = (None, false);
    let mut scans = Vec::new();
    for passed in std::mem::take(&mut ended.passed) {
        held |= passed.held;
        failed = failed.or(passed.error);
        scans.push(passed.scan);
    }
    if held {
        output::note(
            "a process that the program started still holds its output open; what it prints from now on is lost",
        );
    }
    scans.extend(kernel.map(kmsg::Follow::finish));
    let blamed = ended.blame();
    known.workload.exit_status = workload::said(blamed.then_some(i64::from(ended.status)));
    if ended.asked.is_some() && ended.silent {
        known.workload.symptom = workload::said(Some(Symptom::Hang));
    }
    let mut after = gather_with(&args.source, &args.log, args.deep, more(&known, scans))?;
    after.warnings.retain(|warning| !before.warnings.contains(warning));
    after.warnings.iter().for_each(|warning| output::note(warning));
    since(&before.facts, &mut after);
    if let Some(rise) = counters.and_then(|counters| counters.rise(args, &after.facts)) {
        output::note(&rise);
    }
    let mut diagnosis = diagnose(&after.facts, &after.scans);
    render::harmless::diagnosis(&mut diagnosis);
    let outcome = Outcome {
        program: workload::facts(&args.program).workload.program.text().unwrap_or_default().to_owned(),
        exit_status: ended.status,
        seconds: ran.as_secs_f64(),
        pools_before: facts::pool::pools(&before.facts),
    };
    report.write(args, &after, &diagnosis, &outcome)?;
    if let Some(error) = failed {
        return Err(Failure::Environment(error));
    }
    let bad = diagnosis.findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if bad { Exit::Found } else { Exit::Fine })
}

fn more(known: &Facts, scans: Vec<logs::Scan>) -> More {
    More { scans, facts: known.clone(), kernel: KernelLog::Elsewhere }
}

/// How the program ended.
struct Ended {
    status: i32,
    /// The last signal that we were sent and passed on.
    asked: Option<Signal>,
    /// Whether it was silent for longer than was set, up to its end.
    silent: bool,
    passed: Vec<Passed>,
}

impl Ended {
    /// Whether the status tells of trouble: not where it ended as it was asked to, or for want of a reader.
    fn blame(&self) -> bool {
        let as_asked = self.asked.is_some_and(|signal| self.status == 128 + signal.as_raw());
        !as_asked && self.status != 128 + Signal::PIPE.as_raw()
    }
}

/// Stays with the program up to its end.
fn accompany(
    running: Running,
    signals: &mut Signals,
    mut kernel: Option<&mut kmsg::Follow>,
    clock: &Clock,
    silence: Option<u64>,
) -> Result<Ended, Failure> {
    let mut running = running;
    let refuse = |error: std::io::Error| Failure::Environment(format!("the program's output: {error}"));
    let [out, err] = std::mem::take(&mut running.streams);
    let mut pumps = Vec::new();
    let mut lifelines = Vec::new();
    for (name, from, to) in [
        ("stdout", out, std::io::stdout().as_fd().try_clone_to_owned()),
        ("stderr", err, std::io::stderr().as_fd().try_clone_to_owned()),
    ] {
        let (Some(from), to) = (from, to.map_err(refuse)?) else { continue };
        let (seen, closed) = std::io::pipe().map_err(refuse)?;
        pumps.push(Pump::start(name, from, to, OwnedFd::from(seen), clock.clone()));
        lifelines.push(closed);
    }
    let silence = silence.map(Duration::from_secs);
    let (mut asked, mut told) = (None, false);
    let status = loop {
        if let Some(status) = running.child.try_wait().map_err(refuse)? {
            break status;
        }
        let timeout = silence.filter(|_| !told).map(|limit| limit.saturating_sub(clock.silent()));
        let kernel_fd = kernel.as_ref().and_then(|kernel| kernel.as_fd());
        wait(
            signals.fds().chain([running.pidfd.as_fd()]).chain(kernel_fd),
            timeout.map(at_least_a_millisecond),
        );
        for signal in signals.came() {
            running.forward(signal);
            asked = Some(signal);
        }
        if let Some(kernel) = kernel.as_deref_mut() {
            kernel.take();
        }
        if !told && silence.is_some_and(|limit| clock.silent() >= limit) {
            told = true;
            report::silent(running.child.id(), clock.silent());
        }
    };
    let silent = silence.is_some_and(|limit| clock.silent() >= limit);
    // What the kernel says of an OOM kill comes before the end of what it killed.
    if let Some(kernel) = kernel {
        kernel.take();
    }
    drop(lifelines);
    // A reader that no longer reads must not keep us from ending when we are asked to.
    while pumps.iter().any(|pump| !pump.is_finished()) {
        if !signals.sleep(Duration::from_millis(5)).is_empty() {
            break;
        }
    }
    let passed = pumps.into_iter().filter(Pump::is_finished).filter_map(Pump::finish).collect();
    Ok(Ended { status: number(status), asked, silent, passed })
}

fn at_least_a_millisecond(time: Duration) -> Duration {
    time.max(Duration::from_millis(1))
}

/// The status as a shell has it: 128+N after signal N.
fn number(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(128)
}

/// Counts only the OOM kills that came while the program ran.
fn since(before: &Facts, after: &mut Gathered) {
    let kills = &mut after.facts.container.oom_kills;
    if let (Some(then), facts::Reading::Known(now)) = (before.container.oom_kills.get(), kills) {
        now.value = now.value.saturating_sub(then);
    }
}

/// The memory events of our control group, which is the program's too.
struct Counters {
    oom: u64,
    oom_kill: u64,
}

impl Counters {
    fn read(args: &DoctorArgs, facts: &Facts) -> Option<Self> {
        let place = facts.container.oom_kills.source()?.place.clone();
        let path = match &args.source.root {
            Some(root) => root.join(place.trim_start_matches('/')),
            None if args.source.is_live() => place.to_string().into(),
            None => return None,
        };
        let text = std::fs::read_to_string(path).ok()?;
        let count = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0)
        };
        Some(Self { oom: count("oom "), oom_kill: count("oom_kill ") })
    }

    /// One line where they rose.
    fn rise(&self, args: &DoctorArgs, facts: &Facts) -> Option<String> {
        let now = Self::read(args, facts)?;
        let oom = now.oom.saturating_sub(self.oom);
        let kills = now.oom_kill.saturating_sub(self.oom_kill);
        (oom + kills > 0).then(|| {
            format!("while the program ran its control group reached its memory limit {oom} times, and {kills} processes in it were killed for that")
        })
    }
}
