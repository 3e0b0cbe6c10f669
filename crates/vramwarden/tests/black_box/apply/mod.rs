//! `doctor --apply` and `--undo` on roots of their own.

mod kill;
mod layouts;
mod refusals;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::common::{Run, copy_of, doctor, write};

/// The finding that the recorded host has.
pub const ID: &str = "kernel-param-ineffective";

/// The base of every layout.
pub fn host() -> tempfile::TempDir {
    let host = copy_of("strix-halo-gttsize-only");
    fs::create_dir_all(host.path().join("var/lib")).unwrap();
    host
}

pub fn apply(root: &Path) -> Run {
    doctor(root, &["--apply", ID, "--yes"])
}

pub fn undo(root: &Path) -> Run {
    doctor(root, &["--undo", ID, "--yes"])
}

/// Mode, owner and content (of a link: its target) of all that is in a root, but for our own records.
pub type Tree = BTreeMap<String, (u32, u32, u32, Vec<u8>)>;

pub fn tree(root: &Path) -> Tree {
    fn walk(root: &Path, at: &Path, tree: &mut Tree) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == "var/lib/vramwarden" {
                continue;
            }
            let meta = fs::symlink_metadata(&path).unwrap();
            let content = if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            tree.insert(name, (meta.mode(), meta.uid(), meta.gid(), content));
            if meta.is_dir() {
                walk(root, &path, tree);
            }
        }
    }
    let mut tree = Tree::new();
    walk(root, root, &mut tree);
    tree
}

/// Paths that are not the same in both.
pub fn differing(a: &Tree, b: &Tree) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().filter(|name| a.get(*name) != b.get(*name)).cloned().collect()
}

/// Puts files in place, and takes away those without content.
pub fn lay(root: &Path, files: &[(&str, Option<&str>)]) {
    for (path, content) in files {
        match content {
            Some(content) => write(root, path, content),
            None => fs::remove_file(root.join(path)).unwrap(),
        }
    }
}
