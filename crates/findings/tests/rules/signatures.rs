//! One known line and nothing else: something is said, and nothing is said that the line does not tell.

use findings::Severity;
use logs::Role;
use serde_json::json;

use crate::doctor;

/// Ids that say that the memory is too small for a part of the workload.
const CAPACITY: &[&str] = &[
    "weights-exceed-pool",
    "context-exceeds-pool",
    "compute-buffer-exceeds-pool",
    "attention-quadratic",
    "fragmentation",
    "apu-ttm-limit",
    "kfd-system-limit",
    "apu-pool-policy",
];

/// Lines that name no size and yet say which part did not fit; the part is what they are about.
const NAMES_THE_PART: &[&str] = &[
    "llama-compute-pp-buffers",
    "llama-kv-buffer",
    "clr-queue-abort-out-of-resources",
    "rccl-hip-oom",
    "vllm-no-cache-blocks",
    "vllm-old-kv-tokens",
    "ollama-memory-layout",
    "sdcpp-compute-buffer",
];

fn hosts() -> [serde_json::Value; 4] {
    let card = json!({"name": "AMD Radeon RX 7900 XTX", "gfx": "gfx1100", "apu": false, "vram_total_bytes": 25753026560_u64});
    let apu = json!({"name": "Strix Halo", "gfx": "gfx1151", "apu": true, "vram_total_bytes": 536870912});
    [json!({}), json!({"gpus": [card]}), json!({"gpus": [apu]}), json!({"gpus": [card, apu]})]
}

#[test]
fn an_error_line_alone_is_never_passed_over_and_never_becomes_a_size() {
    let mut wrong = Vec::new();
    for signature in logs::signatures().filter(|s| s.role == Role::Error) {
        let lines: Vec<String> = signature.example.lines().map(str::to_owned).collect();
        for sheet in hosts() {
            let got = doctor::diagnose(&sheet, &lines);
            wrong.extend(doctor::broken(&got).into_iter().map(|text| format!("{}: {text}", signature.id)));
            let loud = got.findings.iter().any(|f| f.severity != Severity::Info);
            // A device that is left out, and a file that is missing, may be one that nobody needs.
            if !loud && !["kernel-firmware-missing", "kernel-kfd-skipped"].contains(&signature.id) {
                wrong.push(format!("{}: nothing said", signature.id));
            }
            let names_a_size =
                ["req", "mib", "size", "req_mib", "need_gib", "want_gib"].iter().any(|field| {
                    logs::scan_lines("x", signature.example.lines())
                        .hits
                        .iter()
                        .any(|hit| hit.signature.id == signature.id && hit.field(field).is_some())
                });
            if !names_a_size && !NAMES_THE_PART.contains(&signature.id) {
                let blamed =
                    got.findings.iter().filter(|f| CAPACITY.contains(&f.id) && f.severity != Severity::Info);
                wrong.extend(blamed.map(|f| format!("{}: blames {} ({})", signature.id, f.id, f.title)));
            }
        }
    }
    wrong.dedup();
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn facts_settings_and_harmless_lines_alone_alarm_nobody() {
    let mut wrong = Vec::new();
    for signature in logs::signatures().filter(|s| matches!(s.role, Role::Fact | Role::Benign)) {
        let lines: Vec<String> = signature.example.lines().map(str::to_owned).collect();
        for sheet in [json!({}), json!({"gpus": [{"gfx": "gfx1100", "apu": false}]})] {
            for finding in doctor::diagnose(&sheet, &lines).findings {
                if finding.severity != Severity::Info {
                    wrong.push(format!("{}: {} ({})", signature.id, finding.id, finding.title));
                }
            }
        }
    }
    // Three examples show something wrong whoever reads them: a use below zero, more free than there is, and a GTT size
    // that the driver itself calls unusual.
    let shown = [
        "rocm-smi-vram-underflow: used-misreported",
        "torch-mem-get-info: free-misreported",
        "kernel-gtt-ttm-mismatch: kernel-param-ineffective",
    ];
    wrong.retain(|text| !shown.iter().any(|start| text.starts_with(start)));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
