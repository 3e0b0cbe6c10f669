//! One buffer is larger than what the Vulkan driver allows for a single allocation.

use super::prelude::*;
use crate::advice::engine::Engine;
use crate::failure::Part;

rule!("vulkan-allocation-limit", Driver, 36);

/// RADV's limit on one allocation; AMDVLK's is 2 GiB.
const RADV: Bytes = Bytes(0xFFFF_FFFC);
const AMDVLK: Bytes = Bytes::gib(2);

fn check(case: &Case<'_>, report: &mut Report) {
    let Some(failure) = case.failure.as_ref().filter(|f| f.api == Some(facts::pool::Api::Vulkan)) else {
        return;
    };
    let said = case.line("ggml-vulkan-buffer-limit");
    let vulkan = case.device().map(|gpu| &gpu.vulkan);
    let stated = vulkan.and_then(|v| v.max_allocation.get());
    let driver = vulkan.and_then(|v| v.driver.text()).unwrap_or("radv").to_ascii_lowercase();
    let limit = stated.unwrap_or(if driver.contains("amdvlk") { AMDVLK } else { RADV });
    // What the driver itself was asked for and refused did not stop at this limit.
    let passed_on = case.line("radv-bo-alloc-failed").is_some() && said.is_none();
    let over = failure.requested.is_some_and(|asked| asked > limit) && !passed_on;
    if said.is_none() && !over {
        return;
    }
    let asked =
        failure.requested.map_or_else(|| "a buffer".to_owned(), |asked| format!("one buffer of {asked}"));
    let finding = RULE
        .finding(
            Severity::Error,
            case.sure_if(said.is_some() || stated.is_some()),
            format!("{asked} exceeds what Vulkan allows for a single allocation here, {limit}"),
            "This is no lack of memory: the driver limits the size of one allocation (RADV to 4 GiB less 4 bytes, AMDVLK to 2 GiB), however large the heap is. \
             A program that hides the error ends without a result.",
        )
        .because_of(case.failure_evidence())
        .because_of(said.map(Evidence::line))
        .because_of(vulkan.and_then(|v| fact(&v.max_allocation, "largest single allocation")))
        .fixes(steps(case, failure.part, &driver));
    report.add(finding);
}

fn steps(case: &Case<'_>, part: Option<Part>, driver: &str) -> Vec<Fix> {
    let mut fixes = Vec::new();
    let image = matches!(case.engine, Some(Engine::SdCpp | Engine::ComfyUi)) || part == Some(Part::Vae);
    if image {
        fixes.push(
            Fix::new(FixKind::Flag, "Tile the VAE, and use flash attention in the diffusion model: both make the largest buffer smaller (--vae-tiling, --diffusion-fa).")
                .command("sd --vae-tiling --diffusion-fa"),
        );
    } else if part == Some(Part::Weights) {
        fixes.push(
            Fix::new(FixKind::Flag, "Keep the one large tensor on the CPU (--override-tensor, -ot): it is usually the token embedding or the output.")
                .command("llama-server -m MODEL.gguf -ngl 99 -ot 'per_layer_token_embd.weight=CPU'")
                .check("the load log names each tensor and its buffer"),
        );
    } else {
        fixes.push(
            Fix::new(
                FixKind::Flag,
                "Make the largest buffer smaller: flash attention on, a smaller ubatch, a smaller context.",
            )
            .command("llama-server -m MODEL.gguf -fa on -ub 256"),
        );
    }
    fixes.push(Fix::new(FixKind::Package, "Or use the program's ROCm (HIP) build, which has no such limit."));
    if driver.contains("amdvlk") {
        fixes.push(
            Fix::new(FixKind::Env, "Or use RADV, whose limit is 4 GiB.")
                .command("AMD_VULKAN_ICD=RADV llama-server -m MODEL.gguf")
                .check("vulkaninfo --summary | grep driverName"),
        );
    }
    fixes
}
