//! The watch over a page that was found wrong: whether it is purged within a minute, as by a command that commits,
//! works on, and then purges.
//!
//! It looks at the site's clock, so that scenarios can set it.

use http_cache::Timestamp;
use std::time::Duration;
use telemetry::clock::Clock;

/// How long a page is watched, in milliseconds: a purge within this time was late.
const WATCHED_MS: u64 = 60_000;
/// The pause between two looks.
const STEP: Duration = Duration::from_millis(250);

/// The state of a page after it was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageFate {
    /// It was purged, marked or evicted.
    Purged,
    /// It expired, and was removed or replaced afterwards.
    Expired,
    /// It is still there.
    Stored,
}

/// Waits for so many milliseconds of the clock.
pub(crate) async fn pause(clock: &Clock, ms: u64) {
    let until = clock.now().0.saturating_add(ms);
    while let Some(left) = until.checked_sub(clock.now().0).filter(|left| *left > 0) {
        tokio::time::sleep(STEP.min(Duration::from_millis(left))).await;
    }
}

/// Looks at a page for a minute after `begun`.
pub(crate) async fn watched(
    clock: &Clock,
    is_stored: impl Fn() -> bool,
    (begun, fresh_until): (Timestamp, Timestamp),
) -> PageFate {
    loop {
        tokio::time::sleep(STEP).await;
        let is_stored = is_stored();
        let now = clock.now();
        if !is_stored {
            return if now < fresh_until { PageFate::Purged } else { PageFate::Expired };
        }
        if now.0.saturating_sub(begun.0) >= WATCHED_MS {
            return PageFate::Stored;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// The fate of a page that is fresh for 90 seconds, and is gone at this second.
    async fn fate(gone_at: u64, second: u64) -> PageFate {
        let (clock, looks) = (Clock::still(), Cell::new(0));
        let begun = clock.now();
        let is_stored = || {
            looks.set(looks.get() + 1);
            clock.advance(Duration::from_secs(second));
            clock.now().0 - begun.0 < gone_at * 1_000
        };
        watched(&clock, is_stored, (begun, begun.plus(90_000))).await
    }

    #[tokio::test]
    async fn a_purge_within_a_minute_is_seen_and_an_expiry_is_none() {
        assert_eq!(fate(5, 30).await, PageFate::Purged);
        assert_eq!(fate(59, 30).await, PageFate::Purged);
        assert_eq!(fate(200, 30).await, PageFate::Stored);
        assert_eq!(fate(95, 100).await, PageFate::Expired, "the machine slept");
    }
}
