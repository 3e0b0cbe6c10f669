//! What an engine calls the things that make a workload smaller.

use crate::finding::{Fix, FixKind};

/// The engines whose options are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// llama.cpp: llama-server, llama-cli and what wraps them.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// vLLM.
    Vllm,
    /// stable-diffusion.cpp.
    SdCpp,
    /// ComfyUI.
    ComfyUi,
    /// PyTorch programs without options of their own.
    PyTorch,
}

impl Engine {
    /// The engine that `program` is, as users and logs name it.
    pub fn named(program: &str) -> Option<Self> {
        let name = program.to_ascii_lowercase();
        let is = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        if is(&["ollama"]) {
            Some(Self::Ollama)
        } else if is(&["vllm"]) {
            Some(Self::Vllm)
        } else if is(&["stable-diffusion", "sd.cpp", "sd-server", "sdcpp"]) {
            Some(Self::SdCpp)
        } else if is(&["comfy"]) {
            Some(Self::ComfyUi)
        } else if is(&["llama", "lm studio", "lmstudio", "lemonade", "koboldcpp", "ggml"]) {
            Some(Self::LlamaCpp)
        } else if is(&["torch", "transformers", "diffusers"]) {
            Some(Self::PyTorch)
        } else {
            None
        }
    }
}

fn flag(text: &str, command: &str) -> Fix {
    Fix::new(FixKind::Flag, text).command(command)
}

fn env(text: &str, command: &str) -> Fix {
    Fix::new(FixKind::Env, text).command(command)
}

fn words(text: &str) -> Fix {
    Fix::new(FixKind::Flag, text)
}

/// Makes the weights on the GPU smaller.
pub fn smaller_weights(engine: Option<Engine>) -> Vec<Fix> {
    match engine {
        Some(Engine::LlamaCpp) => vec![
            words("Take a smaller quantisation of the same model."),
            flag(
                "Or offload fewer layers: the rest stays in RAM and is slower (-ngl, --gpu-layers; for a MoE first --n-cpu-moe).",
                "llama-server -m MODEL.gguf -ngl N   # lower N until it loads",
            ),
        ],
        Some(Engine::Ollama) => vec![
            words("Take a smaller quantisation (tag) of the same model."),
            flag(
                "Or offload fewer layers: parameter num_gpu; the rest stays in RAM and is slower.",
                "ollama run MODEL   # then: /set parameter num_gpu N",
            ),
        ],
        Some(Engine::Vllm) => vec![
            words(
                "Take a quantised model (AWQ, GPTQ, FP8), or spread it over more cards with --tensor-parallel-size.",
            ),
            flag("Or keep part of the weights in RAM.", "vllm serve MODEL --cpu-offload-gb 8"),
        ],
        Some(Engine::SdCpp) => vec![
            words("Take a smaller quantisation of the diffusion model."),
            flag("Or keep weights in RAM until they are needed.", "sd --offload-to-cpu"),
        ],
        Some(Engine::ComfyUi) => vec![
            flag(
                "Let ComfyUI keep parts of the model in RAM (--lowvram), and leave some VRAM alone (--reserve-vram).",
                "python main.py --lowvram --reserve-vram 1",
            ),
            words("Or load a smaller (quantised) model."),
        ],
        Some(Engine::PyTorch) | None => vec![words(
            "Load a smaller or quantised model, or offload part of it to RAM (device_map=\"auto\" in transformers).",
        )],
    }
}

/// Makes the KV cache smaller.
pub fn smaller_context(engine: Option<Engine>) -> Vec<Fix> {
    match engine {
        Some(Engine::Ollama) => vec![
            env(
                "Lower the context (num_ctx), or store the KV cache in 8 bits.",
                "OLLAMA_CONTEXT_LENGTH=8192 OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0 ollama serve",
            ),
            words("Or offload fewer layers (num_gpu)."),
        ],
        Some(Engine::Vllm) => vec![
            flag(
                "Lower the longest sequence (--max-model-len), or store the KV cache in 8 bits (--kv-cache-dtype fp8).",
                "vllm serve MODEL --max-model-len 32768 --kv-cache-dtype fp8",
            ),
            words(
                "Or allow fewer sequences and tokens at a time (--max-num-seqs, --max-num-batched-tokens).",
            ),
        ],
        _ => vec![
            flag(
                "Lower the context (-c), or store the KV cache in 8 bits (needs flash attention).",
                "llama-server -m MODEL.gguf -c 8192 -fa on -ctk q8_0 -ctv q8_0",
            ),
            words("Or fewer slots (--parallel 1), or fewer layers on the GPU (-ngl)."),
        ],
    }
}

/// Makes the compute buffers smaller.
pub fn smaller_compute(engine: Option<Engine>) -> Vec<Fix> {
    match engine {
        Some(Engine::Ollama) => vec![
            env(
                "Turn flash attention on and lower the context (num_ctx).",
                "OLLAMA_FLASH_ATTENTION=1 OLLAMA_CONTEXT_LENGTH=8192 ollama serve",
            ),
            words("Or offload fewer layers (num_gpu)."),
        ],
        Some(Engine::Vllm) => vec![
            flag(
                "Leave room beside the weights and the KV cache: lower the share vLLM takes, or skip graph capture (--enforce-eager).",
                "vllm serve MODEL --gpu-memory-utilization 0.85",
            ),
            words("Or fewer tokens at a time (--max-num-batched-tokens)."),
        ],
        Some(Engine::SdCpp) => vec![
            flag(
                "Use flash attention in the diffusion model and tile the VAE.",
                "sd --diffusion-fa --vae-tiling",
            ),
            words("Or a smaller resolution, or run the VAE on the CPU (--vae-on-cpu)."),
        ],
        Some(Engine::ComfyUi) => vec![
            flag(
                "Let ComfyUI keep parts of the model in RAM (--lowvram) and leave some VRAM alone (--reserve-vram).",
                "python main.py --lowvram --reserve-vram 1",
            ),
            words("Or a smaller resolution or batch, a tiled VAE node, a quantised model."),
        ],
        Some(Engine::PyTorch) => vec![words(
            "Use a smaller batch, sequence or resolution; a quantised model; or offload part of it.",
        )],
        Some(Engine::LlamaCpp) | None => vec![
            flag(
                "Turn flash attention on and take a smaller ubatch.",
                "llama-server -m MODEL.gguf -fa on -ub 256",
            ),
            words("Or a smaller context (-c), or fewer layers on the GPU (-ngl)."),
        ],
    }
}
