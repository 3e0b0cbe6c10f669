//! What the three capacity rules share: whether it is real lack of memory, and of which part.

use super::prelude::*;
use crate::failure::Part;

/// A part of the workload that the pool cannot hold.
pub(super) struct Shortage {
    /// The part.
    pub(super) part: Part,
    /// What was needed at least.
    pub(super) need: Option<Bytes>,
    /// The pool, where known.
    pub(super) total: Option<Bytes>,
    /// How sure.
    pub(super) confidence: Confidence,
}

/// The part that broke the pool, if nothing else explains the failure: no setting, no limit that can be raised, nobody
/// else who holds the memory.
pub(super) fn shortage(case: &Case<'_>, report: &Report) -> Option<Shortage> {
    if report.explains_shortage() {
        return None;
    }
    let total = case.capacity();
    let need = case.need();
    let model = case.facts.workload.model.get();
    // The file alone is larger than the pool: nothing has to fail first.
    if let (Some(model), Some(total)) = (model, total)
        && model > total
        && case.hip()
        && case.fit() == Fit::TooLarge
    {
        return Some(Shortage {
            part: Part::Weights,
            need: Some(model),
            total: Some(total),
            confidence: Confidence::Certain,
        });
    }
    let failure = case.failure.as_ref()?;
    // More was free than asked for: lack of memory does not explain that.
    if failure.requested.zip(failure.free).is_some_and(|(asked, free)| asked < free) {
        return None;
    }
    // A refusal that tells neither a size nor a part tells nothing of capacity.
    if failure.requested.is_none() && failure.part.is_none() {
        return None;
    }
    let fit = case.fit();
    let confidence = match fit {
        Fit::TooLarge => Confidence::Certain,
        // It would fit an empty pool; who held the rest is not known.
        Fit::Fits if failure.own().is_none() && failure.part != Some(Part::Context) => return None,
        Fit::Fits if failure.foreign().is_some_and(|foreign| foreign.0 > total.unwrap_or_default().0 / 8) => {
            return None;
        }
        // How much an APU could give is the question; without its limits nothing is too large.
        Fit::Unknown if failure.requested.is_some() && failure.own().is_none() && !is_card(case) => {
            return None;
        }
        Fit::Fits | Fit::Exceeds | Fit::Raisable | Fit::Unknown => Confidence::Likely,
    };
    Some(Shortage {
        part: failure.part.unwrap_or(Part::Compute),
        need,
        total: total.or(failure.total),
        confidence,
    })
}

/// Whether the device is known to have memory of its own.
fn is_card(case: &Case<'_>) -> bool {
    case.device().is_some_and(|gpu| gpu.apu.get() == Some(false))
}

/// The sentence with the figures that are known.
pub(super) fn figures(shortage: &Shortage) -> String {
    match (shortage.need, shortage.total) {
        (Some(need), Some(total)) => format!("at least {need} needed, {total} there"),
        (Some(need), None) => format!("at least {need} needed"),
        (None, Some(total)) => format!("the pool is {total}"),
        (None, None) => "sizes not stated".to_owned(),
    }
}

/// Evidence that all three share.
pub(super) fn evidence(case: &Case<'_>) -> Vec<Evidence> {
    let pool = ["vram", "ttm.pages_limit", "kfd-system-limit"];
    let binding =
        case.hip_pool().filter(|_| !case.vulkan()).and_then(|pool| pool.limited_by).map(|by| by.name());
    let ceiling =
        pool.iter().filter(|name| Some(**name) == binding).find_map(|name| case.ceiling_evidence(name));
    case.failure_evidence().into_iter().chain(model_evidence(case)).chain(ceiling).collect()
}
