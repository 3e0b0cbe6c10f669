//! What could not be read, and why.

use facts::{Facts, Missing};

use super::plain::Page;

/// Fields that pools are made of. That a file of theirs does not exist is worth a line; of others it is not.
const SIZES: &[&str] = &[
    "memory.total_bytes",
    "memory.available_bytes",
    "ttm.pages_limit",
    ".vram_total_bytes",
    ".vram_used_bytes",
    ".gtt_total_bytes",
    ".gtt_used_bytes",
    ".kfd_pool_bytes",
];

/// What the readers say of a file that was read and sets no figure.
const NO_FIGURE: &[&str] = &["no limit", "the default is"];

/// One line for each thing that is unknown and matters; a sleeping GPU's files are one thing.
fn unknown(facts: &Facts) -> Vec<String> {
    let mut lines = Vec::new();
    let mut asleep: Vec<(String, usize)> = Vec::new();
    facts.each_missing(&mut |field, why| match why {
        Missing::Asleep(path) => {
            let device = path.split("/device/").next().unwrap_or(path);
            match asleep.iter_mut().find(|(known, _)| known == device) {
                Some((_, count)) => *count += 1,
                None => asleep.push((device.to_owned(), 1)),
            }
        }
        Missing::Unreadable(_, what) if NO_FIGURE.iter().any(|said| what.contains(said)) => {}
        Missing::Unreadable(..) => lines.push(format!("{field}: {why}")),
        Missing::Absent(_) if !facts.gpus.is_empty() && SIZES.iter().any(|end| field.ends_with(end)) => {
            lines.push(format!("{field}: {why}"));
        }
        Missing::Absent(_) | Missing::NotStated | Missing::Denied(_) => {}
    });
    lines.extend(asleep.into_iter().map(|(device, count)| {
        format!("{device}: {count} of its files were not read: the GPU sleeps and reading would wake it")
    }));
    lines
}

impl Page {
    /// What root would add, and with `-v` each size that is unknown with the reason.
    pub(super) fn unread(&self, out: &mut String, facts: &Facts) {
        let hidden = facts::host::hidden(facts);
        if !self.verbose {
            if !hidden.is_empty() {
                let mut adds: Vec<&str> = hidden.iter().map(|h| h.adds).collect();
                adds.sort_unstable();
                adds.dedup();
                let adds = adds.join("; ");
                out.push('\n');
                self.wrapped(out, "", "", &format!("Root would add: {adds} (-v names the files)."));
            }
            return;
        }
        if !hidden.is_empty() {
            out.push('\n');
            self.line(out, "Not readable for this user; root would add:");
            for hidden in &hidden {
                self.wrapped(out, "  ", "    ", &format!("{}: {}", hidden.path, hidden.adds));
            }
        }
        let unknown = unknown(facts);
        if !unknown.is_empty() {
            out.push('\n');
            self.line(out, "Unknown, and why:");
            unknown.iter().for_each(|line| self.wrapped(out, "  ", "    ", line));
        }
    }
}
