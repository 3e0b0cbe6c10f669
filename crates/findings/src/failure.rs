//! The allocation that failed, put together from the lines that tell of it.
//!
//! One failed allocation leaves several lines: the runtime's (size), the allocator's (which buffer), the program's (which
//! part of the model). They stand close together; the first of them in time is the failure, the rest fill it in.

use facts::pool::Api;
use logs::Hit;
use units::Bytes;

/// Which part of a workload asked for the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The model's weights.
    Weights,
    /// The KV cache.
    Context,
    /// Activations and scratch.
    Compute,
    /// The image decoder's workspace.
    Vae,
}

/// An allocation that failed.
#[derive(Clone, Debug)]
pub struct Failure<'a> {
    /// Through which API, where the lines tell.
    pub api: Option<Api>,
    /// How much was asked for.
    pub requested: Option<Bytes>,
    /// Free at that moment, as the program believed.
    pub free: Option<Bytes>,
    /// Total, as the program believed.
    pub total: Option<Bytes>,
    /// Held by PyTorch's tensors.
    pub allocated: Option<Bytes>,
    /// Cached by PyTorch and not in use.
    pub reserved: Option<Bytes>,
    /// Held by this process on the device, of which the program told before it failed.
    pub loaded: Bytes,
    /// Which part asked for it.
    pub part: Option<Part>,
    /// Index of the device, as the API counts.
    pub device: Option<u64>,
    /// The lines that tell of it, first in time first.
    pub lines: Vec<&'a Hit>,
}

/// What a process holds beside its tensors: context, libraries, code. No less than this, and a part of large devices.
const BESIDE_TENSORS: Bytes = Bytes::mib(1536);

impl Failure<'_> {
    /// Held by the program that failed, as far as its own lines tell; what it holds beside its tensors is in it where
    /// the rest of the device's use is small enough to be that.
    pub fn own(&self) -> Option<Bytes> {
        let Some(allocated) = self.allocated else {
            return (self.loaded > Bytes(0)).then_some(self.loaded);
        };
        let tensors = allocated + self.reserved.unwrap_or_default();
        Some(match self.in_use() {
            Some(used) if used - tensors <= BESIDE_TENSORS.max(Bytes(used.0 / 16)) => used.max(tensors),
            _ => tensors,
        })
    }

    /// In use on the device by somebody else, as far as the lines tell.
    pub fn foreign(&self) -> Option<Bytes> {
        Some(self.in_use()? - self.own().filter(|_| self.allocated.is_some())?)
    }

    /// In use on the device by everybody.
    fn in_use(&self) -> Option<Bytes> {
        let (total, free) = self.total.zip(self.free)?;
        (free <= total).then(|| total - free)
    }
}

/// Whether a line tells of an allocation that failed.
pub fn tells(hit: &Hit) -> bool {
    told(hit).is_some()
}

/// Buffers the program told of, by device, until something fails.
#[derive(Default)]
struct Loaded {
    bytes: Bytes,
    weights: bool,
    context: bool,
}

impl Loaded {
    fn take(&mut self, hit: &Hit) {
        if hit.signature.id != "llama-buffer-size" {
            return;
        }
        let on_gpu = hit.field("dev").is_some_and(|dev| {
            !dev.contains("Host")
                && ["ROCm", "HIP", "Vulkan", "CUDA"].iter().any(|name| dev.starts_with(name))
        });
        if !on_gpu {
            return;
        }
        self.bytes += hit.mib("mib").unwrap_or_default();
        let kind = hit.field("kind").unwrap_or_default();
        self.weights |= kind == "model";
        self.context |= kind.starts_with("KV");
    }

    /// The part that comes next when llama.cpp loads: weights, then the cache, then the graph.
    fn next(&self) -> Option<Part> {
        match (self.weights, self.context) {
            (_, true) => Some(Part::Compute),
            (true, false) => Some(Part::Context),
            (false, false) => None,
        }
    }
}

/// What one line tells of a failed allocation; `None` where it tells nothing of one.
fn told<'a>(hit: &'a Hit) -> Option<Failure<'a>> {
    let mut failure = Failure {
        api: None,
        requested: None,
        free: None,
        total: None,
        allocated: None,
        reserved: None,
        loaded: Bytes(0),
        part: None,
        device: hit.number("dev"),
        lines: vec![hit],
    };
    match hit.signature.id {
        "torch-oom" | "torch-oom-old" | "clr-alloc-failed-device" => {
            failure.api = Some(Api::Hip);
            failure.requested = hit.size("req");
            failure.free = hit.size("free");
            failure.total = hit.size("total");
            failure.allocated = hit.size("allocated");
            // Older PyTorch prints all that it holds, and not what of it is unused.
            let unused = || Some(hit.size("held")? - hit.size("allocated")?);
            failure.reserved = hit.size("reserved").or_else(unused);
        }
        "torch-oom-short" | "hip-error-out-of-memory" | "ggml-rocm-error-oom" => failure.api = Some(Api::Hip),
        // No handle or workspace: a full device, or a library that does not go with the rest.
        "torch-hipblas-alloc-failed" => failure.api = Some(Api::Hip),
        "clr-queue-abort-out-of-resources" | "rccl-hip-oom" => {
            failure.api = Some(Api::Hip);
            failure.free = hit.mib("free_mib");
            // With much free it is not the device's memory that scratch could not get.
            failure.part = failure.free.is_none_or(|free| free < Bytes::gib(2)).then_some(Part::Compute);
        }
        "ggml-cudamalloc-failed" => {
            if hit.field("reason").is_some_and(|reason| !reason.contains("out of memory")) {
                return None;
            }
            failure.api = Some(Api::Hip);
            failure.requested = hit.mib("mib");
        }
        "ggml-alloc-buffer-failed" => {
            let device = hit.field("dev").unwrap_or_default();
            failure.api = match device {
                d if d.starts_with("Vulkan") => Some(Api::Vulkan),
                d if d.starts_with("CPU") || d.contains("Host") => return None,
                _ => Some(Api::Hip),
            };
            failure.device = device.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
            failure.requested = hit.size("size");
            failure.part = match hit.field("func").unwrap_or_default() {
                "alloc_tensor_range" => Some(Part::Weights),
                f if f.starts_with("ggml_gallocr") => Some(Part::Compute),
                _ => None,
            };
        }
        "ggml-vulkan-device-alloc" | "radv-bo-alloc-failed" => {
            failure.api = Some(Api::Vulkan);
            failure.requested = hit.size("size");
        }
        "ggml-vulkan-buffer-limit" | "vk-out-of-device-memory" => failure.api = Some(Api::Vulkan),
        // What is left after the weights, or for the layers that were forced onto the GPU, is nothing.
        "vllm-no-cache-blocks" => {
            failure.api = Some(Api::Hip);
            failure.part = Some(Part::Weights);
        }
        "ollama-memory-layout" => failure.part = Some(Part::Weights),
        "llama-compute-pp-buffers" => failure.part = Some(Part::Compute),
        "llama-kv-buffer" => failure.part = Some(Part::Context),
        "sdcpp-params-buffer" => {
            failure.part = Some(Part::Weights);
            failure.requested = hit.mib("mib");
        }
        "sdcpp-compute-buffer" => {
            let vae = hit.field("stage").is_some_and(|stage| stage.to_ascii_lowercase().contains("vae"));
            failure.part = Some(if vae { Part::Vae } else { Part::Compute });
        }
        _ => return None,
    }
    Some(failure)
}

/// The first failed allocation of these lines, with what the lines beside it add.
pub fn first<'a>(hits: &[&'a Hit]) -> Option<Failure<'a>> {
    let mut loaded = Loaded::default();
    let mut found: Option<Failure<'a>> = None;
    for hit in hits {
        let Some(more) = told(hit) else {
            if found.is_none() {
                loaded.take(hit);
            }
            continue;
        };
        match &mut found {
            None => found = Some(Failure { loaded: loaded.bytes, ..more }),
            Some(have) => join(have, more),
        }
    }
    let mut failure = found?;
    failure.part = failure.part.or_else(|| loaded.next());
    Some(failure)
}

/// Adds what a further line tells, if it can be about the same allocation.
fn join<'a>(have: &mut Failure<'a>, more: Failure<'a>) {
    let (Some(first), Some(next)) = (have.lines.first(), more.lines.first()) else { return };
    let near = first.line.log == next.line.log && next.line.number.saturating_sub(first.line.number) <= 40;
    let same_size = have.requested.zip(more.requested).is_none_or(|(a, b)| a.near(b, 1.0));
    let same_api = have.api.zip(more.api).is_none_or(|(a, b)| a == b);
    if !(near && same_size && same_api) {
        return;
    }
    have.api = have.api.or(more.api);
    // The allocator counts bytes, the runtime's line rounds to hundredths of a MiB.
    have.requested = more.requested.or(have.requested);
    have.free = have.free.or(more.free);
    have.total = have.total.or(more.total);
    have.allocated = have.allocated.or(more.allocated);
    have.reserved = have.reserved.or(more.reserved);
    have.device = have.device.or(more.device);
    // The VAE is a compute buffer too; the more telling name stays.
    have.part = match (have.part, more.part) {
        (Some(Part::Compute), Some(Part::Vae)) => Some(Part::Vae),
        (part, other) => part.or(other),
    };
    have.lines.extend(more.lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    type Told = (Option<Api>, Option<Bytes>, Option<Part>, Bytes);

    fn of(lines: &str) -> Option<Told> {
        let scan = logs::scan_lines("t", lines.lines());
        let hits: Vec<_> = scan.hits.iter().collect();
        first(&hits).map(|f| (f.api, f.requested, f.part, f.loaded))
    }

    #[test]
    fn the_lines_of_one_failure_are_put_together() {
        let told = of(
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 33381.06 MiB on device 0: cudaMalloc failed: out of memory\n\
             alloc_tensor_range: failed to allocate ROCm0 buffer of size 35002826752\n\
             llama_model_load: error loading model: unable to allocate ROCm0 buffer",
        );
        assert_eq!(told, Some((Some(Api::Hip), Some(Bytes(35_002_826_752)), Some(Part::Weights), Bytes(0))));
    }

    #[test]
    fn what_was_loaded_before_tells_the_part_that_failed() {
        let told = of("load_tensors:        ROCm0 model buffer size = 7000.00 MiB\n\
             load_tensors:   CPU_Mapped model buffer size = 500.00 MiB\n\
             llama_kv_cache_init:      ROCm0 KV buffer size =  7182.00 MiB\n\
             allocating 573.07 MiB on device 0: cudaMalloc failed: out of memory");
        let (_, _, part, loaded) = told.unwrap();
        assert_eq!((part, loaded), (Some(Part::Compute), Bytes::mib(14182)));
    }

    #[test]
    fn a_later_failure_of_another_size_does_not_mix_in() {
        let told = of("ggml_vulkan: Device memory allocation of size 6979321856 failed.\n\
             vae: failed to allocate the compute buffer\n\
             ggml_vulkan: Device memory allocation of size 1024 failed.");
        assert_eq!(told, Some((Some(Api::Vulkan), Some(Bytes(6_979_321_856)), Some(Part::Vae), Bytes(0))));
    }

    #[test]
    fn a_refusal_of_host_memory_or_of_another_kind_is_none() {
        assert_eq!(of("ggml_gallocr_reserve_n: failed to allocate CPU buffer of size 1024"), None);
        assert_eq!(of("allocating 1.00 MiB on device 0: cudaMalloc failed: invalid argument"), None);
        assert_eq!(of("llama_model_loader: loaded"), None);
    }
}
