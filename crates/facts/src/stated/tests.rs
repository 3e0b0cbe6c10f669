//! Facts out of text as people paste it.

use super::*;
use crate::pool::{Api, pools};
use units::Bytes;

fn facts(lines: &str) -> Facts {
    stated(&logs::scan_lines("t.log", lines.lines()))
}

#[test]
fn the_kernel_s_sizes_are_facts_with_their_lines() {
    let facts = facts(
        "[    3.1] amdgpu 0000:c5:00.0: amdgpu: amdgpu: 98304M of VRAM memory ready\n\
         [    3.1] amdgpu 0000:c5:00.0: amdgpu: amdgpu: 15863M of GTT memory ready.\n\
         [    3.2] amdgpu: HMM registered 98304MB device memory",
    );
    let gpu = &facts.gpus[0];
    assert_eq!(gpu.bdf.text(), Some("0000:c5:00.0"));
    assert_eq!(gpu.vram_total.get(), Some(Bytes::mib(98304)));
    assert_eq!(gpu.gtt_total.get(), Some(Bytes::mib(15863)));
    assert_eq!(&*gpu.gtt_total.source().unwrap().place, "t.log:2");
    assert_eq!(gpu.hmm_registered.get(), Some(true));
    assert_eq!(facts.gpus.len(), 1);
}

#[test]
fn two_devices_of_an_older_kernel_are_told_apart_by_their_announcement() {
    let facts = facts(
        "[drm] initializing kernel modesetting (IP DISCOVERY 0x1002:0x7550 0x148C:0x2435 0xC0).\n\
         [drm] amdgpu: 16304M of VRAM memory ready\n\
         [drm] initializing kernel modesetting (IP DISCOVERY 0x1002:0x164E 0x1458:0xD000 0xC9).\n\
         [drm] amdgpu: 512M of VRAM memory ready",
    );
    let sizes: Vec<_> = facts
        .gpus
        .iter()
        .map(|g| (g.gfx.text().unwrap().to_owned(), g.vram_total.get().unwrap().whole_mib(), g.apu.get()))
        .collect();
    assert_eq!(sizes, [("gfx1036".to_owned(), 512, Some(true)), ("gfx1201".to_owned(), 16304, Some(false))]);
}

#[test]
fn rocminfo_s_pool_belongs_to_the_gpu_agent_and_not_to_the_cpu() {
    let facts = facts(
        "Agent 1\n  Name:                    AMD RYZEN AI MAX+ 395\n  Marketing Name:          AMD RYZEN AI MAX+ 395\n  Device Type:             CPU\n\
         \x20     Segment:                 GLOBAL; FLAGS: COARSE GRAINED\n      Size:                    131753600(0x7da6280) KB\n\
         Agent 2\n  Name:                    gfx1151\n  Marketing Name:          AMD Radeon Graphics\n  Device Type:             GPU\n\
         \x20 Chip ID:                 5510(0x1586)\n  BDFID:                   50432\n\
         \x20     Segment:                 GLOBAL; FLAGS: COARSE GRAINED\n      Size:                    130023424(0x7c00000) KB",
    );
    assert_eq!(facts.gpus.len(), 1);
    let gpu = &facts.gpus[0];
    assert_eq!(gpu.bdf.text(), Some("0000:c5:00.0"));
    assert_eq!(gpu.kfd_pool.get(), Some(Bytes::kib(130_023_424)));
    assert_eq!(gpu.apu.get(), Some(true));
}

#[test]
fn vulkaninfo_s_heaps_come_device_local_first_and_software_devices_are_left_out() {
    let facts = facts(
        "\tdeviceName        = AMD Radeon Graphics (RADV GFX1151)\n\tdeviceType        = PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU\n\
         \tdriverID          = DRIVER_ID_MESA_RADV\n\tmaxMemoryAllocationSize = 0xfffffffc\n\
         memoryHeaps[0]:\n\t\tsize   = 44564480000 (0xa60400000) (41.50 GiB)\n\
         memoryHeaps[1]:\n\t\tsize   = 89128960000 (0x14c0800000) (83.01 GiB)\n\t\t\tMEMORY_HEAP_DEVICE_LOCAL_BIT\n\
         \tdeviceName        = llvmpipe (LLVM 19.1.1, 256 bits)\n\tdeviceType        = PHYSICAL_DEVICE_TYPE_CPU\n\
         memoryHeaps[0]:\n\t\tsize   = 134915686400 (0x1f69a00000) (125.65 GiB)",
    );
    assert_eq!(facts.gpus.len(), 1);
    let vulkan = &facts.gpus[0].vulkan;
    assert_eq!(vulkan.heaps.value().unwrap()[0], Bytes(89_128_960_000));
    assert_eq!(vulkan.max_allocation.get(), Some(Bytes(0xFFFF_FFFC)));
    let pool = pools(&facts).into_iter().find(|p| p.api == Api::Vulkan).unwrap();
    assert_eq!(pool.total, Some(Bytes(89_128_960_000)));
}

#[test]
fn totals_of_programs_are_what_hip_reported() {
    let torch = facts(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacity of 15.98 GiB of which 1.40 GiB is free.",
    );
    assert!(torch.gpus[0].hip_total.get().unwrap().near(Bytes::parse("15.98 GiB").unwrap(), 0.001));
    let ggml =
        facts("  Device 0: AMD Radeon Graphics, gfx1151 (0x1151), VMM: no, Wave Size: 32, VRAM: 126976 MiB");
    assert_eq!(ggml.gpus[0].hip_total.get(), Some(Bytes::mib(126976)));
    assert_eq!(ggml.gpus[0].gfx.text(), Some("gfx1151"));
}

#[test]
fn settings_versions_and_exit_statuses_are_read_and_advice_in_a_message_is_no_setting() {
    let facts = facts(
        "export HSA_OVERRIDE_GFX_VERSION=11.0.0\nLinux version 6.14.0-1014-oem (buildd@x) (gcc 14) #14\n\
         Command line: BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet amdgpu.gttsize=131072\nllama.cpp build: 11669 (1a2b3c4d)\nexited with code 137\n\
         torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 0 bytes is free. If reserved but unallocated memory is large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    );
    assert_eq!(facts.env("HSA_OVERRIDE_GFX_VERSION").unwrap().value, "11.0.0");
    assert!(facts.env("PYTORCH_HIP_ALLOC_CONF").is_none());
    assert_eq!(facts.kernel.release.text(), Some("6.14.0-1014-oem"));
    assert!(facts.kernel.cmdline.text().unwrap().contains("amdgpu.gttsize=131072"));
    assert_eq!(facts.version("llama_cpp"), Some("b11669"));
    assert_eq!(facts.workload.exit_status.get(), Some(137));
}

#[test]
fn a_tool_s_underflow_is_no_size() {
    let facts = facts(
        "GPU[0] : VRAM Total Memory (B): 103079215104\nGPU[0] : VRAM Total Used Memory (B): 18446744073709000000",
    );
    assert_eq!(facts.gpus[0].vram_total.get(), Some(Bytes::gib(96)));
    assert_eq!(facts.gpus[0].vram_used.get(), None);
    assert!(facts.shown.iter().any(|s| s.value.used == Some(Bytes(18_446_744_073_709_000_000))));
}
