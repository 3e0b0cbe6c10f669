//! Speed of a scan over a mixed log, and of the start.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_main};
use logs::{Scanner, scan_lines, signatures};

/// A log as machines write it: mostly lines that nobody knows, here and there a known one.
fn mixed(bytes: usize) -> Vec<u8> {
    let mut text = String::with_capacity(bytes + 1000);
    let known: Vec<&str> = signatures().map(|s| s.example).collect();
    for n in 0_usize.. {
        let line = match n % 16 {
            0 | 1 => format!(
                "[{n:12}.123456] amdgpu 0000:c5:00.0: [drm] ring gfx_0.0.0 uses VM inv eng {} on hub 0",
                n % 9
            ),
            2 | 3 => format!(
                "[{n:12}.123456] usb 1-{}: new high-speed USB device number {} using xhci_hcd",
                n % 9,
                n % 99
            ),
            4 | 5 => {
                format!("llama_model_loader: - kv {:3}: llama.attention.head_count u32 = {}", n % 40, n % 64)
            }
            6 | 7 => format!("load_tensors: layer {:3} assigned to device ROCm0, is_swa = 0", n % 80),
            8 | 9 => format!(
                "slot update_slots: id {} | task {n} | prompt processing progress, n_tokens = {n}",
                n % 4
            ),
            10..=12 => format!(
                "INFO 11-30 [loggers.py:{n}] Engine 000: Avg prompt throughput: {n}.0 tokens/s, GPU KV cache usage: 1.2%"
            ),
            13 => format!("eval time = {n}.10 ms / {n} tokens (12.34 ms per token, 56.78 tokens per second)"),
            14 => format!(
                "{{\"level\":\"info\",\"ts\":\"2026-11-30T15:00:00Z\",\"msg\":\"request\",\"tokens\":{n}}}"
            ),
            _ if n % 4096 == 15 => known[n / 4096 % known.len()].to_owned(),
            _ => format!("srv  log_server_r: request: POST /v1/chat/completions 127.0.0.1 {n}"),
        };
        text.push_str(&line);
        text.push('\n');
        if text.len() >= bytes {
            break;
        }
    }
    text.into_bytes()
}

fn scan(c: &mut Criterion) {
    let text = mixed(64 << 20);
    let mut group = c.benchmark_group("scan");
    group.sample_size(10).throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("mixed log", |b| {
        b.iter(|| {
            let mut scanner = Scanner::new("bench");
            scanner.feed(black_box(&text));
            scanner.finish()
        });
    });
    group.finish();
    c.bench_function("one line", |b| {
        b.iter(|| scan_lines("x", [black_box("ROCm error: out of memory")].into_iter()))
    });
}

mod group {
    use super::scan;
    criterion::criterion_group!(benches, scan);
}

criterion_main!(group::benches);
