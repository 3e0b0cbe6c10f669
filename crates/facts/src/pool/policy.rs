//! Where an APU's HIP memory comes from: the carveout or GTT. The kernel decides.
//!
//! Before 6.10 KFD took VRAM only. 6.10 ("Let VRAM allocations go to GTT domain on small APUs", eb853413d02c) sent every
//! APU to GTT. Since 759e764f7d58 (6.15-rc1, also in Ubuntu's OEM 6.14) it is GTT only where GTT is the larger one.

use units::Bytes;

use super::shared::ttm_limit;
use crate::kernel_version::KernelVersion;
use crate::reading::Reading;
use crate::{Facts, Gpu};

/// Where HIP memory of an APU comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The carveout (VRAM).
    Carveout,
    /// System memory through GTT.
    Gtt,
}

/// What the policy was concluded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The kernel's release alone decides: before 6.10, or 6.10 to 6.14.
    Release,
    /// The kernel compares sizes, and both are known.
    Sizes,
    /// The kernel is not known, but every kernel since 6.10 agrees for these sizes.
    AnyRecent,
    /// The kernel is not known; the total that KFD or HIP showed equals one of the two.
    Shown,
    /// The kernel said so in its log.
    Logged,
}

/// The largest carveout that the firmware of a family offers, where it is known and memory is soldered.
///
/// Strix Halo boards go up to 128 GB with at most 96 GB of it carved out.
fn largest_carveout(gpu: &Gpu) -> Option<Bytes> {
    (gpu.gfx.text() == Some("gfx1151")).then_some(Bytes::gib(96))
}

/// Where HIP memory of this APU comes from, and how that is known. `None` where the facts do not decide.
pub fn policy(facts: &Facts, gpu: &Gpu) -> Option<(Policy, Source)> {
    // MI300A has no carveout: its HBM is the system's memory.
    if gpu.gfx.text() == Some("gfx942") {
        return Some((Policy::Gtt, Source::Release));
    }
    if gpu.hmm_registered.get() == Some(true) {
        return Some((Policy::Carveout, Source::Logged));
    }
    // An out-of-tree driver brings its own rule, whatever the kernel.
    let kernel = facts.kernel.release.text().and_then(KernelVersion::parse);
    let kernel = kernel.filter(|_| !facts.amdgpu.dkms_version.is_known());
    let by_size = by_size(facts, gpu);
    match kernel {
        Some(k) if k.series < (6, 10) => return Some((Policy::Carveout, Source::Release)),
        Some(k) if k.series < (6, 15) && !k.oem => return Some((Policy::Gtt, Source::Release)),
        Some(_) => {
            if let Some(policy) = by_size {
                return Some((policy, Source::Sizes));
            }
        }
        None if by_size == Some(Policy::Gtt) => return Some((Policy::Gtt, Source::AnyRecent)),
        None => {}
    }
    shown(gpu).map(|policy| (policy, Source::Shown))
}

/// The rule of 6.15 and later: GTT where it is larger than the carveout.
fn by_size(facts: &Facts, gpu: &Gpu) -> Option<Policy> {
    let gtt = gpu.gtt_total.get().or_else(|| ttm_limit(facts, gpu).map(|ttm| ttm.bytes))?;
    match gpu.vram_total.get() {
        Some(vram) => Some(if vram < gtt { Policy::Gtt } else { Policy::Carveout }),
        None => (gtt > largest_carveout(gpu)?).then_some(Policy::Gtt),
    }
}

/// The total that KFD's topology or HIP showed, compared with the carveout.
fn shown(gpu: &Gpu) -> Option<Policy> {
    let vram = gpu.vram_total.get()?;
    let total = [&gpu.kfd_pool, &gpu.hip_total].into_iter().find_map(Reading::get)?;
    Some(if total.near(vram, 2.0) { Policy::Carveout } else { Policy::Gtt })
}
