//! A host in a file gives the answer the host gives, and carries no secret out.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{copy_of, doctor, finish, hosts, program, write};

/// Bundles `root`; the file is in the directory that is returned.
fn bundled(root: &Path, more: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("host.tgz");
    let run = finish(program().arg("bundle").arg("--root").arg(root).args(more).arg(&file));
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{}", run.out);
    (directory, file)
}

fn replayed(file: &Path, more: &[&str]) -> crate::common::Run {
    finish(program().args(["doctor", "--bundle"]).arg(file).args(more))
}

#[test]
fn every_host_and_its_bundle_give_the_same_answer() {
    for (name, root) in hosts() {
        let (_directory, file) = bundled(&root, &[]);
        for more in [&["--format", "json"][..], &["-v"], &["--format", "markdown"]] {
            let (host, bundle) = (doctor(&root, more), replayed(&file, more));
            assert_eq!(host.out, bundle.out, "{name} {more:?}");
            assert_eq!((host.status, &host.err), (bundle.status, &bundle.err), "{name} {more:?}");
        }
    }
}

#[test]
fn a_log_travels_with_the_host() {
    for (name, root) in hosts() {
        let log = root.join("dmesg.log");
        let Some(log) = log.to_str().filter(|log| Path::new(log).exists()) else { continue };
        let (_directory, file) = bundled(&root, &["--log", log]);
        let host = doctor(&root, &["--format", "json", "--log", log]);
        assert_eq!(host.out, replayed(&file, &["--format", "json"]).out, "{name}");
    }
}

#[test]
fn what_is_not_redacted_is_the_same_and_only_names_differ() {
    let copy = copy_of("two-gpus");
    let root = copy.path();
    write(root, "etc/passwd", "alice:x:1000:1000:Alice Liddell:/home/alice:/bin/bash\n");
    write(root, "proc/1500/comm", "/home/alice/llm\n");
    let (_directory, file) = bundled(root, &[]);
    let more = ["--format", "json"];
    let (host, bundle) = (doctor(root, &more), replayed(&file, &more));
    assert!(host.out.contains("/home/alice/llm"), "{}", host.out);
    assert_eq!(host.out.replace("/home/alice/llm", "/home/USER1/llm"), bundle.out);
}

/// What must not leave the machine, each in a place where it stands on real ones.
const SECRETS: &[&str] = &[
    "wonderland",
    "alice",
    "Liddell",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH",
    "hunter2hunter2",
    "PF4XYZ12",
    "0x2df9a7f0c1b3e5d7",
    "2df9a7f0c1b3e5d7",
    "9c:6b:00:12:34:56",
    "203.0.113.77",
    "2001:db8:1234:5678::42",
    "4c4c4544-0042-3510-8052-b4c04f4e4d32",
    "rabbit@example.org",
];

fn host_with_secrets() -> (tempfile::TempDir, tempfile::TempDir, String) {
    let copy = copy_of("rx7900xtx-24g");
    let root = copy.path();
    write(root, "proc/sys/kernel/hostname", "wonderland\n");
    write(root, "etc/hostname", "wonderland\n");
    write(
        root,
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000:Alice Liddell:/home/alice:/bin/sh\n",
    );
    write(
        root,
        "proc/self/environ",
        "HOME=/home/alice\0HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789\0HIP_VISIBLE_DEVICES=0\0\
         VLLM_API_KEY=hunter2hunter2\0OLLAMA_MODELS=/home/alice/models\0",
    );
    write(
        root,
        "proc/2101/environ",
        "OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH\0HSA_ENABLE_SDMA=0\0",
    );
    write(root, "proc/2101/cmdline", "server\0--api-key\0hunter2hunter2\0-m\0/home/alice/a.gguf\0");
    let device = "sys/class/drm/card1/device";
    write(root, &format!("{device}/serial_number"), "PF4XYZ12\n");
    write(root, &format!("{device}/unique_id"), "2df9a7f0c1b3e5d7\n");
    write(root, "sys/class/dmi/id/product_uuid", "4c4c4544-0042-3510-8052-b4c04f4e4d32\n");
    write(root, "sys/class/dmi/id/product_serial", "PF4XYZ12\n");
    write(
        root,
        "proc/cmdline",
        "BOOT_IMAGE=/vmlinuz root=UUID=4c4c4544-0042-3510-8052-b4c04f4e4d32 ro quiet ttm.pages_limit=4096256\n",
    );
    let logs = tempfile::tempdir().unwrap();
    write(
        logs.path(),
        "run.log",
        "Nov 30 10:00:00 wonderland kernel: amdgpu 0000:03:00.0: amdgpu: 24560M of VRAM memory ready\n\
         Nov 30 10:00:00 wonderland kernel: igc 0000:0a:00.0 enp10s0: MAC 9c:6b:00:12:34:56\n\
         Nov 30 10:00:01 wonderland sshd[77]: Accepted publickey for alice from 203.0.113.77 port 2222\n\
         Nov 30 10:00:02 wonderland NetworkManager[9]: address 2001:db8:1234:5678::42\n\
         Serial Number: PF4XYZ12\n\
         Unique ID: 0x2df9a7f0c1b3e5d7\n\
         huggingface token=hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789 user rabbit@example.org\n\
         Authorization: Bearer sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH\n\
         llama_model_loader: loaded meta data from /home/alice/models/a.gguf\n",
    );
    let log = logs.path().join("run.log").to_str().unwrap().to_owned();
    (copy, logs, log)
}

/// Every member of a bundle, names included, as one text.
fn contents(file: &Path) -> String {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()));
    let mut all = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        all.extend_from_slice(&entry.path_bytes());
        all.push(b'\n');
        entry.read_to_end(&mut all).unwrap();
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn no_planted_secret_is_in_a_bundle_nor_in_what_is_said_of_it() {
    let (host, _logs, log) = host_with_secrets();
    let (directory, file) = bundled(host.path(), &["--log", &log]);
    let inside = contents(&file);
    let raw = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    let listing = finish(
        program()
            .args(["bundle", "--dry-run", "--log", &log, "--root"])
            .arg(host.path())
            .arg(directory.path().join("x")),
    );
    let answer = replayed(&file, &["--format", "json", "-v"]);
    for secret in SECRETS {
        for (name, text) in
            [("bundle", &inside), ("file", &raw), ("listing", &listing.out), ("answer", &answer.out)]
        {
            let at = text.to_lowercase().find(&secret.to_lowercase());
            let around = at.map(|at| text.get(at.saturating_sub(80)..(at + 80).min(text.len())));
            assert_eq!(at, None, "{secret} is in the {name}: {around:?}");
        }
    }
    // What the diagnosis needs has stayed.
    for kept in ["HIP_VISIBLE_DEVICES", "HSA_ENABLE_SDMA", "24560M of VRAM memory ready", "0000:03:00.0"] {
        assert!(inside.contains(kept), "{kept} is gone");
    }
    let live = doctor(host.path(), &["--format", "json", "--log", &log]).json();
    let sizes = |document: &Value| document["pools"].clone();
    assert_eq!(sizes(&live), sizes(&answer.json()));
}

#[test]
fn a_dry_run_lists_what_is_redacted_and_writes_nothing() {
    let (host, _logs, log) = host_with_secrets();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("host.tgz");
    let mut command = program();
    command.args(["bundle", "--dry-run", "--log", &log, "--root"]).arg(host.path()).arg(&file);
    let run = finish(&mut command);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is written");
    let redacted = run.out.split("Redacted:\n").nth(1).expect("a list of redactions");
    for line in ["  logs/run.log: 1 × mac", "  logs/run.log: 2 × address", "  logs/run.log: 1 × email"] {
        assert!(redacted.contains(line), "{line} is not in\n{redacted}");
    }
    assert!(redacted.contains("environ: ") && redacted.contains(" × environment"), "{redacted}");
    assert!(run.out.ends_with("Nothing was written (--dry-run).\n"));
}

#[test]
fn the_file_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, file) = bundled(&crate::common::host("no-amd-gpu"), &[]);
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
}
