//! THIRD-PARTY.txt: who else's work is in the binary, and their licences.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// The C library's licence; it is linked into the static binary.
const LGPL: &str = include_str!("../../licences/LGPL-2.1");

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    source: Option<String>,
    license: Option<String>,
    license_file: Option<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

/// The whole text.
pub fn text(root: &Path, triple: &str) -> Result<String> {
    let metadata = metadata(root, triple)?;
    let packages = used(&metadata)?;
    ensure!(!packages.is_empty(), "no dependency found; cargo metadata has changed its form");
    let mut out = String::from(
        "vramwarden is licensed under MIT OR Apache-2.0 (LICENSE-MIT, LICENSE-APACHE).\n\
         The binary also holds the work of others, under these licences.\n\n\
         The Rust standard library, (c) The Rust Project Contributors: MIT OR Apache-2.0\n\
         The GNU C Library, (c) Free Software Foundation, Inc.: LGPL-2.1-or-later, text at the end. It is linked \
         statically;\nto link another one, build from source: cargo run -p xtask -- dist\n\n",
    );
    // Many packages carry the same text: each is shown once, with all who carry it.
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages {
        let who = format!("{} {}", package.name, package.version);
        let terms = package.license.as_deref().unwrap_or("see its text below");
        let home = package.repository.as_deref().map_or_else(String::new, |url| format!("  {url}"));
        let _ = writeln!(out, "{who}: {terms}{home}");
        let found = licences(package)?;
        if found.is_empty() {
            // Apache-2.0 is the same text for everybody; others name their holder, so they must come with the package.
            ensure!(terms.contains("Apache-2.0"), "{who} ({terms}) comes without the text of its licence");
            let _ =
                writeln!(out, "    (carries no text of its own; taken under Apache-2.0, see LICENSE-APACHE)");
        }
        for text in found {
            texts.entry(text).or_default().insert(who.clone());
        }
    }
    texts.entry(LGPL.to_owned()).or_default().insert("The GNU C Library".to_owned());
    for (text, who) in texts {
        let who: Vec<String> = who.into_iter().collect();
        let _ = write!(out, "\n{}\n{}\n\n{}\n", "=".repeat(80), who.join(", "), text.trim_end());
    }
    Ok(out)
}

fn metadata(root: &Path, triple: &str) -> Result<Metadata> {
    let done = Command::new(crate::cargo())
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform", triple])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    ensure!(done.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).context("cargo metadata")
}

/// The packages of others that the binary is made of: what it needs to run, not what builds or tests it.
fn used(metadata: &Metadata) -> Result<Vec<&Package>> {
    let nodes: HashMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let Some(binary) = metadata.packages.iter().find(|p| p.name == "vramwarden" && p.source.is_none()) else {
        bail!("the workspace has no package vramwarden");
    };
    let mut seen = BTreeSet::from([binary.id.as_str()]);
    let mut open = vec![binary.id.as_str()];
    while let Some(id) = open.pop() {
        for dependency in nodes.get(id).iter().flat_map(|node| &node.deps) {
            let normal = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            if normal && seen.insert(&dependency.pkg) {
                open.push(&dependency.pkg);
            }
        }
    }
    let mut packages: Vec<&Package> = metadata
        .packages
        .iter()
        .filter(|package| package.source.is_some() && seen.contains(package.id.as_str()))
        .collect();
    packages.sort_by_key(|package| (&package.name, &package.version));
    Ok(packages)
}

/// The texts of licences in a package's directory.
fn licences(package: &Package) -> Result<Vec<String>> {
    let directory = package.manifest_path.parent().unwrap_or(Path::new("."));
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        let starts = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        if entry.path().is_file() && starts.iter().any(|start| upper.starts_with(start)) {
            names.push(name);
        }
    }
    names.extend(package.license_file.clone().filter(|name| !names.contains(name)));
    names.sort();
    let read = |name: &String| {
        let text =
            fs::read_to_string(directory.join(name)).with_context(|| format!("{}: {name}", package.name))?;
        Ok(text.replace("\r\n", "\n"))
    };
    let texts: Result<Vec<String>> = names.iter().map(read).collect();
    Ok(texts?.into_iter().filter(|text| !text.trim().is_empty()).collect())
}
