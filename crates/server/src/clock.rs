//! The one clock. Everything that needs the time takes it from here, so that a story can set it.
//!
//! The time is the wall clock of the start plus what the monotonic clock has counted since: a page
//! neither ages nor rejuvenates when somebody sets the machine's clock. A settable offset is added;
//! it stays zero except where stories drive it (`Clock::advance`).
//!
//! The only file that may call `Instant::now` or `SystemTime::now` (see clippy.toml).

use http_cache::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock, shared by cloning.
#[derive(Clone, Debug)]
pub struct Clock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    started: Instant,
    runs: bool,
    started_ms: u64,
    advanced_ms: AtomicU64,
}

impl Clock {
    /// A clock that shows the machine's time.
    pub fn start() -> Clock {
        Clock::new(true)
    }

    /// A clock that stands still until it is advanced, for stories.
    pub fn still() -> Clock {
        Clock::new(false)
    }

    #[allow(clippy::disallowed_methods)]
    fn new(runs: bool) -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock {
            inner: Arc::new(Inner {
                started: Instant::now(),
                runs,
                started_ms: since_epoch.as_millis() as u64,
                advanced_ms: AtomicU64::new(0),
            }),
        }
    }

    /// The time, in milliseconds since the Unix epoch.
    pub fn now(&self) -> Timestamp {
        self.at(self.instant())
    }

    /// The moment by the monotonic clock, for limits on waiting.
    #[allow(clippy::disallowed_methods)]
    pub fn instant(&self) -> Instant {
        Instant::now()
    }

    /// What this clock shows at a moment that [`instant`](Self::instant) gave: one reading of the
    /// machine's clock serves both.
    pub fn at(&self, instant: Instant) -> Timestamp {
        let counted = match self.inner.runs {
            true => instant.saturating_duration_since(self.inner.started),
            false => Duration::ZERO,
        };
        let counted_ms = counted.as_secs() * 1000 + u64::from(counted.subsec_millis());
        let advanced_ms = self.inner.advanced_ms.load(Ordering::Relaxed);
        Timestamp(self.inner.started_ms + counted_ms + advanced_ms)
    }

    /// Time since this clock was started, for durations that a story must not stretch.
    pub fn monotonic(&self) -> Duration {
        self.inner.started.elapsed()
    }

    /// Puts the clock forward, for stories.
    pub fn advance(&self, by: Duration) {
        self.inner.advanced_ms.fetch_add(by.as_millis() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advances_by_what_it_is_told() {
        let clock = Clock::start();
        let before = clock.now();
        clock.advance(Duration::from_secs(11));
        assert!(clock.now().0 >= before.0 + 11_000);
    }
}
