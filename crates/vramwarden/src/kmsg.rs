//! The kernel's log of this boot, without starting a program.

use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

use logs::{Scan, Scanner};
use rustix::fs::{Mode, OFlags};

/// The most records read: the kernel's ring holds far fewer.
const RECORDS: usize = 200_000;

/// Scans /dev/kmsg from its oldest record. Reading it wakes no device.
///
/// # Errors
/// One line for the user: what root would add.
pub fn read() -> Result<Scan, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let log: OwnedFd = rustix::fs::open("/dev/kmsg", flags, Mode::empty()).map_err(|errno| {
        format!("kernel log not read ({errno}); as root, or with: sudo dmesg | vramwarden doctor --log -, it would show sizes, resets and OOM kills")
    })?;
    let mut log = std::fs::File::from(log);
    let mut scanner = Scanner::new("kernel log");
    let mut record = [0_u8; 8192];
    for _ in 0..RECORDS {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => {
                // "priority,sequence,time,flags;text\n KEY=value\n…": the text's first line is the message.
                let record = &record[..length];
                let text = record.iter().position(|b| *b == b';').map_or(record, |at| &record[at + 1..]);
                let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
                scanner.feed(line);
                scanner.feed(b"\n");
            }
            // Overwritten while it was read: the next read continues with what is still there.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("kernel log read in part only: {error}")),
        }
    }
    Ok(scanner.finish())
}
