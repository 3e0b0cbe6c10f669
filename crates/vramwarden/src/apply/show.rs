//! What is shown before a change and said after it.

use std::fmt::Write;

use findings::Fix;
use similar::TextDiff;

use super::journal::Entry;
use crate::render::harmless;

/// The difference as `diff -u` has it. `from` is what the file holds, `None` where it is not there.
fn difference(out: &mut String, path: &str, from: Option<&str>, to: Option<&str>) {
    let name = |side: Option<&str>| if side.is_some() { path } else { "/dev/null" };
    let diff = TextDiff::from_lines(from.unwrap_or_default(), to.unwrap_or_default());
    let text = diff.unified_diff().context_radius(3).header(name(from), name(to)).to_string();
    for line in text.lines() {
        let safe: Vec<String> = line.split('\t').map(harmless::text).collect();
        let _ = writeln!(out, "{}", safe.join("\t"));
    }
}

/// The file's way from one text to the other; `None` where it is not there.
pub fn change(out: &mut String, named: &str, entry: &Entry, from: Option<&str>, to: Option<&str>) {
    if named != entry.path {
        let _ = writeln!(out, "{} is a link to {}.", harmless::text(named), harmless::text(&entry.path));
    }
    if entry.made_directory && from.is_none() {
        let directory = super::disk::split(&entry.path).0;
        let _ = writeln!(out, "The directory {directory} is made.");
    }
    difference(out, &harmless::text(&entry.path), from, to);
}

/// What each fix brings, and its risk.
pub fn fixes(out: &mut String, fixes: &[&Fix]) {
    for fix in fixes {
        let _ = writeln!(out, "{}", fix.text);
        if let Some(risk) = &fix.risk {
            let _ = writeln!(out, "  risk: {risk}");
        }
    }
}

/// The commands that are left, each once, the reboot last.
pub fn remaining(fixes: &[&Fix]) -> String {
    let mut commands: Vec<&str> = Vec::new();
    for command in fixes.iter().filter_map(|fix| fix.after.as_deref()).flat_map(|after| after.split(" && ")) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    // Stable: the others keep their order.
    commands.sort_by_key(|command| *command == "sudo reboot");
    commands.join(" && ")
}

/// What to type once the files are changed.
pub fn then(out: &mut String, entries: &[Entry], then: &str, undone: bool) {
    let _ = writeln!(out, "What is left to you:");
    if entries.iter().any(|entry| entry.path.ends_with("/vramwarden.nix")) {
        let step = if undone { "take ./vramwarden.nix out of" } else { "name ./vramwarden.nix under" };
        let _ = writeln!(out, "  first {step} imports in /etc/nixos/configuration.nix, then");
    }
    let _ = writeln!(out, "  {then}");
}

/// One line that names the steps of a finding that has none for us to take.
pub fn by_hand(fixes: &[&Fix]) -> String {
    let steps: Vec<String> =
        fixes.iter().map(|fix| fix.command.as_deref().unwrap_or(&fix.text).replace('\n', "; ")).collect();
    if steps.is_empty() { "none is known".to_owned() } else { steps.join(" | ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use findings::{Change, FixKind};

    #[test]
    fn each_command_is_left_once_and_the_reboot_comes_last() {
        let fix = |after: &str| {
            let change = Change::Sysfs { path: String::new(), value: String::new() };
            Fix::new(FixKind::Command, "x").change(change, after)
        };
        let fixes = [fix("sudo reboot"), fix("a && sudo reboot"), fix("b && a && sudo reboot")];
        assert_eq!(remaining(&fixes.iter().collect::<Vec<_>>()), "a && b && sudo reboot");
    }

    #[test]
    fn a_difference_cannot_drive_the_terminal() {
        let mut out = String::new();
        difference(&mut out, "/f", Some("a\tb\x1b[31m\n"), Some("a\tb\n"));
        assert_eq!(out, "--- /f\n+++ /f\n@@ -1 +1 @@\n-a\tb\u{fffd}[31m\n+a\tb\n");
        out.clear();
        difference(&mut out, "/f", None, Some("x\n"));
        assert_eq!(out, "--- /dev/null\n+++ /f\n@@ -0,0 +1 @@\n+x\n");
    }
}
