//! A child process that is waited for with timeouts, and stopped by its process id.
//!
//! States: running → ended (seen by [`Process::wait`], [`Process::stop`] or [`Process::kill`]). An ended
//! process is never signalled again, so that no signal reaches another process with a reused id. Every process
//! leads its own process group: the terminal's Ctrl-C does not reach it, and its descendants are ended with it.
//! Its output goes to a file, whose end is shown if the process fails.

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

/// The time that a server has until it accepts connections, on a machine with other work, too.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(60);
/// The time that a server has for a graceful stop before it is killed.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// The number of bytes from the end of a log that an error shows.
const LOG_SHOWN_BYTES: u64 = 8 * 1024;
/// The interval of readiness checks.
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

/// The result of a wait with a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The process has ended with this status.
    Ended(ExitStatus),
    /// The process is still running.
    Running,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopResult {
    /// The process ended by itself, or after it was requested to.
    Ended(ExitStatus),
    /// The process was killed, because it did not end within its timeout.
    Killed,
}

/// The destination of a child's standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// The log, which also receives standard error.
    Log,
    /// A pipe to this process.
    Piped,
}

impl Process {
    /// Starts `command`; its output is appended to the file `log`.
    ///
    /// # Errors
    /// `CannotPrepare` if the log cannot be opened, `CannotSpawn` if the command cannot be run.
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

    /// The id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The standard output, if it is a pipe. Returned only once.
    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Waits until the process ends, at most `within`.
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
            // A signal to this process may interrupt the wait; the loop checks again.
            let _ = poll(&mut watched, Timespec::try_from(deadline.remaining()).ok().as_ref());
        }
        Wait::Ended(self.bury())
    }

    /// Repeats `probe` until it returns true, at most `within`.
    ///
    /// # Errors
    /// `Ended` if the process ends first, `NotReady` after the timeout; both with the end of its log.
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

    /// Sends a signal, unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Requests a graceful stop (SIGTERM), and kills the process after a timeout.
    pub fn stop(&mut self) -> StopResult {
        if let Some(status) = self.ended {
            return StopResult::Ended(status);
        }
        self.signal(Signal::TERM);
        // A process that a test has frozen gets it when it runs again.
        self.signal(Signal::CONT);
        match self.wait(STOP_WITHIN) {
            Wait::Ended(status) => StopResult::Ended(status),
            Wait::Running => {
                self.kill();
                StopResult::Killed
            }
        }
    }

    /// Kills the process and its process group at once (SIGKILL), to simulate a fault.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            self.wait(STOP_WITHIN);
        }
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        end_of(&self.log)
    }

    /// How often its whole log contains a text.
    #[must_use]
    pub fn times_logged(&self, text: &str) -> usize {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log).matches(text).count()
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
        // An error means that the child does not exist any more.
        waitid(WaitId::Pid(self.pid), look).map_or(true, |found| found.is_some())
    }

    /// Ends the rest of the process group and collects the status. Until then the zombie leader keeps the group
    /// id from being reused.
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
