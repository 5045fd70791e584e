//! Waits with a timeout: the only place of the engine that reads a clock or sleeps.
//!
//! Scenarios never wait for time to pass. They wait for an event, and this limits how long. The timeout is not
//! an assertion about speed: it is generous, and only reached if the event would never happen.
#![allow(clippy::disallowed_methods)] // real time bounds the waits; the story's time is injected

use std::time::{Duration, Instant, SystemTime};

/// The timeout of each wait.
pub const WAIT: Duration = Duration::from_secs(5);

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The deadline `wait` from now.
    pub(crate) fn after(wait: Duration) -> Deadline {
        Deadline(Instant::now() + wait)
    }

    /// The remaining time, or `None` after the deadline. It is never zero, so that it can be used as a socket
    /// timeout.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Calls `ready` until it returns a value, with a short pause between two calls.
    pub(crate) fn poll<T>(self, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = ready() {
                return Some(found);
            }
            self.left()?;
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// The system clock, in milliseconds since the Unix epoch.
pub(crate) fn machine_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
