//! Firmware versions.

use super::Host;
use super::cards::Card;
use super::read::{Text, hex};
use crate::reading::{Missing, Reading};

/// Version of the MES scheduler firmware, as `0x00000083`.
///
/// New kernels have it in sysfs for everyone; older ones only in debugfs, for root. Zero means that the part runs none.
pub(super) fn mes(host: &dyn Host, card: &Card) -> Reading<String> {
    let version =
        |text: &str| hex(text).filter(|v| (1..=0xffff_ffff).contains(v)).map(|v| format!("{v:#010x}"));
    let reading = card.awake(host, "fw_version/mes_fw_version", version);
    if !matches!(reading, Reading::Missing(Missing::Absent(_) | Missing::Denied(_))) {
        return reading;
    }
    // By address on new kernels, by number on old ones.
    let directories = card.bdf.text().map(str::to_owned).into_iter().chain([card.number.to_string()]);
    let mut denied = None;
    for directory in directories {
        let info = Text::open(host, format!("/sys/kernel/debug/dri/{directory}/amdgpu_firmware_info"));
        // `MES feature version: 1, firmware version: 0x00000082`; the line MES_KIQ is another firmware.
        let found = info.entry("MES feature version", |rest| version(rest.rsplit_once("version:")?.1));
        match &found {
            Reading::Missing(Missing::Denied(_)) => denied = Some(found),
            Reading::Missing(Missing::Absent(_)) => {}
            _ => return found,
        }
    }
    denied.unwrap_or(reading)
}
