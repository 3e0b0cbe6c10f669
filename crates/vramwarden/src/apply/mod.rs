//! `doctor --apply` and `doctor --undo`: the changes of files that a finding's fixes carry, made and taken back.
//!
//! `plan` (with `words` and `own`) says what files are to hold, and writes nothing; `engine` writes, over the
//! operations of `disk`, with the record of `journal`.

mod disk;
mod engine;
mod journal;
mod own;
mod plan;
mod show;
mod words;

use std::io::{self, IsTerminal, Write};

use findings::{Finding, Fix, diagnose};

use crate::cli::DoctorArgs;
use crate::gather::{gather, under};
use crate::render::harmless;
use crate::{Exit, Failure, doctor, output};
use disk::{Disk, Look, Root};
use journal::{Before, Journal, Now};
use plan::Edit;

/// Makes the changes of finding `id`.
///
/// # Errors
/// Bad usage, a file of another form, or a disk that fails; the text says in which state the files are.
pub fn apply(args: &DoctorArgs, id: &str) -> Result<Exit, Failure> {
    if !is_known(id) {
        return Err(doctor::unknown("--apply", id));
    }
    let gathered = gather(&args.source, &args.log, args.deep)?;
    gathered.warnings.iter().for_each(|warning| output::note(warning));
    if let Some(why) = &gathered.left_out {
        let mend = "give --apply what is about this machine, or --with-host";
        return Err(Failure::Input(format!("--apply: this host was left out: {why}; {mend}")));
    }
    let mut diagnosis = diagnose(&gathered.facts, &gathered.scans);
    harmless::diagnosis(&mut diagnosis);
    let found: Vec<&Finding> = diagnosis.findings.iter().filter(|finding| finding.id == id).collect();
    let all: Vec<&Fix> = found.iter().flat_map(|finding| &finding.fixes).collect();
    let fixes: Vec<&Fix> = all.iter().copied().filter(|fix| fix.change.is_some()).collect();
    let changes = || fixes.iter().filter_map(|fix| fix.change.as_ref());

    let disk = Root::open(args.source.root.as_deref())?;
    // Records are root's: another user gets to see the change, and is then refused.
    let record = if may_not(args) { None } else { Journal::load(&disk, id)? };
    let mut page = String::new();
    let journal = match record {
        Some(journal) => {
            if engine::is_complete(&disk, &journal)? {
                return applied_already(
                    &journal,
                    !plan::plan(&disk, changes()).unwrap_or_default().is_empty(),
                );
            }
            page += &format!("{id}: applying it was interrupted; this is the rest.\n\n");
            let files = journal.files.clone();
            unfinished(&mut page, &disk, &files)?;
            journal
        }
        None if found.is_empty() => return say(&format!("nothing to apply: {id} is not found here")),
        None if fixes.is_empty() => {
            let steps = show::by_hand(&all);
            return Err(Failure::Input(format!(
                "{id}: has no change that --apply can make; by hand: {steps}"
            )));
        }
        None => {
            let edits = plan::plan(&disk, changes())?;
            let then = show::remaining(&fixes);
            if edits.is_empty() {
                return say(&format!(
                    "nothing to apply: the files have it already; what may be left: {then}"
                ));
            }
            page += &format!("{id}: {}\n\n", found[0].title);
            for Edit { named, entry } in &edits {
                show::change(&mut page, named, entry, content(&entry.before), Some(&entry.after));
            }
            page.push('\n');
            show::fixes(&mut page, &fixes);
            Journal::new(id, edits.into_iter().map(|edit| edit.entry).collect(), then)
        }
    };
    page += &format!("Undo: {}, then {}\n", undo_command(args, id), journal.then);
    show::then(&mut page, &journal.files, &journal.then, false);
    output::print(&page)?;
    if !agreed(args, "Apply?")? {
        return say("Nothing was changed.");
    }
    change(disk, &journal, |disk| engine::apply(disk, &journal).map_err(Failure::from))?;
    say("Applied; see above for what is left to you.")
}

/// Puts the files of finding `id` back.
///
/// # Errors
/// Bad usage, a file that somebody else changed, or a disk that fails.
pub fn undo(args: &DoctorArgs, id: &str) -> Result<Exit, Failure> {
    if !is_known(id) {
        return Err(doctor::unknown("--undo", id));
    }
    if let Some(root) = &args.source.root {
        under(root)?;
    }
    if may_not(args) {
        return Err(root_needed(&format!("--undo {id}")));
    }
    let disk = Root::open(args.source.root.as_deref())?;
    let Some(journal) = Journal::load(&disk, id)? else {
        return say(&format!("nothing to undo: {id} is not applied here"));
    };
    let states = engine::survey(&disk, &journal)?;
    let mut page = format!("{id}: applied {}; this puts the files back.\n\n", journal.when);
    for (entry, _) in journal.files.iter().zip(states).filter(|(_, now)| *now == Now::After) {
        show::change(&mut page, &entry.path, entry, Some(&entry.after), content(&entry.before));
    }
    page.push('\n');
    show::then(&mut page, &journal.files, &journal.then, true);
    output::print(&page)?;
    if !agreed(args, "Undo?")? {
        return say("Nothing was changed.");
    }
    change(disk, &journal, |disk| Ok(engine::undo(disk, &journal)?))?;
    say("Undone; see above for what is left to you.")
}

fn is_known(id: &str) -> bool {
    findings::rules().iter().any(|rule| rule.id == id)
}

fn say(line: &str) -> Result<Exit, Failure> {
    output::print(&format!("{line}\n")).map(|()| Exit::Fine)
}

fn content(before: &Before) -> Option<&str> {
    match before {
        Before::Absent => None,
        Before::File(present) => Some(&present.content),
    }
}

fn undo_command(args: &DoctorArgs, id: &str) -> String {
    match &args.source.root {
        Some(root) => {
            format!("vramwarden doctor --root {} --undo {id}", harmless::text(&root.to_string_lossy()))
        }
        None => format!("sudo vramwarden doctor --undo {id}"),
    }
}

fn applied_already(journal: &Journal, differs: bool) -> Result<Exit, Failure> {
    let Journal { id, when, then, .. } = journal;
    if differs {
        return Err(Failure::Input(format!(
            "{id}: applied {when} with other values than now; take that back first: --undo {id}"
        )));
    }
    say(&format!(
        "nothing to apply: {id} was applied {when}; nothing was changed. If you have not yet: {then}"
    ))
}

/// The files that are still as before.
fn unfinished(page: &mut String, disk: &Root, files: &[journal::Entry]) -> Result<(), Failure> {
    for entry in files {
        if entry.now(&disk.look(&entry.path)?) == Now::Before {
            show::change(page, &entry.path, entry, content(&entry.before), Some(&entry.after));
        }
    }
    page.push('\n');
    Ok(())
}

/// Whether this user cannot change this machine's files. Under a root the file system tells.
fn may_not(args: &DoctorArgs) -> bool {
    args.source.root.is_none() && !rustix::process::geteuid().is_root()
}

fn root_needed(option: &str) -> Failure {
    Failure::Environment(format!("{option} changes files of root; run: sudo vramwarden doctor {option}"))
}

/// Asks, where there is somebody to ask.
fn agreed(args: &DoctorArgs, question: &str) -> Result<bool, Failure> {
    if may_not(args) {
        let option = args.apply.as_ref().map(|id| format!("--apply {id}")).unwrap_or_default();
        return Err(root_needed(&option));
    }
    if args.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        let what = "stdin is no terminal, so nobody can be asked";
        return Err(Failure::Input(format!("{what}; nothing was changed; --yes does it without asking")));
    }
    let mut err = io::stderr().lock();
    let _ = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let mut line = String::new();
    io::stdin()
        .read_line(&mut line)
        .map_err(|error| Failure::Environment(format!("stdin: {error}; nothing was changed")))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Takes the lock, makes sure that all is as it was shown, and changes it.
fn change(
    mut disk: Root,
    journal: &Journal,
    act: impl FnOnce(&mut dyn Disk) -> Result<(), Failure>,
) -> Result<(), Failure> {
    journal::make_home(&mut disk)?;
    let _lock = disk.lock(journal::LOCK).map_err(|fault| match fault.error.kind() {
        io::ErrorKind::WouldBlock => Failure::Environment(format!(
            "{}: another vramwarden is changing files; run again when it is done",
            journal::LOCK
        )),
        _ => fault.into(),
    })?;
    let meanwhile = |what: &str| {
        Failure::Environment(format!("{what}: changed since it was shown; nothing was done; run again"))
    };
    match Journal::load(&disk, &journal.id)? {
        // A record of this apply, or none yet.
        Some(there) if there == *journal => {}
        Some(_) => return Err(meanwhile(&Journal::path(&journal.id))),
        None => {
            for entry in &journal.files {
                let same = match (&entry.before, disk.look(&entry.path)?) {
                    (Before::Absent, Look::Absent | Look::NoDirectory) => true,
                    (Before::File(before), Look::File(now)) => *before == now,
                    _ => false,
                };
                if !same {
                    return Err(meanwhile(&entry.path));
                }
            }
        }
    }
    // As shown, or as an interruption left it.
    engine::survey(&disk, journal)?;
    act(&mut disk)
}
