//! Whether the tarball is what it should be: unpacked, looked at, and run where there is nothing else.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use flate2::read::GzDecoder;
use vramwarden::cli::Cli;

use super::{checksum_line, checksum_place, hidden_paths, name, tarball};

/// A host for the run: a healthy card, so that the answer is status 0.
const SHEET: &str = r#"{"schema": "vramwarden.facts/1", "gpus": [{"bdf": "0000:03:00.0", "gfx": "gfx1100", "apu": false,
"vram_total_bytes": 25753026560, "vram_used_bytes": 1073741824}], "processes": []}"#;

/// Checks the tarball under target/dist.
pub fn run(root: &Path) -> Result<()> {
    let place = tarball(root);
    let bytes = fs::read(&place).with_context(|| format!("{}: build it with xtask dist", place.display()))?;
    let checksum = fs::read_to_string(checksum_place(&place))?;
    ensure!(checksum == checksum_line(&bytes), "the checksum beside the tarball is of another one");
    say("the checksum is right");

    let unpacked = tempfile::tempdir()?;
    tar::Archive::new(GzDecoder::new(bytes.as_slice())).unpack(unpacked.path())?;
    let product = unpacked.path().join(name());
    members(&product, root)?;
    let binary = product.join("vramwarden");
    is_static(&binary)?;
    hides_paths(&binary, root)?;
    runs_alone(&binary)
}

fn say(what: &str) {
    println!("dist: {what}");
}

/// Everything that belongs in is there and not empty.
fn members(product: &Path, root: &Path) -> Result<()> {
    let mut wanted: Vec<String> = [
        "vramwarden",
        "README.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "THIRD-PARTY.txt",
        "completions/vramwarden.bash",
        "completions/_vramwarden",
        "completions/vramwarden.fish",
        "man/man1/vramwarden.1",
    ]
    .map(str::to_owned)
    .into();
    for command in Cli::command().get_subcommands() {
        wanted.push(format!("man/man1/vramwarden-{}.1", command.get_name()));
    }
    for page in fs::read_dir(root.join("docs/findings"))? {
        wanted.push(format!("docs/findings/{}", page?.file_name().to_string_lossy()));
    }
    for path in &wanted {
        let length = fs::metadata(product.join(path)).with_context(|| format!("{path} is missing"))?.len();
        ensure!(length > 0, "{path} is empty");
    }
    let terms = fs::read_to_string(product.join("THIRD-PARTY.txt"))?;
    ensure!(terms.contains("\nclap ") && terms.contains("GNU LESSER"), "THIRD-PARTY.txt lacks licences");
    let script = product.join("completions/vramwarden.bash");
    ensure!(succeeds(Command::new("bash").arg("-n").arg(&script))?, "bash cannot read its completions");
    say(&format!("{} files are there, bash reads its completions", wanted.len()));
    Ok(())
}

/// No interpreter, no library: it asks nothing of the machine but a kernel.
fn is_static(binary: &Path) -> Result<()> {
    let mut readelf = Command::new("readelf");
    let shown = output(readelf.args(["--program-headers", "--dynamic", "--wide"]).arg(binary))?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    ensure!(shown.contains("LOAD"), "readelf shows no program header");
    ensure!(!shown.contains("INTERP") && !shown.contains("(NEEDED)"), "the binary is dynamic:\n{shown}");
    let ldd = output(Command::new("ldd").arg(binary))?;
    let ldd = [ldd.stdout, ldd.stderr].concat();
    let ldd = String::from_utf8_lossy(&ldd);
    ensure!(ldd.contains("statically linked") || ldd.contains("not a dynamic executable"), "ldd says: {ldd}");
    say("the binary is static");
    Ok(())
}

fn hides_paths(binary: &Path, root: &Path) -> Result<()> {
    let bytes = fs::read(binary)?;
    for (path, _) in hidden_paths(root) {
        let path = path.display().to_string();
        let found = bytes.windows(path.len()).any(|window| window == path.as_bytes());
        ensure!(!found, "the binary names {path}");
    }
    say("the binary names no path of this machine");
    Ok(())
}

/// Runs it with nothing else in the file system.
fn runs_alone(binary: &Path) -> Result<()> {
    let empty = tempfile::tempdir()?;
    fs::copy(binary, empty.path().join("vramwarden"))?;
    fs::write(empty.path().join("facts.json"), SHEET)?;
    let Some(mut command) = chroot(empty.path())? else {
        say(
            "SKIPPED: the run in an empty root; it takes root, or a user that may make namespaces (unshare -r)",
        );
        return Ok(());
    };
    let answer = output(command.args([
        "/vramwarden",
        "doctor",
        "--no-host",
        "--facts",
        "/facts.json",
        "--format",
        "json",
    ]))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    ensure!(
        answer.status.code() == Some(0)
            && text.contains("\"vramwarden.doctor/1\"")
            && text.contains("25753026560"),
        "in an empty root it ends with {} and says {text}{}",
        answer.status,
        String::from_utf8_lossy(&answer.stderr)
    );
    say("the binary answers in an empty root");
    Ok(())
}

/// A command that runs what follows with `root` as its root; `None` where this user may not.
fn chroot(root: &Path) -> Result<Option<Command>> {
    // chroot stands in /usr/sbin, which users often lack in PATH.
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(OsString::from(":/usr/sbin:/sbin"));
    let make = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(root).env("PATH", &path);
        command
    };
    for words in [&["chroot"][..], &["unshare", "-r", "chroot"]] {
        if output(make(words).args(["/vramwarden", "--version"])).is_ok_and(|done| done.status.success()) {
            return Ok(Some(make(words)));
        }
    }
    Ok(None)
}

fn output(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} (binutils, libc-bin, coreutils)"))
}

fn succeeds(command: &mut Command) -> Result<bool> {
    Ok(output(command)?.status.success())
}
