//! What a log says: known lines found in any text, in order, with the numbers they state.
//!
//! This crate does not judge. A [`Hit`] is a line that a [`Signature`] knows, with its fields captured; what it means
//! for a host is decided in `facts` (stated facts) and `findings` (causes).
//!
//! ```
//! let scan = logs::scan_lines("run.log", ["ROCm error: out of memory"].into_iter());
//! assert_eq!(scan.hits[0].signature.id, "ggml-rocm-error-oom");
//! ```

mod clean;
mod engine;
mod excerpt;
mod hit;
mod journal;
mod prefilter;
mod reader;
mod scanner;
mod signature;
mod signatures;

#[cfg(test)]
mod tests;

pub use hit::{Hit, Line, Scan};
pub use reader::{scan_reader, scan_reader_limited};
pub use scanner::{Scanner, scan_lines};
pub use signature::{Role, Signature};

/// Every known line, for documentation and for rules that name one by its id.
pub fn signatures() -> impl Iterator<Item = &'static Signature> {
    signatures::all()
}
