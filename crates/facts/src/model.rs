//! The records of facts: `vramwarden.facts/1`, each value a reading. Sizes are bytes unless the name says otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::Bytes;

/// What `open()` on a device node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeAccess {
    /// It opens, or its permission bits allow it.
    Ok,
    /// There is no such node (ENOENT).
    Missing,
    /// Permission is refused (EACCES, EPERM).
    Denied,
    /// The driver refuses this process or device (EINVAL).
    Invalid,
    /// The kernel could not allocate (ENOMEM).
    NoMemory,
}

/// What the user saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symptom {
    /// An out-of-memory error.
    Oom,
    /// The program ended by a signal or an abort.
    Crash,
    /// It does not go on.
    Hang,
    /// It loads for minutes.
    SlowLoad,
    /// It ends without a result and without an error.
    NoOutput,
    /// The result is garbage.
    WrongOutput,
    /// It works, on the CPU.
    CpuFallback,
}

record! {
    /// The operating system.
    Platform / PlatformSheet {
        /// `linux`, `wsl2` or `windows`.
        os("os"): String,
        /// Distribution, as `ID VERSION_ID` of os-release, and its `VARIANT_ID` where there is one.
        distribution("distribution"): String,
        /// Whether this is a virtual machine.
        virtualized("virtualized"): bool,
        /// Maker and product of the machine, as DMI names them.
        board("board"): String,
    }
}

record! {
    /// The kernel and how it was started.
    Kernel / KernelSheet {
        /// `uname -r`.
        release("release"): String,
        /// Command line of the running boot.
        cmdline("cmdline"): String,
        /// Command line that the boot loader's files would give the next boot.
        cmdline_configured("cmdline_configured"): String,
        /// Loaded modules.
        modules("modules"): Vec<String>,
        /// `options …` lines of modprobe.d that concern amdgpu and ttm.
        modprobe_options("modprobe_options"): Vec<String>,
        /// What each of the boot loader's files says, as `path: command line`: a file edited in vain can be named.
        cmdline_files("cmdline_files"): Vec<String>,
        /// Kernel log lines.
        log("log"): Vec<String>,
    }
}

record! {
    /// The host's RAM. `total` excludes an APU's carveout.
    Memory / MemorySheet {
        /// RAM fitted to the board.
        installed("installed_bytes"): Bytes,
        /// MemTotal.
        total("total_bytes"): Bytes,
        /// MemAvailable.
        available("available_bytes"): Bytes,
        /// SwapTotal.
        swap_total("swap_total_bytes"): Bytes,
        /// SwapFree.
        swap_free("swap_free_bytes"): Bytes,
        /// Swap in use.
        swap_used("swap_used_bytes"): Bytes,
        /// RAM set aside as huge pages; GTT cannot take it.
        huge_pages("huge_pages_bytes"): Bytes,
        /// Locked memory (Mlocked).
        locked("locked_bytes"): Bytes,
        /// Share of the last 10 s in which at least one task waited for memory, percent.
        pressure_some("pressure_some_avg10"): f64,
        /// Share of the last 10 s in which all tasks waited for memory, percent.
        pressure_full("pressure_full_avg10"): f64,
        /// NUMA nodes online.
        numa_nodes("numa_nodes"): u64,
        /// Shared memory and tmpfs (Shmem).
        shared("shared_bytes"): Bytes,
        /// Memory that cannot be reclaimed (Unevictable).
        unevictable("unevictable_bytes"): Bytes,
        /// Whether pages are moved between NUMA nodes at run time (kernel.numa_balancing).
        numa_balancing("numa_balancing"): bool,
        /// vm.overcommit_memory: 0 heuristic, 1 always, 2 never.
        overcommit("overcommit_memory"): u64,
        /// vm.max_map_count, mappings per process.
        max_map_count("max_map_count"): u64,
        /// vm.swappiness.
        swappiness("swappiness"): u64,
        /// vm.min_free_kbytes.
        min_free("min_free_bytes"): Bytes,
        /// Transparent huge pages: `always`, `madvise` or `never`.
        transparent_huge_pages("transparent_huge_pages"): String,
    }
}

record! {
    /// The TTM memory manager of the kernel.
    Ttm / TtmSheet {
        /// `ttm`, or `amdttm` where the out-of-tree driver is loaded.
        module("module"): String,
        /// Limit, in pages of 4 KiB.
        pages_limit("pages_limit"): u64,
        /// Cache of freed pages, in pages of 4 KiB.
        page_pool_size("page_pool_size"): u64,
        /// TTM's size as the driver printed it beside a differing GTT size.
        size_logged("size_logged_bytes"): Bytes,
    }
}

record! {
    /// Parameters of the amdgpu module.
    Amdgpu / AmdgpuSheet {
        /// GTT manager size in MiB; −1 is automatic.
        gttsize_mib("gttsize_mib"): i64,
        /// Whether KFD's system memory limit is lifted.
        no_system_mem_limit("no_system_mem_limit"): bool,
        /// Test limit on VRAM in MiB; 0 is none.
        vramlimit_mib("vramlimit_mib"): i64,
        /// Test limit on CPU-visible VRAM in MiB; 0 is none.
        vis_vramlimit_mib("vis_vramlimit_mib"): i64,
        /// Whether GPU page faults are not retried; −1 is automatic.
        noretry("noretry"): i64,
        /// Job time limits, as given.
        lockup_timeout("lockup_timeout"): String,
        /// Compute wave save and restore.
        cwsr_enable("cwsr_enable"): i64,
        /// Whether the micro engine scheduler is used; −1 is automatic.
        mes("mes"): i64,
        /// Page-table fragment as a power of two of 4 KiB; −1 is automatic.
        vm_fragment_size("vm_fragment_size"): i64,
        /// Whether a hung GPU is reset; −1 is automatic.
        gpu_recovery("gpu_recovery"): i64,
        /// Version of the out-of-tree driver; absent where the kernel's own is loaded.
        dkms_version("dkms_version"): String,
    }
}

record! {
    /// What a Vulkan driver states of a device.
    Vulkan / VulkanSheet {
        /// `radv`, `amdvlk` or another.
        driver("driver"): String,
        /// maxMemoryAllocationSize.
        max_allocation("max_allocation_bytes"): Bytes,
        /// maxBufferSize.
        max_buffer("max_buffer_bytes"): Bytes,
        /// Heaps, device-local first.
        heaps("heap_bytes"): Vec<Bytes>,
    }
}

record! {
    /// One AMD GPU.
    Gpu / GpuSheet {
        /// PCI address, `0000:c5:00.0`.
        bdf("bdf"): String,
        /// Marketing name.
        name("name"): String,
        /// `vendor:device`, lower-case hex.
        pci_id("pci_id"): String,
        /// LLVM target, `gfx1151`.
        gfx("gfx"): String,
        /// Whether it shares the host's RAM.
        apu("apu"): bool,
        /// VRAM, or the carveout of an APU.
        vram_total("vram_total_bytes"): Bytes,
        /// VRAM in use.
        vram_used("vram_used_bytes"): Bytes,
        /// VRAM free.
        vram_free("vram_free_bytes"): Bytes,
        /// VRAM the CPU can see; all of it with resizable BAR.
        visible_vram_total("visible_vram_total_bytes"): Bytes,
        /// Of that, in use.
        visible_vram_used("visible_vram_used_bytes"): Bytes,
        /// Size of the GTT manager.
        gtt_total("gtt_total_bytes"): Bytes,
        /// GTT in use.
        gtt_used("gtt_used_bytes"): Bytes,
        /// Memory of user pointers and other preemptible buffers.
        preempt_used("preempt_used_bytes"): Bytes,
        /// The pool in KFD's topology (what ROCr and `rocminfo` show).
        kfd_pool("kfd_pool_bytes"): Bytes,
        /// Total that HIP reported.
        hip_total("hip_total_bytes"): Bytes,
        /// Free that HIP reported.
        hip_free("hip_free_bytes"): Bytes,
        /// MES firmware version, `0x00000083`.
        mes_firmware("mes_firmware"): String,
        /// Limit on this process group's VRAM by the dmem cgroup controller.
        dmem_max("dmem_max_bytes"): Bytes,
        /// VRAM charged to it.
        dmem_current("dmem_current_bytes"): Bytes,
        /// `active`, `suspended`, … of runtime power management.
        power("power"): String,
        /// PCI BAR through which the CPU sees VRAM.
        bar("bar_bytes"): Bytes,
        /// `/dev/dri/renderD<n>`.
        render_minor("render_minor"): u64,
        /// KFD's id of the device.
        kfd_id("kfd_id"): u64,
        /// NUMA node, −1 where there is none.
        numa_node("numa_node"): i64,
        /// Compute partitions (XCC groups) that share the memory.
        partitions("partitions"): u64,
        /// Carveouts the firmware offers, as the kernel lists them.
        carveout_options("carveout_options"): Vec<String>,
        /// Index of the carveout in force.
        carveout("carveout"): String,
        /// Memory that cannot be handed out any more after ECC errors.
        retired("retired_bytes"): Bytes,
        /// Whether the kernel registered device memory with HMM (it does not where it takes HIP memory from GTT).
        hmm_registered("hmm_registered"): bool,
        /// Who made the VRAM; stated for cards with memory of their own only.
        vram_vendor("vram_vendor"): String,
        /// Share of time the GPU was busy, percent.
        busy_percent("busy_percent"): f64,
        /// PCIe speed in force, `16.0 GT/s PCIe`.
        link_speed("link_speed"): String,
        /// PCIe lanes in use.
        link_width("link_width"): u64,
        /// Version of the video BIOS.
        vbios("vbios"): String,
        /// PCI revision, two lower-case hex digits; it tells products of one device id apart.
        revision("revision"): String,
        /// `N` of `/sys/class/drm/cardN`.
        drm_card("drm_card"): u64,
        /// SIMD units, of one partition where there are several.
        simd_count("simd_count"): u64,
        /// Compute dies (XCC), of one partition where there are several.
        xcc_count("xcc_count"): u64,
        /// Access to this device's `/dev/dri/renderD<n>`.
        render_access("render_access"): NodeAccess,
    }
    nested {
        /// What Vulkan states of it.
        vulkan("vulkan"): Vulkan / VulkanSheet,
    }
}

record! {
    /// The container, if the doctor or the workload runs in one.
    Container / ContainerSheet {
        /// `docker`, `podman`, `kubernetes`, `lxc`, …
        runtime("runtime"): String,
        /// memory.max.
        memory_max("memory_max_bytes"): Bytes,
        /// memory.high.
        memory_high("memory_high_bytes"): Bytes,
        /// memory.current.
        memory_current("memory_current_bytes"): Bytes,
        /// MemTotal as seen inside.
        memory_total_seen("memory_total_seen_bytes"): Bytes,
        /// MemAvailable as seen inside.
        memory_available_seen("memory_available_seen_bytes"): Bytes,
        /// Processes killed for exceeding the limit.
        oom_kills("oom_kills"): u64,
        /// Size of /dev/shm.
        shm("shm_bytes"): Bytes,
        /// Control group, as the kernel names it.
        cgroup("cgroup"): String,
    }
}

record! {
    /// Access to the device nodes.
    Access / AccessSheet {
        /// /dev/kfd.
        kfd("kfd"): NodeAccess,
        /// /dev/dri/renderD*.
        render("render"): NodeAccess,
        /// `enforcing`, `permissive` or `disabled`.
        selinux("selinux"): String,
        /// SELinux boolean `container_use_devices`.
        container_use_devices("container_use_devices"): bool,
        /// Groups of the user.
        groups("groups"): Vec<String>,
        /// Numeric group that owns /dev/kfd.
        kfd_gid("kfd_gid"): u64,
        /// Numeric group that owns the first AMD render node.
        render_gid("render_gid"): u64,
        /// Numeric groups of the user: in a container names may differ from the host's.
        gids("gids"): Vec<u64>,
        /// User id that access is decided for.
        uid("uid"): u64,
        /// Locked-memory limit.
        memlock("memlock_bytes"): Bytes,
        /// IOMMU groups; 0 means that the IOMMU is off.
        iommu_groups("iommu_groups"): u64,
    }
}

record! {
    /// What the user runs or ran.
    Workload / WorkloadSheet {
        /// `llama.cpp`, `vllm`, …
        program("program"): String,
        /// `hip` or `vulkan`.
        api("api"): String,
        /// Command line.
        args("args"): String,
        /// Size of the model's file.
        model("model_bytes"): Bytes,
        /// Tokens of context asked for.
        context("context"): u64,
        /// Tokens the model was trained for.
        trained_context("trained_context"): u64,
        /// Exit status; 128+N after signal N.
        exit_status("exit_status"): i64,
        /// What the user saw.
        symptom("symptom"): Symptom,
        /// Seconds until the model was loaded.
        load_seconds("load_seconds"): f64,
    }
}

/// A process that holds GPU memory. A field that is `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Process id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// `comm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it runs (a zombie does not).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alive: Option<bool>,
    /// Device it holds memory of; absent where there is one device or the statement does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// VRAM by DRM fdinfo.
    #[serde(rename = "vram_bytes", skip_serializing_if = "Option::is_none")]
    pub vram: Option<Bytes>,
    /// GTT by DRM fdinfo.
    #[serde(rename = "gtt_bytes", skip_serializing_if = "Option::is_none")]
    pub gtt: Option<Bytes>,
    /// KFD allocations.
    #[serde(rename = "kfd_bytes", skip_serializing_if = "Option::is_none")]
    pub kfd: Option<Bytes>,
    /// Pinned host memory.
    #[serde(rename = "pinned_bytes", skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Bytes>,
    /// Resident memory.
    #[serde(rename = "rss_bytes", skip_serializing_if = "Option::is_none")]
    pub rss: Option<Bytes>,
    /// Environment variables that change memory behaviour.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// A figure that a program shows for the device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// Program that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Total.
    #[serde(rename = "total_bytes", skip_serializing_if = "Option::is_none")]
    pub total: Option<Bytes>,
    /// Free.
    #[serde(rename = "free_bytes", skip_serializing_if = "Option::is_none")]
    pub free: Option<Bytes>,
    /// In use.
    #[serde(rename = "used_bytes", skip_serializing_if = "Option::is_none")]
    pub used: Option<Bytes>,
}
