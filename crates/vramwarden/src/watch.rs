//! `vramwarden doctor --watch`: stays, and speaks when a finding appears, gets worse or is gone.

mod follow;
mod state;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use facts::Facts;
use findings::{Diagnosis, Finding, Severity, diagnose};
use logs::Scan;
use serde::Serialize;

use crate::cli::{DoctorArgs, Format};
use crate::gather::{Gathered, KernelLog, More, gather_with};
use crate::render::{self, plain};
use crate::signals::Signals;
use crate::{Exit, Failure, kmsg, output};
use follow::{Follower, Recent, numbered};
use state::{Event, State};

/// Lines that came within so many seconds are looked at together, as one trouble: of two errors the one that explains
/// the other is spoken of.
const TOGETHER: u64 = 10;

/// How often the logs are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// One line of `--format json`.
#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    time: String,
    event: Event,
    finding: &'a Finding,
}

/// Watches up to a signal, or with `--once-found` to the first error.
///
/// # Errors
/// Bad input; stdout that cannot be written.
pub fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    let mut watch = Watch::start(args)?;
    let mut signals = Signals::catch()?;
    let every = Duration::from_secs(args.every);
    let mut next_host = Instant::now() + every;
    loop {
        let now = Instant::now();
        let sleep = LOOK.min(next_host.saturating_duration_since(now));
        if !signals.sleep(sleep.max(Duration::from_millis(1))).is_empty() {
            return Ok(Exit::Fine);
        }
        let news = watch.listen();
        let due = Instant::now() >= next_host;
        if due {
            next_host = Instant::now() + every;
        }
        if (news || due)
            && let Some(exit) = watch.look()?
        {
            return Ok(exit);
        }
    }
}

struct Watch<'a> {
    args: &'a DoctorArgs,
    source: crate::cli::SourceArgs,
    start: Instant,
    logs: Vec<(Follower, Recent)>,
    kernel: Option<(kmsg::Follow, Recent, u64)>,
    /// What the kernel's log stated of the machine at the start.
    known: Facts,
    state: State,
    /// Why the host could not be read, told once.
    trouble: Option<String>,
}

impl<'a> Watch<'a> {
    fn start(args: &'a DoctorArgs) -> Result<Self, Failure> {
        if args.format == Format::Markdown {
            return Err(Failure::Input("--watch: speaks plain or json, not markdown".into()));
        }
        if args.log.iter().chain(&args.source.facts).any(|path| path.as_os_str() == "-") {
            return Err(Failure::Input("--watch: stdin cannot be followed; name a file".into()));
        }
        if args.source.no_host && args.log.is_empty() {
            return Err(Failure::Input("--no-host: nothing is left to watch; name a log (--log)".into()));
        }
        // What a log says of another machine does not make this one less watched.
        let source = crate::cli::SourceArgs { with_host: !args.source.no_host, ..args.source.clone() };
        let mut watch = Self {
            args,
            source,
            start: Instant::now(),
            logs: Vec::new(),
            kernel: None,
            known: Facts::default(),
            state: State::default(),
            trouble: None,
        };
        for path in &args.log {
            watch.logs.push((Follower::start(path)?, Recent::default()));
        }
        let mut kernel = "";
        if args.source.is_live() {
            match kmsg::Follow::open() {
                Ok(log) => {
                    watch.kernel = Some((log, Recent::default(), 0));
                    kernel = "the kernel's log, ";
                    if let Ok(scan) = kmsg::read() {
                        watch.known = facts::stated(&scan);
                    }
                }
                Err(note) => output::note(&note),
            }
        }
        let (gathered, diagnosis) = watch.diagnose(Vec::new())?;
        gathered.warnings.iter().for_each(|warning| output::note(warning));
        let there = watch.state.update(&diagnosis.findings, |_| true, 0);
        let logs: Vec<String> = std::iter::zip(&args.log, &watch.logs)
            .map(|(path, (log, _))| {
                format!("{}{}, ", path.display(), if log.is_open() { "" } else { " (not there yet)" })
            })
            .collect();
        let host = if args.source.no_host { "no host" } else { "this host" };
        let host = args.source.root.as_ref().map_or(host.to_owned(), |root| root.display().to_string());
        let already = match there.as_slice() {
            [] => "Nothing is wrong now.".to_owned(),
            there => {
                let ids: Vec<&str> = there.iter().map(|(_, finding)| finding.id).collect();
                format!("Already there: {}.", ids.join(", "))
            }
        };
        let header = format!(
            "watching {kernel}{}{host} (every {} s). {already}",
            render::harmless::text(&logs.concat()),
            args.every
        );
        match args.format {
            Format::Json => output::note(&header),
            _ => drop(say(&format!("{} {header}\n", time()))?),
        }
        Ok(watch)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    /// Takes what the logs said; tells whether that is anything new.
    fn listen(&mut self) -> bool {
        let now = self.now();
        let mut news = false;
        for (log, recent) in &mut self.logs {
            let (hits, trouble) = log.look();
            trouble.iter().for_each(|trouble| output::note(trouble));
            news |= !hits.is_empty();
            recent.take(hits, now, TOGETHER);
        }
        if let Some((log, recent, lines)) = &mut self.kernel {
            let scan = log.said();
            news |= !scan.hits.is_empty();
            recent.take(numbered(scan.hits, *lines), now, TOGETHER);
            *lines += scan.lines;
        }
        news
    }

    fn diagnose(&self, scans: Vec<Scan>) -> Result<(Gathered, Diagnosis), Failure> {
        let more = More { scans, facts: self.known.clone(), kernel: KernelLog::Elsewhere };
        let gathered = gather_with(&self.source, &[] as &[&std::path::Path], false, more)?;
        let mut diagnosis = diagnose(&gathered.facts, &gathered.scans);
        render::harmless::diagnosis(&mut diagnosis);
        Ok((gathered, diagnosis))
    }

    /// Looks at the host and at what the logs said lately, and speaks. A status where that ends it.
    fn look(&mut self) -> Result<Option<Exit>, Failure> {
        let logs = self.logs.iter().map(|(_, recent)| recent);
        let scans = logs.chain(self.kernel.iter().map(|(_, recent, _)| recent)).map(Recent::scan).collect();
        let (gathered, diagnosis) = match self.diagnose(scans) {
            Ok(done) => done,
            // A file that is being replaced, say: the next look tells.
            Err(failure) => {
                let trouble = failure.to_string();
                if self.trouble.as_ref() != Some(&trouble) {
                    output::note(&trouble);
                    self.trouble = Some(trouble);
                }
                return Ok(None);
            }
        };
        self.trouble = None;
        let mut host = diagnose(&gathered.facts, &[]);
        render::harmless::diagnosis(&mut host);
        let alone: Vec<String> = host.findings.iter().map(state::key).collect();
        let now = self.now();
        // What a line explains better for a while is not over.
        let mut found = diagnosis.findings;
        host.findings.retain(|finding| found.iter().all(|have| have.id != finding.id));
        found.extend(host.findings);
        let events = self.state.update(&found, |finding| alone.contains(&state::key(finding)), now);
        for (event, finding) in events {
            if self.state.may_tell(now) && !self.tell(event, &finding)? {
                return Ok(Some(Exit::Fine));
            }
            if self.args.once_found && event != Event::Gone && finding.severity == Severity::Error {
                return Ok(Some(Exit::Found));
            }
        }
        if let Some(count) = self.state.held_back(now) {
            output::note(&format!("{count} more events were held back, as there were too many"));
        }
        Ok(None)
    }

    /// Tells one event. False where nobody listens any more.
    fn tell(&self, event: Event, finding: &Finding) -> Result<bool, Failure> {
        if self.args.format == Format::Json {
            let line = Line { schema: "vramwarden.watch/1", time: time(), event, finding };
            let line = serde_json::to_string(&line).unwrap_or_default();
            return say(&format!("{line}\n"));
        }
        let page =
            plain::Page { colour: output::colour(), width: output::width(), verbose: self.args.verbose };
        say(&page.event(&time(), event == Event::Gone, finding))
    }
}

/// The time, to the second.
fn time() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}

/// Writes to stdout at once. False where the reader has gone.
fn say(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Environment(format!("stdout: {error}"))),
    }
}
