//! Parameters of the kernel modules ttm (or amdttm) and amdgpu, as they are in force.

use super::Host;
use super::read::{Text, basename, file, known, number, switch, word};
use crate::model::{Amdgpu, Ttm};
use crate::reading::Reading;

const AMDGPU: &str = "/sys/module/amdgpu";

/// The TTM that amdgpu uses: the out-of-tree driver brings its own, `amdttm`.
pub(super) fn ttm(host: &dyn Host) -> Ttm {
    for module in ["amdttm", "ttm"] {
        let directory = format!("/sys/module/{module}");
        if host.list(&directory).is_ok() {
            let parameter = |name: &str| format!("{directory}/parameters/{name}");
            return Ttm {
                module: known(module.to_owned(), &directory, ""),
                pages_limit: file(host, parameter("pages_limit"), number),
                page_pool_size: file(host, parameter("page_pool_size"), number),
                size_logged: Reading::default(),
            };
        }
    }
    Ttm {
        pages_limit: file(host, "/sys/module/ttm/parameters/pages_limit", number),
        page_pool_size: file(host, "/sys/module/ttm/parameters/page_pool_size", number),
        ..Ttm::default()
    }
}

/// amdgpu's parameters. Those of mode 0600 need root.
pub(super) fn amdgpu(host: &dyn Host) -> Amdgpu {
    let parameter = |name: &str| format!("{AMDGPU}/parameters/{name}");
    let int = |name: &str| file(host, parameter(name), number::<i64>);
    Amdgpu {
        gttsize_mib: int("gttsize"),
        no_system_mem_limit: file(host, parameter("no_system_mem_limit"), switch),
        vramlimit_mib: int("vramlimit"),
        vis_vramlimit_mib: int("vis_vramlimit"),
        noretry: int("noretry"),
        // Empty is the default.
        lockup_timeout: file(host, parameter("lockup_timeout"), |text| {
            if text.trim().is_empty() { Some(String::new()) } else { word(text) }
        }),
        cwsr_enable: int("cwsr_enable"),
        mes: int("mes"),
        vm_fragment_size: int("vm_fragment_size"),
        gpu_recovery: int("gpu_recovery"),
        dkms_version: dkms_version(host),
    }
}

/// The kernel's own amdgpu states no version. Where the out-of-tree driver states none either but its TTM is loaded,
/// its sources name it: `/usr/src/amdgpu-6.14.14-2212064.24.04`.
fn dkms_version(host: &dyn Host) -> Reading<String> {
    let stated = file(host, format!("{AMDGPU}/version"), word);
    if stated.is_known() || host.list("/sys/module/amdttm").is_err() {
        return stated;
    }
    let sources = host.list("/usr/src").unwrap_or_default();
    let mut versions = sources.iter().filter_map(|name| {
        let version = name.strip_prefix("amdgpu-")?.split('-').next()?;
        version.starts_with(|c: char| c.is_ascii_digit()).then_some((version, name))
    });
    match (versions.next_back(), Text::open(host, "/sys/module/amdttm/version").whole(word)) {
        (_, version @ Reading::Known(_)) => version,
        (Some((version, name)), _) => known(version.to_owned(), "/usr/src", basename(name)),
        (None, _) => stated,
    }
}
