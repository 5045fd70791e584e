//! Which renders are captured: not those of a script that sends no reports.
//!
//! Each missing report costs its client the time for which Pagewell waits for it. Visitors choose which scripts run, so
//! one of them decides about itself alone, and for a short time:
//!
//! | a script | is captured |
//! |---|---|
//! | that has sent a report within [`TRUSTED`] | always: a report that is missing now is a matter of that page |
//! | that has not, and [`MISSING_MAX`] reports in a row are missing | once in [`AGAIN`], until one arrives |
//! | any other | always |
//!
//! A render that is not captured has unknown reads. Not here: what that means for its page, and the wait.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// After this many missing reports in a row, a script is rarely captured.
const MISSING_MAX: u32 = 10;
/// The time after which it is captured again, to see whether it sends reports now.
const AGAIN: Duration = Duration::from_secs(10);
/// The time for which a report shows that a script sends them.
const TRUSTED: Duration = Duration::from_secs(60 * 60);
/// The maximum number of scripts that are remembered. The one whose state changed first is forgotten.
const SCRIPTS_MAX: usize = 1_024;

/// A script, by a hash of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScriptHash(u64);

/// The reports of each script. Times are those since any moment, the same for all calls.
#[derive(Debug, Default)]
pub struct CaptureHealth {
    hasher: RandomState,
    /// Held for one look-up.
    scripts: Mutex<HashMap<ScriptHash, ScriptReports>>,
}

#[derive(Debug, Clone, Copy)]
struct ScriptReports {
    /// When its last report arrived.
    arrived: Option<Duration>,
    /// The missing reports since then.
    missing: u32,
    /// When its state last changed, or a render was captured in spite of it.
    changed: Duration,
}

impl CaptureHealth {
    /// The hash of a script's name; empty for an origin without scripts.
    pub fn script(&self, name: &[u8]) -> ScriptHash {
        ScriptHash(self.hasher.hash_one(name))
    }

    /// Whether the next render of a script is captured.
    pub fn is_due(&self, script: ScriptHash, now: Duration) -> bool {
        let mut scripts = self.scripts();
        let Some(reports) = scripts.get_mut(&script) else { return true };
        let is_trusted = reports.arrived.is_some_and(|at| now.saturating_sub(at) < TRUSTED);
        if is_trusted || reports.missing < MISSING_MAX {
            return true;
        }
        let is_due = now.saturating_sub(reports.changed) >= AGAIN;
        if is_due {
            reports.changed = now;
        }
        is_due
    }

    /// Records that a report arrived, complete or not.
    pub fn arrived(&self, script: ScriptHash, now: Duration) {
        let reports = ScriptReports { arrived: Some(now), missing: 0, changed: now };
        set(&mut self.scripts(), script, reports);
    }

    /// Records that no report arrived.
    pub fn missed(&self, script: ScriptHash, now: Duration) {
        let mut scripts = self.scripts();
        let before = scripts.get(&script);
        let missing = before.map_or(0, |own| own.missing).saturating_add(1);
        let arrived = before.and_then(|own| own.arrived);
        set(&mut scripts, script, ScriptReports { arrived, missing, changed: now });
    }

    fn scripts(&self) -> MutexGuard<'_, HashMap<ScriptHash, ScriptReports>> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set(
    scripts: &mut HashMap<ScriptHash, ScriptReports>,
    script: ScriptHash,
    reports: ScriptReports,
) {
    if scripts.len() >= SCRIPTS_MAX && !scripts.contains_key(&script) {
        // One that is trusted goes last: without it, missing reports would count.
        let first = scripts.iter().min_by_key(|(_, own)| (own.arrived, own.changed));
        if let Some(first) = first.map(|(script, _)| *script) {
            scripts.remove(&first);
        }
    }
    scripts.insert(script, reports);
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(5);

    #[test]
    fn a_script_without_reports_is_rarely_waited_for_and_no_other_script_is() {
        let health = CaptureHealth::default();
        let (silent, other) = (health.script(b"/status.php"), health.script(b"/index.php"));
        for at in 0..MISSING_MAX {
            assert!(health.is_due(silent, START), "{at}");
            health.missed(silent, START);
        }
        let due = |seconds| health.is_due(silent, START + Duration::from_secs(seconds));
        assert!(!due(0) && !due(9) && due(10) && !due(11) && !due(19) && due(20));
        assert!(health.is_due(other, START));
        health.arrived(silent, START + AGAIN);
        assert!((0..100).all(|_| health.is_due(silent, START + AGAIN)));
    }

    #[test]
    fn pages_without_a_report_do_not_end_the_capture_of_a_script_that_sends_them() {
        let health = CaptureHealth::default();
        let script = health.script(b"/index.php");
        health.arrived(script, START);
        (0..1_000).for_each(|_| health.missed(script, START));
        assert!(health.is_due(script, START));
        // It was reconfigured, perhaps.
        let due = (0..100).filter(|_| health.is_due(script, START + TRUSTED));
        assert_eq!(due.count(), 1);
    }

    #[test]
    fn the_memory_is_bounded_and_scripts_with_reports_are_forgotten_last() {
        let health = CaptureHealth::default();
        let script = health.script(b"/index.php");
        health.arrived(script, START);
        for at in 0..3 * SCRIPTS_MAX {
            health.missed(health.script(&at.to_le_bytes()), START);
        }
        assert_eq!(health.scripts().len(), SCRIPTS_MAX);
        (0..1_000).for_each(|_| health.missed(script, START));
        assert!(health.is_due(script, START));
    }
}
