//! Fixes computed for this host. Nothing is offered that the same arithmetic which derives the pool does not show to help.

pub mod boot;
pub mod carveout;
pub mod container;
pub mod engine;
pub mod page_limit;
pub mod simulate;
