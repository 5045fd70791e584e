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
