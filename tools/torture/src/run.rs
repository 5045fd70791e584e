//! The state that the threads of a run share: the site, the time, whether Pagewell is up, the faults.
//!
//! All wrong responses are counted, and the first of each kind is stored with every detail. So a
//! run that fails from its first second needs bounded memory. Responses are not checked here.

use super::judge::Fault;
use super::script::Faults;
use super::site::Site;
use harness::stand::seconds;
use harness::{Deadline, Stopwatch};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// The name that pages are asked for under.
pub const HOST: &str = "torture.test";
/// How many wrong answers of a name are kept with every detail.
const KEPT: usize = 5;
/// Of how many it is kept when they came.
const MOMENTS: usize = 10_000;
/// How often somebody who waits looks again.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A run that is under way.
pub struct Run {
    /// The site, and the truth about it.
    pub site: Arc<Site>,
    /// Whether things go wrong by intent.
    pub faults: Faults,
    /// Where the draws come from.
    pub seed: u64,
    /// The address at which Pagewell serves pages.
    pub pagewell: SocketAddr,
    /// Where its control interface is.
    pub control: SocketAddr,
    /// The pause of a reader between two requests.
    pub pause: Duration,
    clock: Stopwatch,
    until: Deadline,
    stop_after: Option<u64>,
    is_down: AtomicBool,
    has_shown: AtomicBool,
    /// Of all runs that go on together.
    wrong: Arc<AtomicU64>,
    silent: AtomicU64,
    first_wrong_micros: AtomicU64,
    kept: Mutex<Vec<WrongAnswer>>,
    outdated_at: Mutex<Vec<u64>>,
}

/// A wrong answer, or none, with all that is known of it.
#[derive(Debug, Clone)]
pub struct WrongAnswer {
    /// The name of the fault.
    pub name: &'static str,
    /// When it came, in microseconds since the start of the run.
    pub at_micros: u64,
    /// Everything else, in words.
    pub detail: String,
}

impl Run {
    /// A run of so long, or until so many wrong answers have come.
    pub fn new(
        site: Arc<Site>,
        faults: Faults,
        seed: u64,
        servers: (SocketAddr, SocketAddr),
        time: Duration,
        stop_after: Option<u64>,
    ) -> Run {
        Run {
            site,
            faults,
            seed,
            pagewell: servers.0,
            control: servers.1,
            pause: Duration::ZERO,
            clock: Stopwatch::start(),
            until: Deadline::after(time),
            stop_after,
            is_down: AtomicBool::new(false),
            has_shown: AtomicBool::new(false),
            wrong: Arc::default(),
            silent: AtomicU64::new(0),
            first_wrong_micros: AtomicU64::new(u64::MAX),
            kept: Mutex::new(Vec::new()),
            outdated_at: Mutex::new(Vec::new()),
        }
    }

    /// Another run of the same site at the same time, with other servers; both are over at once.
    pub fn beside(&self, servers: (SocketAddr, SocketAddr)) -> Run {
        let site = self.site.clone();
        let run = Run::new(site, self.faults, self.seed, servers, Duration::ZERO, self.stop_after);
        let (clock, until, pause, wrong) = (self.clock, self.until, self.pause, self.wrong.clone());
        Run { clock, until, pause, wrong, ..run }
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        let enough = self.stop_after.is_some_and(|enough| self.wrong.load(SeqCst) >= enough);
        enough || self.has_shown.load(SeqCst) || self.until.passed()
    }

    /// Ends it before its time: it has shown what it is to show.
    pub fn end(&self) {
        self.has_shown.store(true, SeqCst);
    }

    /// Time since its start, in microseconds.
    pub fn micros(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Pagewell is gone, or is there again.
    pub fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, SeqCst);
    }

    /// Whether Pagewell is gone.
    pub fn is_down(&self) -> bool {
        self.is_down.load(SeqCst)
    }

    /// Waits as long as Pagewell is gone.
    pub fn wait_up(&self) {
        while self.is_down() && !self.is_over() {
            sleep(LOOK_EVERY);
        }
    }

    /// Waits until so long after the start, or until the end.
    pub fn wait_until(&self, micros: u64) {
        while !self.is_over() {
            let Some(left @ 1..) = micros.checked_sub(self.micros()) else { return };
            sleep(Duration::from_micros(left.min(20_000)));
        }
    }

    /// Counts a wrong answer, and keeps it.
    pub fn report(&self, fault: Fault, detail: impl FnOnce() -> String) {
        let at_micros = self.micros();
        self.first_wrong_micros.fetch_min(at_micros, SeqCst);
        self.wrong.fetch_add(1, SeqCst);
        let mut outdated_at = self.outdated_at.lock().unwrap_or_else(PoisonError::into_inner);
        if fault == Fault::Outdated && outdated_at.len() < MOMENTS {
            outdated_at.push(at_micros);
        }
        drop(outdated_at);
        self.keep(fault.as_str(), detail);
    }

    /// Counts a request that got neither an answer nor the end of its connection, and keeps it: the
    /// origin never goes silent, so somebody was forgotten.
    pub fn report_silence(&self, detail: impl FnOnce() -> String) {
        self.silent.fetch_add(1, SeqCst);
        self.keep("no answer", detail);
    }

    /// How many requests were forgotten.
    pub fn silent(&self) -> u64 {
        self.silent.load(SeqCst)
    }

    /// Keeps what is known, if it is among the first of its name.
    pub fn keep(&self, name: &'static str, detail: impl FnOnce() -> String) {
        let at_micros = self.micros();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().filter(|other| other.name == name).count() < KEPT {
            kept.push(WrongAnswer { name, at_micros, detail: detail() });
        }
    }

    /// The first wrong answers.
    pub fn first_wrong(&self) -> Vec<WrongAnswer> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the first outdated ones came, in microseconds since the start.
    pub fn outdated_at(&self) -> Vec<u64> {
        self.outdated_at.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the first came, in seconds since the start.
    pub fn first_wrong_seconds(&self) -> Option<f64> {
        let micros = self.first_wrong_micros.load(SeqCst);
        (micros < u64::MAX).then(|| seconds(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn ends_after_enough_wrong_answers_and_keeps_the_first() {
        let site = Arc::new(Site::new(1, 60, 10));
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let hour = Duration::from_secs(3600);
        let run = Run::new(site, Faults::Off, 1, (nowhere, nowhere), hour, Some(12));
        for number in 0..12 {
            assert!(!run.is_over());
            run.report(Fault::Outdated, || number.to_string());
        }
        assert!(run.is_over());
        assert_eq!(run.first_wrong().len(), KEPT);
        assert_eq!(run.outdated_at().len(), 12);
        let other = run.beside((nowhere, nowhere));
        assert!(other.is_over() && other.first_wrong().is_empty());
        assert_eq!(run.first_wrong()[0].detail, "0");
        assert!(run.first_wrong_seconds().is_some());
    }
}
