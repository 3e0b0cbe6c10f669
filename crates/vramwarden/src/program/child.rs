//! The program under the doctor: how it is started, signalled, and ended with us.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, getpid, getppid, pidfd_open, pidfd_send_signal};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize};

use crate::Failure;

/// A program that runs.
pub struct Running {
    /// The child; its exit status is asked of it.
    pub child: Child,
    /// Readable once the child has ended.
    pub pidfd: OwnedFd,
    /// What it prints to stdout, and to stderr.
    pub streams: [Option<OwnedFd>; 2],
    /// Our terminal, where the child is in our process group.
    terminal: Option<File>,
}

/// Starts the program. With `terminals` a stream of ours that is a terminal is one for the program too.
///
/// With a terminal the program stays in our process group, as job control and its reading of the terminal need;
/// without one it has its own, so that a signal for ours does not reach it twice.
///
/// # Errors
/// It is not found or may not be executed.
pub fn start(command: &[OsString], terminals: bool) -> Result<Running, Failure> {
    let Some((name, args)) = command.split_first() else {
        return Err(Failure::Input(
            "--: no program is named; say vramwarden doctor -- PROGRAM ARGUMENTS".into(),
        ));
    };
    let refuse = |error: io::Error| Failure::Environment(format!("the program cannot be watched: {error}"));
    let out = Stream::like(io::stdout(), terminals).map_err(refuse)?;
    let err = Stream::like(io::stderr(), terminals).map_err(refuse)?;
    let terminal = File::open("/dev/tty").ok();
    let mut program = Command::new(name);
    program.args(args).stdout(Stdio::from(out.theirs)).stderr(Stdio::from(err.theirs));
    if terminal.is_none() {
        program.process_group(0);
    }
    die_with_us(&mut program);
    let child = program.spawn().map_err(|error| not_started(name.as_ref(), &error))?;
    // Our copies of what the child writes to are closed with this, so that its end is seen.
    drop(program);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pidfd = pid.ok_or(rustix::io::Errno::SRCH).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    match pidfd {
        Ok(pidfd) => Ok(Running { child, pidfd, streams: [Some(out.ours), Some(err.ours)], terminal }),
        Err(errno) => {
            let mut child = child;
            let _ = child.kill();
            let _ = child.wait();
            Err(Failure::Environment(format!("the program cannot be watched: pidfd_open: {errno}")))
        }
    }
}

/// The kernel ends the program when we are gone, however that came.
///
/// Its limits: it holds for the program itself and not for what that starts, nor for a program that changes its user
/// on exec (set-user-ID), which clears it; and it follows the thread that forks, which is our main thread.
#[expect(
    unsafe_code,
    reason = "only between fork and exec can a process ask for this, and pre_exec is unsafe"
)]
fn die_with_us(program: &mut Command) {
    let parent = getpid();
    let ask = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // We may have gone before that was asked for.
        if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
    };
    // SAFETY: what runs between fork and exec makes two system calls and allocates nothing.
    unsafe { program.pre_exec(ask) };
}

fn not_started(path: &Path, error: &io::Error) -> Failure {
    let name = path.display();
    // Without a slash it is looked for on PATH, and a file here of that name is another.
    let is_there = path.components().count() > 1 && path.exists();
    match error.kind() {
        io::ErrorKind::NotFound if is_there => {
            Failure::Input(format!("{name}: its interpreter is missing; look at its first line"))
        }
        io::ErrorKind::NotFound => {
            Failure::Input(format!("{name}: no such program; check the name, or give its path"))
        }
        io::ErrorKind::PermissionDenied => {
            Failure::Input(format!("{name}: may not be executed; chmod +x it, or name its interpreter first"))
        }
        _ => Failure::Input(format!("{name}: cannot be started: {error}")),
    }
}

impl Running {
    /// Passes a signal on to the program, unless it has it already: what the terminal sends goes to the whole group.
    ///
    /// A TERM that somebody sends to the group of a job with a terminal reaches the program twice; who sent it to whom
    /// cannot be told.
    pub fn forward(&self, signal: Signal) {
        if let Some(terminal) = &self.terminal {
            let typed = [Signal::INT, Signal::QUIT, Signal::HUP].contains(&signal);
            if !(typed && tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())) {
                let _ = pidfd_send_signal(&self.pidfd, signal);
            }
        } else if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

/// Both ends of what the program prints to.
struct Stream {
    ours: OwnedFd,
    theirs: OwnedFd,
}

impl Stream {
    /// A pipe, or a pseudoterminal where `stream` is a terminal. Only output goes through it: the program reads our
    /// terminal itself, and that is the one that controls it. It has our terminal's size at the start; a later change
    /// does not reach it.
    fn like(stream: impl IsTerminal + AsFd, terminals: bool) -> io::Result<Self> {
        if terminals && stream.is_terminal() {
            Ok(Self::terminal(stream.as_fd())?)
        } else {
            let (ours, theirs) = io::pipe()?;
            Ok(Self { ours: ours.into(), theirs: theirs.into() })
        }
    }

    fn terminal(like: impl AsFd) -> rustix::io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        // Bytes pass unchanged; the real terminal does to them what it does.
        let mut raw = tcgetattr(&theirs)?;
        raw.make_raw();
        tcsetattr(&theirs, OptionalActions::Now, &raw)?;
        if let Ok(size) = tcgetwinsize(like) {
            tcsetwinsize(&ours, size)?;
        }
        Ok(Self { ours, theirs })
    }
}
