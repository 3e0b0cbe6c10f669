//! The one way from a file to a reading, and the small parsers that readers share.

use std::sync::Arc;

use units::Bytes;

use super::{Host, Refusal};
use crate::reading::{Missing, Origin, Reading, Source};

/// The longest text that a source carries, in characters.
const SHOWN: usize = 120;

/// The longest word taken as a value; a kernel command line has at most 4096 bytes.
const WORD: usize = 16 << 10;

/// A file as it was read, or why it could not be. Several readings may be taken of it.
pub(super) struct Text {
    path: Arc<str>,
    text: Result<String, Missing>,
}

impl Text {
    /// Reads `path`.
    pub(super) fn open(host: &dyn Host, path: impl Into<Arc<str>>) -> Self {
        let path = path.into();
        let text = host.text(&path).map_err(|refusal| missing(refusal, &path));
        Self { path, text }
    }

    /// The file's path on the host.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// What it says, if it could be read.
    pub(super) fn get(&self) -> Option<&str> {
        self.text.as_deref().ok()
    }

    /// A reading of the whole file.
    pub(super) fn whole<T>(&self, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        match &self.text {
            Ok(text) => self.parsed(text, text, parse),
            Err(missing) => Reading::Missing(missing.clone()),
        }
    }

    /// A reading of the value behind `key` on a line of its own: `key: value`, `key=value` or `key value`.
    pub(super) fn entry<T>(&self, key: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        match &self.text {
            Ok(text) => match text.lines().find_map(|line| Some((line, value_of(line, key)?))) {
                Some((line, value)) => self.parsed(line, value, parse),
                None => self.unreadable(&format!("has no line {key}")),
            },
            Err(missing) => Reading::Missing(missing.clone()),
        }
    }

    /// A value that was worked out of this file; `text` is what it rests on.
    pub(super) fn found<T>(&self, value: T, text: &str) -> Reading<T> {
        known(value, &self.path, text)
    }

    /// The file says something else than a value.
    pub(super) fn unreadable<T>(&self, why: &str) -> Reading<T> {
        match &self.text {
            Ok(_) => Reading::Missing(Missing::Unreadable(self.path.clone(), shorten(why).into())),
            Err(missing) => Reading::Missing(missing.clone()),
        }
    }

    fn parsed<T>(&self, shown: &str, value: &str, parse: impl FnOnce(&str) -> Option<T>) -> Reading<T> {
        match parse(value) {
            Some(value) => self.found(value, shown),
            None if shown.trim().is_empty() => self.unreadable("is empty"),
            None => self.unreadable(&format!("found {:?}", shorten(shown))),
        }
    }
}

/// File → parsed reading.
pub(super) fn file<T>(
    host: &dyn Host,
    path: impl Into<Arc<str>>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Reading<T> {
    Text::open(host, path).whole(parse)
}

/// A value that the host's file `path` gave.
pub(super) fn known<T>(value: T, path: &str, text: &str) -> Reading<T> {
    Reading::known(value, Source::new(Origin::Host, path, shorten(text)))
}

/// Why a refused file gives no value.
pub(super) fn missing(refusal: Refusal, path: &str) -> Missing {
    match refusal {
        Refusal::Absent => Missing::Absent(path.into()),
        Refusal::Denied => Missing::Denied(path.into()),
        Refusal::Failed(why) => Missing::Unreadable(path.into(), shorten(&why).into()),
    }
}

/// The value on `line` if it is `key`'s.
pub(super) fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(key)?;
    let value = rest.strip_prefix([':', '=', ' ', '\t'])?;
    Some(value.trim())
}

/// One line for people: control characters out, at most [`SHOWN`] characters.
pub(super) fn shorten(text: &str) -> String {
    let mut line: String = text
        .trim()
        .chars()
        .take(SHOWN + 1)
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect();
    if line.chars().count() > SHOWN {
        line = line.chars().take(SHOWN - 1).collect();
        line.push('…');
    }
    line
}

/// A decimal number.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

/// A hexadecimal number, `0x` or not.
pub(super) fn hex(text: &str) -> Option<u64> {
    let digits = text.trim();
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    // from_str_radix takes a sign.
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Decimal bytes.
pub(super) fn bytes(text: &str) -> Option<Bytes> {
    number(text).map(Bytes)
}

/// A size with its unit, KiB where it has none: `123 kB`, `4 MiB`, `77`.
pub(super) fn kib(text: &str) -> Option<Bytes> {
    let mut parts = text.split_whitespace();
    let count: u64 = number(parts.next()?)?;
    let unit: u64 = match parts.next() {
        None | Some("kB" | "KB" | "KiB") => 1 << 10,
        Some("B" | "bytes") => 1,
        Some("MiB" | "MB") => 1 << 20,
        Some("GiB" | "GB") => 1 << 30,
        Some(_) => return None,
    };
    count.checked_mul(unit).map(Bytes)
}

/// A share in percent.
pub(super) fn percent(text: &str) -> Option<f64> {
    number::<f64>(text).filter(|percent| (0.0..=100.0).contains(percent))
}

/// A switch as the kernel prints one.
pub(super) fn switch(text: &str) -> Option<bool> {
    match text.trim() {
        "Y" | "y" | "1" | "on" => Some(true),
        "N" | "n" | "0" | "off" => Some(false),
        _ => None,
    }
}

/// Text on one line, not empty, without control characters.
pub(super) fn word(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text.len() <= WORD && !text.contains(char::is_control)).then(|| text.to_owned())
}

/// `n` of a name `<prefix><n>`.
pub(super) fn numbered(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// The last part of a path.
pub(super) fn basename(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_signs_overflow_or_rubbish_are_no_numbers() {
        assert_eq!(hex("0x1002\n"), Some(0x1002));
        assert_eq!(hex("1586"), Some(0x1586));
        for text in ["", "0x", "+1", "0x-1", "g", "0x11111111111111111"] {
            assert_eq!(hex(text), None, "{text:?}");
        }
        assert_eq!(bytes("18446744073709551615"), Some(Bytes(u64::MAX)));
        for text in ["", "-1", "18446744073709551616", "1e9", "1 2"] {
            assert_eq!(bytes(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_kib_unless_they_say_otherwise_and_do_not_overflow() {
        assert_eq!(kib("12 kB"), Some(Bytes(12288)));
        assert_eq!(kib("12"), Some(Bytes(12288)));
        assert_eq!(kib("12 MiB"), Some(Bytes::mib(12)));
        for text in ["", "kB", "18446744073709551615 kB", "12 parsecs"] {
            assert_eq!(kib(text), None, "{text:?}");
        }
    }

    #[test]
    fn an_entry_is_found_by_its_whole_key_only() {
        let text = Text { path: "/x".into(), text: Ok("MemTotalHuge: 1\nMemTotal:  7 kB\nA=b".to_owned()) };
        assert_eq!(text.entry("MemTotal", kib).get(), Some(Bytes(7168)));
        assert_eq!(&*text.entry("MemTotal", kib).source().unwrap().text, "MemTotal:  7 kB");
        assert_eq!(text.entry("A", word).text(), Some("b"));
        let none = Reading::Missing(Missing::Unreadable("/x".into(), "has no line Mem".into()));
        assert_eq!(text.entry("Mem", kib), none);
        let odd = Reading::Missing(Missing::Unreadable("/x".into(), "found \"A=b\"".into()));
        assert_eq!(text.entry("A", kib), odd);
    }

    #[test]
    fn what_is_shown_is_one_short_line_without_control_characters() {
        assert_eq!(shorten("a\nb\x1b[31m"), "a b\u{fffd}[31m");
        assert_eq!(shorten(&"é".repeat(4000)).chars().count(), SHOWN);
        assert_eq!(word("a\x1b"), None);
        assert_eq!(word(&"a".repeat(WORD + 1)), None);
    }
}
