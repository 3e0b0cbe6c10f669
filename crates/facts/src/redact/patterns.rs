//! The shapes that are looked for: one table.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::names::is_everyday;
use super::scan::Around;
use super::{Identity, Kind, shapes};

/// What becomes of a match.
#[derive(Clone, Copy)]
pub(super) enum Action {
    /// The value becomes a placeholder of this kind, if it is one.
    Replace(Kind, fn(&Around) -> bool),
    /// The match is a name with its separator (group `n` the name); what follows is the value.
    Assign,
    /// The value is an id of 64 bits, whose notation stays.
    Id,
}

/// One shape. The value is group `v`, or the whole match.
pub(super) struct Pattern {
    pub regex: Regex,
    pub action: Action,
    /// Whether it may be mistaken for a version; left out where versions stand.
    pub like_version: bool,
}

/// All shapes, and one automaton that tells which of them a line may hold.
pub(super) struct Table {
    set: Option<RegexSet>,
    pub patterns: Vec<Pattern>,
    /// A name, and the bracket of a list.
    pub list: Option<Regex>,
    /// Patterns that could not be compiled. None of the fixed ones; a host's names might be too many.
    pub failed: usize,
}

fn always(_: &Around) -> bool {
    true
}

/// Words in the name of a secret. [`shapes::is_secret_name`] decides.
const SECRET: &str = "token|key|secret|passw|passphrase|credential|cookie|auth|pass|_pwd|_pw";
/// What ends a person's name in a path.
const NOT_NAME: &str = r#"/\s"'`\x00:,;()<>|=\\&?*\[\]{}$%"#;

/// In this order: what is longest and surest first.
fn shapes_of(identity: &Identity) -> Vec<(String, Action)> {
    use Action::{Assign, Id, Replace};
    let mut all = vec![
        (
            r#"(?i)\b(?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?(?P<v>[^\r\n\x00"']+)"#.to_owned(),
            Replace(Kind::Secret, always),
        ),
        (
            r#"(?i)\b(?:set-)?cookie\\?["']?\s*:\s*\\?["']?(?P<v>[^\r\n\x00"']+)"#.to_owned(),
            Replace(Kind::Secret, always),
        ),
        (r#"(?i)\bbearer\s+(?P<v>[^\s"'\x00,;]{6,})"#.to_owned(), Replace(Kind::Secret, always)),
        (r#"://(?P<v>[^/\s"'\x00]+)@"#.to_owned(), Replace(Kind::Secret, always)),
        (
            format!(
                r#"(?i)(?P<n>[a-z0-9_.-]*(?:{SECRET})[a-z0-9_.-]*)(?:\\?["']?\s*(?::=|==|=>|=|:)\s*|\\?["']?\s*,\s*\\?["']|\\?["']?\s+)"#
            ),
            Assign,
        ),
        (
            r#"(?i)(?P<n>\b(?:api|access|secret|private|auth|license|session|security) (?:key|token))\\?["']?\s*(?:is|=|:)\s*"#
                .to_owned(),
            Assign,
        ),
        (
            r#"(?i)[?&](?P<n>sig|signature|x-amz-[a-z-]+|x-goog-[a-z-]+|code|key)=(?P<v>[^&\s"'\x00]+)"#.to_owned(),
            Replace(Kind::Secret, always),
        ),
        (
            concat!(
                r"(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{8,}",
                r"|glpat-[A-Za-z0-9_-]{8,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{12,}",
                r"|AIza[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{8,}|npm_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{16,}",
                r"|r8_[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)*)",
            )
            .to_owned(),
            Replace(Kind::Secret, shapes::is_token),
        ),
        (r"\bssh-(?:rsa|ed25519|dss) (?P<v>AAAA[A-Za-z0-9+/=]+)".to_owned(), Replace(Kind::Secret, always)),
        (
            r#"(?P<n>[A-Za-z0-9_.-]+)["']?\s*[:=]\s*["']?(?P<v>[A-Za-z0-9+/_=-]{40,})"#.to_owned(),
            Replace(Kind::Secret, shapes::is_blob),
        ),
        (
            r"[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}".to_owned(),
            Replace(Kind::Email, shapes::is_email),
        ),
        (
            r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}".to_owned(),
            Replace(Kind::Uuid, shapes::is_uuid),
        ),
        (r#"(?i)\b(?:part)?uuid=["']?(?P<v>[0-9a-f]{4,}(?:-[0-9a-f]+)*)"#.to_owned(), Replace(Kind::Uuid, shapes::is_uuid)),
        (
            r#"(?i)\b_?(?:machine|boot)[_-]id["']?\s*[=:]\s*["']?(?P<v>[0-9a-f]{32})"#.to_owned(),
            Replace(Kind::Uuid, shapes::is_uuid),
        ),
        (r"\bGPU-(?P<v>[0-9a-fA-F]{6,16})".to_owned(), Id),
        (r#"(?i)\bunique[ _-]?id\\?["']?\)?\s*[:=]?\s*\\?["']?(?P<v>0x[0-9a-f]+|[0-9a-f]+)"#.to_owned(), Id),
        (r#"(?i)serial(?:[ _-]?(?:number|num|no|id))?\\?["']?\s*[:=]\s*\\?["']?(?P<v>0x[0-9a-f]{9,16})"#.to_owned(), Id),
        (
            r#"(?i)serial(?:[ _-]?(?:number|num|no|id))?\\?["']?\s*[:=]\s*\\?["']?(?P<v>[a-z0-9._-]{5,})"#.to_owned(),
            Replace(Kind::Serial, shapes::is_serial),
        ),
        (r#"/disk/by-id/(?P<v>[^\s"'\x00,/]+)"#.to_owned(), Replace(Kind::Serial, always)),
        (r"\b(?:wwn-0x|eui\.|naa\.)(?P<v>[0-9a-fA-F]{8,})".to_owned(), Replace(Kind::Serial, always)),
        (r"(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2}".to_owned(), Replace(Kind::Mac, shapes::is_mac)),
        (r"[0-9a-fA-F:]*:[0-9a-fA-F:]*:[0-9a-fA-F:.]*".to_owned(), Replace(Kind::Address, shapes::is_ipv6)),
        (r"\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}".to_owned(), Replace(Kind::Address, shapes::is_ipv4)),
    ];
    // Homes before names: a home may hold a name that is nobody's.
    for user in identity.users.iter().filter(|user| user.home.is_some()) {
        let home = user.home.as_deref().unwrap_or_default();
        let parent = home.rsplit_once('/').map_or("", |(parent, _)| parent);
        let last = &home[parent.len() + 1..];
        all.push((
            format!(r"{}/(?P<v>{})", regex::escape(parent), regex::escape(last)),
            Replace(Kind::User, shapes::is_word),
        ));
    }
    all.push((
        format!(
            r"(?:/home|/run/media|/media|/Users|[A-Za-z]:\\+Users)[/\\]+(?P<v>[^{NOT_NAME}]*[^{NOT_NAME}.!])"
        ),
        Replace(Kind::User, shapes::is_person),
    ));
    let hosts = || identity.hosts.iter().map(String::as_str);
    let users = || identity.names().filter(|name| !identity.hosts.iter().any(|host| host == name));
    for (kind, everyday) in [(Kind::Host, false), (Kind::User, false), (Kind::Host, true), (Kind::User, true)]
    {
        let names = match kind {
            Kind::Host => alternations(hosts().filter(|name| is_everyday(name) == everyday)),
            _ => alternations(users().filter(|name| is_everyday(name) == everyday)),
        };
        let word = |shape| (shape, Replace(kind, shapes::is_word));
        for names in names {
            match (kind, everyday) {
                (_, false) => all.push(word(names)),
                (Kind::Host, true) => all.push(word(format!(
                    r#"(?:@|\b(?i:host(?:name)?)\\?["']?\s*[=:]\s*\\?["']?)(?P<v>{names})"#
                ))),
                (_, true) => {
                    all.push(word(format!(
                        r#"\b(?i:user(?:name)?|logname|login|sudo_user|owner|for user)\\?["']?(?:\s*[=:]\s*|\s+)\\?["']?(?P<v>{names})"#
                    )));
                    all.push(word(format!("(?P<v>{names})@")));
                }
            }
        }
    }
    all
}

/// Any of the names, the longest first, whatever their case. In parts, for there may be thousands of accounts.
fn alternations<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let names: Vec<String> = names.into_iter().map(regex::escape).collect();
    names.chunks(500).map(|names| format!("(?i:{})", names.join("|"))).collect()
}

impl Table {
    pub(super) fn new(identity: &Identity) -> Self {
        let build = |shape: &str| RegexBuilder::new(shape).unicode(false).size_limit(64 << 20).build();
        let mut failed = 0;
        let mut sources = Vec::new();
        let mut patterns = Vec::new();
        for (shape, action) in shapes_of(identity) {
            match build(&shape) {
                Ok(regex) => {
                    let like_version = matches!(action, Action::Replace(Kind::Address, _));
                    patterns.push(Pattern { regex, action, like_version });
                    sources.push(shape);
                }
                Err(_) => failed += 1,
            }
        }
        let set = RegexSetBuilder::new(sources)
            .unicode(false)
            .size_limit(256 << 20)
            .dfa_size_limit(16 << 20)
            .build()
            .ok();
        let list = build(&format!(r#"(?i)(?P<n>[a-z0-9_.-]*(?:{SECRET})[a-z0-9_.-]*)\\?["']?\s*[:=]\s*\["#));
        failed += usize::from(list.is_err());
        Self { set, patterns, list: list.ok(), failed }
    }

    /// Which patterns may match in a line. Without the automaton: any.
    pub(super) fn candidates(&self, line: &[u8]) -> Vec<usize> {
        match &self.set {
            Some(set) => set.matches(line).into_iter().collect(),
            None => (0..self.patterns.len()).collect(),
        }
    }
}
