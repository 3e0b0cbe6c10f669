//! The text of a hit: its line, cut around the match.

use std::ops::Range;

/// Most characters of a hit's text.
const CHARACTERS: usize = 400;

/// At most `count` characters of the end of `text`.
fn last_characters(text: &str, count: usize) -> &str {
    match count.checked_sub(1) {
        None => "",
        Some(n) => text.char_indices().rev().nth(n).map_or(text, |(i, _)| &text[i..]),
    }
}

/// At most `count` characters of the start of `text`.
fn first_characters(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(i, _)| &text[..i])
}

/// The line as text of at most 400 characters around `span`, and the span in it.
pub(crate) fn excerpt(line: &[u8], span: Range<usize>) -> (String, Range<usize>) {
    let part = |from: usize, to: usize| String::from_utf8_lossy(line.get(from..to).unwrap_or_default());
    let (before, matched, after) =
        (part(0, span.start), part(span.start, span.end), part(span.end, line.len()));
    let after = after.trim_end();
    let matched = first_characters(&matched, CHARACTERS);
    let room = CHARACTERS - matched.chars().count();
    // Half of the room goes to each side; what one side does not need, the other gets.
    let head = room / 2 + (room - room / 2).saturating_sub(after.chars().take(room).count());
    let before = last_characters(&before, head);
    let after = first_characters(after, room - before.chars().count());
    let text = format!("{before}{matched}{after}");
    (text, before.len()..before.len() + matched.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_short_line_stays_whole() {
        assert_eq!(excerpt(b"  a known line \t", 4..9), ("  a known line".to_owned(), 4..9));
    }

    #[test]
    fn a_long_line_is_cut_around_the_match() {
        let line = format!("{}MATCH{}", "x".repeat(1000), "y".repeat(1000));
        let (text, span) = excerpt(line.as_bytes(), 1000..1005);
        assert_eq!((text.chars().count(), &text[span]), (400, "MATCH"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_valid_span(line in prop::collection::vec(any::<u8>(), 0..900), a in 0_usize..900, b in 0_usize..900) {
            let (a, b) = (a.min(line.len()), b.min(line.len()));
            let (text, span) = excerpt(&line, a.min(b)..a.max(b));
            prop_assert!(text.chars().count() <= 400 && text.get(span).is_some());
        }
    }
}
