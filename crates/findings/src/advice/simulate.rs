//! What the pool would be with another setting: the facts changed, and the pool derived again.

use facts::pool::{Api, pools};
use facts::{Facts, KernelVersion, Origin, Reading, Source};
use units::Bytes;

/// Settings that could be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// `ttm.pages_limit`.
    pub pages_limit: Option<u64>,
    /// Carveout in the BIOS.
    pub carveout: Option<Bytes>,
    /// Kernel series to move to.
    pub kernel: Option<(u32, u32)>,
}

fn assumed<T>(value: T) -> Reading<T> {
    Reading::known(value, Source::new(Origin::Sheet, "computed", ""))
}

/// HIP's pool on device `gpu` of these facts, were `setting` in force. `None` where the facts do not give it.
pub fn pool_with(facts: &Facts, gpu: usize, setting: Setting) -> Option<Bytes> {
    let mut changed = facts.clone();
    // What was shown under the old setting says nothing about the new one.
    let device = changed.gpus.get_mut(gpu)?;
    device.hmm_registered = Reading::default();
    device.kfd_pool = Reading::default();
    device.hip_total = Reading::default();
    device.hip_free = Reading::default();
    if let Some(carveout) = setting.carveout {
        let old = device.vram_total.get()?;
        device.vram_total = assumed(carveout);
        if let Some(total) = changed.memory.total.get() {
            let total = (total + old) - carveout;
            changed.memory.total = assumed(total);
            if setting.pages_limit.is_none() {
                // TTM's default is half of what the OS then sees.
                changed.ttm.pages_limit = assumed(Bytes(total.0 / 2).whole_pages());
            }
        }
    }
    if let Some(pages) = setting.pages_limit {
        changed.ttm.pages_limit = assumed(pages);
    }
    if let Some(pages) = changed.ttm.pages_limit.get() {
        changed.ttm.size_logged = Reading::default();
        changed.gpus[gpu].gtt_total = assumed(Bytes::pages(pages));
    }
    if let Some((major, minor)) = setting.kernel {
        changed.kernel.release = assumed(format!("{major}.{minor}.0"));
        changed.amdgpu.dkms_version = Reading::default();
    }
    pools(&changed).into_iter().filter(|pool| pool.api == Api::Hip).nth(gpu)?.total
}

/// The kernel's series, if known and not overruled by an out-of-tree driver.
pub fn kernel_series(facts: &Facts) -> Option<(u32, u32)> {
    if facts.amdgpu.dkms_version.is_known() {
        return None;
    }
    Some(KernelVersion::parse(facts.kernel.release.text()?)?.series)
}
