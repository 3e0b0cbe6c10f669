//! The tables and the scan as a whole.

mod near_misses;
mod scans;
mod tables;
