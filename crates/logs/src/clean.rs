//! Text without terminal escapes and control characters, byte by byte, so that no split of the input matters.

/// Where the stream stands in an escape sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and a character that announces one more (`ESC ( B`).
    Intermediate,
    /// In `ESC [ … letter`: colours, cursor.
    Control,
    /// In `ESC ] … BEL`: window titles, links.
    Title,
}

/// Takes escapes and control characters out of a stream. Tab, line feed and carriage return stay.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    state: State,
}

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;

fn is_dropped(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r')
}

/// Whether any byte is to be dropped; written so that it compiles to vector code.
fn has_dropped(bytes: &[u8]) -> bool {
    bytes.chunks(256).any(|chunk| chunk.iter().fold(false, |any, b| any | is_dropped(*b)))
}

impl Cleaner {
    /// Appends what of `input` is text.
    pub(crate) fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if self.state == State::Text && !has_dropped(input) {
            out.extend_from_slice(input);
            return;
        }
        let mut rest = input;
        while let Some((&byte, after)) = rest.split_first() {
            if self.state == State::Text {
                let run = rest.iter().position(|b| is_dropped(*b)).unwrap_or(rest.len());
                out.extend_from_slice(&rest[..run]);
                rest = &rest[run..];
                if let Some((&byte, after)) = rest.split_first() {
                    if byte == ESC {
                        self.state = State::Escape;
                    }
                    rest = after;
                }
                continue;
            }
            // A sequence never crosses a line: an unfinished one must not swallow what follows.
            if matches!(byte, b'\n' | b'\r') {
                self.state = State::Text;
                continue;
            }
            rest = after;
            self.state = match (self.state, byte) {
                (_, ESC) => State::Escape,
                (State::Escape, b'[') => State::Control,
                (State::Escape, b']' | b'P' | b'^' | b'_') => State::Title,
                (State::Escape, 0x20..=0x2f) => State::Intermediate,
                (State::Control, 0x20..=0x3f) => State::Control,
                (State::Title, BEL) => State::Text,
                (State::Title, _) => State::Title,
                _ => State::Text,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(input: &[u8]) -> String {
        let mut out = Vec::new();
        Cleaner::default().push(input, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn colours_titles_and_charsets_go_and_text_stays() {
        assert_eq!(
            clean(b"\x1b[1;31mHIP error\x1b[0m: out\x1b[K of\tmemory\r\n"),
            "HIP error: out of\tmemory\r\n"
        );
        assert_eq!(clean(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(Bc\x08d"), "abcd");
    }

    #[test]
    fn an_unfinished_sequence_ends_with_its_line() {
        assert_eq!(clean(b"\x1b]0;never closed\nkept\x1b[31\nkept too"), "\nkept\nkept too");
    }

    #[test]
    fn utf_16_becomes_readable() {
        assert_eq!(clean(b"o\0u\0t\0\n\0"), "out\n");
    }
}
