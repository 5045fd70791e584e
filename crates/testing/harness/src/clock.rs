//! The only place in this crate that reads the clock: a deadline for waits, and a stopwatch.
//!
//! Real servers run in real time, so their starts and stops have real timeouts. Neither type is for assertions:
//! no test may depend on how long something took.

use std::time::{Duration, Instant};

/// The end of a wait.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
}

impl Deadline {
    /// The deadline `within` from now.
    #[must_use]
    pub fn after(within: Duration) -> Deadline {
        Deadline { at: now() + within }
    }

    /// The remaining time; zero after the deadline.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(now())
    }

    /// The remaining time, or `None` after the deadline. It is never zero, so that it can be used as a socket
    /// timeout.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        Some(self.remaining()).filter(|left| !left.is_zero())
    }

    /// Calls `ready` until it returns a value, with a pause between two calls; `None` after the deadline.
    pub fn poll<T>(&self, pause: Duration, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = ready() {
                return Some(found);
            }
            self.left()?;
            std::thread::sleep(pause);
        }
    }

    /// Whether the deadline has passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// Measures the time since its start.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    from: Instant,
}

impl Stopwatch {
    /// Starts a stopwatch at zero.
    #[must_use]
    pub fn start() -> Stopwatch {
        Stopwatch { from: now() }
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        now().saturating_duration_since(self.from)
    }
}

#[allow(clippy::disallowed_methods, reason = "real servers run in real time")]
fn now() -> Instant {
    Instant::now()
}
