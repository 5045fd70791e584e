//! Overload: when requests have waited without a break, and when none has waited for a while.
//!
//! It begins late and ends late, so that a moment of many visitors does not begin it, and a crawler
//! that pauses does not end it. Nothing but order, waits and places depend on it.

use std::time::Duration;

/// How long deferrable requests must have waited without a break until overload begins: longer than a
/// burst of visitors on a site whose pages take 30 ms.
const BEGINS_AFTER: Duration = Duration::from_secs(1);
/// How long none may have waited until overload ends: a crawler pauses for less.
const ENDS_AFTER: Duration = Duration::from_secs(10);

/// A change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverloadChange {
    /// Overload has begun.
    Began,
    /// Overload has ended; it lasted this long.
    Ended(Duration),
}

/// Whether the origin is overloaded.
#[derive(Debug, Default)]
pub(crate) struct Overload {
    /// When a request began to wait, if since then at least one has waited.
    waiting_since: Option<Duration>,
    /// When a request last waited.
    last_waited: Duration,
    /// When overload began, while it lasts.
    began: Option<Duration>,
}

impl Overload {
    pub(crate) fn is_on(&self) -> bool {
        self.began.is_some()
    }

    pub(crate) fn lasts(&self, now: Duration) -> Option<Duration> {
        self.began.map(|began| now.saturating_sub(began))
    }

    /// Ends it at once, because the order of requests was changed.
    pub(crate) fn reset(&mut self) {
        *self = Overload::default();
    }

    /// Records whether requests wait now.
    pub(crate) fn note(&mut self, some_wait: bool, now: Duration) -> Option<OverloadChange> {
        if some_wait {
            self.last_waited = now;
            let since = *self.waiting_since.get_or_insert(now);
            if self.began.is_none() && now.saturating_sub(since) > BEGINS_AFTER {
                self.began = Some(now);
                return Some(OverloadChange::Began);
            }
            return None;
        }
        if self.waiting_since.take().is_some() {
            self.last_waited = now;
        }
        let began = self.began?;
        if now.saturating_sub(self.last_waited) <= ENDS_AFTER {
            return None;
        }
        self.began = None;
        Some(OverloadChange::Ended(now.saturating_sub(began)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn begins_after_a_second_without_a_break() {
        let mut overload = Overload::default();
        assert_eq!(overload.note(true, at(0)), None);
        assert_eq!(overload.note(false, at(900)), None);
        assert_eq!(overload.note(true, at(950)), None);
        assert_eq!(overload.note(true, at(1_950)), None);
        assert_eq!(overload.note(true, at(1_951)), Some(OverloadChange::Began));
        assert_eq!(overload.note(true, at(9_000)), None);
    }

    #[test]
    fn ends_after_ten_seconds_without_a_waiter() {
        let mut overload = Overload::default();
        overload.note(true, at(0));
        overload.note(true, at(2_000));
        assert_eq!(overload.note(false, at(11_000)), None);
        overload.note(true, at(11_500));
        assert_eq!(overload.note(false, at(21_500)), None);
        assert_eq!(overload.note(false, at(31_500)), None);
        let ended = Some(OverloadChange::Ended(at(29_501)));
        assert_eq!(overload.note(false, at(31_501)), ended);
        assert!(!overload.is_on());
        assert_eq!(overload.note(false, at(40_000)), None);
    }
}
