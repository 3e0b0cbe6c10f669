//! What a candidate really is, judged by itself and what stands around it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::scan::Around;

/// Whether a text is a placeholder of ours.
pub(super) fn is_placeholder(text: &str) -> bool {
    let prefix = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let known =
        matches!(prefix, "HOST" | "USER" | "SECRET" | "SERIAL" | "ADDRESS" | "MAC" | "UUID" | "EMAIL");
    text == "HOST" || known && prefix.len() < text.len()
}

/// Whether a value says nothing that a secret would: empty, a truth value, a reference to a variable.
pub(super) fn says_nothing(value: &str) -> bool {
    let word = value.trim().trim_end_matches([',', ';', ')', ']', '}']);
    let variable = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_{}".contains(c);
    word.is_empty()
        || word.strip_prefix('$').is_some_and(|name| name.chars().all(variable))
        || word.bytes().all(|b| b == b'*')
        || [
            "true", "false", "none", "null", "nil", "yes", "no", "on", "off", "auto", "unset", "basic",
            "bearer", "not",
        ]
        .iter()
        .any(|nothing| word.eq_ignore_ascii_case(nothing))
}

/// Names whose prefix says that they are settings of a runtime, never secrets.
const SETTINGS: &[&str] =
    &["HSA_", "HIP_", "ROCR_", "PYTORCH_", "TORCH_", "HSAKMT_", "GPU_", "AMD_", "MIOPEN_", "TOKENIZERS_"];
/// Tokens that are pieces of text.
const PIECES: &[&str] = &[
    "bos", "eos", "eot", "eom", "eog", "pad", "unk", "sep", "cls", "mask", "fim", "lf", "nl", "pre", "suf",
    "mid", "rep", "special", "per", "max", "min", "n", "num", "next", "draft", "new", "image", "audio",
    "video", "prompt", "first", "last", "stop", "start", "end", "think", "time", "each", "ms", "add",
    "prefix", "suffix", "id",
];

/// Words of a name: `hfToken`, `hf_token`, `--hf-token` and `HF_TOKEN` all have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || lower && c.is_ascii_uppercase() {
            words.push(String::new());
        }
        lower = c.is_ascii_lowercase();
        if c.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a name says that its value is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    if has(&[
        "secret",
        "secrets",
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "credential",
        "credentials",
    ]) || has(&["apikey", "authtoken", "accesstoken", "cookie", "cookies", "authkey"])
    {
        return true;
    }
    // An environment variable: the name is all we know, so any hint is enough.
    if name.len() > 3 && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_') {
        return !SETTINGS.iter().any(|prefix| name.starts_with(prefix))
            && !has(&["tokens", "tokenizer", "keys", "keyboard", "keymap"])
            && ([
                "TOKEN",
                "KEY",
                "SECRET",
                "PASSWORD",
                "PASSWD",
                "CREDENTIAL",
                "COOKIE",
                "AUTH",
                "_PWD",
                "_PW",
            ]
            .iter()
            .any(|hint| name.contains(hint))
                || has(&["pass"]));
    }
    let before_last = words.len().checked_sub(2).map_or("", |at| words[at].as_str());
    match words.last().map(String::as_str) {
        Some("token") => !PIECES.contains(&before_last),
        Some("key" | "keys") => {
            const OF: &[&str] = &[
                "api",
                "access",
                "private",
                "auth",
                "hf",
                "hub",
                "encryption",
                "signing",
                "ssh",
                "license",
                "master",
                "session",
                "account",
                "openai",
                "anthropic",
                "security",
                "ssl",
                "client",
                "server",
                "host",
                "deploy",
                "service",
                "storage",
                "webhook",
                "bot",
            ];
            OF.contains(&before_last)
        }
        Some("auth" | "authorization") => true,
        Some("pass") => {
            matches!(before_last, "db" | "user" | "smtp" | "mail" | "admin" | "basic" | "http" | "proxy")
        }
        _ => false,
    }
}

/// Whether a separator between a name and what follows makes it a value: a space does so after a flag only, a comma
/// between quotes too.
pub(super) fn assigns(name: &str, separator: &[u8]) -> bool {
    separator.iter().any(|byte| matches!(byte, b'=' | b':'))
        || separator.ends_with(b"is ")
        || name.starts_with("--")
        || name.starts_with('-') && name.len() > 4
}

/// Whether the value of a name that sounds secret is none.
pub(super) fn is_harmless(name: &str, value: &str) -> bool {
    let value = value.trim();
    let piece = words(name).iter().any(|word| word == "token")
        && (value.starts_with('<') && value.ends_with('>')
            || value.len() < 8 && value.bytes().all(|b| b.is_ascii_digit()));
    let flag = value.starts_with("--") && value.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
    let opening = value.bytes().all(|b| b"([{".contains(&b));
    says_nothing(value) || is_placeholder(value) || piece || flag || opening
}

/// Where the value after a separator stands: quoted, or up to a blank. A comma or bracket ends it only where something
/// else begins, for passwords hold commas too.
pub(super) fn value_after(line: &[u8], at: usize) -> Range<usize> {
    let mut start = at;
    if line.get(start) == Some(&b'\\') && matches!(line.get(start + 1), Some(b'"' | b'\'')) {
        start += 1;
    }
    // The separator may have taken the opening quote already.
    let open = |at: usize| line.get(at).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let quote = match open(start) {
        Some(quote) => {
            start += 1;
            Some(quote)
        }
        None => at.checked_sub(1).and_then(open),
    };
    let rest = &line[start.min(line.len())..];
    let ends = |byte: u8| match quote {
        Some(quote) => byte == quote || matches!(byte, 0 | b'\n'),
        None => byte.is_ascii_whitespace() || matches!(byte, 0 | b'"' | b'\''),
    };
    let mut end = rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len());
    if quote.is_some() {
        if end > 0 && rest[end - 1] == b'\\' && end < rest.len() {
            end -= 1;
        }
        return start..start + end;
    }
    let mut from = 0;
    while let Some(at) =
        rest[from..end].iter().position(|b| matches!(b, b',' | b';' | b'&' | b')' | b']' | b'}'))
    {
        let next = &rest[from + at + 1..end];
        let run = next.iter().position(|b| matches!(b, b',' | b';' | b'&')).unwrap_or(next.len());
        if next[..run].iter().all(|b| matches!(b, b')' | b']' | b'}'))
            || next[..run].iter().any(|b| matches!(b, b'=' | b':'))
        {
            end = from + at;
            break;
        }
        from += at + 1;
    }
    start..start + end
}

/// The strings of a list, `["a", 'b']`, that begins at `at` or went on over a line's end; and whether it goes on still.
pub(super) fn list_after(line: &[u8], at: usize) -> (Vec<Range<usize>>, bool) {
    let mut strings = Vec::new();
    let mut open: Option<(u8, usize)> = None;
    for (index, byte) in line.iter().enumerate().skip(at) {
        match (open, byte) {
            (None, b'"' | b'\'') => open = Some((*byte, index + 1)),
            (None, b']') => return (strings, false),
            (Some((quote, from)), byte) if *byte == quote => {
                strings.push(from..index);
                open = None;
            }
            _ => {}
        }
    }
    if let Some((_, from)) = open {
        strings.push(from..line.len());
    }
    (strings, true)
}

fn alnum(byte: Option<&u8>) -> bool {
    byte.is_some_and(u8::is_ascii_alphanumeric)
}

/// A word of its own: neither side goes on.
pub(super) fn is_word(around: &Around) -> bool {
    !alnum(around.before().last()) && !alnum(around.after().first())
}

pub(super) fn is_person(around: &Around) -> bool {
    !matches!(around.text(), "linuxbrew" | "root" | "Public" | "Shared" | "cdrom" | "user" | "HOST")
}

pub(super) fn is_token(around: &Around) -> bool {
    if alnum(around.before().last()) {
        return false;
    }
    // `hf_transformers` is a word, a token is not.
    let text = around.text();
    let Some(rest) = text.strip_prefix("hf_") else { return true };
    rest.len() >= 14 || rest.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
}

/// A long random-looking value. Digests are no secrets, and paths are no blobs.
pub(super) fn is_blob(around: &Around) -> bool {
    let name = String::from_utf8_lossy(around.name).to_lowercase();
    if ["sha", "digest", "md5", "hash", "commit", "checksum", "blake"].iter().any(|word| name.contains(word))
    {
        return false;
    }
    let text = around.text();
    if text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return text.bytes().any(|b| b.is_ascii_alphabetic()) && !alnum(around.after().first());
    }
    text.split(['/', '-', '_', '=']).any(|part| {
        part.len() >= 24
            && part.bytes().any(|b| b.is_ascii_digit())
            && part.bytes().any(|b| b.is_ascii_lowercase())
            && part.bytes().any(|b| b.is_ascii_uppercase())
    })
}

pub(super) fn is_email(around: &Around) -> bool {
    let end = around.text().rsplit('.').next().unwrap_or_default();
    // Instances of systemd units look like addresses.
    !matches!(
        end,
        "service" | "socket" | "slice" | "scope" | "mount" | "device" | "timer" | "target" | "path" | "swap"
    )
}

pub(super) fn is_uuid(around: &Around) -> bool {
    is_word(around) && around.text().bytes().any(|b| b != b'0' && b != b'-')
}

pub(super) fn is_serial(around: &Around) -> bool {
    let text = around.text();
    text.bytes().filter(u8::is_ascii_digit).count() > 1 && !text.starts_with("8250")
}

pub(super) fn is_mac(around: &Around) -> bool {
    let more =
        |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-'));
    let text = around.text();
    // With a seventh pair it is none; `aa:…: ` is one before a colon.
    let seventh = matches!(around.after(), [b':' | b'-', next, ..] if next.is_ascii_hexdigit());
    !more(around.before().last())
        && !alnum(around.after().first())
        && !seventh
        && text.bytes().any(|b| !matches!(b, b'0' | b':' | b'-'))
        && text.bytes().any(|b| !matches!(b, b'f' | b'F' | b':' | b'-'))
}

pub(super) fn is_ipv6(around: &Around) -> bool {
    if alnum(around.before().last()) || alnum(around.after().first()) {
        return false;
    }
    let text = around.text().trim_end_matches('.');
    let text = if text.ends_with("::") { text } else { text.trim_end_matches(':') };
    let Ok(address) = text.parse::<Ipv6Addr>() else { return false };
    // `c10::add` parses; addresses in use begin with four digits, or are written in full.
    let first = text.split(':').next().unwrap_or_default();
    let full = text.split(':').filter(|group| !group.is_empty()).count() == 8;
    let usual = first.len() == 4 && first.starts_with(['2', '3', 'f', 'F']);
    !address.is_loopback() && !address.is_unspecified() && (full || usual || text.contains('.'))
}

pub(super) fn is_ipv4(around: &Around) -> bool {
    let Ok(address) = around.text().parse::<Ipv4Addr>() else { return false };
    if address.is_loopback() || address.is_unspecified() {
        return false;
    }
    // 6.14.0.1 is an address only where nothing says that it is a version.
    let before = around.before();
    let joined = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+' | b'~');
    if before.last().is_some_and(joined) || before.ends_with(b"==") || before.ends_with(b">=") {
        return false;
    }
    match around.after() {
        [b'.' | b'-' | b'+' | b'~', next, ..] if next.is_ascii_alphanumeric() => return false,
        [next, ..] if next.is_ascii_alphanumeric() || *next == b'_' => return false,
        _ => {}
    }
    let near = String::from_utf8_lossy(&before[before.len().saturating_sub(24)..]).to_lowercase();
    let near = near.trim_end_matches(|c: char| c.is_whitespace() || ":='\"(v".contains(c));
    ![
        "version", "release", "ver", ">=", "<=", "firmware", "dkms", "kernel", "linux", "rocm", "driver",
        "mesa",
    ]
    .iter()
    .any(|word| near.ends_with(word))
}
