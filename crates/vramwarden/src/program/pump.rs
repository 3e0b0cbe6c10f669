//! Passes one stream of the program through, byte for byte and at once, and scans it on the way.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use logs::{Scan, Scanner};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Read at once: the size of a pipe.
const BUFFER: usize = 64 << 10;

/// The most that is still read once the program has ended: the largest pipe. What the program wrote is in there;
/// whatever comes later is another process's.
const REST: usize = 1 << 20;

/// When something was printed last, on any stream.
#[derive(Clone)]
pub struct Clock {
    start: Instant,
    last: Arc<AtomicU64>,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now(), last: Arc::default() }
    }

    /// How long the program has run.
    pub fn elapsed(&self) -> std::time::Duration {
        self.start.elapsed()
    }

    /// How long ago something was printed, or the program started.
    pub fn silent(&self) -> std::time::Duration {
        let last = std::time::Duration::from_millis(self.last.load(Ordering::Relaxed));
        self.elapsed().saturating_sub(last)
    }

    fn tick(&self) {
        let now = u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Ordering::Relaxed);
    }
}

/// What a stream was.
pub struct Passed {
    /// What it said.
    pub scan: Scan,
    /// Whether another process still held it open when the program had ended.
    pub held: bool,
    /// Why not all of it could be passed on; a reader that has gone is no reason.
    pub error: Option<String>,
}

/// A stream that is passed through by a thread of its own: a reader that is slow on one does not hold up the other.
pub struct Pump {
    thread: JoinHandle<Passed>,
}

impl Pump {
    /// Passes `from` on to `to`; once `ended` is closed at its other end, only what is already there.
    pub fn start(name: &'static str, from: OwnedFd, to: OwnedFd, ended: OwnedFd, clock: Clock) -> Self {
        let thread = std::thread::spawn(move || pass(name, from, &to, &ended, &clock));
        Self { thread }
    }

    /// Waits until it is through.
    pub fn finish(self) -> Option<Passed> {
        self.thread.join().ok()
    }

    /// Whether it is through.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

fn pass(name: &str, from: OwnedFd, to: &OwnedFd, ended: &OwnedFd, clock: &Clock) -> Passed {
    let mut scanner = Scanner::new(name);
    let mut buffer = vec![0; BUFFER];
    let (mut held, mut error) = (false, None);
    let mut rest: Option<usize> = None;
    loop {
        if rest.is_none() && has_ended(&from, ended) {
            rest = Some(REST);
        }
        if let Some(left) = rest
            && (left == 0 || !readable(&from))
        {
            held = true;
            break;
        }
        let length = match rustix::io::read(&from, &mut buffer[..]) {
            // A pseudoterminal whose other side is closed answers EIO.
            Ok(0) | Err(Errno::IO) => break,
            Ok(length) => length,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(errno) => {
                error = Some(format!("{name}: {errno}; its rest was not read"));
                break;
            }
        };
        rest = rest.map(|left| left.saturating_sub(length));
        clock.tick();
        let bytes = &buffer[..length];
        let written = write_all(to, bytes);
        scanner.feed(bytes);
        match written {
            Ok(()) => {}
            // Our reader has gone: closing the stream tells the program so, as it would be told without us.
            Err(gone) if gone == Errno::PIPE => break,
            Err(errno) => {
                let errno = io::Error::from(errno);
                error = Some(format!("{name}: {errno}; the program's output could not be passed on"));
                break;
            }
        }
    }
    drop(from);
    Passed { scan: scanner.finish(), held, error }
}

/// Sleeps until there is something to read or the program has ended; tells whether it has.
fn has_ended(from: &OwnedFd, ended: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(from, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
    match poll(&mut fds, None) {
        Ok(_) => !fds[1].revents().is_empty(),
        Err(_) => false,
    }
}

/// Whether a read would not block. A pseudoterminal may hand over a little late, so it gets a moment.
fn readable(from: &OwnedFd) -> bool {
    let moment = i64::from(rustix::termios::isatty(from)) * 20_000_000;
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: moment })), Ok(ready) if ready > 0)
}

fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR) => {}
            // Somebody else made it non-blocking: wait as a blocking write would.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(to.as_fd(), PollFlags::OUT)], None);
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
