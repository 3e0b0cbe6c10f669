//! Taking out of texts what names a person, a machine or a secret, and nothing that says how memory stands.
//!
//! A [`Redactor`] knows the host's own names ([`Identity`]) and the shapes of secrets and addresses (the table in
//! `patterns`). The same value gets the same placeholder everywhere it meets it, so what belonged together still
//! does. Sizes, PCI addresses, PIDs and the like stay; a GPU's unique id becomes a small number in each of its
//! notations. Redacting twice changes nothing.

mod files;
mod identity;
mod names;
mod patterns;
mod scan;
mod shapes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use identity::{Identity, User};
use patterns::Table;

/// What a redacted value was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// The host's name or domain.
    Host,
    /// A person's login or full name, or home directory.
    User,
    /// A token, key, password or cookie.
    Secret,
    /// A serial number or another id of one device.
    Serial,
    /// An IPv4 or IPv6 address.
    Address,
    /// A MAC address.
    Mac,
    /// A UUID.
    Uuid,
    /// An e-mail address.
    Email,
    /// Variables of a process environment that do not matter here, dropped whole.
    Environment,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Host => "HOST",
            Self::User => "USER",
            Self::Secret => "SECRET",
            Self::Serial => "SERIAL",
            Self::Address => "ADDRESS",
            Self::Mac => "MAC",
            Self::Uuid => "UUID",
            Self::Email => "EMAIL",
            Self::Environment => "ENVIRONMENT",
        }
    }
}

/// How often something was redacted at a place. The value itself is nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// The file or log, as it is called after redaction.
    pub place: String,
    /// What it was.
    pub kind: Kind,
    /// How often.
    pub count: u64,
}

/// Replaces what must not leave the machine, and keeps count.
pub struct Redactor {
    identity: Identity,
    table: Arc<Table>,
    placeholders: HashMap<(Kind, String), String>,
    numbered: HashMap<Kind, usize>,
    ids: HashMap<String, usize>,
    counts: BTreeMap<(String, Kind), u64>,
}

impl Redactor {
    /// A redactor for a host whose names are known.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        let mut redactor = Self {
            table: Arc::new(Table::new(&identity)),
            placeholders: HashMap::new(),
            numbered: HashMap::new(),
            ids: HashMap::new(),
            counts: BTreeMap::new(),
            identity,
        };
        // The order of the accounts, not of the texts: the same host gives the same numbers.
        for user in redactor.identity.users.clone() {
            let placeholder = redactor.placeholder(Kind::User, &user.name);
            let home = user.home.as_deref().and_then(|home| home.rsplit('/').next()).map(str::to_owned);
            for also in user.also.into_iter().chain(home) {
                redactor.placeholders.entry((Kind::User, also.to_lowercase())).or_insert(placeholder.clone());
            }
        }
        redactor
    }

    /// Redacts a text that stood at `place`.
    pub fn text(&mut self, place: &str, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(place, text.as_bytes())).into_owned()
    }

    /// Redacts bytes that are mostly text, in any encoding that keeps ASCII.
    pub fn bytes(&mut self, place: &str, bytes: &[u8]) -> Vec<u8> {
        self.scan(place, bytes)
    }

    /// Redacts the strings of a JSON document; its keys and numbers stay. What is no JSON is redacted as text.
    pub fn json(&mut self, place: &str, json: &str) -> String {
        let Ok(mut value) = serde_json::from_str(json) else { return self.text(place, json) };
        self.json_value(place, &mut value, false);
        serde_json::to_string_pretty(&value).unwrap_or_default()
    }

    /// `secret`: the key above says that what is here is one.
    fn json_value(&mut self, place: &str, value: &mut serde_json::Value, secret: bool) {
        use serde_json::Value;
        match value {
            Value::String(text) if secret => *text = self.secret(place, text),
            Value::String(text) => *text = self.text(place, text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json_value(place, item, secret)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    self.json_value(place, &mut value, shapes::is_secret_name(&key));
                    fields.insert(self.text(place, &key), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What was redacted so far, by place and kind.
    #[must_use]
    pub fn redactions(&self) -> Vec<Redaction> {
        let redaction = |((place, kind), count): (&(String, Kind), &u64)| Redaction {
            place: place.clone(),
            kind: *kind,
            count: *count,
        };
        self.counts.iter().map(redaction).collect()
    }

    /// What a user should know about the limits of this redaction. Names nobody.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let everyday = self.identity.names().filter(|name| names::is_everyday(name)).count();
        if everyday > 0 {
            notes.push(format!(
                "{everyday} host or user names are everyday words or very short; they were replaced in paths, \
                 addresses and user fields only"
            ));
        }
        if self.table.failed > 0 {
            notes.push("the host has too many names; some were not looked for".to_owned());
        }
        notes
    }

    fn count(&mut self, place: &str, kind: Kind, n: u64) {
        *self.counts.entry((place.to_owned(), kind)).or_default() += n;
    }

    /// The placeholder of a value: always the same for the same one.
    fn placeholder(&mut self, kind: Kind, value: &str) -> String {
        if kind == Kind::Host {
            return "HOST".to_owned();
        }
        let key = match kind {
            Kind::Secret | Kind::Serial => value.to_owned(),
            _ => value.to_lowercase(),
        };
        if let Some(known) = self.placeholders.get(&(kind, key.clone())) {
            return known.clone();
        }
        let number = self.numbered.entry(kind).or_default();
        *number += 1;
        let placeholder = format!("{}{number}", kind.prefix());
        self.placeholders.insert((kind, key), placeholder.clone());
        placeholder
    }

    /// Replaces a whole value that its name calls a secret.
    fn secret(&mut self, place: &str, value: &str) -> String {
        if shapes::says_nothing(value) || shapes::is_placeholder(value) {
            return value.to_owned();
        }
        self.count(place, Kind::Secret, 1);
        self.placeholder(Kind::Secret, value)
    }
}
