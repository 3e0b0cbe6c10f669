//! Where a known line could be: all literals of all signatures, looked for at once.
//!
//! Every literal is at least [`WINDOW`] bytes long. From each one a window of that length is chosen, and the
//! [`STRIDE`] four-byte grams that start in it go into a hash set. A scan then looks at every fourth byte only: an
//! occurrence of the literal covers exactly one such place with one of its grams. A gram that is in the set is
//! compared with the literals it may belong to, so that what comes out are true occurrences and nothing else.
//!
//! Windows are chosen so that their grams are rare in ordinary logs, a sample of which is [`ORDINARY`].

/// Bytes of a gram.
const GRAM: usize = 4;
/// Distance of the places looked at.
const STRIDE: usize = 4;
/// Bytes of a literal that are put into the table, and so its least length.
pub(crate) const WINDOW: usize = GRAM + STRIDE - 1;
/// The gram set holds 2^`BITS` bits: 16 KiB, half of a small first-level cache.
const BITS: u32 = 17;
/// The table of entries has 2^`SLOTS` heads.
const SLOTS: u32 = 13;

/// What most lines are made of. A window with such grams would wake the comparison at every line.
const ORDINARY: &str = "\
[    1.234567] amdgpu 0000:c5:00.0: amdgpu: [drm] ring gfx_0.0.0 uses VM inv eng 0 on hub 0 pci usb device number new \
kernel: systemd[1]: Started session scope Session of User root. host localhost docker containerd network interface \
load_tensors: layer  12 assigned to device ROCm0, is_swa = 0 llama_model_loader: - kv  12: llama.attention.head_count \
u32 = 32 tensor blk.12.ffn_gate.weight size = model type general.name tokenizer.ggml.tokens arr str ggml_ cuda vulkan \
llama_kv_cache: llama_context: print_info: common_init_from_params: n_ctx = n_batch = n_ubatch = KV self size memory \
slot update_slots: id 0 | task 123 | prompt processing progress, n_tokens = 512, batch.n_tokens = 64, progress = 0.5 \
srv log_server_r: request: POST /v1/chat/completions 127.0.0.1 200 GET /health params_from_: Chat format launch_slot \
INFO WARNING ERROR DEBUG info warning error debug level=INFO source= msg= time=2026-11-30T15:00:00.000Z level ts \
[loggers.py:123] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: tokens/s, Running: 1 reqs \
Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 0.0% external python3 site-packages torch File line \
prompt eval time = 123.45 ms / 12 tokens (1.23 ms per token, 12.34 tokens per second) total time = ms sampled \
{\"level\":\"info\",\"ts\":\"2026\",\"msg\":\"request\",\"model\":\"qwen\",\"tokens\":1} loaded loading model file \
failed to allocate buffer device memory GPU VRAM ROCm HIP error the and for with from that this was not of in to is \
HIP_VISIBLE_DEVICES ollama running server starting version library 100%|######| 10/10 [00:01<00:00, 1.23it/s]";

/// One literal of one signature.
struct Literal {
    text: &'static [u8],
    signature: u16,
}

/// One gram of one literal.
#[derive(Clone, Copy)]
struct Entry {
    gram: u32,
    literal: u16,
    offset: u16,
}

/// A literal found in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    /// Index of the literal's first byte.
    pub(crate) at: usize,
    /// Number of the signature.
    pub(crate) signature: u16,
}

/// The table of all literals.
pub(crate) struct Prefilter {
    set: Box<[u64; 1 << (BITS - 6)]>,
    /// `entries[heads[s]..heads[s + 1]]` are those of slot `s`.
    heads: Vec<u32>,
    entries: Vec<Entry>,
    literals: Vec<Literal>,
    longest: usize,
}

/// The bit of a gram in the set; its upper bits are the slot.
fn hash(gram: u32) -> usize {
    (gram.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

fn slot(bit: usize) -> usize {
    bit >> (BITS - SLOTS)
}

fn gram(bytes: &[u8]) -> u32 {
    bytes.iter().take(GRAM).rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// The start of the window of `text` whose grams are the least ordinary; the first one of equals.
fn choose(text: &[u8], ordinary: &[u64]) -> usize {
    let cost = |start: usize| -> usize {
        let window = &text[start..start + WINDOW];
        window.windows(GRAM).map(|g| hash(gram(g))).filter(|h| ordinary[h >> 6] >> (h & 63) & 1 == 1).count()
    };
    (0..=text.len() - WINDOW).min_by_key(|start| cost(*start)).unwrap_or(0)
}

impl Prefilter {
    /// The table for literals given as pairs of signature number and text. Texts below [`WINDOW`] bytes are left out.
    pub(crate) fn new(literals: impl Iterator<Item = (u16, &'static str)>) -> Self {
        let mut ordinary = vec![0_u64; 1 << (BITS - 6)];
        for g in ORDINARY.as_bytes().windows(GRAM) {
            let bit = hash(gram(g));
            ordinary[bit >> 6] |= 1 << (bit & 63);
        }
        let literals: Vec<Literal> = literals
            .map(|(signature, text)| Literal { text: text.as_bytes(), signature })
            .filter(|l| l.text.len() >= WINDOW)
            .collect();
        let mut set = Box::new([0_u64; 1 << (BITS - 6)]);
        let mut entries = Vec::with_capacity(literals.len() * STRIDE);
        for (n, literal) in literals.iter().enumerate() {
            let start = choose(literal.text, &ordinary);
            for offset in start..start + STRIDE {
                let gram = gram(&literal.text[offset..]);
                let bit = hash(gram);
                set[bit >> 6] |= 1 << (bit & 63);
                entries.push(Entry { gram, literal: n as u16, offset: offset as u16 });
            }
        }
        entries.sort_by_key(|e| slot(hash(e.gram)));
        let mut heads = vec![0_u32; (1 << SLOTS) + 1];
        for entry in &entries {
            heads[slot(hash(entry.gram)) + 1] += 1;
        }
        for s in 1..heads.len() {
            heads[s] += heads[s - 1];
        }
        let longest = literals.iter().map(|l| l.text.len()).max().unwrap_or(0);
        Self { set, heads, entries, literals, longest }
    }

    /// Bytes of the longest literal.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Appends the literals that begin in `text[from..to]`, in the order of their place.
    pub(crate) fn find(&self, text: &[u8], from: usize, to: usize, found: &mut Vec<Candidate>) {
        let first = found.len();
        let end = text.len().min(to.saturating_add(self.longest));
        let Some(region) = text.get(from..end) else { return };
        let (blocks, rest) = region.as_chunks::<{ 4 * STRIDE }>();
        for (n, block) in blocks.iter().enumerate() {
            let grams: [u32; 4] = std::array::from_fn(|i| {
                u32::from_le_bytes([block[4 * i], block[4 * i + 1], block[4 * i + 2], block[4 * i + 3]])
            });
            let marks = grams.map(|g| self.marked(g));
            if marks[0] | marks[1] | marks[2] | marks[3] != 0 {
                for (i, gram) in grams.into_iter().enumerate() {
                    if marks[i] != 0 {
                        self.compare(text, from + (4 * n + i) * STRIDE, gram, from..to, found);
                    }
                }
            }
        }
        let start = end - rest.len();
        for (i, quad) in rest.chunks_exact(STRIDE).enumerate() {
            let gram = gram(quad);
            if self.marked(gram) != 0 {
                self.compare(text, start + i * STRIDE, gram, from..to, found);
            }
        }
        found[first..].sort_unstable();
    }

    #[inline]
    fn marked(&self, gram: u32) -> u64 {
        let bit = hash(gram);
        self.set[(bit >> 6) & ((1 << (BITS - 6)) - 1)] >> (bit & 63) & 1
    }

    #[cold]
    fn compare(
        &self,
        text: &[u8],
        at: usize,
        gram: u32,
        wanted: std::ops::Range<usize>,
        found: &mut Vec<Candidate>,
    ) {
        let slot = slot(hash(gram));
        let (head, tail) = (self.heads[slot] as usize, self.heads[slot + 1] as usize);
        for entry in &self.entries[head..tail] {
            if entry.gram != gram {
                continue;
            }
            let Some(start) = at.checked_sub(usize::from(entry.offset)) else { continue };
            let literal = &self.literals[usize::from(entry.literal)];
            if wanted.contains(&start) && text[start..].starts_with(literal.text) {
                found.push(Candidate { at: start, signature: literal.signature });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXTS: [&str; 5] = ["abababa", "bababab", "abababab", "out of memory", "memory."];

    proptest! {
        #[test]
        fn every_occurrence_is_found_once_wherever_it_stands(
            text in "[ab]{0,40}|(out of |memory|mem|\\.|[ab]){0,20}", from in 0_usize..20, len in 0_usize..60,
        ) {
            let filter = Prefilter::new(TEXTS.iter().enumerate().map(|(n, t)| (n as u16, *t)));
            let text = text.as_bytes();
            let (from, to) = (from.min(text.len()), (from + len).min(text.len()));
            let mut found = Vec::new();
            filter.find(text, from, to, &mut found);
            let mut want: Vec<Candidate> = (from..to)
                .flat_map(|at| TEXTS.iter().enumerate().filter(move |(_, t)| text[at..].starts_with(t.as_bytes()))
                    .map(move |(n, _)| Candidate { at, signature: n as u16 }))
                .collect();
            want.sort_unstable();
            prop_assert_eq!(found, want);
        }
    }
}
