//! The MES firmware that breaks ROCm on Strix Halo.

use super::prelude::*;

rule!("firmware-bad", Firmware, 12);

/// The version of MES firmware that hangs gfx1151, and the package that brought it.
const BAD_MES: u64 = 0x83;
const BAD_PACKAGE: &str = "20251125";

fn check(case: &Case<'_>, report: &mut Report) {
    if let Some(line) = missing(case) {
        return report.add(absent(line));
    }
    let affected = |gpu: &&facts::Gpu| gpu.gfx.text() == Some("gfx1151");
    let Some(gpu) = case.facts.gpus.iter().find(affected) else { return };
    let version =
        gpu.mes_firmware.text().and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let package = case.facts.software.get("linux_firmware").filter(|known| known.value.contains(BAD_PACKAGE));
    // The version loaded decides; a package may carry a mended file under the same date.
    let confidence = match (version, package) {
        (Some(BAD_MES), _) => Confidence::Certain,
        (Some(_), _) | (None, None) => return,
        (None, Some(_)) => Confidence::Likely,
    };
    let symptom = case.any_line(&[
        "rocr-memory-access-fault-not-present",
        "rocr-memory-access-fault-other",
        "rocr-hw-exception",
        "kernel-mes-failed",
        "kernel-gfxhub-page-fault",
        "kernel-ring-timeout",
        "kernel-gpu-reset",
        "hip-illegal-address",
        "hip-launch-failure",
    ]);
    let failing = symptom.is_some() || case.misbehaves();
    let severity = if failing { Severity::Error } else { Severity::Warning };
    let finding = RULE
        .finding(
            severity,
            confidence,
            "the scheduler firmware (MES 0x83) is the one that breaks ROCm on Strix Halo",
            "linux-firmware 20251125 brought MES 0x83 for gfx1151. With it GPU programs end in memory access faults or hangs, whatever memory is free. \
             It is not a lack of memory.",
        )
        .because_of(symptom.map(Evidence::line))
        .because_of(fact(&gpu.mes_firmware, "MES firmware"))
        .because_of(package.map(|known| Evidence::fact(&known.source, format!("linux-firmware {}", known.value))))
        .because_of(case.line("kernel-mes-firmware").map(Evidence::line))
        .fix(
            Fix::new(
                FixKind::Package,
                "Install another linux-firmware: 20260110 is known good, 20251111 too; then rebuild the initramfs, which carries a copy, and reboot.",
            )
            .risk("needs a reboot; a distribution may carry the mended file under another date")
            .undo("install the former package")
            .check("sudo grep MES /sys/kernel/debug/dri/*/amdgpu_firmware_info   # not 0x00000083"),
        )
        .fix(
            Fix::new(
                FixKind::Package,
                "Or put the earlier gc_11_5_1_mes_2.bin into /lib/firmware/updates/amdgpu/, which overrides the package, rebuild the initramfs and reboot.",
            )
            .undo("remove the file, rebuild the initramfs, reboot"),
        )
        .related("gpu-timeout");
    report.add(finding);
}

/// A firmware file that the GPU cannot do without and that is not installed.
pub(super) fn missing<'a>(case: &Case<'a>) -> Option<&'a logs::Hit> {
    // The kernel may go on with another file; it does not when the device then fails to start.
    let line = case.lines("kernel-firmware-missing").find(|hit| !crate::case::is_optional_firmware(hit))?;
    case.line("kernel-gpu-init-failed").is_some().then_some(line)
}

fn absent(line: &logs::Hit) -> Finding {
    let path = line.field("path").unwrap_or("a file").to_owned();
    RULE.finding(
        Severity::Error,
        Confidence::Likely,
        format!("the firmware file {path} is not there, and the GPU does not start"),
        "The driver loads firmware from /lib/firmware, or from the copy in the initramfs. A kernel newer than the installed linux-firmware asks for files \
         that are not in it.",
    )
    .because(Evidence::line(line))
    .fix(
        Fix::new(FixKind::Package, "Install a linux-firmware at least as new as the kernel, rebuild the initramfs, and reboot.")
            .command("ls -l /lib/firmware/amdgpu /lib/firmware/updates/amdgpu")
            .risk("needs a reboot")
            .check("sudo dmesg | grep -i firmware"),
    )
}
