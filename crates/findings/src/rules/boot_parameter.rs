//! A boot parameter takes the GPU or its memory away.

use super::prelude::*;

rule!("boot-parameter", Settings, 14);

/// Parameters, when they hurt, and what they do.
const PARAMETERS: &[(&str, &str)] = &[
    ("nomodeset", "keeps amdgpu from driving the GPU at all"),
    ("amdgpu.modeset=0", "keeps amdgpu from driving the GPU at all"),
    ("modprobe.blacklist=amdgpu", "keeps amdgpu from being loaded"),
    ("module_blacklist=amdgpu", "keeps amdgpu from being loaded"),
    ("rd.driver.blacklist=amdgpu", "keeps amdgpu from being loaded early"),
];

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(known) = case.facts.kernel.cmdline.as_known() else { return };
    let words: Vec<&str> = known.value.split_ascii_whitespace().collect();
    let found = PARAMETERS
        .iter()
        .find(|(name, _)| words.contains(name))
        .map(|(name, what)| ((*name).to_owned(), (*what).to_owned()));
    let limited = || {
        let word = words.iter().find(|word| {
            word.strip_prefix("amdgpu.vramlimit=")
                .and_then(|mib| mib.parse::<u64>().ok())
                .is_some_and(|mib| mib > 0)
        })?;
        Some((
            (*word).to_owned(),
            "makes the driver use less VRAM than the card has; it is for tests".to_owned(),
        ))
    };
    let mem = || {
        let word = words
            .iter()
            .find(|word| word.starts_with("mem=") && word[4..].starts_with(|c: char| c.is_ascii_digit()))?;
        Some((
            (*word).to_owned(),
            "cuts the RAM that Linux uses; GTT and the page limit shrink with it".to_owned(),
        ))
    };
    let Some((name, what)) = found.or_else(limited).or_else(mem) else { return };
    let finding = RULE
        .finding(
            if case.is_troubled() { Severity::Error } else { Severity::Warning },
            Confidence::Certain,
            format!("the kernel was booted with {name}, which {what}"),
            "It was set on the kernel's command line, often from a guide for another trouble.",
        )
        .because(Evidence::fact(&known.source, format!("kernel command line: {}", known.value)))
        .fix(
            Fix::new(FixKind::KernelParam, format!("Take {name} off the kernel command line (GRUB: /etc/default/grub, then update-grub; Fedora: grubby) and reboot."))
                .command(format!("sudo grubby --update-kernel=ALL --remove-args='{name}' || sudo sed -i 's/ *{name}//' /etc/default/grub && sudo update-grub"))
                .risk("needs a reboot; if the display then stays dark, choose the old entry in the boot menu")
                .undo(format!("put {name} back"))
                .check("cat /proc/cmdline"),
        );
    report.add(finding);
}
