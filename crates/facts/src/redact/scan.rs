//! Finding and replacing, line by line, until a line has nothing left to replace.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use regex::bytes::Captures;

use super::patterns::{Action, Pattern};
use super::{Kind, Redactor, shapes};

/// A value in its line.
pub(super) struct Around<'a> {
    pub line: &'a [u8],
    pub value: Range<usize>,
    /// The name before it, where the pattern has one.
    pub name: &'a [u8],
}

impl Around<'_> {
    /// The value as text.
    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.line[self.value.clone()]).unwrap_or_default()
    }

    /// What stands before it.
    pub(super) fn before(&self) -> &[u8] {
        &self.line[..self.value.start]
    }

    /// What stands after it.
    pub(super) fn after(&self) -> &[u8] {
        &self.line[self.value.end..]
    }
}

/// How often a line is gone through. Each round takes away what the last one laid bare; two are the rule.
const ROUNDS: usize = 16;
/// A value longer than this holds no other one.
const LONG: usize = 200;
/// Over how many lines a list of secrets may run.
const LIST_LINES: usize = 50;
/// How much of a private key without an end is taken to be one.
const KEY_BYTES: usize = 16 << 10;

impl Redactor {
    /// Redacts text. Versions look like addresses; `versions` says that this text holds such.
    pub(super) fn scan(&mut self, place: &str, bytes: &[u8]) -> Vec<u8> {
        self.scan_with(place, bytes, false)
    }

    pub(super) fn scan_with(&mut self, place: &str, bytes: &[u8], versions: bool) -> Vec<u8> {
        let bytes = self.private_keys(place, bytes);
        let mut out = Vec::with_capacity(bytes.len());
        let mut list = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = self.secret_lists(place, line, &mut list);
            self.line(place, &line, versions, &mut out);
        }
        out
    }

    /// Lists of secrets, `api_keys = ["a", "b"]`, over one line or the `left` next ones.
    fn secret_lists<'a>(&mut self, place: &str, line: &'a [u8], left: &mut usize) -> Cow<'a, [u8]> {
        let mut strings = Vec::new();
        let mut at = 0;
        if *left > 0 {
            let (found, on) = shapes::list_after(line, 0);
            *left = if on { *left - 1 } else { 0 };
            at = found.last().map_or(0, |last| last.end);
            strings.extend(found);
        }
        while let Some(regex) = &self.table.list
            && let Some(found) = regex.captures_at(line, at)
            && let (Some(name), Some(whole)) = (found.name("n"), found.get(0))
        {
            at = whole.end();
            if shapes::is_secret_name(&String::from_utf8_lossy(name.as_bytes())) {
                let (found, on) = shapes::list_after(line, at);
                *left = if on { LIST_LINES } else { 0 };
                at = found.last().map_or(at, |last| last.end);
                strings.extend(found);
            }
        }
        if strings.is_empty() {
            return Cow::Borrowed(line);
        }
        let mut out = Vec::new();
        let mut copied = 0;
        for string in strings {
            out.extend_from_slice(&line[copied..string.start]);
            let text = String::from_utf8_lossy(&line[string.clone()]).into_owned();
            out.extend_from_slice(self.secret(place, &text).as_bytes());
            copied = string.end;
        }
        out.extend_from_slice(&line[copied..]);
        Cow::Owned(out)
    }

    fn line(&mut self, place: &str, line: &[u8], versions: bool, out: &mut Vec<u8>) {
        let mut current: Option<Vec<u8>> = None;
        for _ in 0..ROUNDS {
            let before = current.as_deref().unwrap_or(line);
            let candidates = self.table.candidates(before);
            let mut changed = false;
            for index in candidates {
                if versions && self.table.patterns[index].like_version {
                    continue;
                }
                let text = current.as_deref().unwrap_or(line);
                if let Some(next) = self.apply(place, index, text) {
                    current = Some(next);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        out.extend_from_slice(current.as_deref().unwrap_or(line));
    }

    /// The line after one pattern; `None` when it changed nothing.
    fn apply(&mut self, place: &str, index: usize, line: &[u8]) -> Option<Vec<u8>> {
        // The table, not the pattern: a cloned regex begins without what it has learnt.
        let table = Arc::clone(&self.table);
        let Pattern { regex, action, .. } = &table.patterns[index];
        let mut out: Option<Vec<u8>> = None;
        let (mut at, mut copied) = (0, 0);
        while at <= line.len()
            && let Some(found) = regex.captures_at(line, at)
        {
            let whole = found.get(0).map_or(at..at, |m| m.range());
            let (value, replacement) = self.judge(place, *action, &found, line);
            let Some(replacement) = replacement else {
                // The next match may begin inside of this one's value. Not of a long one: that would be looked
                // through again and again.
                let inside = value.start > at && value.len() <= LONG;
                at = if inside { value.start } else { whole.end.max(at + 1) };
                continue;
            };
            let out = out.get_or_insert_default();
            out.extend_from_slice(&line[copied..value.start]);
            out.extend_from_slice(replacement.as_bytes());
            copied = value.end;
            at = value.end.max(at + 1);
        }
        let mut out = out?;
        out.extend_from_slice(&line[copied..]);
        Some(out)
    }

    fn judge(
        &mut self,
        place: &str,
        action: Action,
        found: &Captures,
        line: &[u8],
    ) -> (Range<usize>, Option<String>) {
        let whole = found.get(0).map_or(0..0, |m| m.range());
        let mut value = found.name("v").map_or(whole.clone(), |m| m.range());
        let name = found.name("n").map_or(&b""[..], |m| m.as_bytes());
        match action {
            Action::Assign => {
                value = whole.end..whole.end;
                let name = String::from_utf8_lossy(name);
                let separator = &line[found.name("n").map_or(whole.end, |m| m.end())..whole.end];
                if !shapes::is_secret_name(&name) || !shapes::assigns(&name, separator) {
                    return (value, None);
                }
                value = shapes::value_after(line, whole.end);
                let text = String::from_utf8_lossy(&line[value.clone()]).into_owned();
                if shapes::is_harmless(&name, &text) {
                    return (whole.end..whole.end, None);
                }
                self.count(place, Kind::Secret, 1);
                let placeholder = self.placeholder(Kind::Secret, &text);
                (value, Some(placeholder))
            }
            Action::Id => {
                let text = String::from_utf8_lossy(&line[value.clone()]).into_owned();
                let decimal = !text.starts_with("0x")
                    && text.bytes().all(|b| b.is_ascii_digit())
                    && line[whole.start..value.start].ends_with(b" ")
                    && !line[whole.start..value.start].iter().any(|b| matches!(b, b':' | b'='));
                if line.get(value.end).is_some_and(u8::is_ascii_alphanumeric) {
                    return (value, None);
                }
                let replacement = self.id(place, &text, decimal);
                (value, replacement)
            }
            Action::Replace(kind, check) => {
                if kind == Kind::Secret {
                    while value.len() > 1 && line[value.end - 1].is_ascii_whitespace() {
                        value.end -= 1;
                    }
                }
                let around = Around { line, value: value.clone(), name };
                let text = String::from_utf8_lossy(&line[value.clone()]).into_owned();
                let harmless = shapes::is_placeholder(text.trim())
                    || kind == Kind::Secret && shapes::says_nothing(text.trim());
                if harmless || !check(&around) {
                    return (value, None);
                }
                self.count(place, kind, 1);
                let placeholder = self.placeholder(kind, &text);
                (value, Some(placeholder))
            }
        }
    }

    /// An id of 64 bits as a small number in the same notation, so that one id is still one in decimal and in hex.
    /// `None` when it is a small number already, or none.
    pub(super) fn id(&mut self, place: &str, text: &str, decimal: bool) -> Option<String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let id = u64::from_str_radix(digits, if decimal { 10 } else { 16 }).ok();
        if id.is_some_and(|id| id <= 0xffff) {
            return None;
        }
        let key = id.map_or_else(|| text.to_owned(), |id| format!("{id:016x}"));
        self.count(place, Kind::Serial, 1);
        let next = self.ids.len() + 1;
        let number = *self.ids.entry(key).or_insert(next);
        Some(match (decimal, text.starts_with("0x")) {
            (true, _) => number.to_string(),
            (false, true) => format!("0x{number:016x}"),
            (false, false) => format!("{number:016x}"),
        })
    }

    /// Private keys run over many lines.
    fn private_keys(&mut self, place: &str, bytes: &[u8]) -> Vec<u8> {
        const BEGIN: &[u8] = b"-----BEGIN ";
        const END: &[u8] = b"PRIVATE KEY-----";
        let find = |from: usize, what: &[u8], most: usize| {
            let until = bytes.len().min(from.saturating_add(most));
            let at = bytes.get(from..until)?.windows(what.len()).position(|window| window == what)?;
            Some(from + at)
        };
        let mut out = Vec::new();
        let mut copied = 0;
        while let Some(begin) = find(copied, BEGIN, usize::MAX) {
            let label = begin + BEGIN.len();
            let Some(head) = find(label, END, 40) else {
                out.extend_from_slice(&bytes[copied..label]);
                copied = label;
                continue;
            };
            let body = head + END.len();
            let end =
                find(body, END, KEY_BYTES).map_or(bytes.len().min(body + KEY_BYTES), |end| end + END.len());
            out.extend_from_slice(&bytes[copied..begin]);
            let key = String::from_utf8_lossy(&bytes[begin..end]).into_owned();
            self.count(place, Kind::Secret, 1);
            out.extend_from_slice(self.placeholder(Kind::Secret, &key).as_bytes());
            copied = end;
        }
        out.extend_from_slice(&bytes[copied..]);
        out
    }
}
