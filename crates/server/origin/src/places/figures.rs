//! The figures of the queue for one origin: those of its reports, and the time of requests that bounds comparisons.
//!
//! Counters are atomic, and read one after the other. The state of the queue is read under its lock.
//! Not here: the counting (`places.rs`), and the load by groups (`miss_control::MissReport`).

use super::Places;
use miss_control::ClientLevel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

impl Places {
    /// The figures of the queue, for reports.
    pub fn figures(&self) -> PlacesFigures {
        let queue = self.line.lock();
        let ended = count(&self.line.overload_ms);
        let lasts = queue.overloaded_for(self.line.now()).unwrap_or_default();
        PlacesFigures {
            waited: count(&self.line.waited),
            deferred: count(&self.line.deferred),
            overload_seconds: (ended + lasts.as_millis() as u64) / 1000,
            is_overloaded: queue.is_overloaded(),
            busy: queue.busy(),
            waiting: queue.waiting(),
            unknown_places: queue.unknown_places(),
            busy_us: self.line.busy_us.each_ref().map(count),
            comparison_us: count(&self.line.comparison_us),
        }
    }

    /// The time that requests other than comparisons have spent at the origin since the start. No lock is taken.
    pub fn busy_time(&self) -> Duration {
        Duration::from_micros(self.line.busy_us.iter().map(count).sum())
    }
}

/// The figures of a queue, now and since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacesFigures {
    /// Requests that had to wait.
    pub waited: u64,
    /// Requests that were deferred: a page with its fragments is one.
    pub deferred: u64,
    /// How long the origin was overloaded, in seconds.
    pub overload_seconds: u64,
    /// Whether it is overloaded now.
    pub is_overloaded: bool,
    /// The requests at the origin now.
    pub busy: usize,
    /// The requests that wait now.
    pub waiting: usize,
    /// The places that unknown clients have now.
    pub unknown_places: usize,
    /// The time of the origin for each level, in microseconds, in the order of [`ClientLevel::ALL`].
    pub busy_us: [u64; ClientLevel::ALL.len()],
    /// Its time for comparisons of a trial or an audit, in microseconds.
    pub comparison_us: u64,
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
