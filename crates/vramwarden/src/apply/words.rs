//! A kernel parameter in the text of a boot loader's file: all else stays as it is, byte for byte.
//!
//! Forms: /etc/default/grub is read by sh (GRUB manual, "Simple configuration handling"); /etc/kernel/cmdline holds one
//! command line (kernel-install(8)); an entry has `options` lines (Boot Loader Specification, type 1).

use std::ops::Range;

/// Which form a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Shell variables `GRUB_CMDLINE_LINUX` and `GRUB_CMDLINE_LINUX_DEFAULT`.
    Grub,
    /// One line.
    Line,
    /// `options` lines.
    Entry,
}

/// A stretch of the text that is a command line, or a part of one.
struct Stretch {
    range: Range<usize>,
    /// Where a parameter that is nowhere yet goes first: higher is better.
    rank: u8,
    /// Stands in a shell file without quotes, where a blank would end it.
    bare: bool,
}

/// `text` with the parameter `name` set to `value` once, or, without a value, nowhere.
///
/// # Errors
/// The text does not have the form, in words: what is wrong, and the mend.
pub fn edit(form: Form, text: &str, name: &str, value: Option<&str>) -> Result<String, String> {
    if let Some(odd) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        return Err(format!("holds the control character {odd:?}; take it out"));
    }
    let stretches = match form {
        Form::Grub => grub(text, name)?,
        Form::Line => line(text)?,
        Form::Entry => entry(text)?,
    };
    let mut found: Vec<(&Stretch, Range<usize>)> = Vec::new();
    for stretch in &stretches {
        let words = words(text, stretch.range.clone()).into_iter();
        found.extend(words.filter(|word| is(&text[word.clone()], name)).map(|word| (stretch, word)));
    }
    if form == Form::Grub
        && let Some((_, word)) =
            found.iter().find(|(_, word)| text[word.clone()].contains(['$', '`', '\\', '"', '\'']))
    {
        let word = &text[word.clone()];
        return Err(format!("states {word}, which the shell works on first; change it by hand"));
    }
    // The last one stays: of two assignments, and of two equal parameters, the last counts.
    let kept = value.and_then(|value| Some((found.pop()?.1, format!("{name}={value}"))));
    let mut cuts: Vec<(Range<usize>, String)> =
        found.iter().map(|(stretch, word)| (cut(text, &stretch.range, word), String::new())).collect();
    match (value, kept) {
        (Some(_), Some(kept)) => cuts.push(kept),
        (Some(value), None) => {
            // The last of the best.
            let Some(place) = stretches.iter().max_by_key(|stretch| stretch.rank) else {
                return Err("has no command line; add one by hand".to_owned());
            };
            cuts.push(added(text, place, &format!("{name}={value}")));
        }
        (None, _) => {}
    }
    let mut out = text.to_owned();
    for (range, new) in cuts.into_iter().rev() {
        out.replace_range(range, &new);
    }
    Ok(out)
}

/// Whether the word sets or names the parameter. To the kernel `-` and `_` are the same in a name.
fn is(word: &str, name: &str) -> bool {
    let have = word.trim_start_matches('"').split('=').next().unwrap_or_default();
    let same = |(a, b): (u8, u8)| a == b || (matches!(a, b'-' | b'_') && matches!(b, b'-' | b'_'));
    have.len() == name.len() && have.bytes().zip(name.bytes()).all(same)
}

/// Words of a command line. Blanks inside double quotes belong to the word, as the kernel has it.
fn words(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let (mut start, mut quoted) = (None, false);
    for (at, c) in text[range.clone()].char_indices().map(|(at, c)| (range.start + at, c)) {
        if c.is_ascii_whitespace() && !quoted {
            words.extend(start.take().map(|start| start..at));
            continue;
        }
        quoted ^= c == '"';
        start.get_or_insert(at);
    }
    words.extend(start.map(|start| start..range.end));
    words
}

/// The word with the blanks before it, or, for the first, those after it.
fn cut(text: &str, stretch: &Range<usize>, word: &Range<usize>) -> Range<usize> {
    let before = text[stretch.start..word.start].trim_ascii_end().len() + stretch.start;
    if before > stretch.start {
        return before..word.end;
    }
    let after = &text[word.end..stretch.end];
    word.start..stretch.end - after.trim_ascii_start().len()
}

fn added(text: &str, place: &Stretch, word: &str) -> (Range<usize>, String) {
    let inner = &text[place.range.clone()];
    let end = place.range.start + inner.trim_ascii_end().len();
    match (end == place.range.start, place.bare) {
        (true, _) => (end..end, word.to_owned()),
        (false, false) => (end..end, format!(" {word}")),
        (false, true) => (place.range.clone(), format!("\"{inner} {word}\"")),
    }
}

/// Lines with their numbers and where they begin, without their ends.
fn lines(text: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').enumerate().map(move |(number, line)| {
        let at = start;
        start += line.len();
        (number + 1, at, line.trim_end_matches(['\n', '\r']))
    })
}

const GRUB_NAMES: [(&str, u8); 2] = [("GRUB_CMDLINE_LINUX_DEFAULT", 1), ("GRUB_CMDLINE_LINUX", 0)];

/// The values of the two variables. A line is refused where a shell would read more than one quoted value.
fn grub(text: &str, name: &str) -> Result<Vec<Stretch>, String> {
    let mut stretches = Vec::new();
    for (number, start, line) in lines(text) {
        let trimmed = line.trim_start();
        let assigned = trimmed.strip_prefix("export ").map_or(trimmed, str::trim_start);
        let Some((variable, value)) = assigned.split_once('=') else { continue };
        let variable = variable.strip_suffix('+').unwrap_or(variable);
        let Some((_, rank)) = GRUB_NAMES.iter().find(|(known, _)| *known == variable) else { continue };
        let at = start + (line.len() - value.len());
        let (inner, bare) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let Some(end) = closing(&value[1..], quote) else {
                    return Err(format!(
                        "line {number}: the quote is not closed on this line; write {variable} on one line"
                    ));
                };
                (1..1 + end, false)
            }
            _ => (0..value.find(|c: char| c.is_ascii_whitespace() || c == ';').unwrap_or(value.len()), true),
        };
        let rest = value[inner.end + usize::from(!bare)..].trim_start();
        let plain = rest.is_empty() || rest.starts_with(['#', ';']);
        let odd = bare && value[inner.clone()].contains(['"', '\'', '\\']);
        if !plain || (odd && value.contains(name)) {
            return Err(format!(
                "line {number}: {variable} is more than one quoted value; write it as {variable}=\"…\""
            ));
        }
        stretches.push(Stretch { range: at + inner.start..at + inner.end, rank: *rank, bare });
    }
    if stretches.is_empty() {
        return Err(
            "has no line GRUB_CMDLINE_LINUX_DEFAULT=\"…\" or GRUB_CMDLINE_LINUX=\"…\"; add one".to_owned()
        );
    }
    Ok(stretches)
}

/// Where the quote ends.
fn closing(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

/// The one line that is neither blank nor a comment (which mkinitcpio allows).
fn line(text: &str) -> Result<Vec<Stretch>, String> {
    let said = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = lines(text).filter(|(_, _, line)| said(line));
    match (lines.next(), lines.next()) {
        (Some((_, start, line)), None) => {
            Ok(vec![Stretch { range: start..start + line.len(), rank: 0, bare: false }])
        }
        (None, _) => Err("is empty; put the kernel's command line into it".to_owned()),
        (_, Some((number, ..))) => {
            Err(format!("line {number}: a second line; put the command line on one line"))
        }
    }
}

/// What follows `options`.
fn entry(text: &str) -> Result<Vec<Stretch>, String> {
    let mut stretches = Vec::new();
    for (_, start, line) in lines(text) {
        let Some(rest) = line.trim_start().strip_prefix("options") else { continue };
        if !rest.starts_with([' ', '\t']) {
            continue;
        }
        let inner = rest.trim_start();
        let end = start + line.len();
        stretches.push(Stretch { range: end - inner.len()..end, rank: 0, bare: false });
    }
    if stretches.is_empty() {
        return Err("has no line that begins with options; add one".to_owned());
    }
    Ok(stretches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Form::{Entry, Grub, Line};

    /// Form, text, name, value (`-` for none), and what comes of it; the error's beginning after `!`.
    const TABLE: &[(Form, &str, &str, &str, &str)] = &[
        (Line, "root=a ttm.pages_limit=1 ro\n", "ttm.pages_limit", "2", "root=a ttm.pages_limit=2 ro\n"),
        (Line, "root=a ttm.pages_limit=1", "ttm.pages_limit", "2", "root=a ttm.pages_limit=2"),
        (Line, "root=a ttm.pages-limit=1", "ttm.pages_limit", "2", "root=a ttm.pages_limit=2"),
        (Line, "x=1 a x=2 b x=3\n", "x", "4", "a b x=4\n"),
        (Line, "x=1 a  x=2 b x\n", "x", "-", "a b\n"),
        (Line, "x=1", "x", "-", ""),
        (Line, "a\tb", "x", "1", "a\tb x=1"),
        (Line, "a b", "x", "-", "a b"),
        (Line, "dyndbg=\"file x=1 +p\" q \r\n", "x", "2", "dyndbg=\"file x=1 +p\" q x=2 \r\n"),
        (Line, "# x=1\na x=1\n\n", "x", "-", "# x=1\na\n\n"),
        (Line, "a\nb\n", "x", "1", "!line 2: a second line"),
        (Line, "\n", "x", "1", "!is empty"),
        (Line, "a\0b", "x", "1", "!holds the control character"),
        (Line, "a xx=1 y.x=2 x.y=3", "x", "-", "a xx=1 y.x=2 x.y=3"),
        (
            Entry,
            "title x=1\noptions a x=1\noptions\tx=2 b\n",
            "x",
            "3",
            "title x=1\noptions a\noptions\tx=3 b\n",
        ),
        (Entry, "options a\nlinux /v\n", "x", "3", "options a x=3\nlinux /v\n"),
        (Entry, "title a\noptionsx=1\n", "x", "3", "!has no line that begins with options"),
        (
            Grub,
            "# GRUB_CMDLINE_LINUX=\"x=1\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet x=1\"\nGRUB_CMDLINE_LINUX=\"\"\n",
            "x",
            "-",
            "# GRUB_CMDLINE_LINUX=\"x=1\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"\"\n",
        ),
        (Grub, "GRUB_CMDLINE_LINUX='x=1 q' # c\n", "x", "2", "GRUB_CMDLINE_LINUX='x=2 q' # c\n"),
        (Grub, "GRUB_CMDLINE_LINUX=x=1", "x", "2", "GRUB_CMDLINE_LINUX=x=2"),
        (Grub, "GRUB_CMDLINE_LINUX=quiet", "x", "2", "GRUB_CMDLINE_LINUX=\"quiet x=2\""),
        (Grub, "GRUB_CMDLINE_LINUX=\n", "x", "2", "GRUB_CMDLINE_LINUX=x=2\n"),
        (
            Grub,
            "GRUB_CMDLINE_LINUX=\"\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"a\"\nGRUB_CMDLINE_LINUX_DEFAULT+=\" b\"\n",
            "x",
            "2",
            "GRUB_CMDLINE_LINUX=\"\"\nGRUB_CMDLINE_LINUX_DEFAULT=\"a\"\nGRUB_CMDLINE_LINUX_DEFAULT+=\" b x=2\"\n",
        ),
        (
            Grub,
            "GRUB_CMDLINE_LINUX=\"x=1\"\n  export GRUB_CMDLINE_LINUX+=\" x=2\"\n",
            "x",
            "3",
            "GRUB_CMDLINE_LINUX=\"\"\n  export GRUB_CMDLINE_LINUX+=\" x=3\"\n",
        ),
        (Grub, "GRUB_CMDLINE_LINUX=\"a \\\n x=1\"\n", "x", "3", "!line 1: the quote is not closed"),
        (Grub, "GRUB_CMDLINE_LINUX=\"a\"' x=1'\n", "x", "3", "!line 1: GRUB_CMDLINE_LINUX is more than one"),
        (Grub, "GRUB_CMDLINE_LINUX=\"x=$(nproc)\"\n", "x", "3", "!states x=$(nproc), which the shell"),
        (
            Grub,
            "GRUB_CMDLINE_LINUX=\"$A x=1\" ; export B\n",
            "x",
            "3",
            "GRUB_CMDLINE_LINUX=\"$A x=3\" ; export B\n",
        ),
        (Grub, "GRUB_TIMEOUT=1\n", "x", "3", "!has no line GRUB_CMDLINE_LINUX_DEFAULT"),
        (
            Grub,
            "GRUB_CMDLINE_XEN=\"x=1\"\nGRUB_CMDLINE_LINUX=\"é x=1 é\"",
            "x",
            "-",
            "GRUB_CMDLINE_XEN=\"x=1\"\nGRUB_CMDLINE_LINUX=\"é é\"",
        ),
    ];

    #[test]
    fn one_parameter_changes_and_nothing_else() {
        for (form, text, name, value, want) in TABLE {
            let value = (*value != "-").then_some(*value);
            match (edit(*form, text, name, value), want.strip_prefix('!')) {
                (Ok(got), None) => {
                    assert_eq!(got, *want, "{text:?}");
                    assert_eq!(
                        edit(*form, &got, name, value).as_deref().unwrap_or(want),
                        *want,
                        "{text:?} twice"
                    );
                }
                (Err(got), Some(want)) => assert!(got.starts_with(want), "{text:?}: {got}"),
                (got, _) => panic!("{text:?}: {got:?}"),
            }
        }
    }
}
