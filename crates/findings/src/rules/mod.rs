//! The rules, one file each. To add one: a file here, a page under docs/findings/, a line in [`ALL`], two tests.

mod apu_pool_policy;
mod apu_ttm_limit;
mod attention_quadratic;
mod benign_warning;
mod boot_parameter;
mod capacity;
mod carveout_starves_host;
mod cgroup_oom;
mod compute_buffer_exceeds_pool;
mod config_error;
mod container_view;
mod context_exceeds_pool;
mod device_access;
mod device_selection;
mod disk_full;
mod firmware_bad;
mod fragmentation;
mod free_misreported;
mod gfx_override;
mod gpu_timeout;
mod gtt_exceeds_ram;
mod gtt_overcommit;
mod host_memory_exhausted;
mod insufficient_evidence;
mod kernel_param_ineffective;
mod kfd_system_limit;
mod leaked_memory;
mod managed_memory;
mod misreported;
mod missing_kernels;
mod mmap_load_path;
mod other_process_holds_memory;
mod program_regression;
mod resource_limit;
mod setting_has_no_effect;
mod single_allocation_over_ram;
mod total_misreported;
mod unsupported_gpu;
mod used_misreported;
mod vae_workspace;
mod vulkan_allocation_limit;
mod weights_exceed_pool;

use crate::rule::Rule;

/// Every rule, by causal depth: a rule may look at what those before it reported.
pub(crate) const ALL: &[Rule] = &[
    device_access::RULE,
    firmware_bad::RULE,
    boot_parameter::RULE,
    unsupported_gpu::RULE,
    gfx_override::RULE,
    device_selection::RULE,
    missing_kernels::RULE,
    program_regression::RULE,
    managed_memory::RULE,
    config_error::RULE,
    resource_limit::RULE,
    disk_full::RULE,
    cgroup_oom::RULE,
    carveout_starves_host::RULE,
    container_view::RULE,
    host_memory_exhausted::RULE,
    kernel_param_ineffective::RULE,
    gtt_exceeds_ram::RULE,
    apu_pool_policy::RULE,
    apu_ttm_limit::RULE,
    kfd_system_limit::RULE,
    single_allocation_over_ram::RULE,
    vulkan_allocation_limit::RULE,
    gtt_overcommit::RULE,
    mmap_load_path::RULE,
    leaked_memory::RULE,
    other_process_holds_memory::RULE,
    free_misreported::RULE,
    total_misreported::RULE,
    used_misreported::RULE,
    fragmentation::RULE,
    vae_workspace::RULE,
    attention_quadratic::RULE,
    weights_exceed_pool::RULE,
    context_exceeds_pool::RULE,
    compute_buffer_exceeds_pool::RULE,
    gpu_timeout::RULE,
    setting_has_no_effect::RULE,
    benign_warning::RULE,
    insufficient_evidence::RULE,
];

/// What every rule uses.
mod prelude {
    pub(super) use facts::{NodeAccess, Reading};
    pub(super) use serde::Serialize;
    pub(super) use units::Bytes;

    pub(super) use crate::advice::page_limit::PageLimit;
    pub(super) use crate::case::{Case, Fit};
    pub(super) use crate::finding::{Ask, Confidence, Evidence, Finding, Fix, FixKind, Severity};
    pub(super) use crate::rule::{Report, rule};

    /// A reading as evidence, if it is known: `MemTotal: 125.6 GiB`.
    pub(super) fn fact<T: Serialize + Shown>(reading: &Reading<T>, name: &str) -> Option<Evidence> {
        let known = reading.as_known()?;
        Some(Evidence::fact(&known.source, format!("{name}: {}", known.value.shown())))
    }

    /// How a value is shown to people.
    pub(super) trait Shown {
        fn shown(&self) -> String;
    }

    impl Shown for Bytes {
        fn shown(&self) -> String {
            format!("{self} ({} bytes)", self.0)
        }
    }

    impl Shown for String {
        fn shown(&self) -> String {
            self.clone()
        }
    }

    impl Shown for u64 {
        fn shown(&self) -> String {
            self.to_string()
        }
    }

    impl Shown for i64 {
        fn shown(&self) -> String {
            self.to_string()
        }
    }

    impl Shown for facts::Symptom {
        fn shown(&self) -> String {
            format!("{self:?}").to_lowercase()
        }
    }

    impl Shown for bool {
        fn shown(&self) -> String {
            self.to_string()
        }
    }

    /// The model's stated size as evidence.
    pub(super) fn model_evidence(case: &Case<'_>) -> Option<Evidence> {
        fact(&case.facts.workload.model, "model file")
    }

    /// The step before a page limit that assumes the small carveout.
    pub(super) fn carveout_first(case: &Case<'_>, limit: &PageLimit) -> Option<Fix> {
        let gpu = case.gpu.filter(|_| limit.carveout_first)?;
        let small = crate::advice::carveout::smaller(case.facts, gpu)?;
        Some(crate::advice::carveout::set(
            case.facts,
            gpu,
            small,
            "First this: the page limit below counts on the RAM it returns.",
        ))
    }
}
