//! `vramwarden doctor`.

use findings::{Severity, diagnose};

use crate::cli::{DoctorArgs, Format};
use crate::gather::gather;
use crate::{Exit, Failure, apply, output, program, render, watch};

/// Looks, and says what is wrong.
///
/// # Errors
/// A source that cannot be read or is not what it should be; an unknown id.
pub fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    if let Some(id) = &args.explain {
        return explain(id);
    }
    if !args.program.is_empty() {
        return program::run(args);
    }
    if args.watch {
        return watch::run(args);
    }
    if let Some(id) = &args.apply {
        return apply::apply(args, id);
    }
    if let Some(id) = &args.undo {
        return apply::undo(args, id);
    }
    let gathered = gather(&args.source, &args.log, args.deep)?;
    for warning in &gathered.warnings {
        output::note(warning);
    }
    let mut diagnosis = diagnose(&gathered.facts, &gathered.scans);
    render::harmless::diagnosis(&mut diagnosis);
    let text = match args.format {
        Format::Json => render::json::document(&diagnosis),
        Format::Markdown => render::markdown::document(&gathered, &diagnosis),
        Format::Plain => {
            let page = render::plain::Page {
                colour: output::colour(),
                width: output::width(),
                verbose: args.verbose,
            };
            page.document(&gathered, &diagnosis)
        }
    };
    if args.format == Format::Json
        && let Some(why) = &gathered.left_out
    {
        output::note(&format!("this host was left out: {why} (--with-host keeps it)"));
    }
    output::print(&text)?;
    let bad = diagnosis.findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if bad { Exit::Found } else { Exit::Fine })
}

fn explain(id: &str) -> Result<Exit, Failure> {
    match findings::rules().iter().find(|rule| rule.id == id) {
        Some(rule) => output::print(rule.page).map(|()| Exit::Fine),
        None => Err(unknown("--explain", id)),
    }
}

/// Says that `option` was given an id that no finding has.
pub(crate) fn unknown(option: &str, id: &str) -> Failure {
    let known = || findings::rules().iter().map(|rule| rule.id);
    let near = known().min_by_key(|known| distance(known, id));
    let mend = match near.filter(|near| 2 * distance(near, id) <= near.len()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("the ids are {}", known().collect::<Vec<_>>().join(", ")),
    };
    Failure::Input(format!("{option}: no finding is named {id:?}; {mend}"))
}

/// Edits between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let cost = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}
