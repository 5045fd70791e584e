//! Processes of the service that the kernel has killed for lack of memory: a problem for an hour.
//!
//! The kernel counts them for each control group. The crate `doctor` judges a count that rises, as for `pagewell
//! doctor`.

use super::Problem;
use doctor::{Cgroup, EarlierCounters, Facts, examine};
use std::time::Duration;

/// How long a problem lasts after the last process that was killed.
const LASTS: Duration = Duration::from_secs(3600);

/// The count of killed processes, as of the looks so far.
#[derive(Default)]
pub(super) struct KilledProcesses {
    count: Option<u64>,
    /// The last rise: when it was seen, and the count before it.
    risen: Option<(Duration, u64)>,
}

impl KilledProcesses {
    /// Notes the count at this moment, `None` if it is unknown. Returns the problem, if there is one. The first count
    /// may be of long ago.
    pub(super) fn note(&mut self, count: Option<u64>, now: Duration) -> Option<Problem> {
        let killed = count?;
        if let Some(before) = self.count.replace(killed).filter(|before| *before < killed) {
            self.risen = Some((now, before));
        }
        let (seen, before) = self.risen?;
        if now.saturating_sub(seen) > LASTS {
            self.risen = None;
            return None;
        }
        let of = |killed| Cgroup { killed: Some(killed), ..Cgroup::default() };
        let before = EarlierCounters { cgroup: of(before), ..EarlierCounters::default() };
        let facts = Facts { cgroup: of(killed), before, ..Facts::default() };
        examine(&facts).pop().map(|finding| Problem::of_finding(finding, String::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_process_is_a_problem_for_an_hour() {
        let mut all = KilledProcesses::default();
        let mut found = |count, minutes: u64| {
            let now = Duration::from_secs(minutes * 60);
            all.note(count, now).map(|problem| problem.what)
        };
        assert_eq!(found(None, 0), None);
        assert_eq!(found(Some(3), 0), None, "they were killed before the start");
        assert_eq!(found(Some(3), 1), None);
        assert!(found(Some(5), 2).unwrap().contains("is 5; it rose by 2 "));
        assert!(found(Some(5), 62).is_some());
        assert_eq!(found(Some(5), 63), None);
        assert!(found(Some(6), 64).unwrap().contains("it rose by 1 "));
    }
}
