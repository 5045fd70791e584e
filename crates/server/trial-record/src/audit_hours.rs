//! The results of a site's audit by hour, for a month. They survive restarts, in a file like that of a trial.
//!
//! The file is one JSON object. A change of the site's rules does not end it: the figures are those of the site, and
//! not of a configuration. Of a file, only hours of the last month count, with no more wrong pages than compared ones;
//! hours after now (a clock that was set back) are left out, and count in no sum. Bounded: 744 hours.

use crate::record_file::{RecordFile, SavedRecord, create_directory_of};
use page_comparison::ConfidenceBound;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The hours of a month.
const HOURS_MAX: u64 = 744;
const HOUR_S: u64 = 3_600;
/// The longest file that is read: each hour has three numbers of at most 20 digits.
const BYTES_MAX: u64 = 64 << 10;

/// The comparisons of a site's audit in each hour of the last month.
pub struct AuditHours {
    state: Mutex<HoursState>,
    file: RecordFile,
}

#[derive(Default)]
struct HoursState {
    /// The file; without one the results end with the process.
    path: Option<PathBuf>,
    results: HourResults,
}

/// The results, as they are in the file.
#[derive(Default, Serialize, Deserialize)]
struct HourResults {
    /// When the count began, in seconds since 1970.
    since: u64,
    /// For each hour since 1970: the comparisons with a verdict, and those that found a wrong page.
    hours: BTreeMap<u64, (u64, u64)>,
}

impl Default for AuditHours {
    fn default() -> AuditHours {
        AuditHours { state: Mutex::default(), file: RecordFile::new(BYTES_MAX) }
    }
}

impl AuditHours {
    /// Begins to count, and reads the results of earlier processes from the file. Without a file, or with one that cannot
    /// be used, the count begins at `now_ms`, in milliseconds since 1970. The directory of a new file is created.
    pub fn begin(&self, file: Option<PathBuf>, now_ms: u64) {
        let now_s = now_ms / 1_000;
        let earlier = file.as_ref().and_then(|path| {
            // `pagewell status` names a directory that is missing, and each attempt to save reports it.
            let _ = create_directory_of(path);
            self.file.read(path, |text| {
                serde_json::from_slice::<HourResults>(text).map_err(io::Error::from)
            })
        });
        let results = match earlier {
            Some(earlier) => earlier.until(now_s),
            None => HourResults { since: now_s, hours: BTreeMap::new() },
        };
        *self.state() = HoursState { path: file, results };
        self.file.changed();
    }

    /// Counts a comparison with a verdict.
    pub fn compared(&self, is_wrong: bool, now_ms: u64) {
        let mut state = self.state();
        let hours = &mut state.results.hours;
        let (compared, wrong) = hours.entry(now_ms / 1_000 / HOUR_S).or_default();
        *compared = compared.saturating_add(1);
        *wrong = wrong.saturating_add(u64::from(is_wrong));
        if hours.len() as u64 > HOURS_MAX {
            hours.pop_first();
        }
        self.file.changed();
    }

    /// The proof by the comparisons of the last `hours` hours; the current one is the last of them.
    pub fn bound(&self, hours: u64, now_ms: u64) -> ConfidenceBound {
        let now = now_ms / 1_000 / HOUR_S;
        let first = (now + 1).saturating_sub(hours);
        let state = self.state();
        let counted = state.results.hours.range(first..).take_while(|(hour, _)| **hour <= now);
        let mut bound = ConfidenceBound { compared: 0, wrong: 0 };
        for (_, (compared, wrong)) in counted {
            bound.compared = bound.compared.saturating_add(*compared);
            bound.wrong = bound.wrong.saturating_add(*wrong);
        }
        bound
    }

    /// When the count began, in seconds since 1970: earlier than this process, if there was a file to read.
    pub fn since_s(&self) -> u64 {
        self.state().results.since
    }

    fn state(&self) -> MutexGuard<'_, HoursState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SavedRecord for AuditHours {
    fn file(&self) -> &RecordFile {
        &self.file
    }

    fn written(&self) -> Option<(PathBuf, String)> {
        let state = self.state();
        let path = state.path.clone()?;
        // It has no part that cannot be written.
        Some((path, serde_json::to_string(&state.results).unwrap_or_default()))
    }
}

impl HourResults {
    /// The part of these results that can be true now.
    fn until(mut self, now_s: u64) -> HourResults {
        let now = now_s / HOUR_S;
        let first = (now + 1).saturating_sub(HOURS_MAX);
        self.hours
            .retain(|hour, (compared, wrong)| (first..=now).contains(hour) && *wrong <= *compared);
        self.since = self.since.min(now_s);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::OwnDirectory;
    use std::fs;
    use std::path::Path;

    const HOUR_MS: u64 = HOUR_S * 1_000;
    const NOW: u64 = 490_000;

    fn begun(file: &Path, hour: u64) -> AuditHours {
        let results = AuditHours::default();
        results.begin(Some(file.to_owned()), hour * HOUR_MS);
        results
    }

    fn counts(results: &AuditHours, hours: u64, hour: u64) -> (u64, u64) {
        let bound = results.bound(hours, hour * HOUR_MS);
        (bound.compared, bound.wrong)
    }

    #[test]
    fn results_are_counted_by_hour() {
        let results = AuditHours::default();
        results.begin(None, 0);
        for hour in 0..800 {
            results.compared(hour == 798, hour * HOUR_MS);
        }
        assert_eq!(counts(&results, 1, 799), (1, 0));
        assert_eq!(counts(&results, 24, 799), (24, 1));
        assert_eq!(counts(&results, 744, 799), (744, 1));
        assert_eq!(counts(&results, 24, 790), (24, 0), "later hours do not count");
        assert_eq!(results.state().results.hours.len() as u64, HOURS_MAX);
    }

    #[test]
    fn they_go_on_after_a_restart_and_end_after_a_month() {
        let directory = OwnDirectory::new("audit-restart");
        let file = directory.at("example.org.audit");
        let before = begun(&file, NOW);
        before.compared(true, NOW * HOUR_MS);
        before.compared(false, (NOW + 2) * HOUR_MS);
        before.save();
        let after = begun(&file, NOW + 2);
        assert_eq!(counts(&after, 1, NOW + 2), (1, 0));
        assert_eq!(counts(&after, 744, NOW + 2), (2, 1));
        assert_eq!(after.since_s(), NOW * HOUR_S);
        after.compared(false, (NOW + 2) * HOUR_MS);
        after.save();
        let later = begun(&file, NOW + 744);
        assert_eq!(counts(&later, 744, NOW + 744), (2, 0));
        assert_eq!(later.state().results.hours.len(), 1, "the first hour is too old");
        // The clock was set back.
        let earlier = begun(&file, NOW + 1);
        assert_eq!(counts(&earlier, 744, NOW + 1), (1, 1));
    }

    #[test]
    fn a_file_that_cannot_be_used_begins_a_new_count() {
        let directory = OwnDirectory::new("audit-garbage");
        let file = directory.at("site.audit");
        let older = r#"{"since":3,"hours":{"490000":[5,1]}}"#;
        let too_long = format!("{older}{}", " ".repeat(BYTES_MAX as usize));
        for text in [
            "",
            "{",
            "[]",
            "null",
            r#"{"hours":{}}"#,
            r#"{"since":-3,"hours":{}}"#,
            r#"{"since":3,"hours":{"490000":[5]}}"#,
            r#"{"since":3,"hours":{"x":[5,1]}}"#,
            r#"{"since":3,"hours":{"490000":[5,1.5]}}"#,
            r#"{"since":3,"hours":{"490000":[5,99999999999999999999]}}"#,
            too_long.as_str(),
        ] {
            fs::write(&file, text).expect("written");
            let results = begun(&file, NOW);
            assert_eq!(counts(&results, 744, NOW), (0, 0), "{text}");
            assert_eq!(results.since_s(), NOW * HOUR_S, "{text}");
            results.compared(false, NOW * HOUR_MS);
            results.save();
            assert_eq!(counts(&begun(&file, NOW), 744, NOW), (1, 0), "{text}");
        }
        fs::write(&file, older).expect("written");
        let results = begun(&file, NOW);
        assert_eq!((counts(&results, 1, NOW), results.since_s()), ((5, 1), 3));
    }

    #[test]
    fn impossible_hours_of_a_file_do_not_count() {
        let directory = OwnDirectory::new("audit-hours");
        let file = directory.at("site.audit");
        let most = u64::MAX;
        let too_old = r#""0":[9,0],"489256":[9,0]"#;
        let too_new = format!(r#""490001":[9,0],"{most}":[9,0]"#);
        let other = format!(r#""489257":[1,0],"489999":[1,2],"490000":[{most},{most}]"#);
        let hours = [too_old, &other, &too_new].join(",");
        let text = format!(r#"{{"since":{most},"hours":{{{hours}}}}}"#);
        fs::write(&file, text).expect("written");
        let results = begun(&file, NOW);
        assert_eq!(results.since_s(), NOW * HOUR_S);
        assert_eq!(results.state().results.hours.len(), 2);
        results.compared(true, NOW * HOUR_MS);
        assert_eq!(counts(&results, 744, NOW), (most, most));
        assert_eq!(counts(&results, 744, NOW - 1), (1, 0));
    }

    #[test]
    fn results_that_are_handed_over_are_written_by_the_successor_only() {
        let directory = OwnDirectory::new("audit-hand-over");
        let file = directory.at("site.audit");
        let old = begun(&file, NOW);
        let count = |results: &AuditHours| {
            results.compared(false, NOW * HOUR_MS);
            results.save();
        };
        count(&old);
        old.hand_over();
        count(&old);
        assert_eq!(counts(&begun(&file, NOW), 1, NOW), (1, 0), "the last one is in no file");
        // The new process has failed.
        old.take_back();
        old.save();
        old.hand_over();
        let new = begun(&file, NOW);
        count(&new);
        count(&old);
        assert_eq!(counts(&begun(&file, NOW), 1, NOW), (3, 0));
        assert!(!new.file.has_failed() && !old.file.has_failed());
    }

    #[test]
    fn a_disk_without_room_leaves_the_last_complete_file_until_it_has_room_again() {
        let directory = OwnDirectory::new("audit-full");
        let file = directory.at("site.audit");
        let results = begun(&file, NOW);
        results.save();
        let before = fs::read(&file).expect("it is there");
        // The new file cannot be created: a directory is in its place.
        let new = directory.at("site.audit.new");
        fs::create_dir(&new).expect("created");
        results.compared(false, NOW * HOUR_MS);
        results.save();
        assert!(results.file.has_failed());
        assert_eq!(fs::read(&file).expect("it stays"), before);
        assert_eq!(counts(&results, 1, NOW), (1, 0));
        fs::remove_dir(new).expect("removed");
        results.save();
        assert!(!results.file.has_failed());
        assert_eq!(counts(&begun(&file, NOW), 1, NOW), (1, 0));
    }
}
