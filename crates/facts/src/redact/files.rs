//! Files whose path says what they hold.

use super::shapes::{is_harmless, is_secret_name, says_nothing};
use super::{Kind, Redactor};
use crate::host::{Answer, Refusal, Tape};

/// Sysfs and DMI files that hold one id and nothing else.
const ONE_ID: &[&str] = &[
    "serial",
    "serial_number",
    "product_serial",
    "board_serial",
    "chassis_serial",
    "board_asset_tag",
    "chassis_asset_tag",
    "product_uuid",
    "wwid",
    "wwn",
    "machine-id",
];

impl Redactor {
    /// A tape as it may leave the machine. Of process environments only variables that `keep` names stay. A path that
    /// holds a name is redacted as the same path in a text is, so readers that follow one find it.
    pub fn tape(&mut self, tape: &Tape, keep: &dyn Fn(&str) -> bool) -> Tape {
        let mut redacted = Tape::default();
        for ((path, question), answer) in &tape.answers {
            let place = self.path(path);
            let answer = match answer {
                Ok(answer) => Ok(self.answer(path, &place, answer, keep)),
                Err(Refusal::Failed(why)) => Err(Refusal::Failed(self.text(&place, why))),
                Err(refusal) => Err(refusal.clone()),
            };
            redacted.answers.entry((place, *question)).or_insert(answer);
        }
        redacted
    }

    /// The path after redaction, counted at itself.
    fn path(&mut self, path: &str) -> String {
        // The place is known only afterwards, so the counts go there by way of an empty one.
        let place = self.text("", path);
        for kind in [
            Kind::Host,
            Kind::User,
            Kind::Secret,
            Kind::Serial,
            Kind::Address,
            Kind::Mac,
            Kind::Uuid,
            Kind::Email,
        ] {
            if let Some(n) = self.counts.remove(&(String::new(), kind)) {
                self.count(&place, kind, n);
            }
        }
        place
    }

    fn answer(&mut self, path: &str, place: &str, answer: &Answer, keep: &dyn Fn(&str) -> bool) -> Answer {
        match answer {
            Answer::Bytes(bytes) => Answer::Bytes(self.file(path, place, bytes, keep)),
            Answer::Names(names) => {
                let mut names: Vec<String> = names.iter().map(|name| self.name(path, place, name)).collect();
                names.sort();
                names.dedup();
                Answer::Names(names)
            }
            Answer::Target(target) => Answer::Target(self.text(place, target)),
            Answer::Stat(stat) => Answer::Stat(*stat),
        }
    }

    /// A name in a directory: what the whole path would make of it.
    fn name(&mut self, directory: &str, place: &str, name: &str) -> String {
        let whole = self.text(place, &format!("{}/{name}", directory.trim_end_matches('/')));
        whole.rsplit('/').next().unwrap_or_default().to_owned()
    }

    /// A file's bytes.
    fn file(&mut self, path: &str, place: &str, bytes: &[u8], keep: &dyn Fn(&str) -> bool) -> Vec<u8> {
        let name = path.rsplit('/').next().unwrap_or_default();
        match (path, name) {
            (path, "environ") if path.starts_with("/proc/") => self.environment(place, bytes, keep),
            (path, "cmdline") if path.starts_with("/proc/") && path != "/proc/cmdline" => {
                self.arguments(place, bytes)
            }
            ("/etc/passwd" | "/etc/group", _) => self.accounts(place, bytes),
            ("/etc/hostname" | "/proc/sys/kernel/hostname" | "/proc/sys/kernel/domainname", _) => {
                self.count(place, Kind::Host, 1);
                b"HOST\n".to_vec()
            }
            (_, "edid") if !bytes.is_empty() => {
                self.count(place, Kind::Serial, 1);
                Vec::new()
            }
            (_, "unique_id") => {
                let text = String::from_utf8_lossy(bytes);
                self.id(place, text.trim(), false)
                    .map_or_else(|| bytes.to_vec(), |id| format!("{id}\n").into_bytes())
            }
            (_, name) if ONE_ID.contains(&name) => self.one_id(place, bytes),
            (path, name) => {
                let versions =
                    name.contains("version") || name.contains("release") || path.starts_with("/var/lib/");
                self.scan_with(place, bytes, versions)
            }
        }
    }

    fn one_id(&mut self, place: &str, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        if says_nothing(text)
            || super::shapes::is_placeholder(text)
            || matches!(text, "0" | "N/A" | "unknown")
        {
            return bytes.to_vec();
        }
        if let Some(hex) = text.strip_prefix("0x")
            && hex.len() > 8
            && let Some(id) = self.id(place, text, false)
        {
            return format!("{id}\n").into_bytes();
        }
        self.count(place, Kind::Serial, 1);
        format!("{}\n", self.placeholder(Kind::Serial, text)).into_bytes()
    }

    /// `NAME=value` records, each ended by NUL.
    fn environment(&mut self, place: &str, bytes: &[u8], keep: &dyn Fn(&str) -> bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut dropped = 0;
        for record in bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let kept = std::str::from_utf8(record).ok().and_then(|text| text.split_once('='));
            let Some((name, value)) = kept.filter(|(name, _)| keep(name)) else {
                dropped += 1;
                continue;
            };
            let value =
                if is_secret_name(name) { self.secret(place, value) } else { self.text(place, value) };
            out.extend_from_slice(name.as_bytes());
            out.push(b'=');
            out.extend_from_slice(value.as_bytes());
            out.push(0);
        }
        if dropped > 0 {
            self.count(place, Kind::Environment, dropped);
        }
        out
    }

    /// A command line: words, each ended by NUL, so a value is known whole even with blanks in it.
    fn arguments(&mut self, place: &str, bytes: &[u8]) -> Vec<u8> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        let mut flag: Option<String> = None;
        for word in bytes.split(|byte| *byte == 0) {
            let text = String::from_utf8_lossy(word).into_owned();
            let secret_of = flag.take().filter(|_| !text.starts_with("--"));
            if let Some(name) = secret_of {
                let harmless = is_harmless(&name, &text);
                out.push(if harmless { text } else { self.secret(place, &text) }.into_bytes());
            } else if let Some((name, value)) = text.split_once('=').filter(|(name, value)| {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
                name.chars().all(plain) && is_secret_name(name) && !is_harmless(name, value)
            }) {
                out.push(format!("{name}={}", self.secret(place, value)).into_bytes());
            } else {
                if text.starts_with('-') && !text.contains(['=', ' ']) && is_secret_name(&text) {
                    flag = Some(text);
                }
                out.push(self.bytes(place, word));
            }
        }
        out.join(&0)
    }

    /// `/etc/passwd` and `/etc/group`: names between colons and commas; full names go.
    fn accounts(&mut self, place: &str, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut out = String::new();
        for line in text.lines() {
            let mut fields: Vec<String> = line.split(':').map(str::to_owned).collect();
            if fields.len() == 7 {
                fields[4].clear();
            }
            for field in &mut fields {
                let names: Vec<String> = field.split(',').map(|name| self.account(place, name)).collect();
                *field = names.join(",");
            }
            out.push_str(&fields.join(":"));
            out.push('\n');
        }
        out.into_bytes()
    }

    fn account(&mut self, place: &str, name: &str) -> String {
        if self.identity.users.iter().any(|user| user.name == name) {
            self.count(place, Kind::User, 1);
            return self.placeholder(Kind::User, name);
        }
        self.text(place, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Question;

    #[test]
    fn a_name_in_a_listing_is_the_name_in_the_path() {
        let mut tape = Tape::default();
        let read = ("/home/alice/x".to_owned(), Question::Read);
        tape.answers.insert(read, Ok(Answer::Bytes(b"1\n".to_vec())));
        tape.answers
            .insert(("/home".to_owned(), Question::List), Ok(Answer::Names(vec!["alice".to_owned()])));
        let redacted = Redactor::new(super::super::Identity::default()).tape(&tape, &|_| false);
        let paths: Vec<_> = redacted.answers.keys().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/home", "/home/USER1/x"]);
        let names = Ok(Answer::Names(vec!["USER1".to_owned()]));
        assert_eq!(redacted.answers.values().next(), Some(&names));
    }
}
