//! The scan: any split, any packing, any size.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use crate::{Hit, Scan, Scanner, scan_lines, scan_reader, scan_reader_limited, signatures};

const OOM: &str = "ROCm error: out of memory";

fn ids(scan: &Scan) -> Vec<&'static str> {
    scan.hits.iter().map(|h| h.signature.id).collect()
}

fn find<'a>(scan: &'a Scan, id: &str) -> &'a Hit {
    scan.hits.iter().find(|h| h.signature.id == id).unwrap_or_else(|| panic!("{id} in {:?}", ids(scan)))
}

fn one(text: &str) -> Scan {
    scan_lines("x", text.lines())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn an_oom_line_gives_all_its_sizes() {
    let scan = one(
        "HIP out of memory. Tried to allocate 1.08 GiB. GPU 0 has a total capacity of 62.47 GiB of which \
                    769.28 MiB is free. Of the allocated memory 61.41 GiB is allocated by PyTorch, and 138.26 MiB is \
                    reserved by PyTorch but unallocated.",
    );
    let hit = find(&scan, "torch-oom");
    let fields: Vec<_> =
        ["req", "total", "free", "allocated", "reserved"].map(|f| hit.field(f).unwrap()).into();
    assert_eq!(fields, ["1.08 GiB", "62.47 GiB", "769.28 MiB", "61.41 GiB", "138.26 MiB"]);
    assert_eq!((hit.field("class"), hit.number("dev")), (None, Some(0)));
}

#[test]
fn an_oom_line_that_names_another_process_gives_its_share() {
    let scan = one(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of \
                    15.98 GiB of which 12.00 MiB is free. Process 1234 has 15.03 GiB memory in use. Including \
                    non-PyTorch memory, this process has 900.00 MiB memory in use. Of the allocated memory 512.00 MiB \
                    is allocated by PyTorch, with 30.00 MiB allocated in private pools (e.g., HIP Graphs), and 1.00 \
                    MiB is reserved by PyTorch but unallocated.",
    );
    let hit = find(&scan, "torch-oom");
    let fields: Vec<_> =
        ["pid", "other", "used", "allocated", "reserved"].map(|f| hit.field(f).unwrap()).into();
    assert_eq!(fields, ["1234", "15.03 GiB", "900.00 MiB", "512.00 MiB", "1.00 MiB"]);
}

#[test]
fn a_kernel_line_gives_its_device_under_every_prefix() {
    for (line, bdf) in [
        ("[drm] amdgpu: 2048M of VRAM memory ready", None),
        ("amdgpu 0000:c5:00.0: amdgpu: amdgpu: 2048M of VRAM memory ready", Some("0000:c5:00.0")),
        ("[    3.1] amdgpu 0000:c5:00.0:  2048M of VRAM memory ready", Some("0000:c5:00.0")),
        ("kernel: amdgpu 0000:c5:00.0: [drm] 2048M of VRAM memory ready.", Some("0000:c5:00.0")),
    ] {
        let scan = one(line);
        let hit = find(&scan, "kernel-memory-ready");
        assert_eq!(
            (hit.field("bdf"), hit.field("mib"), hit.field("kind")),
            (bdf, Some("2048"), Some("VRAM")),
            "{line}"
        );
    }
}

#[test]
fn every_variable_on_a_line_is_seen_and_advice_is_not() {
    let scan = one("$ HSA_OVERRIDE_GFX_VERSION=11.0.0 HIP_VISIBLE_DEVICES='0' ./llama-server -m x\n\
                    docker run -e PYTORCH_HIP_ALLOC_CONF=expandable_segments:True image\n\
                    Environment=\"GGML_CUDA_ENABLE_UNIFIED_MEMORY=1\"\n\
                    please set HSA_XNACK=1\n      HSA_ENABLE_SDMA: \"0\"");
    let seen: Vec<_> = scan
        .hits
        .iter()
        .filter(|h| h.signature.id == "environment")
        .map(|h| (h.field("name").unwrap(), h.field("value").unwrap(), h.line.number))
        .collect();
    let want = [
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0", 1),
        ("HIP_VISIBLE_DEVICES", "'0'", 1),
        ("PYTORCH_HIP_ALLOC_CONF", "expandable_segments:True", 2),
        ("GGML_CUDA_ENABLE_UNIFIED_MEMORY", "1", 3),
        ("HSA_ENABLE_SDMA", "\"0\"", 5),
    ];
    assert_eq!(seen, want);
}

#[test]
fn rocminfo_s_agents_stay_in_order() {
    let scan = one(
        "Agent 1                  \n  Device Type:             CPU\n    Size: 100(0x64) KB\nAgent 2                  \n  \
                    Name:                    gfx1151            \n    Size: 100(0x64) KB\n    Size: 100(0x64) KB",
    );
    let want =
        ["rocminfo-agent", "rocminfo-device-type", "rocminfo-pool-size", "rocminfo-agent", "rocminfo-name"];
    assert_eq!(ids(&scan)[..5], want);
    assert_eq!(scan.hits.len(), 7);
}

#[test]
fn repeats_are_folded_and_other_fields_are_not() {
    let line = |n: u32| format!("allocating {n}.00 MiB on device 0: cudaMalloc failed: out of memory");
    let scan = one(&[line(1), line(2), line(1), line(1)].join("\n"));
    let found: Vec<_> =
        scan.hits.iter().map(|h| (h.mib("mib").unwrap().whole_mib(), h.count, h.last.number)).collect();
    assert_eq!(found, [(1, 3, 4), (2, 1, 2)]);
}

#[test]
fn a_billion_devices_are_not_believed() {
    let lines: Vec<String> =
        (0..5000).map(|n| format!("  Device {n}: X, gfx1151, VMM: no, VRAM: 1 MiB")).collect();
    let scan = scan_lines("x", lines.iter().map(String::as_str));
    assert_eq!((scan.hits.len(), scan.lines, scan.notes.len()), (256, 5000, 1));
    let lines: Vec<String> =
        (0..5000).map(|n| format!("allocating {n}.00 MiB on device 0: cudaMalloc failed: x")).collect();
    let scan = scan_lines("x", lines.iter().map(String::as_str));
    assert_eq!((scan.hits.len(), scan.notes.len()), (64, 1));
}

#[test]
fn colours_line_ends_and_progress_bars_do_not_hide_a_line() {
    let text = format!("\x1b[31mROCm error:\x1b[0m out of memory\r\n 10%|#   |\r 20%|##  |\r{OOM}\r\nend");
    let scan = scan_reader("x", text.as_bytes()).unwrap();
    let hit = find(&scan, "ggml-rocm-error-oom");
    assert_eq!((hit.text.as_str(), hit.count, hit.line.number, hit.last.number), (OOM, 2, 1, 2));
    assert_eq!(scan.lines, 3);
}

#[test]
fn the_journal_s_json_is_read() {
    let bytes: Vec<String> = OOM.bytes().map(|b| b.to_string()).collect();
    let text = format!(
        "{{\"__CURSOR\":\"s=1\",\"MESSAGE\":\"a \\\"quoted\\\" start\"}}\n{{\"MESSAGE\":[{}]}}\n\
         {{\"MESSAGE\":\"two\\nROCm error: invalid argument\"}}\nnot json: {OOM}\n{{\"MESSAGE\":null}}\n",
        bytes.join(",")
    );
    let scan = scan_reader("journal", text.as_bytes()).unwrap();
    let hit = find(&scan, "ggml-rocm-error-oom");
    assert_eq!((hit.line.number, hit.text.as_str(), hit.last.number), (2, OOM, 4));
    assert_eq!((find(&scan, "ggml-rocm-error-other").line.number, scan.lines), (3, 5));
}

#[test]
fn docker_s_json_files_are_read() {
    let text = "{\"log\":\"HIP_VISIBLE_DEVICES=\\\"1\\\"\\n\",\"stream\":\"stderr\",\"time\":\"2026\"}\n";
    let scan = scan_reader("c.log", text.as_bytes()).unwrap();
    assert_eq!(find(&scan, "environment").field("value"), Some("\"1\""));
}

#[test]
fn a_gzip_log_is_unpacked_and_a_cut_one_read_as_far_as_it_goes() {
    let text = format!("{OOM}\n").repeat(20_000);
    let packed = gzip(text.as_bytes());
    let whole = scan_reader("x.gz", packed.as_slice()).unwrap();
    assert_eq!((whole.lines, whole.bytes, whole.notes.len()), (20_000, text.len() as u64, 0));
    let cut = scan_reader("x.gz", &packed[..packed.len() - 20]).unwrap();
    assert!(cut.lines > 0 && cut.notes.len() == 1, "{:?}", cut.notes);
    assert_eq!(find(&cut, "ggml-rocm-error-oom").line.number, 1);
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0xff;
    assert_eq!(scan_reader("x.gz", damaged.as_slice()).unwrap().notes.len(), 1);
}

#[test]
fn what_a_log_unpacks_to_is_limited() {
    let text = format!("{OOM}\n").repeat(20_000);
    let packed = gzip(text.as_bytes());
    let scan = scan_reader_limited("x.gz", packed.as_slice(), 1000).unwrap();
    assert_eq!((scan.bytes, scan.notes.len()), (1000, 1));
    let scan = scan_reader_limited("x.gz", packed.as_slice(), text.len() as u64).unwrap();
    assert_eq!((scan.bytes, scan.notes.len()), (text.len() as u64, 0));
}

#[test]
fn a_binary_is_named_and_still_read() {
    let text = format!("\0\x01\x02{OOM}\0\n");
    let scan = scan_reader("core", text.as_bytes()).unwrap();
    assert_eq!((scan.notes.len(), find(&scan, "ggml-rocm-error-oom").text.as_str()), (1, OOM));
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(OOM.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let scan = scan_reader("powershell.txt", utf16.as_slice()).unwrap();
    assert_eq!((scan.notes.len(), ids(&scan)), (0, vec!["ggml-rocm-error-oom"]));
}

/// So many times the same text.
struct Endless<'a> {
    text: &'a [u8],
    left: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = out.len().min(self.left).min(self.text.len());
        out[..n].copy_from_slice(&self.text[..n]);
        self.left -= n;
        Ok(n)
    }
}

#[test]
fn one_endless_line_is_read_to_its_end() {
    let mebibytes = if cfg!(debug_assertions) { 4 } else { 100 };
    let text = [b"x".repeat(3000), OOM.as_bytes().to_vec()].concat();
    let reader = Endless { text: &text, left: mebibytes << 20 };
    let mut scanner = Scanner::new("x");
    let mut reader = reader;
    let mut chunk = vec![0; text.len()];
    let mut rounds = 0;
    while reader.read(&mut chunk).unwrap() == text.len() {
        scanner.feed(&chunk);
        rounds += 1;
        assert!(scanner.held() < 200 << 10, "{} bytes are held", scanner.held());
    }
    let scan = scanner.finish();
    let hit = find(&scan, "ggml-rocm-error-oom");
    assert_eq!((scan.lines, hit.count, hit.text.chars().count()), (1, rounds, 400));
}

#[test]
fn an_error_of_the_reader_is_an_error() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("gone"))
        }
    }
    assert!(scan_reader("x", Broken).is_err());
}

#[test]
fn an_empty_log_is_a_log() {
    let scan = scan_reader("x", io::empty()).unwrap();
    assert_eq!((scan.lines, scan.bytes, scan.hits.len(), scan.notes.len()), (0, 0, 0, 0));
}

/// Lines as logs have them: known ones, long ones, colours, progress bars, bytes that are no text.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&'static str> = signatures().map(|s| s.example).collect();
    prop_oneof![
        4 => prop::sample::select(known.clone()).prop_map(|e| e.as_bytes().to_vec()),
        1 => (prop::sample::select(known.clone()), 0..9000_usize, 0..9000_usize)
            .prop_map(|(e, a, b)| [vec![b'.'; a], e.as_bytes().to_vec(), vec![b' '; b]].concat()),
        1 => prop::sample::select(known).prop_map(|e| [b"\x1b[1;3".as_slice(), b"1m\r", e.as_bytes(), b"\x1b[0m"].concat()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 48 } else { 512 }))]

    #[test]
    fn no_split_of_the_input_changes_the_scan(
        lines in prop::collection::vec(line(), 1..12),
        ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r", " ", "\n\n"]), 12),
        cuts in prop::collection::vec(1_usize..3000, 1..40),
    ) {
        let text: Vec<u8> = lines.iter().zip(&ends).flat_map(|(l, e)| [l.as_slice(), e.as_bytes()].concat()).collect();
        let mut whole = Scanner::new("x");
        whole.feed(&text);
        let mut split = Scanner::new("x");
        let mut rest = text.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (part, after) = rest.split_at(rest.len().min(*cut));
            split.feed(part);
            rest = after;
        }
        prop_assert_eq!(format!("{:?}", split.finish()), format!("{:?}", whole.finish()));
    }

    #[test]
    fn no_bytes_make_a_scan_panic(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        let _ = scan_reader("x", bytes.as_slice());
        let _ = scan_reader("x", [b"\x1f\x8b".as_slice(), &bytes].concat().as_slice());
        let _ = scan_reader("x", [b"{\"MESSAGE\":".as_slice(), &bytes].concat().as_slice());
    }
}
