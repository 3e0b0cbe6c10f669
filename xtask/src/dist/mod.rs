//! One tarball: the static binary, completions, man pages, the pages of the findings, and every licence.
//!
//! The same source and toolchain give the same bytes: members are sorted, owners and times are fixed, and no path of
//! the building machine gets into the binary.

pub mod check;
mod third_party;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use clap_complete::Shell;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use vramwarden::cli::Cli;

/// What the binary is built for. Named even where it is the host's own, so that the flags below do not reach
/// procedural macros, which cannot be static.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// 1980-01-01, the first day that every archive format knows.
const EPOCH: u64 = 315_532_800;

/// A file of the tarball.
struct Member {
    path: String,
    mode: u32,
    bytes: Vec<u8>,
}

impl Member {
    fn new(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), mode: 0o644, bytes }
    }
}

/// The tarball's name without its ending, which is also the directory in it.
fn name() -> String {
    format!("vramwarden-{}-x86_64-linux", env!("CARGO_PKG_VERSION"))
}

fn tarball(root: &Path) -> PathBuf {
    crate::target(root).join("dist").join(format!("{}.tar.gz", name()))
}

/// Builds the tarball and its checksum.
pub fn build(root: &Path) -> Result<()> {
    let binary = binary(root)?;
    let mut members = vec![Member {
        path: "vramwarden".to_owned(),
        mode: 0o755,
        bytes: fs::read(&binary).with_context(|| binary.display().to_string())?,
    }];
    members.extend(completions());
    members.extend(man_pages()?);
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        members.push(Member::new(file, fs::read(root.join(file)).with_context(|| file.to_owned())?));
    }
    members.extend(pages(root)?);
    members.push(Member::new("THIRD-PARTY.txt", third_party::text(root, TRIPLE)?.into_bytes()));
    let bytes = archive(members)?;
    let place = tarball(root);
    fs::create_dir_all(place.parent().unwrap_or(root))?;
    fs::write(&place, &bytes)?;
    fs::write(checksum_place(&place), checksum_line(&bytes))?;
    println!("{}  ({:.1} MiB)", place.display(), bytes.len() as f64 / f64::from(1 << 20));
    Ok(())
}

/// Builds the static binary.
fn binary(root: &Path) -> Result<PathBuf> {
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    for (path, name) in hidden_paths(root) {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    let done = Command::new(crate::cargo())
        .args(["build", "--release", "--locked", "--package", "vramwarden", "--target", TRIPLE])
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("RUSTFLAGS")
        .current_dir(root)
        .status()
        .context("cargo")?;
    ensure!(done.success(), "the static build failed");
    Ok(crate::target(root).join(TRIPLE).join("release/vramwarden"))
}

/// Paths of this machine that must not show in the binary, and what stands for them.
fn hidden_paths(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(home?.join(".cargo")));
    let mut paths = vec![(root.to_owned(), "vramwarden")];
    paths.extend(cargo.map(|path| (path, "cargo")));
    paths
}

fn completions() -> Vec<Member> {
    let make = |(shell, file): (Shell, &str)| {
        let mut bytes = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "vramwarden", &mut bytes);
        Member::new(format!("completions/{file}"), bytes)
    };
    let shells =
        [(Shell::Bash, "vramwarden.bash"), (Shell::Zsh, "_vramwarden"), (Shell::Fish, "vramwarden.fish")];
    shells.into_iter().map(make).collect()
}

/// A page for the program and one for each command.
fn man_pages() -> Result<Vec<Member>> {
    let staging = tempfile::tempdir()?;
    clap_mangen::generate_to(Cli::command(), staging.path()).context("man pages")?;
    files(staging.path(), "man/man1")
}

fn pages(root: &Path) -> Result<Vec<Member>> {
    files(&root.join("docs/findings"), "docs/findings")
}

/// The files of a directory, as members below `to`.
fn files(directory: &Path, to: &str) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        members.push(Member::new(format!("{to}/{name}"), fs::read(entry.path())?));
    }
    Ok(members)
}

/// A `.tar.gz` whose bytes depend on nothing but its members.
fn archive(mut members: Vec<Member>) -> Result<Vec<u8>> {
    members.sort_by(|a, b| a.path.cmp(&b.path));
    let time = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok()).unwrap_or(EPOCH);
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(gzip);
    for member in &members {
        let mut header = tar::Header::new_gnu();
        header.set_size(member.bytes.len() as u64);
        header.set_mode(member.mode);
        header.set_mtime(time);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        tar.append_data(&mut header, format!("{}/{}", name(), member.path), member.bytes.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

fn checksum_place(tarball: &Path) -> PathBuf {
    let mut place = tarball.as_os_str().to_owned();
    place.push(".sha256");
    place.into()
}

/// A line that `sha256sum --check` takes.
fn checksum_line(bytes: &[u8]) -> String {
    let mut line = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(line, "{byte:02x}");
    }
    let _ = writeln!(line, "  {}.tar.gz", name());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_members_in_any_order_give_the_same_bytes() {
        let some = || vec![Member::new("b", vec![1; 9000]), Member::new("a", vec![2; 3])];
        let turned = || some().into_iter().rev().collect();
        assert_eq!(archive(some()).unwrap(), archive(turned()).unwrap());
    }

    #[test]
    fn every_command_has_a_man_page_and_every_shell_its_completions() {
        let pages = man_pages().unwrap();
        for command in Cli::command().get_subcommands() {
            let path = format!("man/man1/vramwarden-{}.1", command.get_name());
            assert!(pages.iter().any(|page| page.path == path), "no {path}");
        }
        for member in completions() {
            assert!(String::from_utf8(member.bytes).unwrap().contains("bundle"), "{}", member.path);
        }
    }

    #[test]
    fn the_checksum_is_of_the_form_that_sha256sum_checks() {
        let line = checksum_line(b"abc");
        assert!(
            line.starts_with("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  vramwarden-")
        );
        assert!(line.ends_with(".tar.gz\n"));
    }
}
