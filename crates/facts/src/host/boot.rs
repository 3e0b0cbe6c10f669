//! What the next boot would be given: the boot loader's files and modprobe.d.

use std::collections::BTreeMap;

use super::Host;
use super::read::{Text, known, missing, shorten, value_of, word};
use crate::reading::{Missing, Reading};

const ENTRIES: &str = "/boot/loader/entries";
const KERNEL_CMDLINE: &str = "/etc/kernel/cmdline";
const GRUB: &str = "/etc/default/grub";
const GRUB_DIRECTORY: &str = "/etc/default/grub.d";

/// The configured command line, and what each file says.
///
/// Boot loader entries come first, since the loader reads them itself; of several the one for the running kernel, else
/// the last by name. The other two files are what entries and grub.cfg are made from: an edit there is in vain until
/// they are made anew.
pub(super) fn cmdline(host: &dyn Host, release: Option<&str>) -> (Reading<String>, Reading<Vec<String>>) {
    let mut candidates = entries(host, release);
    candidates.push(Text::open(host, KERNEL_CMDLINE).whole(word));
    candidates.push(grub(host));
    let files: Vec<String> = candidates
        .iter()
        .filter_map(Reading::as_known)
        .map(|known| format!("{}: {}", known.source.place, known.value))
        .collect();
    // A file that may not be read tells more than one that is not there.
    let denied = candidates.iter().find(|one| matches!(one, Reading::Missing(Missing::Denied(_)))).cloned();
    let first = candidates.iter().find(|one| one.is_known()).cloned();
    let last = candidates.pop().unwrap_or_default();
    let files = match &first {
        Some(Reading::Known(first)) => {
            let text = format!("{} files", files.len());
            known(files, &first.source.place, &text)
        }
        _ => match denied.as_ref().unwrap_or(&last) {
            Reading::Missing(why) => Reading::Missing(why.clone()),
            Reading::Known(_) => Reading::default(),
        },
    };
    (first.or(denied).unwrap_or(last), files)
}

/// The `options` of the entries of the boot loader specification, the one to boot first.
fn entries(host: &dyn Host, release: Option<&str>) -> Vec<Reading<String>> {
    let names = match host.list(ENTRIES) {
        Ok(names) => names,
        Err(refusal) => return vec![Reading::Missing(missing(refusal, ENTRIES))],
    };
    let mut found = Vec::new();
    let mut of_running = None;
    for name in names.iter().rev().filter(|name| name.ends_with(".conf")).take(32) {
        let entry = Text::open(host, format!("{ENTRIES}/{name}"));
        let options = entry.whole(|text| {
            let lines: Vec<&str> = text.lines().filter_map(|line| value_of(line, "options")).collect();
            word(&lines.join(" "))
        });
        let version = entry.entry("version", word);
        if of_running.is_none() && options.is_known() && release.is_some() && version.text() == release {
            of_running = Some(found.len());
        }
        found.push(options);
    }
    if let Some(at) = of_running {
        found[..=at].rotate_right(1);
    }
    found
}

/// `GRUB_CMDLINE_LINUX` and `GRUB_CMDLINE_LINUX_DEFAULT`, in the order grub-mkconfig joins them.
fn grub(host: &dyn Host) -> Reading<String> {
    let main = Text::open(host, GRUB);
    if let Reading::Missing(why @ (Missing::Absent(_) | Missing::Denied(_))) = main.whole(|_| Some(())) {
        return Reading::Missing(why);
    }
    let names = host.list(GRUB_DIRECTORY).unwrap_or_default();
    let more = names.iter().filter(|name| name.ends_with(".cfg")).take(32);
    let more: Vec<Text> = more.map(|name| Text::open(host, format!("{GRUB_DIRECTORY}/{name}"))).collect();
    let mut variables: BTreeMap<&str, String> = BTreeMap::new();
    let mut last = &main;
    for text in std::iter::once(&main).chain(&more) {
        for (name, value) in text.get().unwrap_or_default().lines().filter_map(assignment) {
            // Files of grub.d add to what stood before.
            let before = variables.get(name).cloned().unwrap_or_default();
            let joined =
                value.replace(&format!("${{{name}}}"), &before).replace(&format!("${name}"), &before);
            // Two variables that double each other line by line would grow without end.
            variables.insert(name, joined.chars().take(16 << 10).collect());
            last = text;
        }
    }
    if variables.is_empty() {
        return main.unreadable("has no line GRUB_CMDLINE_LINUX or GRUB_CMDLINE_LINUX_DEFAULT");
    }
    let parts = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];
    let joined: Vec<&str> = parts.iter().filter_map(|name| variables.get(name)).map(|v| v.trim()).collect();
    let joined = joined.join(" ");
    let joined = joined.trim();
    if joined.contains(char::is_control) {
        return last.unreadable("has control characters");
    }
    last.found(joined.to_owned(), joined)
}

/// `GRUB_CMDLINE_LINUX…="…"` as the shell reads it, without its quotes.
fn assignment(line: &str) -> Option<(&str, String)> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let (name, added) = match name.strip_suffix('+') {
        Some(name) => (name, true),
        None => (name, false),
    };
    if !matches!(name, "GRUB_CMDLINE_LINUX" | "GRUB_CMDLINE_LINUX_DEFAULT") {
        return None;
    }
    let value = value.trim();
    let inner = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
        _ => value.split_whitespace().next().unwrap_or_default(),
    };
    Some((name, if added { format!("${{{name}}}{inner}") } else { inner.to_owned() }))
}

/// Where modprobe looks; a file hides those of its name in later directories.
const MODPROBE: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

const MODULES: [&str; 3] = ["amdgpu", "ttm", "amdttm"];

/// The lines of modprobe.d that set options of amdgpu or ttm, or keep them from being loaded.
pub(super) fn modprobe(host: &dyn Host) -> Reading<Vec<String>> {
    let mut files: BTreeMap<String, Text> = BTreeMap::new();
    let mut absent = None;
    let mut any = None;
    for directory in MODPROBE {
        match host.list(directory) {
            Ok(names) => {
                any.get_or_insert(directory);
                for name in names.into_iter().filter(|name| name.ends_with(".conf")).take(256) {
                    files
                        .entry(name)
                        .or_insert_with_key(|name| Text::open(host, format!("{directory}/{name}")));
                }
            }
            Err(refusal) => {
                absent.get_or_insert_with(|| missing(refusal, directory));
            }
        }
    }
    let Some(directory) = any else {
        return Reading::Missing(absent.unwrap_or_default());
    };
    let mut lines = Vec::new();
    let mut place = None;
    for text in files.values() {
        let joined = text.get().unwrap_or_default().replace("\\\n", " ");
        for line in joined.lines().filter(|line| concerns(line)).take(256) {
            place.get_or_insert(text.path());
            lines.extend(word(&line.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    let shown = shorten(&lines.join("; "));
    known(lines, place.unwrap_or(directory), &shown)
}

fn concerns(line: &str) -> bool {
    let mut words = line.split_whitespace();
    matches!(words.next(), Some("options" | "blacklist" | "install"))
        && words.next().is_some_and(|module| MODULES.contains(&module))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Fake;
    use super::*;

    #[test]
    fn the_entry_of_the_running_kernel_goes_before_the_files_it_is_made_from() {
        let host = Fake::of(&[
            ("/boot/loader/entries/a-6.17.conf", "version 6.17\noptions root=/ ttm.pages_limit=1\n"),
            ("/boot/loader/entries/b-6.18.conf", "version 6.18\noptions root=/\noptions quiet\n"),
            ("/etc/default/grub", "GRUB_CMDLINE_LINUX=\"rd.luks\"\n"),
        ]);
        let (configured, files) = cmdline(&host, Some("6.17"));
        assert_eq!(configured.text(), Some("root=/ ttm.pages_limit=1"));
        assert_eq!(&*configured.source().unwrap().place, "/boot/loader/entries/a-6.17.conf");
        assert_eq!(files.value().unwrap().len(), 3);
        assert_eq!(cmdline(&host, None).0.text(), Some("root=/ quiet"));
    }

    #[test]
    fn grub_variables_are_unquoted_joined_and_added_to() {
        let host = Fake::of(&[
            (
                "/etc/default/grub",
                "# GRUB_CMDLINE_LINUX=no\nGRUB_CMDLINE_LINUX_DEFAULT='quiet splash'\nGRUB_CMDLINE_LINUX=\"\"\n",
            ),
            (
                "/etc/default/grub.d/x.cfg",
                "GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT amd_iommu=off\"\n",
            ),
            ("/etc/default/grub.d/y.cfg", "GRUB_CMDLINE_LINUX+=\" iommu=pt\"\n"),
        ]);
        assert_eq!(grub(&host).text(), Some("iommu=pt quiet splash amd_iommu=off"));
        assert!(!grub(&Fake::of(&[("/etc/default/grub", "GRUB_TIMEOUT=1")])).is_known());
    }

    #[test]
    fn no_boot_file_is_absent_and_a_locked_one_is_denied() {
        assert!(matches!(cmdline(&Fake::default(), None).0, Reading::Missing(Missing::Absent(_))));
        assert_eq!(
            cmdline(&Fake::default().deny(ENTRIES), None).0,
            Reading::Missing(Missing::Denied(ENTRIES.into()))
        );
    }

    #[test]
    fn a_modprobe_file_in_etc_hides_its_namesake() {
        let host = Fake::of(&[
            (
                "/etc/modprobe.d/ttm.conf",
                "# comment\noptions  ttm \\\n pages_limit=28835840\noptions snd x=1\n",
            ),
            ("/usr/lib/modprobe.d/ttm.conf", "options ttm pages_limit=1\n"),
            ("/usr/lib/modprobe.d/z.conf", "blacklist amdgpu\n"),
        ]);
        let lines = modprobe(&host);
        assert_eq!(lines.value().unwrap(), &["options ttm pages_limit=28835840", "blacklist amdgpu"]);
        assert_eq!(&*lines.source().unwrap().place, "/etc/modprobe.d/ttm.conf");
        assert!(matches!(modprobe(&Fake::default()), Reading::Missing(Missing::Absent(_))));
    }
}
