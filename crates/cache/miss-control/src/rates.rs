//! Rates of many clients in fixed memory: a count-min sketch (Cormode and Muthukrishnan), whose counters are halved
//! at regular times.
//!
//! A client is over its rate when it has `most` requests that have not faded. For long, that is half of `most` in a
//! `period`. A collision overestimates, which only puts a client behind others. The hash is keyed, so no client can
//! choose its counters. Everything is a relaxed atomic: a counter that is halved while it is incremented is an
//! estimate like all others.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::Duration;

const ROWS: usize = 4;
const COLUMNS: usize = 4_096;

/// The rates of one kind of clients: 32 KiB.
pub(crate) struct RateSketch {
    counters: Box<[AtomicU16]>,
    halved_at: AtomicU32,
    /// The counters are halved each time so many seconds have passed.
    period: u64,
    /// The requests of one client at once.
    most: u16,
}

impl RateSketch {
    pub(crate) fn new(most: u16, period: u64) -> RateSketch {
        let counters = std::iter::repeat_with(AtomicU16::default).take(ROWS * COLUMNS).collect();
        RateSketch { counters, halved_at: AtomicU32::new(0), period, most }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.counters)
    }

    /// Counts a request of `client`.
    pub(crate) fn note(&self, hasher: &impl BuildHasher, client: impl Hash, now: Duration) {
        self.halve(now);
        for at in places(hasher, client) {
            let more = |count: u16| Some(count.saturating_add(1));
            let _ = self.counters[at].fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// The requests of `client` that have not faded.
    pub(crate) fn count(&self, hasher: &impl BuildHasher, client: impl Hash, now: Duration) -> u16 {
        self.halve(now);
        let counts = places(hasher, client).map(|at| self.counters[at].load(Ordering::Relaxed));
        counts.into_iter().min().unwrap_or(0)
    }

    /// Whether `client` has sent too many requests.
    pub(crate) fn is_over(
        &self,
        hasher: &impl BuildHasher,
        client: impl Hash,
        now: Duration,
    ) -> bool {
        self.count(hasher, client, now) >= self.most
    }

    /// Halves the counters for each period that has passed. One caller does it.
    fn halve(&self, now: Duration) {
        let period = (now.as_secs() / self.period) as u32;
        let before = self.halved_at.load(Ordering::Relaxed);
        let passed = period.wrapping_sub(before);
        if passed == 0 || passed > u32::MAX / 2 {
            return;
        }
        let (order, halved_at) = (Ordering::Relaxed, &self.halved_at);
        if halved_at.compare_exchange(before, period, order, order).is_ok() {
            for counter in &self.counters {
                let less = |count: u16| Some(count.checked_shr(passed).unwrap_or(0));
                let _ = counter.fetch_update(order, order, less);
            }
        }
    }
}

fn places(hasher: &impl BuildHasher, client: impl Hash) -> [usize; ROWS] {
    std::array::from_fn(|row| {
        let hash = hasher.hash_one((&client, row + 1));
        row * COLUMNS + hash as usize % COLUMNS
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::RandomState;

    #[test]
    fn a_client_is_over_its_rate_until_its_requests_have_faded() {
        let (rates, key) = (RateSketch::new(10, 10), RandomState::new());
        let at = Duration::from_secs;
        for n in 0..10 {
            assert!(!rates.is_over(&key, 9, at(50)), "{n}");
            rates.note(&key, 9, at(50));
        }
        assert!(rates.is_over(&key, 9, at(51)));
        assert!(!rates.is_over(&key, 10, at(51)), "another client");
        assert!(!rates.is_over(&key, 9, at(60)), "halved");
        // Once in two seconds is never too much.
        for second in (100..400).step_by(2) {
            assert!(!rates.is_over(&key, 11, at(second)), "{second}");
            rates.note(&key, 11, at(second));
        }
    }
}
