//! The timeout of the engine's waits.
//!
//! Scenarios never wait for time to pass. They wait for an event, and this limits how long. The timeout is not
//! an assertion about speed: it is generous, and only reached if the event would never happen.
#![allow(clippy::disallowed_methods)] // the story's time is injected; this is the machine's

use std::time::{Duration, SystemTime};

/// The timeout of each wait.
pub const WAIT: Duration = Duration::from_secs(60);

/// The pause between two looks of a wait.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The system clock, in milliseconds since the Unix epoch.
pub(crate) fn machine_now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
