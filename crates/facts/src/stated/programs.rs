//! What the programs that run models state: devices, totals, versions, settings.

use logs::Hit;
use units::Bytes;

use super::{Draft, Name, known, note, set, text};
use crate::model::Shown;

/// The index at the end of `ROCm0`, `Vulkan1`, and which API it belongs to.
fn backend(name: &str) -> Option<Name> {
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let index = digits.parse().ok()?;
    match &name[..name.len() - digits.len()] {
        "ROCm" | "HIP" | "CUDA" => Some(Name::Hip(index)),
        "Vulkan" => Some(Name::Vulkan(index)),
        _ => None,
    }
}

/// Names that say nothing about which GPU it is.
fn telling(name: Option<String>) -> Option<String> {
    name.filter(|name| {
        !matches!(name.as_str(), "AMD Radeon Graphics" | "AMD Radeon (TM) Graphics" | "Radeon Graphics")
    })
}

pub(super) fn take(draft: &mut Draft, hit: &Hit) {
    let hip = |field: &str| Name::Hip(hit.number(field).unwrap_or_default());
    let software = |draft: &mut Draft, program: &str, value: Option<&str>| {
        note(&mut draft.facts.software, program, value, hit);
    };
    match hit.signature.id {
        "ggml-device-line" | "torch-device-properties" => {
            let gpu = draft.gpu(hip("dev"));
            set(&mut gpu.name, telling(text(hit, "name")), hit);
            set(&mut gpu.gfx, text(hit, "gfx"), hit);
            set(&mut gpu.hip_total, hit.mib("mib"), hit);
        }
        "ggml-device-memory" => {
            if let Some(name) = hit.field("dev").and_then(backend) {
                let is_hip = matches!(name, Name::Hip(_));
                let gpu = draft.gpu(name);
                set(&mut gpu.name, telling(text(hit, "name")), hit);
                if is_hip {
                    set(&mut gpu.hip_total, hit.mib("mib"), hit);
                    set(&mut gpu.hip_free, hit.mib("free_mib"), hit);
                }
            }
        }
        "ggml-using-device" => {
            if let Some(name) = hit.field("dev").and_then(backend) {
                let gpu = draft.gpu(name);
                set(&mut gpu.bdf, text(hit, "bdf").map(|bdf| bdf.to_ascii_lowercase()), hit);
            }
        }
        "ggml-vulkan-device"
            if hit.field("name").is_some_and(|name| name.contains("AMD") || name.contains("RADV")) =>
        {
            let gpu = draft.gpu(Name::Vulkan(hit.number("dev").unwrap_or_default()));
            set(&mut gpu.vulkan.driver, text(hit, "driver").map(|d| d.to_lowercase()), hit);
            set(&mut gpu.apu, hit.field("uma").map(|uma| uma == "1"), hit);
            set(&mut gpu.gfx, radv_target(hit.field("name").unwrap_or_default()), hit);
        }
        "torch-oom" | "torch-oom-old" => {
            set(&mut draft.gpu(hip("dev")).hip_total, hit.size("total"), hit);
        }
        "torch-mem-get-info" | "hip-free-gt-total" => {
            let gpu = draft.gpu(Name::Hip(0));
            set(&mut gpu.hip_total, hit.size("total"), hit);
            set(&mut gpu.hip_free, hit.size("free"), hit);
        }
        "torch-total-memory" => set(&mut draft.gpu(Name::Hip(0)).hip_total, hit.size("size"), hit),
        "comfy-total" => {
            set(&mut draft.gpu(Name::Hip(0)).hip_total, hit.mib("vram_mib"), hit);
            set(&mut draft.facts.memory.total, hit.mib("ram_mib"), hit);
        }
        "comfy-arch" => set(&mut draft.gpu(Name::Hip(0)).gfx, text(hit, "gfx"), hit),
        "vllm-free-memory-startup" => {
            let index =
                hit.field("dev").and_then(|dev| dev.rsplit_once(':')?.1.parse().ok()).unwrap_or_default();
            let total = hit.decimal("total_gib").and_then(|gib| Bytes::parse(&format!("{gib} GiB")));
            set(&mut draft.gpu(Name::Hip(index)).hip_total, total, hit);
        }
        "ollama-inference-compute" => {
            let shown = Shown {
                program: Some("ollama".to_owned()),
                total: hit.size("total"),
                free: hit.size("free"),
                used: None,
            };
            draft.facts.shown.push(known(shown, hit));
            let address = hit.field("bdf").map(|bdf| Name::Address(bdf.to_ascii_lowercase()));
            if let Some(address) = address.filter(|_| hit.field("library").is_some_and(|l| l != "cpu")) {
                let gpu = draft.gpu(address);
                set(&mut gpu.bdf, text(hit, "bdf").map(|bdf| bdf.to_ascii_lowercase()), hit);
                set(&mut gpu.gfx, text(hit, "gfx").filter(|gfx| gfx.starts_with("gfx")), hit);
                set(&mut gpu.name, telling(text(hit, "description")), hit);
                set(&mut gpu.apu, hit.field("type").map(|kind| kind == "iGPU"), hit);
            }
        }
        "llama-build" => {
            let build = hit.field("build").or_else(|| hit.field("number")).map(|n| format!("b{n}"));
            software(draft, "llama_cpp", build.as_deref());
        }
        "torch-version" => software(draft, "pytorch", hit.field("version")),
        "vllm-version" => software(draft, "vllm", hit.field("version")),
        "comfy-version" => software(draft, "comfyui", hit.field("version")),
        "ollama-version" => software(draft, "ollama", hit.field("version")),
        "mesa-version" => software(draft, "mesa", hit.field("version")),
        "linux-firmware-version" => software(draft, "linux_firmware", hit.field("version")),
        "rocm-version" | "hip-version" | "torch-rocm-version" => {
            software(draft, "rocm", hit.field("version"))
        }
        "rocminfo-module-version" => set(&mut draft.facts.amdgpu.dkms_version, text(hit, "version"), hit),
        "environment" | "ollama-server-env" if hit.field("not").is_none() => {
            if let (Some(name), Some(value)) = (hit.field("name"), hit.field("value")) {
                note(&mut draft.facts.env, name, Some(value.trim_matches(['"', '\''])), hit);
            }
        }
        "ggml-unified-env-garbage" => {
            note(&mut draft.facts.env, "GGML_CUDA_ENABLE_UNIFIED_MEMORY", hit.field("value"), hit);
        }
        "command-line" => {
            set(&mut draft.facts.workload.program, text(hit, "program"), hit);
            set(&mut draft.facts.workload.args, text(hit, "args"), hit);
        }
        "exit-137" => set(&mut draft.facts.workload.exit_status, Some(137), hit),
        "exit-139" => set(&mut draft.facts.workload.exit_status, Some(139), hit),
        "exit-134" => set(&mut draft.facts.workload.exit_status, Some(134), hit),
        _ => {}
    }
}

/// The target in RADV's device name: `AMD Radeon Graphics (RADV GFX1151)`.
fn radv_target(name: &str) -> Option<String> {
    let target = name.split("RADV ").nth(1)?.split([')', ' ']).next()?.to_ascii_lowercase();
    target.starts_with("gfx").then_some(target)
}
