//! What the rules look at: the facts, the pools, the known lines, and what follows from them for all rules alike.

use facts::pool::{Api, Policy, Pool, policy};
use facts::{Facts, Gpu, Symptom};
use logs::{Hit, Role, Scan};
use units::Bytes;

use crate::advice::engine::Engine;
use crate::advice::page_limit;
use crate::failure::{self, Failure};
use crate::finding::{Confidence, Evidence};

/// One host and one trouble, as far as they are known.
pub struct Case<'a> {
    /// All readings.
    pub facts: &'a Facts,
    /// Every pool.
    pub pools: &'a [Pool],
    /// Known lines of all logs, in order.
    pub hits: Vec<&'a Hit>,
    /// The first failed allocation.
    pub failure: Option<Failure<'a>>,
    /// Through which API the workload allocates, where that is known.
    pub api: Option<Api>,
    /// Position of the device it is about, where one can be named.
    pub gpu: Option<usize>,
    /// The engine, where it is known.
    pub engine: Option<Engine>,
}

/// How what was needed compares with what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It fits the pool, as far as the figures tell.
    Fits,
    /// It exceeds the pool, and settings can raise the pool far enough.
    Raisable,
    /// It exceeds whatever settings can give.
    TooLarge,
    /// It exceeds the pool; whether settings can raise it is not known.
    Exceeds,
    /// The figures do not tell.
    Unknown,
}

/// Targets that current ROCm has dropped or never had.
pub(crate) const DROPPED: &[&str] =
    &["gfx600", "gfx601", "gfx700", "gfx701", "gfx702", "gfx801", "gfx802", "gfx803", "gfx900"];

/// Echoes after which programs go on: alone they tell of no trouble.
const SOFT: &[&str] = &[
    "comfy-vae-tiled",
    "ggml-pinned-failed",
    "hip-async-error-report",
    "kernel-queue-evicted",
    "llama-fit-abort",
    "llama-mlock",
    "ollama-vram-not-recovered",
    "torch-attention-frame",
];

/// The target of a PCI device id, where it is known.
fn target_of(pci_id: &str) -> Option<String> {
    let source = facts::Source::new(facts::Origin::Log, "PCI id", pci_id);
    let gpu = Gpu { pci_id: facts::Reading::known(pci_id.to_owned(), source), ..Gpu::default() };
    let mut facts = Facts { gpus: vec![gpu], ..Facts::default() };
    facts.complete();
    facts.gpus[0].gfx.text().map(str::to_owned)
}

/// Lines that a program prints only when it has all the memory it asked for at its start.
const STARTED: &[&str] = &["llama-graph-splits", "llama-slot-tokens", "vllm-kv-tokens"];

/// Lines beside those of failed allocations that tell of a start that memory ended.
const ENDED: &[&str] = &[
    "kernel-oom-kill",
    "memcg-oom",
    "systemd-oomd-pressure",
    "systemd-oomd-swap",
    "earlyoom-kill",
    "llama-unable-to-allocate-buffer",
    "llama-load-failed",
    "ollama-runner-killed",
    "exit-137",
    "shell-killed",
];

/// The lines of a log that are not overtaken: a start that failed for memory and was followed by one that went well
/// is history. A failure after a good start is none, whatever was started later; nor is one that the user `failed` with.
fn still_open(hits: &[Hit], failed: bool) -> impl Iterator<Item = &Hit> {
    let started =
        hits.iter().find(|hit| STARTED.contains(&hit.signature.id)).map_or(0, |hit| hit.line.number);
    hits.iter().filter(move |hit| {
        let of_memory = ENDED.contains(&hit.signature.id) || failure::tells(hit);
        failed || !of_memory || hit.last.number > started
    })
}

/// Firmware files that only some set-ups have: virtual functions, image processors. Without them all is well.
pub(crate) fn is_optional_firmware(hit: &Hit) -> bool {
    let path = hit.field("path").unwrap_or_default();
    hit.signature.id == "kernel-firmware-missing" && (path.ends_with("_cap.bin") || path.contains("/isp_"))
}

impl<'a> Case<'a> {
    /// Looks at facts and logs together.
    pub fn new(facts: &'a Facts, pools: &'a [Pool], scans: &'a [Scan]) -> Self {
        let said = &facts.workload;
        let failed = said.symptom.is_known() || said.exit_status.get().is_some_and(|status| status != 0);
        let hits: Vec<&Hit> = scans.iter().flat_map(|scan| still_open(&scan.hits, failed)).collect();
        let failure = failure::first(&hits);
        let api = api(facts, failure.as_ref(), &hits);
        let gpu = device(facts, failure.as_ref());
        let engine = engine(facts, &hits);
        Self { facts, pools, hits, failure, api, gpu, engine }
    }

    /// The device it is about.
    pub fn device(&self) -> Option<&'a Gpu> {
        self.facts.gpus.get(self.gpu?)
    }

    /// Whether that device is an APU.
    pub fn is_apu(&self) -> bool {
        self.device().is_some_and(|gpu| gpu.apu.get() == Some(true))
    }

    /// HIP's pool on that device.
    pub fn hip_pool(&self) -> Option<&'a Pool> {
        self.pool(Api::Hip)
    }

    /// The pool of `api` on that device.
    pub fn pool(&self, api: Api) -> Option<&'a Pool> {
        let name = facts::pool::device_id(self.device()?, self.gpu?);
        self.pools.iter().find(|pool| pool.api == api && pool.device == name)
    }

    /// Whether the workload is known or assumed to use HIP.
    pub fn hip(&self) -> bool {
        self.api != Some(Api::Vulkan)
    }

    /// Whether the workload is known to use Vulkan.
    pub fn vulkan(&self) -> bool {
        self.api == Some(Api::Vulkan)
    }

    /// Where HIP memory of the APU comes from.
    pub fn policy(&self) -> Option<Policy> {
        policy(self.facts, self.device()?).map(|(policy, _)| policy)
    }

    /// The most that HIP's pool can be: its total, or the larger of the two it could be where the kernel's choice is not
    /// known.
    pub fn pool_at_most(&self) -> Option<Bytes> {
        let pool = self.hip_pool()?;
        let either = || pool.ceilings.iter().filter(|c| ["vram", "ttm.pages_limit"].contains(&c.name));
        pool.total.or_else(|| (either().count() == 2).then(|| either().map(|c| c.bytes).max()).flatten())
    }

    /// The first line that signature `id` knows.
    pub fn line(&self, id: &str) -> Option<&'a Hit> {
        self.hits.iter().find(|hit| hit.signature.id == id).copied()
    }

    /// The first line that any of these signatures knows.
    pub fn any_line(&self, ids: &[&str]) -> Option<&'a Hit> {
        self.hits.iter().find(|hit| ids.contains(&hit.signature.id)).copied()
    }

    /// All lines that signature `id` knows.
    pub fn lines<'s>(&'s self, id: &'s str) -> impl Iterator<Item = &'a Hit> + 's {
        self.hits.iter().filter(move |hit| hit.signature.id == id).copied()
    }

    /// Whether anything tells that something went wrong: an error line, an exit status, a symptom.
    pub fn is_troubled(&self) -> bool {
        let tells = |hit: &&Hit| match hit.signature.role {
            Role::Error => !is_optional_firmware(hit) && !self.is_about_another(hit),
            Role::Echo => !SOFT.contains(&hit.signature.id),
            _ => false,
        };
        self.hits.iter().any(tells)
            || self.facts.workload.exit_status.get().is_some_and(|status| status != 0)
            || self.facts.workload.symptom.is_known()
    }

    /// Whether a line with which a device is left out is about one that is not among the GPUs here.
    pub fn is_about_another(&self, hit: &Hit) -> bool {
        let (Some(vendor), Some(device)) = (hit.field("vendor"), hit.field("device")) else { return false };
        let id = format!("{vendor}:{device}");
        let target = target_of(&id);
        let is = |gpu: &Gpu| match (gpu.pci_id.text(), gpu.gfx.text(), &target) {
            (Some(have), ..) => have == id,
            (None, Some(gfx), Some(target)) => gfx == target,
            // What no table knows is old.
            (None, Some(gfx), None) => DROPPED.contains(&gfx),
            (None, None, _) => true,
        };
        hit.signature.id == "kernel-kfd-skipped"
            && !self.facts.gpus.is_empty()
            && !self.facts.gpus.iter().any(is)
    }

    /// Whether the trouble is lack of memory as far as anybody said.
    pub fn is_out_of_memory(&self) -> bool {
        self.failure.is_some() || self.facts.workload.symptom.get() == Some(Symptom::Oom)
    }

    /// Whether the process ended by a signal that the OOM killer or a crash sends.
    pub fn exit_is(&self, status: i64) -> bool {
        self.facts.workload.exit_status.get() == Some(status)
    }

    /// What the workload needed at least, on the device, when it failed: what it held and what it asked for; the
    /// model's size where that is larger.
    pub fn need(&self) -> Option<Bytes> {
        let asked = self.failure.as_ref().and_then(|failure| {
            // PyTorch hands out again what it has cached.
            let held = failure.own().unwrap_or_default() - failure.reserved.unwrap_or_default();
            Some(held + failure.requested?)
        });
        asked.max(self.facts.workload.model.get())
    }

    /// The share of the GPU's total that vLLM was told to take, from its message or its command line.
    pub fn utilization(&self) -> Option<f64> {
        let stated = self.line("vllm-free-memory-startup").and_then(|hit| hit.decimal("utilization"));
        stated
            .or_else(|| {
                let args = self.facts.workload.args.text()?;
                let (_, rest) = args.split_once("--gpu-memory-utilization")?;
                rest.trim_start_matches(['=', ' ']).split_ascii_whitespace().next()?.parse().ok()
            })
            .filter(|share| *share > 0.0 && *share <= 1.0)
    }

    /// Whether a program is named, so that the facts are about one.
    pub fn has_program(&self) -> bool {
        self.facts.workload.program.is_known() || self.engine.is_some()
    }

    /// What the workload's API can allocate at most: HIP's pool, or for Vulkan all heaps, which on an APU are two.
    pub fn capacity(&self) -> Option<Bytes> {
        if !self.vulkan() {
            return self.hip_pool()?.total;
        }
        let pool = self.pool(Api::Vulkan)?;
        let other = || pool.ceilings.iter().find(|c| c.name == "other-heap").map(|c| c.bytes);
        Some(pool.total? + other().filter(|_| self.is_apu()).unwrap_or_default())
    }

    /// How [`Case::need`] compares with [`Case::capacity`] and with what settings could make of it.
    pub fn fit(&self) -> Fit {
        let (Some(need), Some(total)) = (self.need(), self.capacity()) else { return Fit::Unknown };
        if need <= total {
            return Fit::Fits;
        }
        // Vulkan's heaps grow with GTT; how far is not derived here.
        if self.vulkan() && self.is_apu() {
            return Fit::Exceeds;
        }
        if !self.is_apu() {
            return Fit::TooLarge;
        }
        match self.gpu.and_then(|gpu| page_limit::reachable(self.facts, gpu)) {
            Some(reachable) if need <= reachable => Fit::Raisable,
            // Without MemTotal what can be reached is an estimate that only grows with the RAM there is.
            Some(_) if !self.facts.memory.total.is_known() => Fit::Exceeds,
            Some(_) => Fit::TooLarge,
            None => Fit::Exceeds,
        }
    }

    /// Whether the program is said to crash, hang or answer nonsense, which lack of memory alone does not explain.
    pub fn misbehaves(&self) -> bool {
        let symptoms = [Symptom::Crash, Symptom::Hang, Symptom::WrongOutput, Symptom::NoOutput];
        let symptom = self.facts.workload.symptom.get().is_some_and(|symptom| symptoms.contains(&symptom));
        // A program aborts too when an allocation fails.
        symptom || ((self.exit_is(134) || self.exit_is(139)) && self.failure.is_none())
    }

    /// The lines of the failure as evidence.
    pub fn failure_evidence(&self) -> Vec<Evidence> {
        self.failure
            .iter()
            .flat_map(|failure| failure.lines.iter().take(3))
            .map(|hit| Evidence::line(hit))
            .collect()
    }

    /// The binding ceiling of HIP's pool as evidence.
    pub fn ceiling_evidence(&self, name: &str) -> Option<Evidence> {
        let ceiling = self.hip_pool()?.ceilings.iter().find(|c| c.name == name)?;
        Some(Evidence::fact(
            &ceiling.source,
            format!("{}: {} ({})", ceiling.name, ceiling.bytes, ceiling.formula),
        ))
    }

    /// `certain` where the figures were read, `likely` where one was concluded.
    pub fn sure_if(&self, certain: bool) -> Confidence {
        if certain { Confidence::Certain } else { Confidence::Likely }
    }
}

/// The API of the workload: stated, or that of the failure, or the only one the lines speak of.
fn api(facts: &Facts, failure: Option<&Failure<'_>>, hits: &[&Hit]) -> Option<Api> {
    match facts.workload.api.text().map(str::to_ascii_lowercase).as_deref() {
        Some("hip" | "rocm") => return Some(Api::Hip),
        Some("vulkan") => return Some(Api::Vulkan),
        _ => {}
    }
    if let Some(api) = failure.and_then(|failure| failure.api) {
        return Some(api);
    }
    let vulkan = hits.iter().any(|hit| {
        let id = hit.signature.id;
        id.starts_with("ggml-vulkan")
            || id.starts_with("vk-")
            || id.starts_with("radv-")
            || hit.field("dev").is_some_and(|dev| dev.starts_with("Vulkan"))
    });
    let hip = hits.iter().any(|hit| {
        let id = hit.signature.id;
        ["torch-", "rocr-", "clr-", "hip-", "vllm-", "comfy-", "miopen-"].iter().any(|p| id.starts_with(p))
            || hit.field("dev").is_some_and(|dev| dev.starts_with("ROCm"))
    });
    match (hip, vulkan) {
        (true, false) => Some(Api::Hip),
        (false, true) => Some(Api::Vulkan),
        _ => None,
    }
}

/// The device: the one that failed, else the only one, else the first card, else the first.
fn device(facts: &Facts, failure: Option<&Failure<'_>>) -> Option<usize> {
    let named = failure.and_then(|failure| failure.device).and_then(|n| usize::try_from(n).ok());
    let first_card = || facts.gpus.iter().position(|gpu| gpu.apu.get() == Some(false));
    named.filter(|n| *n < facts.gpus.len()).or_else(first_card).or((!facts.gpus.is_empty()).then_some(0))
}

/// The engine: stated, or told by the lines.
fn engine(facts: &Facts, hits: &[&Hit]) -> Option<Engine> {
    let stated = facts.workload.program.text().and_then(Engine::named);
    stated.or_else(|| {
        hits.iter().find_map(|hit| {
            let id = hit.signature.id;
            [
                ("ollama-", Engine::Ollama),
                ("vllm-", Engine::Vllm),
                ("sdcpp-", Engine::SdCpp),
                ("comfy-", Engine::ComfyUi),
                ("llama-", Engine::LlamaCpp),
                ("torch-", Engine::PyTorch),
                ("ggml-", Engine::LlamaCpp),
            ]
            .into_iter()
            .find(|(prefix, _)| id.starts_with(prefix))
            .map(|(_, engine)| engine)
        })
    })
}
