//! The table of pools, who holds them and, with `-v`, every ceiling.

use facts::pool::{Holder, Pool};
use units::{Bytes, MIB};

use super::plain::{Page, api};

/// A process below this is not worth a line.
const SMALL: Bytes = Bytes(64 * MIB);

fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string())
}

impl Page {
    /// Every pool.
    pub(super) fn pools(&self, out: &mut String, pools: &[Pool]) {
        let mut table = self.table();
        table.set_header(["DEVICE", "API", "POOL", "USED", "FREE", "LIMITED BY"]);
        for pool in pools {
            let by = pool.limited_by.map_or("unknown", |by| by.name());
            table.add_row([
                pool.device.to_string(),
                api(pool).to_owned(),
                size(pool.total),
                size(pool.used),
                size(pool.free),
                by.to_owned(),
            ]);
        }
        for column in 2..=4 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(comfy_table::CellAlignment::Right);
            }
        }
        self.print_table(out, &table);
        self.holders(out, pools);
        if self.verbose {
            pools.iter().for_each(|pool| self.ceilings(out, pool));
        }
    }

    /// Who holds memory, each once for a device: HIP's and Vulkan's holders are mostly the same.
    fn holders(&self, out: &mut String, pools: &[Pool]) {
        let most = if self.verbose { 64 } else { 5 };
        let mut told: Vec<(&units::DeviceId, &Holder)> = Vec::new();
        for pool in pools {
            for holder in pool.holders.iter().filter(|h| h.bytes.is_some_and(|b| b > SMALL)).take(most) {
                // Nameless holders of a sheet are told apart by what they hold.
                let same = |other: &Holder| match holder.pid {
                    Some(pid) => other.pid == Some(pid),
                    None => other.pid.is_none() && other.bytes == holder.bytes,
                };
                if told.iter().any(|(device, other)| **device == pool.device && same(other)) {
                    continue;
                }
                told.push((&pool.device, holder));
                let name = holder.name.as_deref().unwrap_or("a process");
                let pid = holder.pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
                let dead = if holder.alive == Some(false) { ", which has ended," } else { "" };
                let held = size(holder.bytes);
                self.line(out, &format!("  {name}{pid}{dead} holds {held} of {}", pool.device));
            }
        }
    }

    fn ceilings(&self, out: &mut String, pool: &Pool) {
        out.push('\n');
        self.line(out, &format!(" Ceilings of {} {} (* can limit it)", pool.device, api(pool)));
        if pool.ceilings.is_empty() {
            self.line(out, "     none is known");
        }
        let longest = pool.ceilings.iter().map(|ceiling| ceiling.name.len()).max().unwrap_or_default();
        for ceiling in &pool.ceilings {
            let mark = if ceiling.binds.is_some() { '*' } else { ' ' };
            let bytes = ceiling.bytes.to_string();
            let first = format!("   {mark} {:longest$}  {bytes:>9}  ", ceiling.name);
            let rest = " ".repeat(longest + 18);
            self.wrapped(out, &first, &rest, &format!("{} [{}]", ceiling.formula, ceiling.source.place));
        }
    }
}
