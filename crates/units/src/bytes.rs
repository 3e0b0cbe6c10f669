//! A size in bytes, and the ways the field writes one.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// One kibibyte in bytes.
pub const KIB: u64 = 1 << 10;
/// One mebibyte in bytes.
pub const MIB: u64 = 1 << 20;
/// One gibibyte in bytes.
pub const GIB: u64 = 1 << 30;
/// The page in which TTM counts its limit. amdgpu's `pages_limit` is in CPU pages; on x86-64 these are 4 KiB.
pub const PAGE: u64 = 4096;

/// A size in bytes. Sums and differences saturate: a size read from hostile text must never panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` KiB.
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(KIB))
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(MIB))
    }

    /// `n` GiB.
    pub const fn gib(n: u64) -> Self {
        Self(n.saturating_mul(GIB))
    }

    /// `n` pages of 4 KiB.
    pub const fn pages(n: u64) -> Self {
        Self(n.saturating_mul(PAGE))
    }

    /// The size as a number of GiB, for arithmetic that ends in text.
    pub fn as_gib(self) -> f64 {
        self.0 as f64 / GIB as f64
    }

    /// Whole MiB, rounded down.
    pub const fn whole_mib(self) -> u64 {
        self.0 / MIB
    }

    /// Whole pages of 4 KiB, rounded down.
    pub const fn whole_pages(self) -> u64 {
        self.0 / PAGE
    }

    /// The distance between two sizes.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// Whether two figures can be the same size written by two programs: within `percent` of the larger.
    pub fn near(self, other: Self, percent: f64) -> bool {
        self.abs_diff(other).0 as f64 <= self.0.max(other.0) as f64 * percent / 100.0
    }

    /// Reads a size as programs print it: `4.50 GiB`, `15.09GiB`, `98304M`, `512 MB`, `130023424 KB`, `0 bytes`, `42`.
    ///
    /// `K`, `M`, `G`, `T` are binary with or without `iB` or `B`: the kernel, ROCm and PyTorch all mean 1024.
    /// A bare number is bytes. `None` for anything else, also for a negative number or one above 2⁶³.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" | "byte" | "bytes" => 1,
            "k" | "kb" | "kib" => KIB,
            "m" | "mb" | "mib" => MIB,
            "g" | "gb" | "gib" => GIB,
            "t" | "tb" | "tib" => GIB << 10,
            _ => return None,
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(factor).map(Self);
        }
        let scaled = number.parse::<f64>().ok()? * factor as f64;
        (scaled.is_finite() && (0.0..9.2e18).contains(&scaled)).then(|| Self(scaled.round() as u64))
    }
}

/// `118.2 GiB`; below one GiB `512 MiB`; below one MiB in KiB or bytes, so that a small size never shows as `0.0 GiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            n if n >= GIB => format!("{:.1} GiB", self.as_gib()),
            n if n >= MIB => format!("{} MiB", (n + MIB / 2) / MIB),
            n if n >= KIB => format!("{} KiB", (n + KIB / 2) / KIB),
            n => format!("{n} B"),
        };
        f.pad(&text)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_field_s_spellings_are_read() {
        for (text, want) in [
            ("4.50 GiB", 4_831_838_208),
            ("98304M", 98304 * MIB),
            ("130023424 KB", 130023424 * KIB),
            ("0 bytes", 0),
            ("42", 42),
            ("769.28 MiB", 806_648_545),
            ("24.0 GiB", 24 * GIB),
        ] {
            assert_eq!(Bytes::parse(text), Some(Bytes(want)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in
            ["", "GiB", "-1 GiB", "1.2.3 GiB", "12 parsecs", "99999999999999999999 TiB", "1e400", "NaN"]
        {
            assert_eq!(Bytes::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_small_size_never_shows_as_zero_gib() {
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(Bytes::mib(512).to_string(), "512 MiB");
        assert_eq!(Bytes(131_197_016_064).to_string(), "122.2 GiB");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = Bytes::parse(&text);
        }

        #[test]
        fn whole_mebibytes_survive_a_round_trip(n in 0_u64..1 << 40) {
            prop_assert_eq!(Bytes::parse(&format!("{n} MiB")), Some(Bytes::mib(n)));
        }
    }
}
