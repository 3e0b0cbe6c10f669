//! A kernel parameter is misspelt, for another module, not in force, or moves something else than the user thinks.

use facts::pool::{LimitedBy, ttm_limit};
use facts::{Known, Origin};

use super::prelude::*;
use crate::advice::boot;
use crate::advice::page_limit;

rule!("kernel-param-ineffective", Settings, 30);

/// Names that no module has, and what was meant.
const MISSPELT: &[(&str, &str)] = &[
    ("amdgpu.gtt_size", "ttm.pages_limit"),
    ("amdgpu.gttlimit", "ttm.pages_limit"),
    ("amdgpu.gtt", "ttm.pages_limit"),
    ("amdgpu.pages_limit", "ttm.pages_limit"),
    ("amdgpu.ttm_pages_limit", "ttm.pages_limit"),
    ("ttm.page_limit", "ttm.pages_limit"),
    ("ttm.pages_limits", "ttm.pages_limit"),
    ("ttm.pagelimit", "ttm.pages_limit"),
    ("ttm.pageslimit", "ttm.pages_limit"),
    ("ttm.limit", "ttm.pages_limit"),
    ("ttm.pages_pool_size", "ttm.page_pool_size"),
    ("ttm.pool_size", "ttm.page_pool_size"),
    ("amdgpu.no_system_mem", "amdgpu.no_system_mem_limit"),
    ("amdgpu.system_mem_limit", "amdgpu.no_system_mem_limit"),
];

/// What `ttm` and `amdttm` do read.
const OF_TTM: &[&str] = &["pages_limit", "page_pool_size", "dma32_pages_limit"];

/// The parameter that was meant by a name that no module has. To the kernel a hyphen is an underscore.
fn meant(name: &str) -> Option<&'static str> {
    let name = name.replace('-', "_");
    if let Some((_, right)) = MISSPELT.iter().find(|(wrong, _)| *wrong == name) {
        return Some(right);
    }
    let (module, parameter) = name.split_once('.')?;
    let of_ttm = matches!(module, "ttm" | "amdttm") && !OF_TTM.contains(&parameter);
    let of_amdgpu = module == "amdgpu" && parameter.contains("gtt") && parameter != "gttsize";
    (of_ttm || of_amdgpu).then_some(if parameter.contains("pool") {
        "ttm.page_pool_size"
    } else {
        "ttm.pages_limit"
    })
}

fn check(case: &Case<'_>, report: &mut Report) {
    let found = misspelt(case)
        .or_else(|| other_module(case))
        // A limit that is asked for already says more than a gttsize beside it.
        .or_else(|| not_in_force(case))
        .or_else(|| not_booted_yet(case, |parameter| parameter == "pages_limit"))
        .or_else(|| gttsize_only(case))
        .or_else(|| not_booted_yet(case, |_| true));
    if let Some(finding) = found {
        report.add(finding);
    }
}

fn severity(case: &Case<'_>) -> Severity {
    if case.is_out_of_memory() { Severity::Error } else { Severity::Warning }
}

/// `name=value` words of the command line in force.
fn words(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split_ascii_whitespace().filter_map(|word| word.split_once('='))
}

fn line<'a>(case: &Case<'a>) -> Option<&'a Known<String>> {
    case.facts.kernel.cmdline.as_known()
}

fn line_evidence(known: &Known<String>) -> Evidence {
    Evidence::fact(&known.source, format!("kernel command line: {}", known.value))
}

/// The steps that put the right limit in force on this host, or say how where it cannot be computed.
fn right_limit(case: &Case<'_>) -> Vec<Fix> {
    let limit = case.gpu.and_then(|gpu| page_limit::recommend(case.facts, gpu, case.need()));
    match limit {
        Some(limit) => {
            let mut fixes: Vec<Fix> = carveout_first(case, &limit).into_iter().collect();
            fixes.extend(limit.fixes(case.facts));
            fixes
        }
        None => vec![
            Fix::new(
                FixKind::KernelParam,
                "Set ttm.pages_limit instead: GiB × 262144 pages of 4 KiB, leaving the OS a tenth of MemTotal and at least 4 GiB. \
                 With MemTotal known, doctor computes it.",
            )
            .command("grep MemTotal /proc/meminfo")
            .check(format!("cat /sys/module/{}/parameters/pages_limit", boot::ttm_module(case.facts))),
        ],
    }
}

fn misspelt(case: &Case<'_>) -> Option<Finding> {
    let logged = case.line("kernel-gtt-unknown-param");
    let on_line = line(case).and_then(|known| {
        let (wrong, right) =
            words(&known.value).find_map(|(name, _)| Some((name.to_owned(), meant(name)?)))?;
        Some((known, wrong, right))
    });
    let (wrong, right) = match (&on_line, logged) {
        (Some((_, wrong, right)), _) => (wrong.clone(), *right),
        (None, Some(hit)) => {
            let module = hit.field("module").unwrap_or("amdgpu");
            (format!("{module}.{}", hit.field("name")?), "ttm.pages_limit")
        }
        (None, None) => return None,
    };
    Some(
        RULE.finding(
            severity(case),
            Confidence::Certain,
            format!("{wrong} is no parameter: the setting has no effect (the name is {right})"),
            "The kernel ignores what it does not know, with one line in its log. The default stays in force.",
        )
        .because_of(on_line.map(|(known, ..)| line_evidence(known)))
        .because_of(logged.map(Evidence::line))
        .because_of(case.failure_evidence())
        .fixes(right_limit(case)),
    )
}

/// `ttm.` parameters while the out-of-tree `amdttm` is loaded, or the reverse.
fn other_module(case: &Case<'_>) -> Option<Finding> {
    let known = line(case)?;
    let module = case.facts.ttm.module.text()?;
    let other = if module == "amdttm" { "ttm" } else { "amdttm" };
    let has = |module: &str| {
        words(&known.value).any(|(name, _)| name.strip_prefix(module).is_some_and(|n| n.starts_with('.')))
    };
    if !has(other) || has(module) {
        return None;
    }
    Some(
        RULE.finding(
            severity(case),
            Confidence::Certain,
            format!("{other}.* is set, but the module loaded here is {module}"),
            "The out-of-tree amdgpu driver brings its own TTM, named amdttm; the kernel's own is ttm. Each reads its own parameters only.",
        )
        .because(line_evidence(known))
        .because_of(fact(&case.facts.ttm.module, "TTM module in use"))
        .because_of(fact(&case.facts.amdgpu.dkms_version, "out-of-tree driver"))
        .fixes(right_limit(case)),
    )
}

/// `amdgpu.gttsize` above TTM's limit on an APU: it moves the GTT manager, not HIP's pool.
fn gttsize_only(case: &Case<'_>) -> Option<Finding> {
    let gpu = case.device().filter(|gpu| gpu.apu.get() != Some(false) && case.hip())?;
    // Where HIP takes the carveout, neither of the two matters to it.
    if case
        .hip_pool()
        .is_some_and(|pool| matches!(pool.limited_by, Some(LimitedBy::Vram | LimitedBy::Cgroup)))
    {
        return None;
    }
    let asked = line(case).and_then(|known| {
        let (_, mib) = words(&known.value).filter(|(name, _)| *name == "amdgpu.gttsize").last()?;
        Some((Bytes::mib(mib.parse().ok()?), line_evidence(known)))
    });
    let active = case.facts.amdgpu.gttsize_mib.as_known().filter(|known| known.value > 0).map(|known| {
        let text = format!("amdgpu.gttsize: {} MiB", known.value);
        (Bytes::mib(known.value.unsigned_abs()), Evidence::fact(&known.source, text))
    });
    let logged = case.line("kernel-gtt-ttm-mismatch");
    let from_log = logged.and_then(|hit| Some((Bytes(hit.number("gtt")?), Evidence::line(hit))));
    let (gttsize, evidence) = active.or(asked).or(from_log)?;
    let limit = ttm_limit(case.facts, gpu)?;
    if gttsize <= limit.bytes + Bytes(limit.bytes.0 / 50) {
        return None;
    }
    let observed = limit.source.origin != Origin::Sheet
        || case.facts.ttm.pages_limit.is_known()
        || gpu.kfd_pool.is_known();
    Some(
        RULE.finding(
            severity(case),
            case.sure_if(observed || gpu.hip_total.is_known()),
            format!("amdgpu.gttsize of {gttsize} does not raise the HIP pool: TTM's limit is {}", limit.bytes),
            "gttsize is deprecated and moves the GTT manager only, which Vulkan uses. KFD counts ROCm's memory against ttm.pages_limit, \
             by default half of the RAM. That is why tools show a large GTT and HIP still ends at the small figure.",
        )
        .because(evidence)
        .because(Evidence::fact(&limit.source, format!("TTM's limit: {} ({})", limit.bytes, limit.formula)))
        .because_of(logged.map(Evidence::line))
        .because_of(case.line("kernel-gttsize-deprecated").map(Evidence::line))
        .because_of(case.device().into_iter().flat_map(|gpu| fact(&gpu.hip_total, "total that HIP reports")))
        .because_of(case.failure_evidence())
        .fixes(right_limit(case))
        .fix(boot::remove_parameter(
            case.facts,
            "amdgpu.gttsize",
            "And take amdgpu.gttsize off the kernel command line and out of /etc/modprobe.d: it only misleads.".to_owned(),
        ))
        .related("apu-ttm-limit"),
    )
}

/// A page limit was asked for, and another one is in force.
fn not_in_force(case: &Case<'_>) -> Option<Finding> {
    let gpu = case.device().filter(|_| case.is_apu() && case.hip())?;
    let asked = asked_limit(case)?;
    let (in_force, evidence) = if let Some(pages) = case.facts.ttm.pages_limit.as_known() {
        let text = format!("pages_limit in force: {} pages = {}", pages.value, Bytes::pages(pages.value));
        (Bytes::pages(pages.value), Evidence::fact(&pages.source, text))
    } else {
        let vram = gpu.vram_total.get();
        let total = [&gpu.kfd_pool, &gpu.hip_total].into_iter().find_map(|reading| reading.as_known())?;
        // A pool that equals the carveout is another matter.
        if vram.is_some_and(|vram| vram.near(total.value, 3.0)) {
            return None;
        }
        (total.value, Evidence::fact(&total.source, format!("pool that the runtime shows: {}", total.value)))
    };
    // KFD's system limit may cut a page limit that is in force.
    let cut = case.facts.memory.total.get().map(facts::pool::kfd_system_limit);
    let expected = cut.map_or(asked.bytes, |cut| cut.min(asked.bytes));
    if in_force.near(expected, 5.0) || in_force.near(asked.bytes, 3.0) || in_force > asked.bytes {
        return None;
    }
    Some(
        RULE.finding(
            severity(case),
            Confidence::Likely,
            format!("a page limit of {} was asked for, and {in_force} is in force", asked.bytes),
            "The parameter did not reach the module. Either this boot did not use the line (boot loader not updated, another entry booted), \
             or ttm was loaded from an initramfs built before the file in /etc/modprobe.d was written.",
        )
        .because(asked.evidence)
        .because(evidence)
        .because_of(case.failure_evidence())
        .fix(
            Fix::new(
                FixKind::Command,
                "See what this boot used; if pages_limit is not on it, write the boot loader's entry anew (GRUB: update-grub; systemd-boot: the entry \
                 file; Fedora: grubby) and reboot. If it is, or the setting stands in /etc/modprobe.d, rebuild the initramfs and reboot.",
            )
            .command("cat /proc/cmdline; cat /sys/module/*ttm/parameters/pages_limit"),
        )
        .fix(
            boot::rebuild_initramfs(case.facts)
                .check(format!("cat /sys/module/{}/parameters/pages_limit", boot::ttm_module(case.facts))),
        ),
    )
}

struct Asked {
    bytes: Bytes,
    evidence: Evidence,
}

/// The page limit that the command line or modprobe.d asks for.
fn asked_limit(case: &Case<'_>) -> Option<Asked> {
    let from_line = line(case).and_then(|known| {
        let names = ["ttm.pages_limit", "amdttm.pages_limit"];
        let (_, pages) = words(&known.value).filter(|(name, _)| names.contains(name)).last()?;
        Some(Asked { bytes: Bytes::pages(pages.parse().ok()?), evidence: line_evidence(known) })
    });
    from_line.or_else(|| {
        let options = case.facts.kernel.modprobe_options.as_known()?;
        options.value.iter().rev().find_map(|option| {
            if !option.contains("ttm ") {
                return None;
            }
            let (_, pages) = words(option).filter(|(name, _)| *name == "pages_limit").last()?;
            let evidence = Evidence::fact(&options.source, option.clone());
            Some(Asked { bytes: Bytes::pages(pages.parse().ok()?), evidence })
        })
    })
}

/// The boot loader's files have the parameter, the running kernel has not: a reboot is due.
fn not_booted_yet(case: &Case<'_>, which: impl Fn(&str) -> bool) -> Option<Finding> {
    let running = line(case)?;
    let configured = case.facts.kernel.cmdline_configured.as_known()?;
    let ours =
        |name: &str| name.starts_with("ttm.") || name.starts_with("amdttm.") || name.starts_with("amdgpu.");
    let (name, value) = words(&configured.value)
        .filter(|(name, _)| ours(name) && name.split_once('.').is_some_and(|(_, parameter)| which(parameter)))
        .find(|pair| !words(&running.value).any(|have| have == *pair))?;
    Some(
        RULE.finding(
            severity(case),
            Confidence::Certain,
            format!("{name}={value} is configured and not yet in force: this boot started without it"),
            "Parameters of the kernel and of modules that the initramfs loads count from the next boot on.",
        )
        .because(line_evidence(running))
        .because(Evidence::fact(&configured.source, format!("configured: {}", configured.value)))
        .fix(
            Fix::new(FixKind::Command, "Reboot; if it still is not there, the boot loader's configuration was not written (update-grub, grubby, bootctl).")
                .command("sudo reboot")
                .check("cat /proc/cmdline"),
        ),
    )
}
