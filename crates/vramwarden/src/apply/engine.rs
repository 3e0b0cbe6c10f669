//! Changing files so that an interruption anywhere leaves each of them old or new, and the record to go on from.
//!
//! ```text
//! apply: record on disk → every new file staged beside the old one → each renamed into place
//! undo:  each file put back, or removed → record taken away
//! ```
//!
//! The record stands from before the first change until after the last one is taken back. Both directions skip what is
//! done already, so either may be run again after an interruption.

use super::disk::{Disk, Fault, Look, split, temporary};
use super::journal::{Before, Entry, Journal, Now};
use crate::Failure;

/// The files of the record as they stand.
///
/// # Errors
/// One cannot be read, or somebody else has changed it.
pub fn survey(disk: &dyn Disk, journal: &Journal) -> Result<Vec<Now>, Failure> {
    let mut all = Vec::new();
    for entry in &journal.files {
        let now = entry.now(&disk.look(&entry.path)?);
        if now == Now::Neither {
            return Err(Failure::Input(format!(
                "{}: changed by somebody else since {}; what it held before is kept in {}: mend the file by hand, then remove that record",
                entry.path,
                journal.when,
                Journal::path(&journal.id),
            )));
        }
        all.push(now);
    }
    Ok(all)
}

/// Whether every file is as it is to be, and nothing is left of an interrupted change.
///
/// # Errors
/// One cannot be read, or somebody else has changed it.
pub fn is_complete(disk: &dyn Disk, journal: &Journal) -> Result<bool, Failure> {
    if survey(disk, journal)?.contains(&Now::Before) {
        return Ok(false);
    }
    for entry in &journal.files {
        let (directory, name) = split(&entry.path);
        if matches!(disk.look(&format!("{directory}/{}", temporary(name)))?, Look::File(_)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How a change that failed ended.
#[derive(Debug)]
pub enum Trouble {
    /// All is as it was.
    RolledBack(Fault),
    /// It could not be taken back; the record stands.
    Halfway(Fault),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        let (fault, state) = match trouble {
            Trouble::RolledBack(fault) => (fault, "nothing was changed"),
            Trouble::Halfway(fault) => {
                (fault, "only a part was done: mend that and run the same again, or --undo")
            }
        };
        let mend = if fault.denied() { "run it as root (sudo); " } else { "" };
        Self::Environment(format!("{fault}; {mend}{state}"))
    }
}

/// Makes every file new. The record is saved first where it is not there yet.
///
/// # Errors
/// The first operation that failed; what was done before it is taken back.
pub fn apply(disk: &mut dyn Disk, journal: &Journal) -> Result<(), Trouble> {
    journal.save(disk).map_err(Trouble::RolledBack)?;
    match forward(disk, journal) {
        Ok(()) => Ok(()),
        Err(fault) => match undo(disk, journal) {
            Ok(()) => Err(Trouble::RolledBack(fault)),
            Err(_) => Err(Trouble::Halfway(fault)),
        },
    }
}

fn now(disk: &dyn Disk, entry: &Entry) -> Result<Now, Fault> {
    disk.look(&entry.path).map(|look| entry.now(&look))
}

fn forward(disk: &mut dyn Disk, journal: &Journal) -> Result<(), Fault> {
    // What most often fails, a full or read-only disk, fails here, before any file has changed.
    for entry in &journal.files {
        if now(disk, entry)? == Now::After {
            disk.unstage(&entry.path)?;
            continue;
        }
        if entry.made_directory && disk.look(&entry.path)? == Look::NoDirectory {
            let directory = split(&entry.path).0;
            disk.make_directory(directory, 0o755)?;
            disk.sync_directory(split(directory).0)?;
        }
        if !disk.direct(&entry.path) {
            disk.stage(&entry.path, &entry.after, file(&entry.before))?;
        }
    }
    for entry in &journal.files {
        if now(disk, entry)? == Now::After {
            continue;
        }
        if disk.direct(&entry.path) {
            disk.overwrite(&entry.path, &entry.after)?;
        } else {
            disk.publish(&entry.path)?;
            disk.sync_directory(split(&entry.path).0)?;
        }
    }
    Ok(())
}

fn file(before: &Before) -> Option<&super::disk::Present> {
    match before {
        Before::Absent => None,
        Before::File(present) => Some(present),
    }
}

/// Puts every file back and takes the record away. Files that somebody else changed are for the caller to refuse.
///
/// # Errors
/// The first operation that failed; the record stands, so that it can be run again.
pub fn undo(disk: &mut dyn Disk, journal: &Journal) -> Result<(), Fault> {
    for entry in journal.files.iter().rev() {
        disk.unstage(&entry.path)?;
        let (directory, changed) = (split(&entry.path).0, now(disk, entry)? == Now::After);
        match &entry.before {
            Before::File(before) if changed => {
                if disk.direct(&entry.path) {
                    disk.overwrite(&entry.path, &before.content)?;
                } else {
                    disk.stage(&entry.path, &before.content, Some(before))?;
                    disk.publish(&entry.path)?;
                    disk.sync_directory(directory)?;
                }
            }
            Before::Absent => {
                if changed {
                    disk.remove(&entry.path)?;
                    disk.sync_directory(directory)?;
                }
                if entry.made_directory && disk.look(&entry.path)? != Look::NoDirectory {
                    disk.remove_directory(directory)?;
                    disk.sync_directory(split(directory).0)?;
                }
            }
            Before::File(_) => {}
        }
    }
    journal.discard(disk)
}

#[cfg(test)]
mod tests;
