//! A child process that is waited for within bounds and stopped by its process id.
//!
//! States: running → ended (seen by [`Process::wait`], [`Process::stop`] or [`Process::kill`]); an
//! ended one is never signalled again, so a process id is never used after the system may have
//! given it to somebody else. Every process leads a group of its own: the terminal's Ctrl-C does
//! not reach it, and what it leaves behind is ended with it. What it writes goes to a file, whose
//! end is shown when it fails.

use crate::clock::Deadline;
use crate::{StartError, StartReason, keeper};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, pidfd_open,
    waitid,
};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a server may take to end by itself before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(15);
/// How much of the end of a server's log an error shows.
const LOG_SHOWN_BYTES: u64 = 8 * 1024;
/// How often readiness is tried.
const PROBE_EVERY: Duration = Duration::from_millis(10);

/// A child process with its log.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    pid: Pid,
    pidfd: OwnedFd,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

/// What a bounded wait found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It has ended, with this status.
    Ended(ExitStatus),
    /// It runs on.
    Running,
}

/// How a process came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// By itself, after it was asked to or before.
    Ended(ExitStatus),
    /// Killed, because it did not end within its bound.
    Killed,
}

/// Where a child's standard output goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// To the log, with its standard error.
    Log,
    /// To this process, through a pipe.
    Piped,
}

impl Process {
    /// Starts `command`; what it writes is appended to the file `log`.
    ///
    /// # Errors
    /// `CannotPrepare` when the log cannot be opened, `CannotSpawn` when it cannot be run.
    pub fn spawn(name: &str, command: &mut Command, log: &Path) -> Result<Process, StartError> {
        Self::spawn_with(name, command, log, Output::Log)
    }

    pub(crate) fn spawn_with(
        name: &str,
        command: &mut Command,
        log: &Path,
        output: Output,
    ) -> Result<Process, StartError> {
        let fault = |reason| move |error: io::Error| StartError::new(name, reason, error);
        let file = File::options().create(true).append(true).open(log);
        let file = file.map_err(fault(StartReason::CannotPrepare))?;
        let copy = file.try_clone().map_err(fault(StartReason::CannotPrepare))?;
        command.stdin(Stdio::null()).stderr(file).process_group(0);
        command.stdout(if output == Output::Log { copy.into() } else { Stdio::piped() });
        let mut child = command.spawn().map_err(fault(StartReason::CannotSpawn))?;
        let pid = Pid::from_child(&child);
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(StartError::new(name, StartReason::CannotSpawn, error));
            }
        };
        keeper::watch(child.id());
        let log = log.to_owned();
        Ok(Process { name: name.to_owned(), child, pid, pidfd, log, ended: None })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, if that was piped; once.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits for its end, at most `within`.
    pub fn wait(&mut self, within: Duration) -> Wait {
        if let Some(status) = self.ended {
            return Wait::Ended(status);
        }
        let deadline = Deadline::after(within);
        while !self.has_ended() {
            if deadline.passed() {
                return Wait::Running;
            }
            let mut watched = [PollFd::new(&self.pidfd, PollFlags::IN)];
            // A signal of ours may cut the wait short: the loop looks again.
            let _ = poll(&mut watched, Timespec::try_from(deadline.remaining()).ok().as_ref());
        }
        Wait::Ended(self.bury())
    }

    /// Tries `probe` until it holds, at most `within`.
    ///
    /// # Errors
    /// `Ended` when the process ends before, `NotReady` when the time is up; both with the end of
    /// its log.
    pub fn wait_ready(
        &mut self,
        within: Duration,
        mut probe: impl FnMut() -> bool,
    ) -> Result<(), StartError> {
        let deadline = Deadline::after(within);
        while !probe() {
            if let Wait::Ended(status) = self.wait(PROBE_EVERY) {
                return Err(self.fault(StartReason::Ended, &format!("{status}")));
            }
            if deadline.passed() {
                let tried = format!("not ready within {} s", within.as_secs_f32());
                return Err(self.fault(StartReason::NotReady, &tried));
            }
        }
        Ok(())
    }

    /// Sends it a signal; nothing happens if it has ended.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Asks it to end (SIGTERM), and kills it if it has not after a bound.
    pub fn stop(&mut self) -> Stopped {
        if let Some(status) = self.ended {
            return Stopped::Ended(status);
        }
        self.signal(Signal::TERM);
        match self.wait(STOP_WITHIN) {
            Wait::Ended(status) => Stopped::Ended(status),
            Wait::Running => {
                self.kill();
                Stopped::Killed
            }
        }
    }

    /// Ends it at once (SIGKILL), with whatever it has started: the fault, not the stop.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            self.wait(STOP_WITHIN);
        }
    }

    /// The end of what it has written.
    #[must_use]
    pub fn log(&self) -> String {
        end_of(&self.log)
    }

    /// An error of this process, with the end of its log.
    pub(crate) fn fault(&self, reason: StartReason, what: &str) -> StartError {
        let log = self.log();
        let detail = match log.trim_end() {
            "" => format!("{what}; it wrote nothing"),
            log => format!("{what}\n--- the end of {} ---\n{log}\n---", self.log.display()),
        };
        StartError::new(&self.name, reason, detail)
    }

    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child any more.
        waitid(WaitId::Pid(self.pid), look).map_or(true, |found| found.is_some())
    }

    /// Ends what is left of its group and takes its status. Until then the dead leader holds the
    /// group's number, so that it cannot have become somebody else's.
    fn bury(&mut self) -> ExitStatus {
        let _ = kill_process_group(self.pid, Signal::KILL);
        let status = self.child.wait().unwrap_or_default();
        keeper::forget(self.child.id());
        self.ended = Some(status);
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn end_of(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_SHOWN_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(LOG_SHOWN_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}
