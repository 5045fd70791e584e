//! Bounded waits: the only place of the engine that reads a clock or pauses.
//!
//! Stories never wait for time to pass. They wait for something to happen, and this bounds how
//! long. The bound is no assertion about speed: it is generous, and reached only when the thing
//! would never have happened.
#![allow(clippy::disallowed_methods)] // real time bounds the waits; the story's time is injected

use std::time::{Duration, Instant, SystemTime};

/// How long anything is waited for before the story fails.
pub const WAIT: Duration = Duration::from_secs(5);

/// The moment at which a wait ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The moment `wait` from now.
    pub(crate) fn after(wait: Duration) -> Deadline {
        Deadline(Instant::now() + wait)
    }

    /// What is left, or `None` when the moment has come. Never zero, so that it can be a socket's
    /// time-out.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Asks `ready` until it gives something, with a breath between two askings.
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

/// The machine's clock, in milliseconds since the Unix epoch.
pub(crate) fn machine_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
