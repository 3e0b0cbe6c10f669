//! Text from outside never drives the reader's terminal, whichever way it came in.

use crate::common::{Run, copy_of, doctor, finish, host, program, write};

/// Colours, a title, a clipboard write, a lone CSI of the C1 set, a bell, a backspace, a delete.
const HOSTILE: &str = "\x1b[31m\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\u{9b}31m\x07\x08\x7f";

fn assert_harmless(what: &str, run: &Run) {
    for (name, text) in [("stdout", &run.out), ("stderr", &run.err)] {
        let bad = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        assert_eq!(bad, None, "{what}: {name}: {text:?}");
    }
    // In JSON an escaped one is harmless until something prints it, and says nothing: it does not belong there either.
    let escaped = ["\\u001b", "\\u009b", "\\u0007", "\\u0008", "\\b", "\\u007f"];
    assert!(!escaped.iter().any(|code| run.out.contains(code)), "{what}: {}", run.out);
}

const FORMATS: [&str; 3] = ["plain", "json", "markdown"];

#[test]
fn a_log() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "{HOSTILE}ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18000.00 MiB on device 0: {HOSTILE}cudaMalloc failed: out of memory\n\
         amdgpu 0000:03:00.0: amdgpu: {HOSTILE}ring gfx_0.0.0 timeout, signaled seq=3, emitted seq=5{HOSTILE}\n\
         [drm] amdgpu: 24560M of {HOSTILE}VRAM memory ready\n"
    );
    // The name of the log is text from outside as well.
    let name = "run\x1b[31m\u{9b}.log";
    write(directory.path(), name, text);
    let root = host("rx7900xtx-24g");
    for format in FORMATS {
        let mut command = program();
        command.current_dir(directory.path()).args(["doctor", "-v", "--format", format, "--root"]).arg(&root);
        assert_harmless(&format!("log, {format}"), &finish(command.args(["--log", name])));
    }
    let mut command = program();
    command.current_dir(directory.path()).args(["doctor", "--no-host", "--log", "nope\x1b[31m\u{9b}.log"]);
    let run = finish(&mut command);
    assert_eq!(run.status, 2);
    assert_harmless("a missing log", &run);
}

#[test]
fn a_hosts_files() {
    let copy = copy_of("two-gpus");
    let pid = "proc/1500";
    write(copy.path(), &format!("{pid}/comm"), format!("ollama{HOSTILE}\n"));
    write(
        copy.path(),
        "proc/cmdline",
        format!("quiet amdgpu.gttsiz={HOSTILE}12 ttm.pages_limt=1{HOSTILE}\n"),
    );
    write(copy.path(), "proc/sys/kernel/osrelease", format!("6.14.0{HOSTILE}\n"));
    write(
        copy.path(),
        "etc/modprobe.d/x.conf",
        format!("options amdgpu gttsize=4096{HOSTILE} {HOSTILE}=1\n"),
    );
    write(
        copy.path(),
        "proc/self/environ",
        format!("HSA_OVERRIDE_GFX_VERSION=11{HOSTILE}\0HIP_{HOSTILE}=1\0"),
    );
    for format in FORMATS {
        assert_harmless(&format!("host, {format}"), &doctor(copy.path(), &["-v", "--format", format]));
    }
    let bundle = copy.path().join("x.tgz");
    let run = finish(program().args(["bundle", "--dry-run", "--root"]).arg(copy.path()).arg(bundle));
    assert_harmless("bundle --dry-run", &run);
}

#[test]
fn a_sheet() {
    let hostile = serde_json::to_string(HOSTILE).unwrap();
    let sheet = format!(
        r#"{{"schema": "vramwarden.facts/1", {hostile}: 1,
            "kernel": {{"release": {hostile}, "cmdline": {hostile}, "log": [{hostile}]}},
            "gpus": [{{"bdf": {hostile}, "name": {hostile}, "gfx": "gfx1151", "apu": true,
                       "vram_total_bytes": 103079215104, "gtt_total_bytes": 16633114624, "mes_firmware": {hostile}}}],
            "memory": {{"total_bytes": 33253376000}},
            "processes": [{{"pid": 5, "name": {hostile}, "alive": true, "gtt_bytes": 9000000000}}],
            "env": {{"HSA_OVERRIDE_GFX_VERSION": {hostile}, {hostile}: "1"}},
            "software": {{"rocm": {hostile}}},
            "workload": {{"program": {hostile}, "args": {hostile}, "symptom": "oom"}}}}"#
    );
    for format in FORMATS {
        let mut command = program();
        command
            .args(["doctor", "--no-host", "-v", "--format", format, "--facts", "-"])
            .write_stdin(sheet.clone());
        assert_harmless(&format!("sheet, {format}"), &finish(&mut command));
    }
    let wrong = format!(r#"{{"schema": {hostile}}}"#);
    let run = finish(program().args(["doctor", "--no-host", "--facts", "-"]).write_stdin(wrong));
    assert_eq!(run.status, 2);
    assert_harmless("a sheet's schema", &run);
}
