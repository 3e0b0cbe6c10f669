//! What a host says about its GPU memory, and the pools that follow from it.
//!
//! Facts come from four places: the host's own files ([`host`]), a sheet ([`sheet`]), lines of a log ([`stated()`]), or a
//! bundle of raw files, which is a host under another root. All become the same [`Facts`], each value a [`Reading`]
//! that knows its [`Source`] or why it is missing. [`Facts::merge`] joins them by a stated precedence and keeps
//! contradictions. [`pool`] derives what each API can allocate. Nothing here judges.

#[macro_use]
mod record;
pub mod bundle;
mod facts;
pub mod host;
mod kernel_version;
mod merge;
pub mod model;
mod object;
pub mod pool;
mod reading;
pub mod redact;
pub mod sheet;
mod stated;
mod targets;

pub use facts::{Conflict, Facts};
pub use kernel_version::KernelVersion;
pub use model::*;
pub use reading::{Known, Missing, Origin, Reading, Source};
pub use stated::stated;
pub use targets::target_by_name;
