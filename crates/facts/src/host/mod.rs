//! Reading a host: what the readers may ask, and who answers.
//!
//! A reader gets a [`Host`] and asks for files by their path on the host (`/proc/meminfo`). [`Tree`] answers from a
//! directory (`/` when live), [`Recorder`] notes every answer on a [`Tape`], and a tape answers as the host did: that is
//! how a bundle gives the same facts as the run that recorded it.

mod access;
mod boot;
mod cards;
mod container;
pub mod env;
mod fdinfo;
mod firmware;
mod hidden;
mod kernel;
mod kfd;
mod memory;
mod processes;
mod read;
mod software;
mod tape;
#[cfg(test)]
mod tests;
mod tree;
mod ttm;

pub use hidden::{Hidden, hidden};
pub use tape::{Answer, Question, Recorder, Tape};
pub use tree::{Tree, TreeError};

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::reading::Reading;

/// The most that is read of one file. Files under /proc and /sys that matter are far smaller.
pub const FILE_LIMIT: u64 = 4 << 20;

/// Why a host did not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// There is no such file (ENOENT, ENOTDIR), or the tape does not have it.
    Absent,
    /// Permission is refused (EACCES, EPERM).
    Denied,
    /// Anything else, in words.
    Failed(String),
}

/// What kind of file a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A character device.
    CharDevice,
    /// Anything else.
    Other,
}

/// Owner and permission bits of a path, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Permission bits, `0o660`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Whether the kernel says that this process may read and write it, which counts access lists too. Known for
    /// device nodes of the live host; the node is not opened for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<bool>,
}

/// What readers may ask of a host. Paths are absolute and as on the host. Nothing is opened that is not a regular file
/// or a directory, so no device wakes and no pipe blocks.
pub trait Host {
    /// The file's bytes, at most [`FILE_LIMIT`].
    ///
    /// # Errors
    /// Absent, denied, larger than the limit, or not a regular file.
    fn read(&self, path: &str) -> Result<Vec<u8>, Refusal>;

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// Absent, denied, or no directory.
    fn list(&self, path: &str) -> Result<Vec<String>, Refusal>;

    /// Target of a symbolic link, as written.
    ///
    /// # Errors
    /// Absent, denied, or no link.
    fn link(&self, path: &str) -> Result<String, Refusal>;

    /// Kind, owner and permission bits, links followed.
    ///
    /// # Errors
    /// Absent or denied.
    fn stat(&self, path: &str) -> Result<Stat, Refusal>;

    /// The links in a directory whose target begins with `prefix`, as names and targets. What the other links lead to
    /// is neither kept nor recorded.
    ///
    /// # Errors
    /// As [`Host::list`]. Links that are gone or refused are left out.
    fn links(&self, path: &str, prefix: &str) -> Result<Vec<(String, String)>, Refusal> {
        let targets = self.list(path)?.into_iter().filter_map(|name| {
            let target = self.link(&format!("{path}/{name}")).ok()?;
            target.starts_with(prefix).then_some((name, target))
        });
        Ok(targets.collect())
    }

    /// The file as text without the final newline; bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// As [`Host::read`].
    fn text(&self, path: &str) -> Result<String, Refusal> {
        let bytes = self.read(path)?;
        let mut text =
            String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }
}

/// Everything the host's files say. No device is opened, no sleeping GPU is woken, no other program is started.
///
/// The kernel log is a device and is not read here.
pub fn read(host: &dyn Host) -> Facts {
    let cards = cards::find(host);
    let topology = kfd::Topology::read(host);
    let mut gpus = cards::gpus(host, &cards, &topology);
    let looked = match host.list(cards::DRM) {
        Err(Refusal::Absent) => host.list("/sys"),
        other => other,
    };
    let gpus_seen = match looked {
        Ok(_) => read::known(gpus.len() as u64, cards::DRM, &format!("{} AMD GPUs", gpus.len())),
        Err(refusal) => Reading::Missing(read::missing(refusal, cards::DRM)),
    };
    let mounts = container::Mounts::read(host);
    let meminfo = read::Text::open(host, "/proc/meminfo");
    let container = container::read(host, &mounts, &meminfo, &mut gpus);
    let access = access::read(host, &mut gpus);
    let (processes, processes_hidden) = processes::read(host, &gpus, container.runtime.is_known());
    let kernel = kernel::kernel(host);
    Facts {
        platform: kernel::platform(host, &kernel.release),
        memory: memory::read(host, &meminfo, mounts.fakes_meminfo()),
        ttm: ttm::ttm(host),
        amdgpu: ttm::amdgpu(host),
        software: software::read(host, !gpus.is_empty()),
        env: env::read(host),
        kernel,
        gpus,
        gpus_seen,
        processes,
        processes_hidden,
        container,
        access,
        ..Facts::default()
    }
}
