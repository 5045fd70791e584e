//! Whether renders are captured: not all of them, if the origin sends no reports.
//!
//! Each missing report costs the client the time for which Pagewell has waited for it. Not here: the wait.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// After this many missing reports in a row, few renders are captured.
const MISSING_MAX: u32 = 10;
/// One of so many is captured then, until a report arrives.
const ONE_OF: u32 = 64;

/// The reports that are missing.
#[derive(Debug, Default)]
pub struct CaptureHealth {
    missing: AtomicU32,
    skipped: AtomicU32,
}

impl CaptureHealth {
    /// Whether the next render is captured.
    pub fn is_due(&self) -> bool {
        self.missing.load(Relaxed) < MISSING_MAX
            || self.skipped.fetch_add(1, Relaxed).is_multiple_of(ONE_OF)
    }

    /// Records that a report arrived, complete or not.
    pub fn arrived(&self) {
        self.missing.store(0, Relaxed);
    }

    /// Records that no report arrived.
    pub fn missed(&self) {
        // It stops far below its largest value, since few renders are captured.
        self.missing.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_without_reports_is_rarely_waited_for() {
        let health = CaptureHealth::default();
        let due = |renders: usize| (0..renders).filter(|_| health.is_due()).count();
        assert_eq!(due(100), 100);
        (0..MISSING_MAX).for_each(|_| health.missed());
        assert_eq!(due(640), 10);
        health.arrived();
        assert_eq!(due(100), 100);
    }
}
