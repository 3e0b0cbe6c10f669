//! Environment variables that change how much memory there is, who gets it, or what a program believes of it.

use std::collections::BTreeMap;

use super::Host;
use super::read::{known, word};
use crate::reading::{Known, Reading};

/// Families of which every variable is of interest. Invented members circulate in guides; a doctor must see them.
const FAMILIES: &[&str] = &[
    "AMD_",
    "AMDGPU_",
    "CUDA_",
    "GGML_",
    "GPU_",
    "HCC_",
    "HIP_",
    "HIPBLAS",
    "HSA_",
    "LLAMA_ARG_",
    "MESA_",
    "MIOPEN_",
    "NCCL_",
    "OLLAMA_",
    "PYTORCH_",
    "RADV_",
    "RCCL_",
    "ROCBLAS_",
    "ROCM_",
    "ROCR_",
    "ROC_",
    "TORCH_",
    "VK_",
    "VLLM_",
];

/// Ends and parts of names that hold secrets.
const SECRET_ENDS: &[&str] = &["_KEY", "_KEYS", "_TOKEN"];
const SECRET_PARTS: &[&str] = &["SECRET", "PASSW", "CREDENTIAL", "AUTH"];

/// The longest value kept, in bytes.
const LONGEST: usize = 4096;

/// Whether the variable `name` is read at all. Every other variable of a process is none of our business.
pub fn concerns_memory(name: &str) -> bool {
    FAMILIES.iter().any(|family| name.starts_with(family))
        && !SECRET_ENDS.iter().any(|end| name.ends_with(end))
        && !SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// The variables of `environ`'s text (`NAME=value`, ended by NUL) that concern memory.
pub(super) fn relevant(environ: &str) -> impl Iterator<Item = (String, String)> {
    environ.split('\0').filter_map(|entry| {
        let (name, value) = entry.split_once('=')?;
        let plain = value.len() <= LONGEST && !value.contains(char::is_control);
        (plain && concerns_memory(name) && word(name).is_some()).then(|| (name.to_owned(), value.to_owned()))
    })
}

/// The value of one variable in `environ`'s text.
pub(super) fn value<'a>(environ: &'a str, name: &str) -> Option<&'a str> {
    environ.split('\0').find_map(|entry| entry.strip_prefix(name)?.strip_prefix('='))
}

/// This process's environment.
pub(super) fn read(host: &dyn Host) -> BTreeMap<String, Known<String>> {
    let path = "/proc/self/environ";
    let text = host.text(path).unwrap_or_default();
    relevant(&text)
        .filter_map(|(name, value)| {
            let shown = format!("{name}={value}");
            match known(value, path, &shown) {
                Reading::Known(known) => Some((name, known)),
                Reading::Missing(_) => None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_field_are_kept_and_secrets_and_the_rest_are_not() {
        let text = "HOME=/root\0HSA_OVERRIDE_GFX_VERSION=11.0.0\0VLLM_API_KEY=x\0LLAMA_ARG_HF_TOKEN=y\0\
                    HIP_MAX_CONTEXT_TOKENS=4096\0GGML_CUDA_ENABLE_UNIFIED_MEMORY=\0no equals sign\0";
        let names: Vec<String> = relevant(text).map(|(name, _)| name).collect();
        let wanted =
            ["HSA_OVERRIDE_GFX_VERSION", "HIP_MAX_CONTEXT_TOKENS", "GGML_CUDA_ENABLE_UNIFIED_MEMORY"];
        assert_eq!(names, wanted);
        assert_eq!(value(text, "HOME"), Some("/root"));
        assert_eq!(value(text, "HOM"), None);
    }

    #[test]
    fn values_with_control_characters_or_without_end_are_left_out() {
        let text = format!("HIP_A=\x1b[31m\0HIP_B={}\0HIP_C=1", "x".repeat(LONGEST + 1));
        assert_eq!(relevant(&text).collect::<Vec<_>>(), [("HIP_C".to_owned(), "1".to_owned())]);
    }
}
