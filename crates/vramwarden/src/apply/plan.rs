//! From the changes of a finding's fixes to the contents that files are to have. Nothing is written here.

use findings::Change;

use super::disk::{Disk, Look, split};
use super::journal::{Before, Entry};
use super::own;
use super::words::{self, Form};
use crate::Failure;

const MODPROBE: &str = "/etc/modprobe.d";
const ENTRIES: &str = "/boot/loader/entries";

/// A file to change: the path that the finding names, and what becomes of what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The path as named.
    pub named: String,
    /// What becomes of it.
    pub entry: Entry,
}

/// What may be changed at all. Facts may come from a sheet or a log, so a path is not taken on trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Own,
    Words(Form),
    Sysfs,
}

fn place(path: &str) -> Option<Place> {
    let plain = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-+:~@".contains(c))
    };
    let (directory, name) = split(path);
    match path {
        "/etc/default/grub" => return Some(Place::Words(Form::Grub)),
        "/etc/kernel/cmdline" => return Some(Place::Words(Form::Line)),
        "/etc/nixos/vramwarden.nix" => return Some(Place::Own),
        _ => {}
    }
    if directory == ENTRIES && plain(name) && name.ends_with(".conf") {
        return Some(Place::Words(Form::Entry));
    }
    if directory == MODPROBE && plain(name) && name.starts_with("vramwarden-") && name.ends_with(".conf") {
        return Some(Place::Own);
    }
    let bdf = path.strip_prefix("/sys/bus/pci/devices/").and_then(|rest| rest.strip_suffix("/uma/carveout"));
    bdf.is_some_and(plain).then_some(Place::Sysfs)
}

/// Whether nothing in a parameter or value means anything to a shell or a boot loader.
fn harmless(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:/+-".contains(c))
}

/// The files that the changes make different, in order. Changes of one file are joined.
///
/// # Errors
/// A file is not what it should be (2), or cannot be read (3); nothing is changed.
pub fn plan<'a>(
    disk: &dyn Disk,
    changes: impl IntoIterator<Item = &'a Change>,
) -> Result<Vec<Edit>, Failure> {
    let mut edits: Vec<Edit> = Vec::new();
    for change in changes {
        let paths = match change {
            Change::File { path, .. } | Change::Sysfs { path, .. } => std::slice::from_ref(path),
            Change::Word { paths, .. } => paths.as_slice(),
        };
        for named in paths {
            let place = place(named).ok_or_else(|| {
                Failure::Input(format!("{named:?}: not a file that --apply changes; follow the fix by hand"))
            })?;
            let at = match edits.iter().position(|edit| edit.named == *named) {
                Some(at) => at,
                None => {
                    edits.push(open(disk, named, place)?);
                    edits.len() - 1
                }
            };
            let entry = &mut edits[at].entry;
            entry.after = changed(change, named, place, &entry.after)
                .map_err(|why| Failure::Input(format!("{named}: {why}; nothing was changed")))?;
        }
    }
    if let Some(edit) = edits.iter().enumerate().find_map(|(at, edit)| {
        edits[..at].iter().any(|other| other.entry.path == edit.entry.path).then_some(edit)
    }) {
        let what = format!("{}: leads to {}, as another file of the fix does", edit.named, edit.entry.path);
        return Err(Failure::Input(format!("{what}; follow the fix by hand")));
    }
    edits.retain(|edit| match &edit.entry.before {
        Before::Absent => true,
        Before::File(before) => before.content != edit.entry.after,
    });
    Ok(edits)
}

/// `text` with the change.
fn changed(change: &Change, named: &str, place: Place, text: &str) -> Result<String, String> {
    match (change, place) {
        (Change::File { content, .. }, Place::Own) => own::joined(named, text, content),
        (Change::Sysfs { value, .. }, Place::Sysfs) if harmless(value) => {
            Ok(if text.trim() == value { text.to_owned() } else { format!("{value}\n") })
        }
        (Change::Word { name, value, .. }, Place::Words(form))
            if harmless(name) && value.as_deref().is_none_or(harmless) =>
        {
            words::edit(form, text, name, value.as_deref())
        }
        _ => Err("the change is not one that --apply makes; follow the fix by hand".to_owned()),
    }
}

/// The file as it is, still without a change.
fn open(disk: &dyn Disk, named: &str, place: Place) -> Result<Edit, Failure> {
    // A link is followed, as an editor would; a file of our own is never one.
    let path = if place == Place::Own { named.to_owned() } else { disk.follow(named)? };
    let (before, made_directory) = match (disk.look(&path)?, place) {
        (Look::File(present), _) => (Before::File(present), false),
        (Look::Absent, Place::Own) => (Before::Absent, false),
        // Only this one belongs to everybody; where /etc/nixos is missing, NixOS is configured elsewhere.
        (Look::NoDirectory, Place::Own) if split(named).0 == MODPROBE => (Before::Absent, true),
        _ => {
            let what = format!("{named}: is not there, though the fix changes it");
            return Err(Failure::Input(format!("{what}; follow the fix by hand")));
        }
    };
    let after = match &before {
        Before::File(present) => present.content.clone(),
        Before::Absent => String::new(),
    };
    let entry = Entry { path, before, after, made_directory, sysfs: place == Place::Sysfs };
    Ok(Edit { named: named.to_owned(), entry })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_fixes_may_be_changed() {
        for good in [
            "/etc/default/grub",
            "/etc/kernel/cmdline",
            "/boot/loader/entries/6b2-6.18.6-100.fc43.x86_64.conf",
            "/etc/modprobe.d/vramwarden-ttm.conf",
            "/etc/nixos/vramwarden.nix",
            "/sys/bus/pci/devices/0000:c5:00.0/uma/carveout",
        ] {
            assert!(place(good).is_some(), "{good}");
        }
        for bad in [
            "/etc/shadow",
            "/boot/loader/entries/../../../etc/shadow",
            "/boot/loader/entries/x",
            "/boot/loader/entries/sub/x.conf",
            "/etc/modprobe.d/blacklist.conf",
            "/etc/modprobe.d/vramwarden-a/../b.conf",
            "/etc/modprobe.d/vramwarden-a\n.conf",
            "/sys/bus/pci/devices/../uma/carveout",
            "/sys/bus/pci/devices/a/b/uma/carveout",
            "etc/default/grub",
        ] {
            assert_eq!(place(bad), None, "{bad}");
        }
    }
}
