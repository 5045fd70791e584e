//! The one place of this crate that reads the clock: a bound for a wait, and a stopwatch.
//!
//! Real servers run in real time, so their starts and stops are bounded in real time. Nothing here
//! is for assertions: no test may pass or fail by how long something took.

use std::time::{Duration, Instant};

/// A moment by which something must have happened.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
}

impl Deadline {
    /// The moment `within` from now.
    #[must_use]
    pub fn after(within: Duration) -> Deadline {
        Deadline { at: now() + within }
    }

    /// What is left of it; zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(now())
    }

    /// Whether it has passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.remaining().is_zero()
    }
}

/// Time since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    from: Instant,
}

impl Stopwatch {
    /// Starts now.
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
