//! The name of a device.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A GPU by its PCI address (`0000:c5:00.0`), or `gpu0`, `gpu1`, … in the order seen where no address is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(String);

impl DeviceId {
    /// The device at PCI address `bdf`.
    pub fn bdf(bdf: &str) -> Self {
        Self(bdf.to_ascii_lowercase())
    }

    /// The `n`th device of a machine whose addresses are unknown.
    pub fn nth(n: usize) -> Self {
        Self(format!("gpu{n}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
