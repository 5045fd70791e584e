//! A machine through all of its lives: a Pagewell at addresses of its own, with memory of its own, some with
//! snapshots of their own. All its processes log to one file.
//!
//! Locks: `process` is held by the thread that starts, ends or stops it, and by a thread that asks how far it
//! is, which does not wait for the lock; `late` and `audited` are held for a moment.

use super::late::Late;
use super::locked;
use harness::stand::{AuditCounts, start_at_kept_port};
use harness::{Pagewell, Port, PrivateDir, Signal, StopResult, Wait};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// How long a machine answers from memory although it hears nothing.
pub const LAG_MAX: Duration = Duration::from_secs(3);
/// How long others wait for a machine that is silent: the time in which it notices that by its own account.
pub const WAITED_FOR: Duration = Duration::from_secs(13);
/// How long a process may take to end, at least: requests in flight, pending changes, the last snapshot.
const END_WITHIN: Duration = Duration::from_secs(60);

/// The settings that all machines have in common.
pub struct Common<'a> {
    /// The path of the program `pagewell`.
    pub binary: &'a Path,
    /// The directory of the site's scripts.
    pub root: &'a Path,
    /// The responder that runs them.
    pub php: &'a Path,
    /// The Unix socket of the stream's server.
    pub stream: &'a Path,
    /// Whether a write is answered only when all have applied it.
    pub waits: bool,
}

/// A machine, through all of its lives.
pub struct Machine {
    /// Which, from 0 on.
    pub number: usize,
    /// Whether it finds its pages again.
    pub has_snapshots: bool,
    /// Where visitors are served, and its control interface.
    pub ports: (Port, Port),
    /// Writes through this machine that were late.
    pub late: Mutex<Late>,
    /// The counts of its audit in earlier lives, but for those that did not answer any more.
    audited: Mutex<AuditCounts>,
    binary: PathBuf,
    directory: PathBuf,
    process: Mutex<Option<Pagewell>>,
}

/// The process of a machine, kept from everybody else.
pub type ProcessGuard<'a> = MutexGuard<'a, Option<Pagewell>>;

impl Machine {
    /// Starts one, with its files in a new directory.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(number: usize, common: &Common<'_>, directory: &Path) -> Result<Machine, String> {
        let take = || Port::take().map_err(|error| error.to_string());
        let machine = Machine {
            number,
            has_snapshots: number.is_multiple_of(2),
            ports: (take()?, take()?),
            late: Mutex::default(),
            audited: Mutex::default(),
            binary: common.binary.to_owned(),
            directory: directory.to_owned(),
            process: Mutex::new(None),
        };
        fs::create_dir(directory).map_err(|error| error.to_string())?;
        fs::write(machine.config(), machine.text(common)).map_err(|error| error.to_string())?;
        *locked(&machine.process) = Some(machine.run(&[])?);
        Ok(machine)
    }

    fn config(&self) -> PathBuf {
        self.directory.join("pagewell.toml")
    }

    /// The log of all its lives.
    pub fn log(&self) -> PathBuf {
        self.directory.join("pagewell.log")
    }

    fn text(&self, common: &Common<'_>) -> String {
        let [listen, admin] = [&self.ports.0, &self.ports.1].map(|port| port.address().to_string());
        let (root, php, stream) =
            (common.root.display(), common.php.display(), common.stream.display());
        let barrier = if common.waits { "" } else { "barrier = \"0s\"\n" };
        let mut text = format!(
            "listen = {listen:?}\nadmin = {admin:?}\nmemory = \"64M\"\naudit = \"1 in 10\"\n\
             [site]\nroot = \"{root}\"\n\
             [php]\nat = \"unix:{php}\"\n\
             [cluster]\nurl = \"redis://localhost?socket={stream}\"\nlag_max = \"{}s\"\n{barrier}",
            LAG_MAX.as_secs(),
        );
        if self.has_snapshots {
            let directory = self.directory.join("snapshots");
            let _ = write!(
                text,
                "[snapshot]\ndirectory = {directory:?}\nevery = \"1s\"\nunwatched = \"serve\"\n"
            );
        }
        text
    }

    fn run(&self, more: &[&str]) -> Result<Pagewell, String> {
        start_at_kept_port(|| {
            let mut command = Command::new(&self.binary);
            command.arg("serve").arg("--config").arg(self.config()).args(more);
            Pagewell::start_command(PrivateDir::kept(&self.directory)?, &mut command)
        })
    }

    /// Its process, which nobody else touches as long as this is held.
    pub fn hold(&self) -> ProcessGuard<'_> {
        locked(&self.process)
    }

    /// The same, unless somebody holds it.
    pub fn hold_if_free(&self) -> Option<ProcessGuard<'_>> {
        match self.process.try_lock() {
            Ok(held) => Some(held),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The counts of its audit in all lives so far.
    ///
    /// # Errors
    /// It does not answer, or has no such counters.
    pub fn audited(&self) -> Result<AuditCounts, String> {
        let counters = stats(&self.hold()).ok_or("it does not answer")?;
        let mut all = locked(&self.audited).clone();
        all.add(&counters)?;
        Ok(all)
    }

    /// Adds the counts of the audit of a process that ends. It has none if it did not answer.
    fn note_audit(&self, counters: Option<BTreeMap<String, u64>>) {
        // That there are no such counters is seen at the end.
        let _ = counters.map(|counters| locked(&self.audited).add(&counters));
    }

    /// Kills it as a crash would.
    pub fn kill(&self, held: &mut ProcessGuard<'_>) {
        self.note_audit(stats(held));
        if let Some(mut pagewell) = held.take() {
            pagewell.kill();
        }
        let mut late = locked(&self.late);
        if self.has_snapshots {
            late.next_life();
            late.kept();
        } else {
            late.died();
        }
    }

    /// Tells it to stop, and waits for its end.
    ///
    /// # Errors
    /// It had to be killed.
    pub fn stop(&self, held: &mut ProcessGuard<'_>) -> Result<(), String> {
        self.note_audit(stats(held));
        let end = |pagewell: Pagewell| {
            pagewell.signal(Signal::TERM);
            ended(pagewell)
        };
        let outcome = held.take().map_or(Ok(()), end);
        let mut late = locked(&self.late);
        late.next_life();
        late.kept();
        outcome
    }

    /// Starts it after it was ended.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start_again(&self, held: &mut ProcessGuard<'_>) -> Result<(), String> {
        **held = Some(self.run(&[])?);
        Ok(())
    }

    /// A new process takes over from the one that runs, which then ends. Where it does not, the machine is
    /// stopped, and started again.
    ///
    /// # Errors
    /// It did not, or the old one did not end by itself.
    pub fn take_over(&self, held: &mut ProcessGuard<'_>) -> Result<(), String> {
        let counters = stats(held);
        let new = match self.run(&["--take-over"]) {
            Ok(new) => new,
            Err(error) => {
                let stopped = self.stop(held);
                self.start_again(held)?;
                return Err(stopped
                    .err()
                    .map_or(error.clone(), |other| format!("{error}; {other}")));
            }
        };
        self.note_audit(counters);
        let old = held.replace(new);
        locked(&self.late).next_life();
        let outcome = old.map_or(Ok(()), ended);
        locked(&self.late).kept();
        outcome
    }

    /// Whether it runs; if not, how it ended.
    ///
    /// # Errors
    /// It has ended.
    pub fn check(&self, held: &mut ProcessGuard<'_>) -> Result<(), String> {
        match held.as_mut().map(|pagewell| pagewell.wait(Duration::ZERO)) {
            Some(Wait::Running) => Ok(()),
            Some(Wait::Ended(status)) => Err(format!("it has ended by itself, {status}")),
            None => Err("it does not run".to_owned()),
        }
    }
}

/// The counters of a process that answers.
fn stats(held: &ProcessGuard<'_>) -> Option<BTreeMap<String, u64>> {
    held.as_ref().and_then(|pagewell| pagewell.stats().ok())
}

/// Waits for the end of a process.
fn ended(mut pagewell: Pagewell) -> Result<(), String> {
    match pagewell.wait(END_WITHIN) {
        Wait::Ended(status) if status.success() => Ok(()),
        Wait::Ended(status) => Err(format!("it has ended with {status}")),
        Wait::Running => match pagewell.stop() {
            StopResult::Ended(status) => Err(format!("it ended after {END_WITHIN:?}, {status}")),
            StopResult::Killed => Err(format!("it did not end within {END_WITHIN:?}")),
        },
    }
}
