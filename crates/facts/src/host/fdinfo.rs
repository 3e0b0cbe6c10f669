//! `/proc/<pid>/fdinfo/<fd>` of an open DRM device: what one client of the driver holds.

use units::Bytes;

use super::read::{kib, number, value_of};

/// A client of amdgpu.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Client {
    /// PCI address of the device.
    pub(super) bdf: Option<String>,
    /// The driver's id of the client; several open files may be one client's.
    pub(super) id: Option<u64>,
    /// VRAM held.
    pub(super) vram: Option<Bytes>,
    /// GTT held.
    pub(super) gtt: Option<Bytes>,
}

/// Reads fdinfo. `None` if the client is another driver's, or no client at all.
///
/// `drm-memory-*` is amdgpu's own; kernels that print only the common `drm-resident-*` and `drm-total-*` mean the same
/// by the former. Before 5.19 the keys were `pdev`, `vram mem` and `gtt mem`.
pub(super) fn parse(text: &str) -> Option<Client> {
    let find = |key: &str| text.lines().find_map(|line| value_of(line, key));
    let old = find("vram mem");
    match find("drm-driver") {
        Some("amdgpu") => {}
        Some(_) => return None,
        None => _ = old?,
    }
    let held = |region: &str| {
        let keys = ["drm-memory-", "drm-resident-", "drm-total-"];
        keys.iter().find_map(|key| kib(find(&format!("{key}{region}"))?))
    };
    Some(Client {
        bdf: find("drm-pdev").or_else(|| find("pdev")).map(str::to_ascii_lowercase),
        id: find("drm-client-id").or_else(|| find("pasid")).and_then(number),
        vram: held("vram").or_else(|| kib(old?)),
        gtt: held("gtt").or_else(|| kib(find("gtt mem")?)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_own_keys_win_over_the_common_ones() {
        let text = "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:C5:00.0\n\
                    drm-total-vram:\t9 KiB\ndrm-resident-vram:\t8 KiB\ndrm-memory-vram:\t7 KiB\ndrm-total-gtt:\t2 MiB\n";
        let client = parse(text).unwrap();
        assert_eq!((client.bdf.as_deref(), client.id), (Some("0000:c5:00.0"), Some(42)));
        assert_eq!((client.vram, client.gtt), (Some(Bytes::kib(7)), Some(Bytes::mib(2))));
    }

    #[test]
    fn an_old_kernel_has_other_keys() {
        let text =
            "pdev:\t0000:03:00.0\npasid:\t32769\nvram mem:\t1024 kB\ngtt mem:\t512 kB\ncpu mem:\t0 kB\n";
        let client = parse(text).unwrap();
        assert_eq!(
            (client.id, client.vram, client.gtt),
            (Some(32769), Some(Bytes::mib(1)), Some(Bytes::kib(512)))
        );
    }

    #[test]
    fn other_drivers_and_other_files_are_no_clients() {
        assert_eq!(parse("drm-driver:\ti915\ndrm-memory-vram:\t1 KiB"), None);
        assert_eq!(parse("pos:\t0\nflags:\t02"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn sizes_that_overflow_are_unknown() {
        let client =
            parse("drm-driver: amdgpu\ndrm-memory-vram: 18446744073709551615 KiB\ndrm-memory-gtt: -1")
                .unwrap();
        assert_eq!((client.vram, client.gtt), (None, None));
    }
}
