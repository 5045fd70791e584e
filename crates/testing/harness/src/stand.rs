//! The stand of the programs that load a Pagewell for a while and break what is around it (`cargo torture`,
//! `cargo soak`): Pagewell at addresses that stay, through all of its restarts, and the threads of the load.
//!
//! Which answers are right is decided by the programs.

use crate::clock::Deadline;
use crate::pagewell::Pagewell;
use crate::process::Wait;
use crate::{StartError, StartReason};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Deref, DerefMut};
use std::process::ExitCode;
use std::thread::{Scope, ScopedJoinHandle, sleep};
use std::time::Duration;

/// How long a start is tried again that finds its port taken.
const PORT_FREE_WITHIN: Duration = Duration::from_secs(60);
/// The counters of current work: all are 0 once there are no requests.
const CURRENT: [&str; 4] = ["followers", "leases", "origin_places_taken", "origin_queue"];
/// The pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The counters of verdicts of an audit that mean a wrong page. A page that was purged within a minute (`audit_late`) is
/// none: its change was published a moment after it was visible.
pub const AUDIT_FINDINGS: [&str; 5] = [
    "audit_broken_promises",
    "audit_leaks",
    "audit_leaks_or_aged",
    "audit_aged",
    "audit_by_the_clock",
];
/// The pause between two looks at the pages that an audit watches.
const WATCH_STEP: Duration = Duration::from_millis(600);
/// The time in which an audit sees that a page which it watches was purged, on any machine. A page that is wrong stays
/// watched for a minute.
const WATCHED_MAX: Duration = Duration::from_secs(20);

/// The counts of the audits of some processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Comparisons with a verdict.
    pub compared: u64,
    /// Verdicts that mean a wrong page, by the names of their counters.
    pub findings: BTreeMap<&'static str, u64>,
}

impl AuditCounts {
    /// Adds the counters of a process, as [`Pagewell::stats`] returns them.
    ///
    /// # Errors
    /// They have no such counter.
    pub fn add(&mut self, counters: &BTreeMap<String, u64>) -> Result<(), String> {
        let count = |name: &str| {
            let found = counters.get(name).copied();
            found.ok_or_else(|| format!("pagewell has no counter {name}"))
        };
        let mut added = AuditCounts { compared: count("audit_compared")?, ..Self::default() };
        for name in AUDIT_FINDINGS {
            let found = count(name)?;
            if found > 0 {
                added.findings.insert(name, found);
            }
        }
        self.join(&added);
        Ok(())
    }

    /// Adds those of other processes.
    pub fn join(&mut self, others: &AuditCounts) {
        self.compared += others.compared;
        for (name, found) in &others.findings {
            *self.findings.entry(name).or_default() += found;
        }
    }
}

/// Pagewell through restarts. `start` starts a process at the same addresses each time.
pub struct RestartedPagewell<'a> {
    pagewell: Pagewell,
    start: Box<dyn Fn() -> Result<Pagewell, StartError> + Send + Sync + 'a>,
    /// How often it was started again.
    pub restarts: u64,
    /// The counts of its audit in earlier lives, but for those that ended by themselves.
    audited: AuditCounts,
}

impl<'a> RestartedPagewell<'a> {
    /// Starts the first process.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(
        start: impl Fn() -> Result<Pagewell, StartError> + Send + Sync + 'a,
    ) -> Result<RestartedPagewell<'a>, String> {
        let pagewell = start_at_kept_port(&start)?;
        let audited = AuditCounts::default();
        Ok(RestartedPagewell { pagewell, start: Box::new(start), restarts: 0, audited })
    }

    /// Kills it as a crash would, and starts it again.
    ///
    /// # Errors
    /// Its audit's counters cannot be read, or it does not start again.
    pub fn kill_and_start(&mut self) -> Result<(), String> {
        self.audited = self.audited()?;
        self.pagewell.kill();
        self.start_again()
    }

    /// Stops it in good order, and starts it by `start` from now on.
    ///
    /// # Errors
    /// Its audit's counters cannot be read, or it does not start.
    pub fn stop_and_start(
        &mut self,
        start: impl Fn() -> Result<Pagewell, StartError> + Send + Sync + 'a,
    ) -> Result<(), String> {
        self.audited = self.audited()?;
        self.pagewell.stop();
        self.start = Box::new(start);
        self.start_again()
    }

    /// Starts it if it has ended, as a service manager would. Returns whether it had.
    ///
    /// # Errors
    /// It does not start again.
    pub fn start_if_ended(&mut self) -> Result<bool, String> {
        let has_ended = self.pagewell.wait(Duration::ZERO) != Wait::Running;
        if has_ended {
            self.start_again()?;
        }
        Ok(has_ended)
    }

    fn start_again(&mut self) -> Result<(), String> {
        self.pagewell = start_at_kept_port(&*self.start)?;
        self.restarts += 1;
        Ok(())
    }

    /// Checks that it has not ended by itself.
    ///
    /// # Errors
    /// It has: how, and its log.
    pub fn check_running(&mut self) -> Result<(), String> {
        match self.pagewell.wait(Duration::ZERO) {
            Wait::Running => Ok(()),
            Wait::Ended(status) => {
                Err(format!("pagewell has ended by itself, {status}\n{}", self.pagewell.log()))
            }
        }
    }

    /// Its counters by name.
    ///
    /// # Errors
    /// The control interface does not answer with counters.
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, String> {
        self.pagewell.stats().map_err(|error| error.to_string())
    }

    /// One of its counters.
    ///
    /// # Errors
    /// The control interface does not answer, or has no such counter.
    pub fn counter(&self, name: &str) -> Result<u64, String> {
        let found = self.counters()?.get(name).copied();
        found.ok_or_else(|| format!("pagewell has no counter {name}"))
    }

    /// The counts of its audit in all of its lives so far.
    ///
    /// # Errors
    /// The control interface does not answer, or has no such counters.
    pub fn audited(&self) -> Result<AuditCounts, String> {
        let mut all = self.audited.clone();
        all.add(&self.counters()?)?;
        Ok(all)
    }

    /// Checks that its audit has found no wrong page in any life, and watches none now that all changes were published.
    /// Returns the comparisons with a verdict.
    ///
    /// # Errors
    /// It has: the counters, and the log.
    pub fn check_audit(&self) -> Result<u64, String> {
        let (deadline, mut watched) = (Deadline::after(WATCHED_MAX), 1);
        while watched > 0 && !deadline.passed() {
            sleep(WATCH_STEP);
            watched = self.counter("audit_watched")?;
        }
        let AuditCounts { compared, findings } = self.audited()?;
        if watched == 0 && findings.is_empty() {
            return Ok(compared);
        }
        let log = self.pagewell.log();
        Err(format!("the audit found wrong pages, {watched} watched now: {findings:?}\n{log}"))
    }

    /// Waits until no render, no lease and no waiting request is left. There are no more requests.
    ///
    /// # Errors
    /// The work that is left after `within`, with its counters.
    pub fn wait_idle(&self, within: Duration) -> Result<(), String> {
        let deadline = Deadline::after(within);
        loop {
            let counters = self.counters()?;
            let mut left = Vec::new();
            for name in CURRENT {
                match counters.get(name) {
                    Some(0) => {}
                    Some(count) => left.push(format!("{count} {name}")),
                    None => return Err(format!("pagewell has no counter {name}")),
                }
            }
            if left.is_empty() {
                return Ok(());
            }
            if deadline.passed() {
                let left = left.join(", ");
                return Err(format!("{left} are left {within:?} after the last request"));
            }
            sleep(LOOK_EVERY);
        }
    }
}

impl Deref for RestartedPagewell<'_> {
    type Target = Pagewell;

    fn deref(&self) -> &Pagewell {
        &self.pagewell
    }
}

impl DerefMut for RestartedPagewell<'_> {
    fn deref_mut(&mut self) -> &mut Pagewell {
        &mut self.pagewell
    }
}

/// Starts a process at a port that a process had before: the system may not have freed it yet.
///
/// # Errors
/// The reason why it did not start.
pub fn start_at_kept_port(
    start: impl Fn() -> Result<Pagewell, StartError>,
) -> Result<Pagewell, String> {
    let deadline = Deadline::after(PORT_FREE_WITHIN);
    loop {
        match start() {
            Ok(pagewell) => return Ok(pagewell),
            Err(error) if error.reason == StartReason::PortTaken && !deadline.passed() => {
                sleep(LOOK_EVERY);
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

/// The threads of a load, each with its role.
pub struct Players<'scope, 'env, T> {
    scope: &'scope Scope<'scope, 'env>,
    threads: Vec<(&'static str, ScopedJoinHandle<'scope, T>)>,
}

impl<'scope, 'env, T: Send + 'scope> Players<'scope, 'env, T> {
    /// A load without threads yet.
    #[must_use]
    pub fn new(scope: &'scope Scope<'scope, 'env>) -> Players<'scope, 'env, T> {
        Players { scope, threads: Vec::new() }
    }

    /// Starts a thread in this role.
    pub fn add(&mut self, role: &'static str, play: impl FnOnce() -> T + Send + 'scope) {
        self.threads.push((role, self.scope.spawn(play)));
    }

    /// Starts `count` threads in this role; each gets its number.
    pub fn add_all(
        &mut self,
        role: &'static str,
        count: usize,
        play: impl Fn(usize) -> T + Send + Clone + 'scope,
    ) {
        for number in 0..count {
            let play = play.clone();
            self.add(role, move || play(number));
        }
    }

    /// Waits for the end of all of them. Returns their results in the order of their starts.
    ///
    /// # Errors
    /// One panicked.
    pub fn join(self) -> Result<Vec<T>, String> {
        let ended = self
            .threads
            .into_iter()
            .map(|(role, thread)| thread.join().map_err(|_| format!("a thread panicked: {role}")));
        ended.collect()
    }
}

/// The exit code of a program; its error is printed.
pub fn exit_code(outcome: Result<(), impl Display>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// A part of a whole, from 0 to 1.
#[must_use]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// Converts microseconds to seconds.
#[must_use]
pub fn seconds(micros: u64) -> f64 {
    float(micros) / 1e6
}

/// A count as a number to compute with.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "counts of a run stay below 2^52")]
pub fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_end_in_the_order_of_their_starts_and_a_panic_has_a_role() {
        let all = std::thread::scope(|scope| {
            let mut players = Players::new(scope);
            players.add_all("a reader", 3, |number| number);
            players.add("a writer", || 7);
            players.join()
        });
        assert_eq!(all, Ok(vec![0, 1, 2, 7]));
        let failed = std::thread::scope(|scope| {
            let mut players = Players::new(scope);
            players.add("a writer", || panic!("as the test wants"));
            players.join()
        });
        assert_eq!(failed, Err::<Vec<()>, _>("a thread panicked: a writer".to_owned()));
    }

    #[test]
    fn audits_are_added_up_and_a_counter_that_is_missing_is_an_error() {
        let mut counters: BTreeMap<String, u64> =
            AUDIT_FINDINGS.iter().map(|name| ((*name).to_owned(), 0)).collect();
        counters.insert("audit_compared".to_owned(), 4);
        let mut all = AuditCounts::default();
        assert_eq!(all.add(&counters), Ok(()));
        assert!(all.findings.is_empty());
        counters.insert("audit_leaks".to_owned(), 2);
        assert_eq!((all.add(&counters), all.add(&counters)), (Ok(()), Ok(())));
        assert_eq!((all.compared, all.findings.get("audit_leaks")), (12, Some(&4)));
        counters.remove("audit_aged");
        assert!(all.add(&counters).is_err());
    }
}
