//! A whole host through recorder, redactor and archive.

use super::tests::{decompressed, encoded};
use super::*;
use crate::host::{Answer, Host, Question};
use crate::redact::{Identity, Kind, Redactor};

/// What no reader of a bundle may ever find in it.
const PLANTED: &[&str] = &[
    "alice",
    "Liddell",
    "frodo-box",
    "shire.example",
    "hunter2",
    "two words",
    "hf_abcdefghij0123456789",
    "sk-proj-0123456789abcdef",
    "eyJhbGciOiJIUzI1NiJ9",
    "192.168.1.20",
    "2001:db8::7",
    "aa:bb:cc:dd:ee:0f",
    "01234567-89ab-cdef-0123-456789abcdef",
    "carol@mail.example.com",
    "a1b2c3d4e5f60718",
    "11651590505119483672",
    "PQ12345678",
    "S6Z1NJ0W123456",
    "MIIEpAIBAAKCAQEA",
    "my-own-app",
    "0123456789abcdef0123456789abcdef",
];

/// Files that say how memory stands; nothing of them may change.
const MEMORY: &[(&str, &str)] = &[
    (
        "/proc/meminfo",
        "MemTotal:       130968440 kB\nMemAvailable:   120000000 kB\nSwapTotal:       8388604 kB\n",
    ),
    ("/sys/class/drm/card1/device/mem_info_vram_total", "536870912\n"),
    ("/sys/class/drm/card1/device/mem_info_gtt_total", "67055841280\n"),
    ("/sys/module/ttm/parameters/pages_limit", "32505856\n"),
    ("/sys/module/amdgpu/version", "6.14.14.1\n"),
    ("/proc/sys/kernel/osrelease", "6.14.0-1014-oem\n"),
    (
        "/proc/4242/fdinfo/7",
        "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t12\ndrm-pdev:\t0000:c5:00.0\ndrm-memory-vram:\t123456 KiB\n\
         drm-memory-gtt: \t98765432 KiB\ndrm-total-vram:\t12:34:56\n",
    ),
    (
        "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties",
        "heap_type 1\nsize_in_bytes 67055841280\nflags 0\n",
    ),
    ("/sys/class/kfd/kfd/proc/4242/vram_51966", "0\n"),
    ("/proc/4242/status", "Name:\tllama-server\nVmRSS:\t 1234567 kB\nUid:\t1000\t1000\t1000\t1000\n"),
];

const PRIVATE: &[(&str, &str)] = &[
    (
        "/sys/class/kfd/kfd/topology/nodes/1/properties",
        "simd_count 80\ngfx_target_version 110501\nunique_id 11651590505119483672\nlocation_id 50432\ngpu_id 51966\n",
    ),
    ("/sys/class/drm/card1/device/unique_id", "a1b2c3d4e5f60718\n"),
    ("/sys/class/drm/card1/device/serial_number", "PQ12345678\n"),
    ("/etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
    ("/proc/sys/kernel/hostname", "frodo-box.shire.example.org\n"),
    (
        "/etc/passwd",
        "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000:Alice Liddell,,,:/home/alice:/bin/bash\n",
    ),
    ("/etc/group", "render:x:992:alice\nalice:x:1000:\n"),
    (
        "/proc/cmdline",
        "ro root=UUID=01234567-89ab-cdef-0123-456789abcdef ttm.pages_limit=32505856 amdgpu.gttsize=-1\n",
    ),
    (
        "/proc/4242/cmdline",
        "llama-server\0-m\0/home/alice/m.gguf\0--api-key\0two words\0-c\08192\0--hf-token=hunter2\0--host\x00192.168.1.20\0",
    ),
    (
        "/proc/4242/environ",
        "HOME=/home/alice\0HSA_OVERRIDE_GFX_VERSION=11.0.0\0HF_TOKEN=hunter2\0X=my-own-app\0HIP_VISIBLE_DEVICES=GPU-a1b2c3d4e5f60718\0",
    ),
    (
        "/home/alice/.config/vramwarden/config.toml",
        "file = \"/home/alice/m.gguf\"\napi_keys = [\"sk-proj-0123456789abcdef\"]\n",
    ),
    ("/sys/class/net/eth0/address", "aa:bb:cc:dd:ee:0f\n"),
];

const LOG: &str = "\
Jan 02 03:04:05 frodo-box kernel: amdgpu 0000:c5:00.0: amdgpu: 512M of VRAM memory ready
Jan 02 03:04:06 frodo-box sshd[12]: Accepted publickey for alice from 2001:db8::7 port 22
HIP out of memory. Tried to allocate 15.24 GiB. GPU 0 has a total capacity of 63.98 GiB
export HF_TOKEN=hf_abcdefghij0123456789 PYTORCH_HIP_ALLOC_CONF=expandable_segments:True
{\"Authorization\": \"Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc\", \"n\": 4096}
/dev/disk/by-id/nvme-Samsung_S6Z1NJ0W123456 mailto carol@mail.example.com
-----BEGIN PRIVATE KEY-----
MIIEpAIBAAKCAQEA
-----END PRIVATE KEY-----
";

fn whole() -> Bundle {
    let mut bundle = Bundle { program: "vramwarden 0.1.0".to_owned(), ..Bundle::default() };
    let answers = &mut bundle.tape.answers;
    for (path, text) in MEMORY.iter().chain(PRIVATE) {
        answers.insert(((*path).to_owned(), Question::Read), Ok(Answer::Bytes(text.as_bytes().to_vec())));
    }
    let edid = ("/sys/class/drm/card1-DP-1/edid".to_owned(), Question::Read);
    answers.insert(edid, Ok(Answer::Bytes(b"\x00\xff\xff\xffPQ12345678".to_vec())));
    answers.insert(("/home".to_owned(), Question::List), Ok(Answer::Names(vec!["alice".to_owned()])));
    let cwd = Answer::Target("/home/alice/run".to_owned());
    answers.insert(("/proc/4242/cwd".to_owned(), Question::Link), Ok(cwd));
    bundle.facts_json = Some(
        r#"{"schema": "vramwarden.facts/1", "workload": {"args": "--api-key hunter2 -c 8192"}}"#.to_owned(),
    );
    bundle.add_log("/home/alice/alice.log", LOG.as_bytes().to_vec());
    bundle.notes.push("made by alice".to_owned());
    bundle
}

fn redacted(bundle: &Bundle) -> Bundle {
    let identity = Identity::of(&bundle.tape, &|_| None);
    bundle
        .redacted(&mut Redactor::new(identity), &|name| name.starts_with("HSA_") || name.starts_with("HIP_"))
}

#[test]
fn nothing_planted_is_in_the_archive() {
    let tar = decompressed(&encoded(&redacted(&whole())));
    let text = String::from_utf8_lossy(&tar).to_lowercase();
    for planted in PLANTED {
        let at = text.find(&planted.to_lowercase());
        assert_eq!(at.map(|at| &text[at.saturating_sub(80)..at + 20]), None, "{planted}");
    }
}

#[test]
fn a_redacted_host_answers_the_memory_questions_as_before() {
    let bundle = Bundle::decode(&*encoded(&redacted(&whole())), "b").unwrap();
    let tape = &bundle.tape;
    for (path, text) in MEMORY {
        assert_eq!(tape.read(path).unwrap(), text.as_bytes(), "{path}");
    }
    let text = |path| tape.text(path).unwrap();
    assert_eq!(
        text("/sys/class/kfd/kfd/topology/nodes/1/properties"),
        "simd_count 80\ngfx_target_version 110501\nunique_id 1\nlocation_id 50432\ngpu_id 51966"
    );
    assert_eq!(
        text("/sys/class/drm/card1/device/unique_id"),
        "0000000000000001",
        "the same id as the topology's"
    );
    assert_eq!(text("/proc/cmdline"), "ro root=UUID=UUID1 ttm.pages_limit=32505856 amdgpu.gttsize=-1");
    assert_eq!(
        text("/proc/4242/cmdline"),
        "llama-server\0-m\0/home/USER1/m.gguf\0--api-key\0SECRET2\0-c\08192\0--hf-token=SECRET3\0--host\0ADDRESS1\0"
    );
    assert_eq!(
        text("/proc/4242/environ"),
        "HSA_OVERRIDE_GFX_VERSION=11.0.0\0HIP_VISIBLE_DEVICES=GPU-0000000000000001\0"
    );
    assert_eq!(text("/etc/group"), "render:x:992:USER1\nUSER1:x:1000:");
    assert_eq!(tape.list("/home").unwrap(), ["USER1"]);
    assert_eq!(tape.link("/proc/4242/cwd").unwrap(), "/home/USER1/run");
    assert!(text("/home/USER1/.config/vramwarden/config.toml").starts_with("file = \"/home/USER1/m.gguf\""));
    let log = String::from_utf8(bundle.logs[0].bytes.clone()).unwrap();
    assert_eq!(bundle.logs[0].name, "USER1.log");
    for kept in [
        "0000:c5:00.0: amdgpu: 512M of VRAM",
        "15.24 GiB",
        "63.98 GiB",
        "expandable_segments:True",
        "\"n\": 4096",
    ] {
        assert!(log.contains(kept), "{kept}: {log}");
    }
}

#[test]
fn the_bundle_lists_what_was_redacted_and_a_second_time_changes_nothing() {
    let bundle = redacted(&whole());
    let count = |place: &str, kind| {
        bundle.redactions.iter().find(|r| r.place == place && r.kind == kind).map(|redaction| redaction.count)
    };
    assert_eq!(count("/proc/4242/environ", Kind::Environment), Some(3));
    assert_eq!(count("/proc/4242/environ", Kind::Serial), Some(1));
    assert_eq!(count("logs/USER1.log", Kind::Host), Some(2));
    assert_eq!(count("facts.json", Kind::Secret), Some(1));
    assert_eq!(count("/proc/meminfo", Kind::Secret), None);
    assert!(bundle.redactions.iter().all(|r| !r.place.is_empty()));
    let again = redacted(&bundle);
    assert_eq!((&again.tape, &again.logs), (&bundle.tape, &bundle.logs));
}
