//! The record of an applied fix, from which it is completed or taken back: `vramwarden.applied/1`.

use serde::{Deserialize, Serialize};

use super::disk::{Disk, Fault, Look, Present};
use crate::Failure;

const SCHEMA: &str = "vramwarden.applied/1";

/// Where the records lie, and the directories on the way there with their modes.
const DIRECTORIES: [(&str, u32); 4] = [
    ("/var", 0o755),
    ("/var/lib", 0o755),
    ("/var/lib/vramwarden", 0o755),
    ("/var/lib/vramwarden/applied", 0o700),
];

/// Held while files are changed.
pub const LOCK: &str = "/var/lib/vramwarden/lock";

/// What was there before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// Nothing.
    Absent,
    /// A file.
    File(Present),
}

/// One file of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path on the host, links followed.
    pub path: String,
    /// What was there.
    pub before: Before,
    /// What is to be there.
    pub after: String,
    /// Whether its directory was made for it.
    #[serde(default)]
    pub made_directory: bool,
    /// A value of sysfs: the kernel adds a line end, and may take a value in its own spelling.
    #[serde(default)]
    pub sysfs: bool,
}

/// Which of the two a file is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Now {
    /// As before.
    Before,
    /// As it is to be.
    After,
    /// As somebody else made it.
    Neither,
}

impl Entry {
    /// Compares what stands there.
    pub fn now(&self, look: &Look) -> Now {
        let same = |a: &str, b: &str| a == b || (self.sysfs && a.trim() == b.trim());
        match (look, &self.before) {
            (Look::File(now), _) if same(&now.content, &self.after) => Now::After,
            (Look::File(now), Before::File(before)) if same(&now.content, &before.content) => Now::Before,
            (Look::Absent | Look::NoDirectory, Before::Absent) => Now::Before,
            _ => Now::Neither,
        }
    }
}

/// The record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// Names this form.
    pub schema: String,
    /// The finding.
    pub id: String,
    /// When, RFC 3339.
    pub when: String,
    /// What wrote it.
    pub program: String,
    /// Its files, in the order in which they are changed.
    pub files: Vec<Entry>,
    /// What is to be typed after a change of the files.
    pub then: String,
}

impl Journal {
    /// A new record.
    pub fn new(id: &str, files: Vec<Entry>, then: String) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            when: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            program: format!("vramwarden {}", env!("CARGO_PKG_VERSION")),
            files,
            then,
        }
    }

    /// Where the record of `id` lies.
    pub fn path(id: &str) -> String {
        format!("/var/lib/vramwarden/applied/{id}.json")
    }

    /// The record of `id`; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn load(disk: &dyn Disk, id: &str) -> Result<Option<Self>, Failure> {
        let path = Self::path(id);
        let Look::File(file) = disk.look(&path)? else { return Ok(None) };
        let journal: Self = serde_json::from_str(&file.content).map_err(|error| {
            Failure::Input(format!("{path}: {error}; no record of vramwarden: move it away"))
        })?;
        if journal.schema != SCHEMA || journal.id != id {
            let mend = "use the version that wrote it, or move it away";
            return Err(Failure::Input(format!("{path}: not a record of {SCHEMA} for {id}; {mend}")));
        }
        Ok(Some(journal))
    }

    /// Puts the record on the disk, whole or not at all.
    ///
    /// # Errors
    /// The disk's.
    pub fn save(&self, disk: &mut dyn Disk) -> Result<(), Fault> {
        let path = Self::path(&self.id);
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Fault { path: path.clone(), error: error.into() })?;
        text.push('\n');
        let own = Present {
            content: String::new(),
            mode: 0o600,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        };
        let saved = disk.stage(&path, &text, Some(&own)).and_then(|()| disk.publish(&path));
        if saved.is_err() {
            let _ = disk.unstage(&path);
        }
        saved?;
        disk.sync_directory(super::disk::split(&path).0)
    }

    /// Takes the record away.
    ///
    /// # Errors
    /// The disk's.
    pub fn discard(&self, disk: &mut dyn Disk) -> Result<(), Fault> {
        let path = Self::path(&self.id);
        disk.unstage(&path)?;
        disk.remove(&path)?;
        disk.sync_directory(super::disk::split(&path).0)
    }
}

/// Makes the directories that records lie in.
///
/// # Errors
/// The disk's.
pub fn make_home(disk: &mut dyn Disk) -> Result<(), Fault> {
    for (path, mode) in DIRECTORIES {
        if matches!(disk.look(&format!("{path}/x"))?, Look::NoDirectory) {
            disk.make_directory(path, mode)?;
            disk.sync_directory(super::disk::split(path).0)?;
        }
    }
    Ok(())
}
