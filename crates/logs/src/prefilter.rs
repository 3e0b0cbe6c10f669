//! Where a known line could be: all literals of all signatures, looked for at once.
//!
//! A scan looks at every fourth byte only, at the gram of four bytes that begins there. A literal of seven bytes or
//! more covers exactly one such place with one of the four grams at the start of a window in it; one of eleven bytes
//! or more covers the next place too. So a short literal marks its grams as [`SHORT`], a long one marks them as
//! [`FIRST`] and those that follow as [`SECOND`], and a place is of interest if it is marked short, or first with
//! second after it. Such a place is compared with the literals it may belong to: what comes out are true occurrences.
//!
//! Windows are chosen so that their grams are rare in ordinary logs, a sample of which is [`ORDINARY`].

/// Bytes of a gram.
const GRAM: usize = 4;
/// Distance of the places looked at.
const STRIDE: usize = 4;
/// Bytes of a literal that its grams cover, and so the least length of a literal.
pub(crate) const WINDOW: usize = GRAM + STRIDE - 1;
/// The same with the grams that follow.
const LONG_WINDOW: usize = WINDOW + STRIDE;
/// The marks are 2^`BITS` bytes: half of a small first-level cache.
const BITS: u32 = 14;

/// One of the grams of a literal below [`LONG_WINDOW`] bytes.
const SHORT: u8 = 1;
/// One of the first grams of a longer literal.
const FIRST: u8 = 2;
/// One of those that stand [`STRIDE`] bytes after the first ones.
const SECOND: u8 = 4;

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

/// Places looked at together.
const BLOCK: usize = 8;

/// One literal of one signature.
struct Literal {
    text: &'static [u8],
    signature: u16,
}

/// One gram of one literal.
#[derive(Clone, Copy)]
struct Entry {
    gram: u32,
    /// The gram after it, in a long literal.
    next: Option<u32>,
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
    marks: Box<[u8; 1 << BITS]>,
    /// `entries[heads[h]..heads[h + 1]]` are those whose gram has the hash `h`.
    heads: Vec<u16>,
    entries: Vec<Entry>,
    literals: Vec<Literal>,
    longest: usize,
}

#[inline]
fn hash(gram: u32) -> usize {
    (gram.wrapping_mul(0x9E37_79B1) >> (32 - BITS)) as usize
}

fn gram(bytes: &[u8]) -> u32 {
    bytes.iter().take(GRAM).rev().fold(0, |n, b| n << 8 | u32::from(*b))
}

/// Which grams are ordinary.
struct Ordinary(Vec<u32>);

impl Ordinary {
    fn new() -> Self {
        let mut grams: Vec<u32> = ORDINARY.as_bytes().windows(GRAM).map(gram).collect();
        grams.sort_unstable();
        Self(grams)
    }

    fn has(&self, bytes: &[u8]) -> bool {
        self.0.binary_search(&gram(bytes)).is_ok()
    }

    /// The start of the window of `text` that ordinary text fits least; the first one of equals.
    fn choose(&self, text: &[u8]) -> usize {
        let long = text.len() >= LONG_WINDOW;
        let known: Vec<bool> = (0..text.len()).map(|i| self.has(&text[i..])).collect();
        let cost = |start: usize| -> usize {
            (start..start + STRIDE).filter(|i| known[*i] && (!long || known[i + STRIDE])).count()
        };
        let last = text.len() - if long { LONG_WINDOW } else { WINDOW };
        (0..=last).min_by_key(|start| cost(*start)).unwrap_or(0)
    }
}

impl Prefilter {
    /// The table for literals given as pairs of signature number and text. Texts below [`WINDOW`] bytes are left out.
    pub(crate) fn new(literals: impl Iterator<Item = (u16, &'static str)>) -> Self {
        let ordinary = Ordinary::new();
        let literals: Vec<Literal> = literals
            .map(|(signature, text)| Literal { text: text.as_bytes(), signature })
            .filter(|l| l.text.len() >= WINDOW)
            .collect();
        let mut marks = Box::new([0_u8; 1 << BITS]);
        let mut entries = Vec::with_capacity(literals.len() * STRIDE);
        for (n, literal) in literals.iter().enumerate() {
            let start = ordinary.choose(literal.text);
            for offset in start..start + STRIDE {
                let first = gram(&literal.text[offset..]);
                let long = literal.text.len() >= LONG_WINDOW;
                let next = long.then(|| gram(&literal.text[offset + STRIDE..]));
                marks[hash(first)] |= if long { FIRST } else { SHORT };
                if let Some(next) = next {
                    marks[hash(next)] |= SECOND;
                }
                entries.push(Entry { gram: first, next, literal: n as u16, offset: offset as u16 });
            }
        }
        entries.sort_by_key(|e| hash(e.gram));
        let mut heads = vec![0_u16; (1 << BITS) + 1];
        for entry in &entries {
            heads[hash(entry.gram) + 1] += 1;
        }
        for h in 1..heads.len() {
            heads[h] += heads[h - 1];
        }
        let longest = literals.iter().map(|l| l.text.len()).max().unwrap_or(0);
        Self { marks, heads, entries, literals, longest }
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
        let (places, _) = region.as_chunks::<STRIDE>();
        let (blocks, rest) = places.as_chunks::<BLOCK>();
        // The mark of the last place of a block waits for the first one of the next.
        let mut before = 0;
        for (n, block) in blocks.iter().enumerate() {
            let marks = block.map(|place| self.mark(u32::from_le_bytes(place)));
            let mut any = (before & FIRST) << 1 & marks[0];
            for i in 0..BLOCK - 1 {
                any |= marks[i] & SHORT | (marks[i] & FIRST) << 1 & marks[i + 1];
            }
            if any | marks[BLOCK - 1] & SHORT != 0 {
                let start = n * BLOCK;
                if (before & FIRST) << 1 & marks[0] != 0 {
                    self.compare(text, from + (start - 1) * STRIDE, from..to, found);
                }
                for (i, mark) in marks.into_iter().enumerate() {
                    let next = marks.get(i + 1).copied().unwrap_or(0);
                    if mark & SHORT | (mark & FIRST) << 1 & next != 0 {
                        self.compare(text, from + (start + i) * STRIDE, from..to, found);
                    }
                }
            }
            before = marks[BLOCK - 1];
        }
        let start = places.len() - rest.len();
        let tail = start.saturating_sub(1);
        for i in tail..places.len() {
            self.compare(text, from + i * STRIDE, from..to, found);
        }
        found[first..].sort_unstable();
        found.dedup();
    }

    #[inline]
    fn mark(&self, gram: u32) -> u8 {
        self.marks[hash(gram) & ((1 << BITS) - 1)]
    }

    /// Appends the literals that have a gram of theirs at `at`.
    fn compare(&self, text: &[u8], at: usize, wanted: std::ops::Range<usize>, found: &mut Vec<Candidate>) {
        let here = gram(&text[at..]);
        let next = gram(&text[(at + STRIDE).min(text.len())..]);
        let hash = hash(here);
        for entry in &self.entries[usize::from(self.heads[hash])..usize::from(self.heads[hash + 1])] {
            if entry.gram != here || entry.next.is_some_and(|n| n != next) {
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
