//! Module and kernel parameters, by the way this distribution keeps them.

mod family;

use facts::Facts;

use crate::finding::{Change, Fix, FixKind};
use family::{Family, REBUILD_BY_NAME, family};

const GRUB: &str = "/etc/default/grub";
const KERNEL_CMDLINE: &str = "/etc/kernel/cmdline";
const ENTRIES: &str = "/boot/loader/entries/";
const NIXOS: &str = "/etc/nixos/vramwarden.nix";

/// The TTM module of this host: `amdttm` where the out-of-tree driver is loaded.
pub fn ttm_module(facts: &Facts) -> &str {
    let loaded = facts.kernel.modules.value().is_some_and(|list| list.iter().any(|m| m == "amdttm"));
    match facts.ttm.module.text() {
        Some(module) => module,
        None if loaded => "amdttm",
        None => "ttm",
    }
}

/// Our own file, so that nobody else's is overwritten; modprobe reads files by name, and the last of equal options counts.
fn own_file(module: &str) -> String {
    format!("/etc/modprobe.d/vramwarden-{module}.conf")
}

/// Sets `parameter` of `module` to `value` for the next boot. For `ttm` the host's own TTM module is used.
///
/// A parameter that a kernel command line already states is changed there, since it overrides modprobe.d.
pub fn module_parameter(facts: &Facts, module: &str, parameter: &str, value: &str, text: String) -> Fix {
    let module = if module == "ttm" { ttm_module(facts) } else { module };
    let name = format!("{module}.{parameter}");
    let fix = Fix::new(FixKind::KernelParam, text)
        .risk("needs a reboot; RAM promised to the GPU is not there for programs while the GPU holds it")
        .check(format!("cat /sys/module/{module}/parameters/{parameter}   # after the reboot: {value}"));
    let family = family(facts);
    match family {
        Family::Ostree => ostree(fix, &name, value),
        Family::Nixos => nixos(fix, &name, value),
        _ => match stated_in(facts, &name) {
            files if files.is_empty() => in_modprobe(fix, family, module, parameter, value),
            files => on_command_line(fix, family, files, &name, value),
        },
    }
}

/// Takes `name` off the kernel command line of the next boot, wherever this distribution keeps it.
pub fn remove_parameter(facts: &Facts, name: &str, text: String) -> Fix {
    let fix = Fix::new(FixKind::KernelParam, text)
        .risk("needs a reboot")
        .undo(format!("put {name} back"))
        .check("cat /proc/cmdline   # after the reboot");
    let family = family(facts);
    let pattern = sed_pattern(name);
    match (family, stated_in(facts, name)) {
        (Family::Ostree, _) => fix
            .command(format!("sudo rpm-ostree kargs --delete-if-present='{name}' && sudo systemctl reboot")),
        (Family::Nixos, _) => fix.command(format!(
            "grep -rn '{name}' /etc/nixos   # take it out, then: sudo nixos-rebuild boot && sudo reboot"
        )),
        (Family::Fedora, files) if files.is_empty() => {
            fix.command(format!("sudo grubby --update-kernel=ALL --remove-args='{name}' && sudo reboot"))
        }
        (_, files) if files.is_empty() => {
            fix.command(format!("grep -rn '{name}' {GRUB} {KERNEL_CMDLINE} {ENTRIES} /etc/modprobe.d"))
        }
        (_, files) => {
            let after = after_edits(family, &files);
            fix.command(format!("sudo sed -i -E 's/ ?{pattern}//' {} && {after}", files.join(" ")))
                .change(Change::Word { paths: files, name: name.to_owned(), value: None }, after)
        }
    }
}

/// Rebuilds the initramfs the way this distribution does it.
pub fn rebuild_initramfs(facts: &Facts) -> Fix {
    let text = "Rebuild the initramfs, because ttm is usually loaded from it, and reboot.";
    let fix = Fix::new(FixKind::Command, text).risk("needs a reboot");
    match family(facts).rebuild() {
        Some(command) => fix.command(format!("{command} && sudo reboot")),
        None => Fix { text: format!("{text} ({REBUILD_BY_NAME})"), ..fix },
    }
}

/// The files of the boot loader that state `name` on a command line: all of them, since one is made from the other, and
/// the next kernel has an entry of its own.
fn stated_in(facts: &Facts, name: &str) -> Vec<String> {
    let files = facts.kernel.cmdline_files.value().map(Vec::as_slice).unwrap_or_default();
    let stating = |line: &String| {
        let (path, words) = line.split_once(": ")?;
        let states =
            words.split_ascii_whitespace().any(|word| word == name || word.split('=').next() == Some(name));
        let ours = path == GRUB || path == KERNEL_CMDLINE || path.starts_with(ENTRIES);
        (states && ours).then(|| path.to_owned())
    };
    files.iter().filter_map(stating).collect()
}

/// What makes edits of the boot loader's files count, and the reboot.
fn after_edits(family: Family, files: &[String]) -> String {
    let has = |path: &str| files.iter().any(|file| file == path);
    let mut steps = Vec::new();
    // Entries are read by the loader itself; what they were made from counts for the next kernel by itself.
    let entries = files.iter().any(|file| file.starts_with(ENTRIES));
    if has(KERNEL_CMDLINE) && !entries {
        steps.push(family.update_entries());
    }
    if has(GRUB) {
        steps.push(family.update_grub());
    }
    steps.push("sudo reboot");
    steps.join(" && ")
}

/// `name` or `name=value` for sed -E, dots taken literally.
fn sed_pattern(name: &str) -> String {
    format!("{}(=[^ \"'\\'']*)?", name.replace('.', "\\."))
}

fn on_command_line(fix: Fix, family: Family, files: Vec<String>, name: &str, value: &str) -> Fix {
    let after = after_edits(family, &files);
    let (listed, spaced) = (files.join(", "), files.join(" "));
    let pattern = name.replace('.', "\\.");
    let mut fix = fix
        .command(format!("sudo sed -i -E 's/{pattern}=[^ \"'\\'']*/{name}={value}/' {spaced} && {after}"))
        .undo(format!("put the former value of {name} back in {listed}, then: {after}"))
        .change(Change::Word { paths: files, name: name.to_owned(), value: Some(value.to_owned()) }, after);
    fix.text += &format!(
        " It stands in {listed} now and is changed there, because the command line overrides /etc/modprobe.d."
    );
    fix
}

fn in_modprobe(fix: Fix, family: Family, module: &str, parameter: &str, value: &str) -> Fix {
    let file = own_file(module);
    let option = format!("options {module} {parameter}={value}");
    let write = format!("echo '{option}' | sudo tee {file}");
    let rebuild = family.rebuild().map_or_else(
        || format!("rebuild the initramfs ({REBUILD_BY_NAME}) && sudo reboot"),
        |rebuild| format!("{rebuild} && sudo reboot"),
    );
    let fix = fix.change(Change::File { path: file.clone(), content: format!("{option}\n") }, rebuild);
    match family.rebuild() {
        Some(rebuild) => fix
            .command(format!("{write} && {rebuild} && sudo reboot"))
            .undo(format!("sudo rm {file} && {rebuild} && sudo reboot")),
        None => {
            let mut fix = fix.command(write).undo(format!("sudo rm {file}, rebuild the initramfs, reboot"));
            fix.text += &format!(
                " Then rebuild the initramfs, because the module is usually loaded from it ({REBUILD_BY_NAME}), and reboot."
            );
            fix
        }
    }
}

fn ostree(fix: Fix, name: &str, value: &str) -> Fix {
    fix.command(format!(
        "sudo rpm-ostree kargs --delete-if-present='{name}' --append='{name}={value}' && sudo systemctl reboot"
    ))
    .undo(format!("sudo rpm-ostree kargs --delete='{name}={value}' && sudo systemctl reboot"))
}

fn nixos(fix: Fix, name: &str, value: &str) -> Fix {
    let content = format!("{{ ... }}: {{\n  boot.kernelParams = [ \"{name}={value}\" ];\n}}\n");
    let mut fix = fix
        .command(format!(
            "printf '%s\\n' '{{ ... }}: {{ boot.kernelParams = [ \"{name}={value}\" ]; }}' | sudo tee {NIXOS} && sudo nixos-rebuild boot && sudo reboot"
        ))
        .undo(format!("take {NIXOS} out of imports, sudo rm {NIXOS} && sudo nixos-rebuild boot && sudo reboot"))
        .change(
            Change::File { path: NIXOS.to_owned(), content },
            "sudo nixos-rebuild boot && sudo reboot",
        );
    fix.text += " Name ./vramwarden.nix under imports in /etc/nixos/configuration.nix first.";
    fix
}
