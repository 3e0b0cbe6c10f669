//! The quantities the whole project speaks in. No I/O.

mod bytes;
mod device;

pub use bytes::{Bytes, GIB, KIB, MIB, PAGE};
pub use device::DeviceId;
