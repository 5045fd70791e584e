//! The outcomes of writes, counted by the fault before their answer; and when which fault began.
//!
//! Where a machine was killed, those who write through the others, or through one that was started since, wait
//! in vain for as long as it might have answered from memory: such writes are counted by themselves.

use super::fault::{Fault, PlannedFault};
use super::locked;
use harness::Stopwatch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Before the first fault; the faults; after a kill.
const CAUSES: usize = Fault::ALL.len() + 2;
const CALM: usize = Fault::ALL.len();
const KILLED: usize = Fault::ALL.len() + 1;
/// Of how many faults it is known when they began.
const BEGUN: usize = 100_000;

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered, and every machine shows it from then on.
    InTime,
    /// It was answered, and the answer says that it is late.
    Late,
    /// It was published by hand, so no answer says when it is applied.
    ByHand,
    /// There was no answer.
    Unanswered,
}

/// The outcomes of writes by their cause, in the order of [`Outcome`].
pub type Counts = [u64; 4];

/// A time in which every write through a machine was late, in microseconds since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stretch {
    /// From the answer to the first of them.
    pub from: u64,
    /// To the answer to the last.
    pub to: u64,
}

impl Stretch {
    fn micros(self) -> u64 {
        self.to - self.from
    }
}

/// The stretch that goes on through a machine, and the longest there was.
#[derive(Debug, Default)]
struct Stretches {
    now: Option<Stretch>,
    longest: Stretch,
}

impl Stretches {
    /// A write was answered, or not; it may be late because of a kill.
    fn answered(&mut self, outcome: Outcome, is_shadowed: bool, at: u64) {
        match outcome {
            Outcome::Late if !is_shadowed => {
                let now = Stretch { from: self.now.map_or(at, |now| now.from), to: at };
                self.now = Some(now);
                if now.micros() > self.longest.micros() {
                    self.longest = now;
                }
            }
            Outcome::Late | Outcome::InTime => self.now = None,
            Outcome::ByHand | Outcome::Unanswered => {}
        }
    }
}

/// The counts of a run.
pub struct Tally {
    clock: Stopwatch,
    now: AtomicUsize,
    writes: [[AtomicU64; 4]; CAUSES],
    begun: Mutex<Vec<(u64, PlannedFault)>>,
    /// Until when writes through each machine are late because of a kill, in microseconds.
    shadows: Vec<AtomicU64>,
    stretches: Vec<Mutex<Stretches>>,
    killed: AtomicU64,
    shadow_micros: u64,
}

impl Tally {
    /// An empty tally of so many machines; the others wait so long for each after its end.
    pub fn new(machines: usize, shadow_micros: u64) -> Tally {
        Tally {
            clock: Stopwatch::start(),
            now: AtomicUsize::new(CALM),
            writes: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            begun: Mutex::default(),
            shadows: (0..machines).map(|_| AtomicU64::new(0)).collect(),
            stretches: (0..machines).map(|_| Mutex::default()).collect(),
            killed: AtomicU64::new(0),
            shadow_micros,
        }
    }

    /// Time since the start, in microseconds.
    pub fn micros(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Notes that a fault begins.
    pub fn begin(&self, planned: PlannedFault) {
        self.now.store(planned.fault as usize, SeqCst);
        let mut begun = locked(&self.begun);
        if begun.len() < BEGUN {
            begun.push((self.micros(), planned));
        }
    }

    /// Which fault was the last to begin.
    pub fn now(&self) -> Option<Fault> {
        Fault::ALL.get(self.now.load(SeqCst)).copied()
    }

    /// A machine was killed.
    pub fn killed(&self) {
        self.killed.fetch_add(1, SeqCst);
        let until = self.micros() + self.shadow_micros;
        self.shadows.iter().for_each(|shadow| shadow.store(until, SeqCst));
    }

    /// A process of a machine was started, which knows no better than the ones before it what was killed.
    pub fn started(&self, machine: usize) {
        if self.killed.load(SeqCst) > 0 {
            self.shadows[machine].store(self.micros() + self.shadow_micros, SeqCst);
        }
    }

    /// A write through a machine.
    pub fn wrote(&self, machine: usize, outcome: Outcome) {
        let is_shadowed = self.micros() < self.shadows[machine].load(SeqCst);
        let cause = if is_shadowed { KILLED } else { self.now.load(SeqCst) };
        self.writes[cause][outcome as usize].fetch_add(1, SeqCst);
        locked(&self.stretches[machine]).answered(outcome, is_shadowed, self.micros());
    }

    /// The longest time in which every write through a machine was late, but for what a kill explains; and
    /// which machine.
    pub fn longest_late(&self) -> Option<(usize, Stretch)> {
        let longest = self.stretches.iter().map(|one| locked(one).longest).enumerate();
        longest.max_by_key(|(_, one)| one.micros()).filter(|(_, one)| one.micros() > 0)
    }

    /// The outcomes by their cause, where there was any: its name, how often it was, what became of writes.
    pub fn by_cause(&self) -> Vec<(&'static str, u64, Counts)> {
        let begun = locked(&self.begun);
        let row = |cause: usize| {
            let counts = std::array::from_fn(|at| self.writes[cause][at].load(SeqCst));
            let (name, times) = match Fault::ALL.get(cause) {
                Some(fault) => {
                    let times = begun.iter().filter(|(_, planned)| planned.fault == *fault).count();
                    (fault.as_str(), times as u64)
                }
                None if cause == CALM => ("none yet", 0),
                None => ("soon after a kill", self.killed.load(SeqCst)),
            };
            (name, times, counts)
        };
        let met =
            |(_, times, counts): &(_, u64, Counts)| *times > 0 || counts.iter().any(|n| *n > 0);
        [CALM].into_iter().chain(0..CALM).chain([KILLED]).map(row).filter(met).collect()
    }

    /// The outcomes of all writes.
    pub fn all(&self) -> Counts {
        std::array::from_fn(|at| self.writes.iter().map(|counts| counts[at].load(SeqCst)).sum())
    }

    /// Which fault was the last before this moment.
    pub fn fault_at(&self, micros: u64) -> Option<Fault> {
        let begun = locked(&self.begun);
        begun.iter().rev().find(|(at, _)| *at <= micros).map(|(_, planned)| planned.fault)
    }

    /// In words, the last two faults that had begun by this moment, and how long before.
    pub fn before(&self, micros: u64) -> String {
        let begun = locked(&self.begun);
        let past = begun.iter().rev().filter(|(at, _)| *at <= micros).take(2);
        let words =
            past.map(|(at, planned)| format!("{planned}, {} ms before", (micros - at) / 1000));
        let words: Vec<String> = words.collect();
        if words.is_empty() { "no fault before".to_owned() } else { words.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::Plan;
    use super::*;

    #[test]
    fn writes_are_counted_by_the_fault_before_them() {
        let tally = Tally::new(2, 3_600_000_000);
        let planned = |fault| Plan::new(1, 2, &[fault]).next().faults[0];
        tally.wrote(0, Outcome::InTime);
        tally.begin(planned(Fault::Cut));
        tally.wrote(0, Outcome::Late);
        tally.begin(planned(Fault::Kill));
        tally.killed();
        tally.wrote(1, Outcome::Late);
        let rows = [
            ("none yet", 0, [1, 0, 0, 0]),
            ("kill", 1, [0; 4]),
            ("cut", 1, [0, 1, 0, 0]),
            ("soon after a kill", 1, [0, 1, 0, 0]),
        ];
        assert_eq!(tally.by_cause(), rows);
        assert_eq!(tally.all(), [1, 2, 0, 0]);
        let now = tally.micros();
        assert_eq!((tally.now(), tally.fault_at(now)), (Some(Fault::Kill), Some(Fault::Kill)));
        let words = tally.before(now);
        assert!(words.starts_with("kill of machine") && words.contains("; cut"), "{words}");
        let other = Tally::new(1, 0);
        assert_eq!((other.fault_at(now), other.before(now)), (None, "no fault before".to_owned()));
    }

    #[test]
    fn the_longest_time_without_a_write_in_time() {
        let mut stretches = Stretches::default();
        for (at, outcome, is_shadowed) in [
            (10, Outcome::Late, false),
            (20, Outcome::ByHand, false),
            (30, Outcome::Late, false),
            (40, Outcome::InTime, false),
            (50, Outcome::Late, false),
            (60, Outcome::Late, false),
            (90, Outcome::Late, true),
            (95, Outcome::Late, false),
        ] {
            stretches.answered(outcome, is_shadowed, at);
        }
        assert_eq!(stretches.longest, Stretch { from: 10, to: 30 });
        let tally = Tally::new(2, 0);
        assert_eq!(tally.longest_late(), None);
        *locked(&tally.stretches[1]) = stretches;
        assert_eq!(tally.longest_late(), Some((1, Stretch { from: 10, to: 30 })));
    }

    #[test]
    fn a_process_that_was_started_after_a_kill_waits_as_long() {
        let tally = Tally::new(2, 3_600_000_000);
        tally.started(1);
        tally.wrote(1, Outcome::InTime);
        assert_eq!(tally.by_cause(), [("none yet", 0, [1, 0, 0, 0])]);
    }
}
