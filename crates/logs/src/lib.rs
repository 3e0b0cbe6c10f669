//! What a log says: known lines found in any text, in order, with the numbers they state.
//!
//! This crate does not judge. A [`Hit`] is a line that a [`Signature`] knows, with its fields captured; what it means
//! for a host is decided in `facts` (stated facts) and `findings` (causes).

mod hit;
mod signature;

pub use hit::{Hit, Line, Scan};
pub use signature::{Role, Signature};
