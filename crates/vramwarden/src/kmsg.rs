//! The kernel's log of this boot, without starting a program.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};

use logs::{Scan, Scanner};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The most records read: the kernel's ring holds far fewer.
const RECORDS: usize = 200_000;

/// Scans the kernel's log from its oldest record.
///
/// # Errors
/// One line for the user: what root would add.
pub fn read() -> Result<Scan, String> {
    let mut scanner = Scanner::new("kernel log");
    each_line(|line| {
        scanner.feed(line);
        scanner.feed(b"\n");
    })?;
    Ok(scanner.finish())
}

/// The kernel's log as text.
///
/// # Errors
/// As [`read`].
pub fn text() -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    each_line(|line| {
        text.extend_from_slice(line);
        text.push(b'\n');
    })?;
    Ok(text)
}

/// Calls `see` with each message of /dev/kmsg. Reading it wakes no device.
fn each_line(see: impl FnMut(&[u8])) -> Result<(), String> {
    drain(&mut open()?, see).map_err(|error| format!("kernel log read in part only: {error}"))
}

fn open() -> Result<File, String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open("/dev/kmsg", flags, Mode::empty()).map(File::from).map_err(|errno| {
        format!(
            "kernel log not read ({errno}); as root, or with: sudo dmesg | vramwarden doctor --log -, it would show \
             sizes, resets and OOM kills"
        )
    })
}

/// Reads what is there, up to [`RECORDS`].
fn drain(log: &mut File, mut see: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut record = [0_u8; 8192];
    for _ in 0..RECORDS {
        match log.read(&mut record) {
            Ok(0) => break,
            Ok(length) => {
                // "priority,sequence,time,flags;text\n KEY=value\n…": the text's first line is the message.
                let record = &record[..length];
                let text = record.iter().position(|b| *b == b';').map_or(record, |at| &record[at + 1..]);
                see(text.split(|b| *b == b'\n').next().unwrap_or_default());
            }
            // Overwritten while it was read: the next read continues with what is still there.
            Err(error) if error.raw_os_error() == Some(Errno::PIPE.raw_os_error()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The kernel's log from now on.
pub struct Follow {
    log: File,
    scanner: Scanner,
    /// Whether it cannot be read any more.
    broken: bool,
}

impl Follow {
    /// Opens it at its end.
    ///
    /// # Errors
    /// As [`read`].
    pub fn open() -> Result<Self, String> {
        let mut log = open()?;
        log.seek(SeekFrom::End(0)).map_err(|error| format!("kernel log not followed: {error}"))?;
        Ok(Self { log, scanner: Scanner::new("kernel log"), broken: false })
    }

    /// Scans what came since. One that cannot be read is left alone from then on.
    pub fn take(&mut self) {
        let scanner = &mut self.scanner;
        let read = drain(&mut self.log, |line| {
            scanner.feed(line);
            scanner.feed(b"\n");
        });
        self.broken |= read.is_err();
    }

    /// What to poll for.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.broken).then(|| self.log.as_fd())
    }

    /// What was said since it was opened or this was asked last.
    pub fn said(&mut self) -> Scan {
        self.take();
        std::mem::replace(&mut self.scanner, Scanner::new("kernel log")).finish()
    }

    /// All that was said.
    pub fn finish(self) -> Scan {
        self.scanner.finish()
    }
}
