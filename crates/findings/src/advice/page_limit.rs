//! The TTM page limit that serves this machine.

use facts::Facts;
use facts::pool::ttm_limit;
use units::{Bytes, GIB, PAGE};

use super::simulate::{Setting, pool_with};
use super::{boot, carveout};
use crate::finding::Fix;

/// A page limit computed for this host, and what it brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit {
    /// The limit, in pages of 4 KiB; whole GiB.
    pub pages: u64,
    /// RAM left to the operating system beside it.
    pub reserve: Bytes,
    /// HIP's pool with it.
    pub pool: Bytes,
    /// RAM that the OS sees, if it was estimated (twice TTM's default) and not read.
    pub estimated_ram: Option<Bytes>,
    /// Whether it needs the small carveout first.
    pub carveout_first: bool,
}

/// RAM the OS keeps: a tenth, and never less than 4 GiB. AMD's own tool warns above 90 % of RAM.
fn comfortable_reserve(ram: Bytes) -> Bytes {
    Bytes(ram.0 / 10).max(Bytes::gib(4))
}

/// The least that is ever left, when the need asks for more: a thirty-second, and never less than 3 GiB.
fn tight_reserve(ram: Bytes) -> Bytes {
    Bytes(ram.0 / 32).max(Bytes::gib(3))
}

/// TTM's default on the largest APU machines of today, half of 128 GB. A larger limit was set on purpose.
const LARGEST_DEFAULT: Bytes = Bytes::gib(64);

/// RAM that the OS sees: read, or twice TTM's limit where that can only be its default.
fn ram(facts: &Facts, gpu: usize) -> Option<(Bytes, bool)> {
    if let Some(total) = facts.memory.total.get() {
        return Some((total, false));
    }
    let default = ttm_limit(facts, facts.gpus.get(gpu)?)?.bytes;
    if default > LARGEST_DEFAULT {
        return None;
    }
    Some((Bytes(default.0.saturating_mul(2)), true))
}

/// The page limit for device `gpu` that leaves the OS its reserve, or, where `need` asks for more, as much as is safe.
/// `None` where nothing would be gained: the pool would not grow, or the RAM is not known.
pub fn recommend(facts: &Facts, gpu: usize, need: Option<Bytes>) -> Option<PageLimit> {
    let now = pool_with(facts, gpu, Setting::default());
    let (ram, estimated) = ram(facts, gpu)?;
    let with_carveout = |small: Option<Bytes>| -> Option<PageLimit> {
        let ram = match small {
            Some(small) => (ram + facts.gpus.get(gpu)?.vram_total.get()?) - small,
            None => ram,
        };
        let options = [comfortable_reserve(ram), tight_reserve(ram)];
        let mut best = None;
        for reserve in options {
            let gib = (ram - reserve).0 / GIB;
            let pages = gib * GIB / PAGE;
            let limit = Bytes::gib(gib);
            let pool = if estimated && facts.memory.total.get().is_none() {
                limit.min(facts::pool::kfd_system_limit(ram))
            } else {
                pool_with(
                    facts,
                    gpu,
                    Setting { pages_limit: Some(pages), carveout: small, ..Setting::default() },
                )?
            };
            let limit = PageLimit {
                pages,
                reserve: ram - limit,
                pool,
                estimated_ram: estimated.then_some(ram),
                carveout_first: small.is_some(),
            };
            best = Some(limit);
            if need.is_none_or(|need| pool >= need) {
                break;
            }
        }
        best
    };
    let grows = |limit: &PageLimit| now.is_none_or(|now| limit.pool > now + Bytes(now.0 / 50));
    let as_is = with_carveout(None).filter(grows);
    match as_is {
        Some(limit) if need.is_none_or(|need| limit.pool >= need) => Some(limit),
        _ => {
            let small =
                carveout::smaller(facts, gpu).and_then(|small| with_carveout(Some(small)).filter(grows));
            small.filter(|s| as_is.is_none_or(|a| s.pool > a.pool)).or(as_is)
        }
    }
}

/// The largest pool that settings could give device `gpu`: `None` where the facts do not tell.
pub fn reachable(facts: &Facts, gpu: usize) -> Option<Bytes> {
    let now = pool_with(facts, gpu, Setting::default());
    let raised = recommend(facts, gpu, Some(Bytes(u64::MAX))).map(|limit| limit.pool);
    now.max(raised)
}

impl PageLimit {
    /// The steps that put it in force on this host.
    pub fn fixes(&self, facts: &Facts) -> Vec<Fix> {
        let size = Bytes::pages(self.pages);
        let estimate = match self.estimated_ram {
            Some(ram) => format!(" (RAM taken as {ram}, twice the present limit; check MemTotal first)"),
            None => String::new(),
        };
        let text = format!(
            "Set ttm.pages_limit={pages}, which is {gib} GiB ({mib} MiB) and leaves the OS {reserve}: the HIP pool becomes {pool}{estimate}.",
            pages = self.pages,
            gib = size.0 / GIB,
            mib = size.whole_mib(),
            reserve = self.reserve,
            pool = self.pool,
        );
        let gib = size.0 / GIB;
        let mut fixes =
            vec![boot::module_parameter(facts, "ttm", "pages_limit", &self.pages.to_string(), text)];
        fixes.push(
            Fix::new(
                crate::FixKind::Command,
                format!("Or, where AMD's amd-debug-tools are installed, let amd-ttm write the same limit ({gib} GiB)."),
            )
            .command(format!("amd-ttm --set {gib}"))
            .undo("amd-ttm --clear")
            .check("amd-ttm"),
        );
        fixes
    }
}
