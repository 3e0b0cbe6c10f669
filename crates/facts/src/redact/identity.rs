//! Whose names a host holds.

use crate::host::Host;

/// An account of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    /// Home directory, where it is not `/home/NAME`.
    pub home: Option<String>,
    /// Other names of the same person, such as the full name.
    pub also: Vec<String>,
}

/// The names that tell a host and its people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The host's name, whole and without domain, and its domain. Longest first.
    pub hosts: Vec<String>,
    /// People with an account.
    pub users: Vec<User>,
}

impl Identity {
    /// Asks a host and the environment of this process. Ask the host itself, not a recorder: nothing of this belongs
    /// on a tape.
    #[must_use]
    pub fn of(host: &dyn Host, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut identity = Self::default();
        for path in ["/proc/sys/kernel/hostname", "/etc/hostname"] {
            if let Ok(name) = host.text(path) {
                identity.add_host(name.trim());
            }
        }
        if let Some(name) = env("HOSTNAME") {
            identity.add_host(&name);
        }
        for line in host.text("/etc/passwd").unwrap_or_default().lines() {
            identity.add_account(line);
        }
        for variable in ["USER", "LOGNAME", "SUDO_USER"] {
            if let Some(name) = env(variable) {
                identity.add_user(&name, None);
            }
        }
        if let Some(home) = env("HOME") {
            let name = home.rsplit('/').next().unwrap_or_default().to_owned();
            let known = identity.users.iter().any(|user| user.home.as_deref() == Some(&home));
            if !known && home.matches('/').count() > 1 {
                identity.add_user(&name, Some(&home));
            }
        }
        identity
    }

    /// Adds a host name; a qualified one also as its parts.
    pub fn add_host(&mut self, name: &str) {
        let mut add = |name: &str| {
            let generic = matches!(name, "" | "(none)") || name.starts_with("localhost");
            if !generic && !self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                self.hosts.push(name.to_owned());
            }
        };
        add(name);
        if let Some((short, domain)) = name.split_once('.') {
            add(short);
            if domain.contains('.') {
                add(domain);
            }
        }
        self.hosts.sort_by_key(|name| std::cmp::Reverse(name.len()));
    }

    /// Adds a person.
    pub fn add_user(&mut self, name: &str, home: Option<&str>) {
        if name.is_empty() || name == "root" || name == "nobody" {
            return;
        }
        let home = home.filter(|home| *home != format!("/home/{name}") && home.matches('/').count() > 1);
        match self.users.iter_mut().find(|user| user.name == name) {
            Some(user) => user.home = user.home.take().or_else(|| home.map(str::to_owned)),
            None => self.users.push(User {
                name: name.to_owned(),
                home: home.map(str::to_owned),
                also: Vec::new(),
            }),
        }
    }

    /// Adds who stands in a line of `/etc/passwd`, if it is a person.
    fn add_account(&mut self, line: &str) {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, _, gecos, home, ..] = fields[..] else { return };
        match uid.parse::<u32>() {
            Ok(0) if home != "/root" && home.matches('/').count() > 1 => {
                let name = home.rsplit('/').next().unwrap_or_default();
                self.add_user(name, Some(home));
            }
            Ok(1000..=65_533 | 65_536..) => {
                self.add_user(name, Some(home));
                let full = gecos.split(',').next().unwrap_or_default().trim();
                if full.len() > 4
                    && full != name
                    && let Some(user) = self.users.iter_mut().find(|user| user.name == name)
                {
                    user.also.push(full.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Every name.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let users = self.users.iter().flat_map(|user| std::iter::once(&user.name).chain(&user.also));
        self.hosts.iter().chain(users).map(String::as_str)
    }
}
