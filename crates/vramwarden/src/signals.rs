//! Signals as something that can be polled.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::Failure;

/// The signals that ask a program to end, each with a stream that becomes readable when it came.
pub struct Signals {
    streams: Vec<(Signal, UnixStream)>,
}

impl Signals {
    /// From now on INT, TERM, HUP and QUIT end nothing by themselves. One that was ignored stays so (`nohup`).
    ///
    /// # Errors
    /// The system gives no more file descriptors.
    pub fn catch() -> Result<Self, Failure> {
        let refuse = |error| Failure::Environment(format!("signals cannot be caught: {error}"));
        let ignored = ignored();
        let mut streams = Vec::new();
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
            let number = signal.as_raw();
            if ignored >> (number - 1) & 1 == 1 {
                continue;
            }
            let (ours, theirs) = UnixStream::pair().map_err(refuse)?;
            ours.set_nonblocking(true).map_err(refuse)?;
            signal_hook::low_level::pipe::register(number, theirs).map_err(refuse)?;
            streams.push((signal, ours));
        }
        Ok(Self { streams })
    }

    /// What to poll for; [`Signals::came`] then tells which it was.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().map(|(_, stream)| stream.as_fd())
    }

    /// The signals that came since this was asked last, each once.
    pub fn came(&mut self) -> Vec<Signal> {
        let mut bytes = [0; 64];
        let came = self.streams.iter_mut().filter_map(|(signal, stream)| {
            // Several of one kind before they were looked at are one, as the kernel has it too.
            stream.read(&mut bytes).is_ok_and(|length| length > 0).then_some(*signal)
        });
        came.collect()
    }

    /// Sleeps until a signal comes or the time is over; tells the signals.
    pub fn sleep(&mut self, time: Duration) -> Vec<Signal> {
        wait(self.fds(), Some(time));
        self.came()
    }
}

/// Sleeps until one of these can be read, or the time is over.
pub fn wait<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>, time: Option<Duration>) {
    let fds: Vec<BorrowedFd<'_>> = fds.collect();
    let mut polled: Vec<PollFd<'_>> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let time = time.and_then(|time| Timespec::try_from(time).ok());
    // Interrupted is as good as ready: whoever waits looks at everything.
    let _ = poll(&mut polled, time.as_ref());
}

/// The mask of signals that this process was started to ignore.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
