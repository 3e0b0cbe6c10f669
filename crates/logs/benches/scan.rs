//! Speed of a scan.
fn main() {}
