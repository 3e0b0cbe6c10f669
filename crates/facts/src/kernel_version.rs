//! Kernel releases, compared.

/// The numbers of a kernel release and what its name says of who built it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelVersion {
    /// Major and minor.
    pub series: (u32, u32),
    /// Third number, where stated.
    pub patch: Option<u32>,
    /// Whether it is one of Ubuntu's OEM kernels, which carry back-ports.
    pub oem: bool,
}

impl KernelVersion {
    /// Reads `6.14.0-1014-oem`, `6.8`, `7.0.0-31`. `None` where no `major.minor` leads the text.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let third = release.trim().split('.').nth(2);
        let patch = third.and_then(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        Some(Self { series: (major, minor), patch, oem: release.contains("-oem") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_every_vendor_are_read() {
        let read = |text| KernelVersion::parse(text).map(|v| (v.series, v.patch, v.oem));
        assert_eq!(read("6.14.0-1014-oem"), Some(((6, 14), Some(0), true)));
        assert_eq!(read("6.8"), Some(((6, 8), None, false)));
        assert_eq!(read("6.6.70-v8-16k"), Some(((6, 6), Some(70), false)));
        assert_eq!(read("7.0.0-31"), Some(((7, 0), Some(0), false)));
        assert_eq!(read("6.18.4-arch1-1"), Some(((6, 18), Some(4), false)));
        for text in ["", "linux", "6", "6.", ".8", "99999999999.1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
