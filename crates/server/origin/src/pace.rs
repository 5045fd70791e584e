//! Measures how fast a client sends or receives, counting only the time in which it is waited for. A
//! client that moves one byte just before each timeout never exceeds the timeout, but is too slow by
//! this measure. Time in which nothing waits for the client (PHP works, other clients are served) does
//! not count.
//!
//! The measurement restarts after each check, so a client that was fast at first may not be slow for
//! ever.

use std::time::Duration;
use tokio::time::Instant;

/// The bytes moved, and the time waited, since the last check.
#[derive(Debug, Default)]
pub struct Pace {
    since: Option<Instant>,
    waited: Duration,
    moved: u64,
}

/// The result of a check of the client's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The client may continue.
    FastEnough,
    /// The client was waited for longer than allowed, and moved too few bytes in that time.
    TooSlow,
}

impl Pace {
    /// Starts the measurement of a wait for the client.
    pub fn waits(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Whether the client is being waited for.
    pub fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// Records that `bytes` bytes were moved, and stops waiting. The rate is checked whenever the total
    /// waiting time exceeds `leave`; it must be at least `rate` bytes per second.
    pub fn moved(&mut self, bytes: u64, leave: Duration, rate: u64) -> Verdict {
        let waited = self.since.take().map(|since| since.elapsed()).unwrap_or_default();
        self.judge(bytes, waited, leave, rate)
    }

    fn judge(&mut self, bytes: u64, waited: Duration, leave: Duration, rate: u64) -> Verdict {
        self.moved = self.moved.saturating_add(bytes);
        self.waited += waited;
        if self.waited <= leave {
            return Verdict::FastEnough;
        }
        let due = (rate as f64) * self.waited.as_secs_f64();
        let moved = std::mem::take(&mut self.moved);
        self.waited = Duration::ZERO;
        if (moved as f64) < due { Verdict::TooSlow } else { Verdict::FastEnough }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waiting_counts_and_only_beyond_its_leave() {
        let (mut pace, leave) = (Pace::default(), Duration::from_secs(10));
        let mut step = |wait, bytes| pace.judge(bytes, Duration::from_secs(wait), leave, 100);
        assert_eq!(step(9, 1), Verdict::FastEnough, "within its leave");
        assert_eq!(step(0, 1), Verdict::FastEnough);
        assert_eq!(step(2, 2_000), Verdict::FastEnough, "fast enough in all");
        assert_eq!(step(0, 1), Verdict::FastEnough, "nobody waited for it");
        assert_eq!(step(10, 1), Verdict::FastEnough, "within its leave again");
        assert_eq!(step(1, 1), Verdict::TooSlow);
    }

    #[test]
    fn a_fast_start_does_not_excuse_a_slow_rest() {
        let (mut pace, leave) = (Pace::default(), Duration::from_secs(10));
        let mut step = |wait, bytes| pace.judge(bytes, Duration::from_secs(wait), leave, 100);
        assert_eq!(step(0, 1 << 30), Verdict::FastEnough);
        assert_eq!(step(11, 1), Verdict::FastEnough, "that was within this time");
        assert_eq!(step(11, 1), Verdict::TooSlow);
    }

    #[test]
    fn waiting_begins_once_and_ends_with_progress() {
        let mut pace = Pace::default();
        assert!(!pace.is_waiting());
        pace.waits();
        pace.waits();
        assert!(pace.is_waiting());
        assert_eq!(pace.moved(1, Duration::ZERO, u64::MAX), Verdict::TooSlow);
        assert!(!pace.is_waiting());
    }
}
