//! The clock. All code that needs the time gets it from here, so that scenario tests can set it.
//!
//! The time is the wall clock at the start plus the elapsed time of the monotonic clock. So it
//! continues steadily when the machine's clock is set. `clock_skew` corrects the difference in a way
//! that makes no page younger. Scenario tests advance it together with the machine's clock
//! (`Clock::advance`).
//!
//! Only this file may call `Instant::now` or `SystemTime::now` (see clippy.toml).

use http_cache::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock; clones share its state.
#[derive(Clone, Debug)]
pub struct Clock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    started: Instant,
    runs: bool,
    started_ms: u64,
    /// The correction, added to the elapsed time; negative values are represented modulo 2^64.
    offset_ms: AtomicU64,
    /// How far scenario tests have advanced this clock together with the machine's clock.
    advanced_ms: AtomicU64,
    /// How far scenario tests have set the machine's clock alone.
    set_ms: AtomicI64,
}

impl Clock {
    /// A clock that shows the machine's time.
    pub fn start() -> Clock {
        Clock::new(true, machine_ms())
    }

    /// A clock that stands still until it is advanced, for scenario tests.
    pub fn still() -> Clock {
        Clock::new(false, machine_ms())
    }

    /// A clock that stands still at this time, in milliseconds since the Unix epoch.
    #[cfg(feature = "settable-clock")]
    pub fn still_at(now_ms: u64) -> Clock {
        Clock::new(false, now_ms)
    }

    #[allow(clippy::disallowed_methods)]
    fn new(runs: bool, started_ms: u64) -> Clock {
        Clock {
            inner: Arc::new(Inner {
                started: Instant::now(),
                runs,
                started_ms,
                offset_ms: AtomicU64::new(0),
                advanced_ms: AtomicU64::new(0),
                set_ms: AtomicI64::new(0),
            }),
        }
    }

    /// The time, in milliseconds since the Unix epoch.
    pub fn now(&self) -> Timestamp {
        self.at(self.instant())
    }

    /// The time of the monotonic clock, for time limits.
    #[allow(clippy::disallowed_methods)]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// The time at a moment that [`instant`](Self::instant) has returned, so that one reading of the
    /// machine's clock serves both.
    #[inline]
    pub fn at(&self, instant: Instant) -> Timestamp {
        let counted = if self.inner.runs {
            instant.saturating_duration_since(self.inner.started)
        } else {
            Duration::ZERO
        };
        let counted_ms = counted.as_secs() * 1000 + u64::from(counted.subsec_millis());
        let offset_ms = self.inner.offset_ms.load(Ordering::Relaxed);
        Timestamp((self.inner.started_ms + counted_ms).wrapping_add(offset_ms))
    }

    /// How far the machine's clock is ahead of this one, in milliseconds: it was set, or the machine
    /// was suspended. 0 for a clock that stands still.
    pub fn apart_ms(&self) -> i64 {
        if !self.inner.runs {
            return 0;
        }
        let advanced_ms = self.inner.advanced_ms.load(Ordering::Relaxed);
        let set_ms = self.inner.set_ms.load(Ordering::Relaxed);
        let machine_ms = (machine_ms() + advanced_ms).wrapping_add_signed(set_ms);
        machine_ms.wrapping_sub(self.now().0) as i64
    }

    /// Corrects the time by `by_ms` milliseconds.
    pub fn put_right(&self, by_ms: i64) {
        self.inner.offset_ms.fetch_add(by_ms as u64, Ordering::Relaxed);
    }

    /// Time since this clock was started, for durations that scenario tests must not change.
    pub fn monotonic(&self) -> Duration {
        self.inner.started.elapsed()
    }

    /// The same at a moment that [`instant`](Self::instant) has returned.
    pub fn monotonic_at(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.inner.started)
    }

    /// Advances the clock, for scenario tests.
    pub fn advance(&self, by: Duration) {
        let by_ms = by.as_millis() as u64;
        self.inner.advanced_ms.fetch_add(by_ms, Ordering::Relaxed);
        self.inner.offset_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Moves the machine's clock by `by_ms` milliseconds, as this clock sees it, for scenario tests.
    pub fn set_machine(&self, by_ms: i64) {
        self.inner.set_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

/// The time of the machine's clock, in milliseconds since the Unix epoch.
#[allow(clippy::disallowed_methods)]
fn machine_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since_epoch.as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than this thread can stand still between two readings of a clock, in milliseconds.
    const READINGS_APART_MS: u64 = 600_000;

    #[test]
    fn advances_by_the_given_time() {
        let clock = Clock::start();
        let before = clock.now();
        clock.advance(Duration::from_secs(3_600));
        assert!(clock.now().0 >= before.0 + 3_600_000);
        assert!(clock.apart_ms().unsigned_abs() < READINGS_APART_MS, "both were moved");
    }

    #[test]
    fn is_put_right_both_ways() {
        let clock = Clock::start();
        for set in [7_200_000, -14_400_000] {
            let before = clock.now().0;
            clock.set_machine(set);
            let apart = clock.apart_ms();
            assert!(apart.abs_diff(set) < READINGS_APART_MS, "{apart}");
            clock.put_right(apart);
            assert!(clock.apart_ms().unsigned_abs() < READINGS_APART_MS);
            assert!(clock.now().0.abs_diff(before.wrapping_add_signed(set)) < READINGS_APART_MS);
        }
    }
}
