//! One limit on allocation, with its arithmetic.

use serde::Serialize;
use units::{Bytes, GIB};

use crate::reading::Source;

/// Which ceiling binds, by the name the contract gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum LimitedBy {
    /// TTM's page limit.
    #[serde(rename = "ttm.pages_limit")]
    TtmPagesLimit,
    /// KFD's limit on system memory.
    #[serde(rename = "kfd-system-limit")]
    KfdSystemLimit,
    /// VRAM, or the carveout.
    #[serde(rename = "vram")]
    Vram,
    /// The GTT manager.
    #[serde(rename = "gtt")]
    Gtt,
    /// A control group.
    #[serde(rename = "cgroup")]
    Cgroup,
    /// A cap set on purpose.
    #[serde(rename = "pool-cap")]
    PoolCap,
    /// Something that the facts do not name.
    #[serde(rename = "unknown")]
    Unknown,
}

impl LimitedBy {
    /// The contract's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::TtmPagesLimit => "ttm.pages_limit",
            Self::KfdSystemLimit => "kfd-system-limit",
            Self::Vram => "vram",
            Self::Gtt => "gtt",
            Self::Cgroup => "cgroup",
            Self::PoolCap => "pool-cap",
            Self::Unknown => "unknown",
        }
    }
}

/// One limit on allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// What it is.
    pub name: &'static str,
    /// Its size.
    pub bytes: Bytes,
    /// How the size comes about, for people: `16469033 pages × 4096`.
    pub formula: String,
    /// Where the figures came from.
    pub source: Source,
    /// As what it binds the pool's total; `None` where it is stated for orientation only.
    pub binds: Option<LimitedBy>,
}

/// KFD keeps this much of system memory from its users, beside 1/64 of it (`AMDGPU_RESERVE_MEM_LIMIT`, 3 << 29).
const KFD_RESERVE: Bytes = Bytes(3 * GIB / 2);

/// KFD's limit on system memory: MemTotal − MemTotal/64 − 1.5 GiB (`amdgpu_amdkfd_gpuvm_init_mem_limits`).
pub fn kfd_system_limit(mem_total: Bytes) -> Bytes {
    mem_total - Bytes(mem_total.0 / 64) - KFD_RESERVE
}
