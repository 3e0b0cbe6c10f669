//! Versions of what is installed, where a file or directory name tells them cheaply.
//!
//! Package databases of dpkg and rpm are too large or need their library; `--deep` asks the tools instead.

use std::collections::BTreeMap;

use super::Host;
use super::read::{file, known, missing};
use crate::reading::{Known, Reading};

/// Versions by program. Libraries are looked for only where there is an AMD GPU.
pub(super) fn read(host: &dyn Host, any_gpu: bool) -> BTreeMap<String, Known<String>> {
    let mut found = BTreeMap::new();
    let mut put = |program: &str, version: Reading<String>| {
        if let Reading::Known(version) = version {
            found.insert(program.to_owned(), version);
        }
    };
    put("rocm", rocm(host));
    if any_gpu {
        let packages = host.list(PACMAN).unwrap_or_default();
        put("linux_firmware", pacman(&packages, "linux-firmware"));
        let mesa = pacman(&packages, "mesa");
        put("mesa", if mesa.is_known() { mesa } else { gallium(host) });
    }
    found
}

/// The leading `1.2.3` of a text.
fn version(text: &str) -> Option<String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let version = text[..end].trim_end_matches('.');
    (version.contains('.') && version.len() <= 32).then(|| version.to_owned())
}

/// `/opt/rocm/.info/version` says `7.2.0-43`. Several versions may stand beside each other; the link is in use.
fn rocm(host: &dyn Host) -> Reading<String> {
    let first = file(host, "/opt/rocm/.info/version", version);
    if first.is_known() {
        return first;
    }
    let names = match host.list("/opt") {
        Ok(names) => names,
        Err(refusal) => return Reading::Missing(missing(refusal, "/opt")),
    };
    let mut found = first;
    let mut best: Vec<u64> = Vec::new();
    for name in names.iter().filter(|name| name.starts_with("rocm-")) {
        let info = file(host, format!("/opt/{name}/.info/version"), version);
        let reading = match (info, name.strip_prefix("rocm-").and_then(version)) {
            (known @ Reading::Known(_), _) => known,
            (_, Some(version)) => known(version, &format!("/opt/{name}"), ""),
            (missing, None) => missing,
        };
        let parts = parts(reading.text().unwrap_or_default());
        if reading.is_known() && parts > best {
            (best, found) = (parts, reading);
        }
    }
    found
}

fn parts(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

const PACMAN: &str = "/var/lib/pacman/local";

/// pacman keeps a directory per package: `linux-firmware-20251125-1`, `mesa-1:25.0.7-1`.
fn pacman(packages: &[String], package: &str) -> Reading<String> {
    let entry = packages.iter().find_map(|name| {
        let rest = name.strip_prefix(package)?.strip_prefix('-')?;
        let version = rest.split_once(':').map_or(rest, |(_epoch, version)| version);
        let version = version.split('-').next()?;
        let whole = version.starts_with(|c: char| c.is_ascii_digit())
            && version.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+".contains(&b));
        whole.then_some((version, name))
    });
    entry.map_or_else(Reading::default, |(version, name)| known(version.to_owned(), PACMAN, name))
}

/// Mesa names its driver library by version since 24.2: `libgallium-25.0.7.so`, `libgallium-25.0.7-2.so`.
fn gallium(host: &dyn Host) -> Reading<String> {
    for directory in ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/aarch64-linux-gnu", "/usr/lib"] {
        let names = host.list(directory).unwrap_or_default();
        let library = names
            .iter()
            .find_map(|name| Some((version(name.strip_prefix("libgallium-")?.strip_suffix(".so")?)?, name)));
        if let Some((version, name)) = library {
            return known(version, directory, name);
        }
    }
    Reading::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_what_the_names_begin_with() {
        assert_eq!(version("7.2.0-43\n").as_deref(), Some("7.2.0"));
        assert_eq!(version("25.2.8-0ubuntu0.24.04.1").as_deref(), Some("25.2.8"));
        for text in ["", "x", "7", ".", "é.1"] {
            assert_eq!(version(text), None, "{text:?}");
        }
        let packages = [
            "linux-firmware-amdgpu-20251125-2",
            "linux-firmware-20251125-1",
            "mesa-1:25.0.7-1",
            "mesa-utils-9.0",
        ]
        .map(str::to_owned);
        assert_eq!(pacman(&packages, "linux-firmware").text(), Some("20251125"));
        assert_eq!(pacman(&packages, "mesa").text(), Some("25.0.7"));
        assert!(!pacman(&packages, "vim").is_known());
    }
}
