//! What a bundle may hold. Writer and reader share these, so what is written can be read.

/// Members of the archive.
pub const ENTRIES: usize = 20_000;
/// All of `root/`, decompressed.
pub const ROOT_BYTES: u64 = 64 << 20;
/// All of `logs/`, decompressed.
pub const LOG_BYTES: u64 = 256 << 20;
/// `facts.json`.
pub const FACTS_BYTES: u64 = 4 << 20;
/// `manifest.json`.
pub const MANIFEST_BYTES: u64 = 16 << 20;
/// Answers listed in the manifest.
pub const RECORDS: usize = 200_000;
/// Values in the manifest, counted as commas and brackets before it is parsed: this bounds what parsing can allocate.
pub const MANIFEST_VALUES: usize = 1_000_000;
/// A member's name, or a path in the manifest.
pub const PATH_BYTES: usize = 4096;
/// One member that is only skipped over, and what may follow the archive's end.
pub const SKIPPED_BYTES: u64 = 1 << 20;
/// The whole stream, decompressed: contents, and a header, a long name and padding for each member.
pub const STREAM_BYTES: u64 =
    ROOT_BYTES + LOG_BYTES + FACTS_BYTES + MANIFEST_BYTES + SKIPPED_BYTES + ENTRIES as u64 * 2048;
