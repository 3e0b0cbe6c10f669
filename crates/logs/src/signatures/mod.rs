//! All known lines, one file per family of programs.
//!
//! To add one: put it into the table of its family, with an example, and add a line that looks like it and is not to
//! `tests/near_misses.rs`. Literals have at least seven bytes; choose long and rare ones.
//!
//! Fields have the same name and unit wherever they occur:
//!
//! | field | what |
//! |---|---|
//! | `req`, `free`, `total`, `used`, `size`, `limit` | a size as the program prints it: a bare number is bytes, else the unit is in the text (`Hit::size`) |
//! | `allocated`, `reserved`, `held`, `other` | PyTorch: given to tensors, cached and unused, cached in all, held by process `pid` |
//! | `mib`, `free_mib`, `total_mib`, `vram_mib`, … | MiB, perhaps with decimals (`Hit::mib`) |
//! | `kib`, `free_kib`, `total_kib`, `rss_kib` | KiB |
//! | `free_gib`, `total_gib`, `want_gib`, `need_gib` | GiB with decimals |
//! | `pages` | pages of 4 KiB |
//! | `dev` | a device as the program calls it: `0`, `ROCm0`, `cuda:0` |
//! | `bdf` | a PCI address `0000:c5:00.0` |
//! | `gfx` | an architecture `gfx1151` |
//! | `name`, `value` | a setting or a named figure and what it is set to; alone, `name` is the name of a thing |
//! | `kind`, `type` | which of several of its sort: `VRAM`, `GTT`; `GPU`, `iGPU` |
//! | `stage` | part of a pipeline or of a run: `vae`, `pp` |
//! | `reason` | why, in the program's words |
//! | `pid`, `comm` | a process and its short name |
//! | `context`, `tokens`, `layers` | counts |
//! | `version`, `release`, `build` | of a program, of the kernel, of llama.cpp |
//! | `path`, `func`, `args`, `cmdline` | text as it stands |
//!
//! A group named `not` is no field: where it takes part in a match, the line is not the one that is meant.

use crate::signature::Signature;

mod comfyui;
mod ggml;
mod hip_runtime;
mod host_oom;
mod kernel_boot;
mod kernel_faults;
mod libraries;
mod llamacpp;
mod ollama;
mod pytorch;
mod rocminfo;
mod rocr;
mod sdcpp;
mod settings;
mod shell;
mod tools;
mod vllm;
mod vulkan;
mod vulkaninfo;

/// The tables, in the order in which a line that several know is reported.
static TABLES: [&[Signature]; 19] = [
    hip_runtime::TABLE,
    rocr::TABLE,
    pytorch::TABLE,
    ggml::TABLE,
    llamacpp::TABLE,
    vulkan::TABLE,
    vulkaninfo::TABLE,
    sdcpp::TABLE,
    comfyui::TABLE,
    vllm::TABLE,
    libraries::TABLE,
    ollama::TABLE,
    kernel_boot::TABLE,
    kernel_faults::TABLE,
    host_oom::TABLE,
    rocminfo::TABLE,
    tools::TABLE,
    shell::TABLE,
    settings::TABLE,
];

/// Every known line.
pub(crate) fn all() -> impl Iterator<Item = &'static Signature> {
    TABLES.iter().flat_map(|table| table.iter())
}
