//! stable-diffusion.cpp.

use crate::signature::{Role, Signature};

pub(crate) static TABLE: &[Signature] = &[
    Signature {
        id: "sdcpp-compute-buffer",
        program: "stable-diffusion.cpp",
        role: Role::Error,
        literals: &[": failed to allocate the compute buffer", " alloc compute buffer failed"],
        pattern: r"(?P<stage>\w[\w.-]*)(?:: failed to allocate the compute buffer| alloc compute buffer failed)",
        example: "flux alloc compute buffer failed",
        meaning: "The working memory of one part of the pipeline was refused; `stage` names the part.",
    },
    Signature {
        id: "sdcpp-params-buffer",
        program: "stable-diffusion.cpp",
        role: Role::Error,
        literals: &["alloc params backend buffer failed"],
        pattern: r"alloc params backend buffer failed(?:, size = (?P<mib>[\d.]+) ?MB)?",
        example: "model manager alloc params backend buffer failed, size = 33381.06MB",
        meaning: "The weights of one part do not fit.",
    },
    Signature {
        id: "sdcpp-graph-cut-limit",
        program: "stable-diffusion.cpp",
        role: Role::Error,
        literals: &["graph-cut layer split: segment "],
        pattern: r"graph-cut layer split: segment (?P<segment>\d+) needs (?P<req_mib>[\d.]+) MB on (?P<dev>.{1,40}?), but only (?P<free_mib>[\d.]+) MB is available",
        example: "flux graph-cut layer split: segment 3 needs 5120.0 MB on ROCm0, but only 2048.0 MB is available under current VRAM limits",
        meaning: "The budget given with --max-vram is smaller than one piece of the model.",
    },
    Signature {
        id: "sdcpp-params-size",
        program: "stable-diffusion.cpp",
        role: Role::Fact,
        literals: &["total params memory size = "],
        pattern: r"total params memory size = (?P<mib>[\d.]+) ?MB \(VRAM (?P<vram_mib>[\d.]+) ?MB, RAM (?P<ram_mib>[\d.]+) ?MB\)",
        example: "total params memory size = 15973.91MB (VRAM 15973.91MB, RAM 0.00MB): text_encoders 9083.77MB(VRAM)",
        meaning: "All weights of the pipeline, and where they lie.",
    },
    Signature {
        id: "sdcpp-buffer-size",
        program: "stable-diffusion.cpp",
        role: Role::Fact,
        literals: &["compute buffer size", "params backend buffer size"],
        pattern: r"(?P<stage>\w[\w.-]*) (?P<kind>compute|params backend) buffer size(?::| =)\s*(?P<mib>[\d.]+) MB ?\((?P<where>VRAM|RAM)\)",
        example: "flux compute buffer size: 2576.00 MB(VRAM)",
        meaning: "A buffer of one part of the pipeline, and where it lies.",
    },
];
