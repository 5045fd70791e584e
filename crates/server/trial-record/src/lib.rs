//! The trial of one site: its record of what was compared and found, and the part of the visitors that gets hits.
//!
//! Start reading at [`SiteTrial`]. Requests and comparisons feed the record; the control interface and
//! `pagewell trial` report it. The counts, classes and the sentence at the end are those of `page_comparison`; here are
//! the lock, the file ([`SavedRecord`], `trial_file.rs`), and the circumstances that limit a trial (`notice.rs`). The
//! results of an audit have a file of the same kind ([`AuditHours`]).
//!
//! Invariants: callers pass the path and query of a request, and only its pattern and an example without values get
//! into the record. Words of renders are beside it, in memory until the trial ends, and only in
//! [`SiteTrial::status_with_text`]. No call but `begin`, `save` and `hand_over` touches the disk, and none of these
//! is made for a visitor. Everything is bounded: the record by `TrialRecord`, the versions by [`VERSIONS_MAX`];
//! [`SiteTrial::bytes`] counts both. Not here: the comparisons, and which requests are counted.

mod audit_hours;
mod notice;
mod record_file;
mod trial_file;

pub use audit_hours::AuditHours;
pub use notice::TrialNotice;
pub use record_file::{RecordFile, SavedRecord};

use page_comparison::{
    AcceptedDifference, ComparedVisitors, DifferenceCause, DifferenceClass, DifferingText,
    FoundProblem, OTHER_PATHS, PathPatterns, SeenParameter, TrialRecord, TrialReport,
    UnjudgedReason, example_url,
};
use random_number::random_number;
use record_file::create_directory_of;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The share of the origin's places that comparisons may use without `trial.budget`, in percent.
pub const DEFAULT_BUDGET_PERCENT: u32 = 5;
/// Versions of pages that are known to have been compared: they give a bound of 99.98 %. Further ones do not count.
pub const VERSIONS_MAX: usize = 16_384;
/// The shares of [`SiteTrial::share_of`] are below this number: hundredths of a per cent.
pub const SHARES: u32 = 10_000;
/// Places that are kept of one difference, and the longest of them in bytes.
const PLACES_MAX: usize = 5;
const PLACE_BYTES_MAX: usize = 300;
/// Problems with words: 2 KB each at most, so 400 KB.
const TEXTS_MAX: usize = 200;
/// The memory of a known version, with the table around it, in bytes.
const VERSION_BYTES: usize = 18;

/// The settings of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialSettings {
    /// The fingerprint of the site's rules: with others a new record begins.
    pub rules: u64,
    /// The file of the record; without one it ends with the process.
    pub file: Option<PathBuf>,
    /// The differences that the operator accepts.
    pub accepted: Vec<AcceptedDifference>,
    /// The part of the visitors that gets hits, in hundredths of a per cent.
    pub serve: u32,
}

/// A difference that a comparison found.
#[derive(Clone, Debug)]
pub struct FoundDifference {
    /// The class of the difference.
    pub class: DifferenceClass,
    /// The places that differ, as paths of elements.
    pub places: Vec<String>,
    /// The part of the request that makes the difference, if it was searched for.
    pub cause: Option<DifferenceCause>,
    /// How late the page was purged, in milliseconds, for the class `late`.
    pub late_ms: u64,
    /// The words that differ, as far as they may be shown.
    pub text: DifferingText,
}

/// The report of a trial, and the circumstances around it.
#[derive(Clone, Debug)]
pub struct TrialStatus {
    /// The figures, the problems and the sentence.
    pub report: TrialReport,
    /// The part of the visitors that gets hits, in hundredths of a per cent.
    pub serve: u32,
    /// The circumstances that limit the trial.
    pub notices: Vec<TrialNotice>,
}

/// The trial of a site. It is off until [`SiteTrial::begin`].
pub struct SiteTrial {
    is_on: AtomicBool,
    state: Mutex<TrialState>,
    file: RecordFile,
}

/// The state of a trial, while it is on.
struct TrialState {
    settings: TrialSettings,
    secret: u64,
    /// The number of records that this process has begun.
    generation: u64,
    record: TrialRecord,
    patterns: PathPatterns,
    /// The versions of pages that were compared, as keyed hashes.
    versions: HashSet<u64>,
    /// The suspects whose differences are not known any more: nothing explains them.
    inherited: BTreeSet<String>,
    notices: BTreeSet<TrialNotice>,
    /// The words of problems, by class and pattern; never in the file.
    texts: BTreeMap<(DifferenceClass, String), DifferingText>,
    /// Whether the file was read, or there is none.
    has_read: bool,
}

impl Default for SiteTrial {
    fn default() -> SiteTrial {
        let state = TrialState {
            settings: TrialSettings::default(),
            secret: random_number(),
            generation: 0,
            record: TrialRecord::new(0, 0),
            patterns: PathPatterns::default(),
            versions: HashSet::new(),
            inherited: BTreeSet::new(),
            notices: BTreeSet::new(),
            texts: BTreeMap::new(),
            has_read: false,
        };
        SiteTrial {
            is_on: AtomicBool::new(false),
            state: Mutex::new(state),
            file: RecordFile::new(trial_file::BYTES_MAX),
        }
    }
}

impl SiteTrial {
    /// Turns the trial on, or gives it other settings. The first call reads the file. A record of the same rules goes
    /// on; with others a new one begins at `now_s`, in seconds since 1970. The directory of a new file is created.
    pub fn begin(&self, settings: TrialSettings, now_s: u64) {
        let mut state = self.state();
        let rules = settings.rules;
        let is_new = |path: &&PathBuf| state.settings.file.as_ref() != Some(*path);
        if let Some(path) = settings.file.as_ref().filter(is_new) {
            // `pagewell status` names a directory that is missing, and each attempt to save reports it.
            let _ = create_directory_of(path);
        }
        state.settings = settings;
        if !std::mem::replace(&mut state.has_read, true) {
            state.begin_new(now_s);
            state.read(&self.file);
            self.file.changed();
        } else if state.record.rules != rules {
            tracing::info!(event = "trial-new-record", reason = "rules");
            state.begin_new(now_s);
            self.file.changed();
        } else if !self.is_on() {
            state.record.drop_unrendered();
            self.file.changed();
        }
        self.is_on.store(true, Ordering::Release);
    }

    /// Turns the trial off. Its record is kept, without the words of pages.
    pub fn end(&self) {
        self.is_on.store(false, Ordering::Release);
        self.state().texts.clear();
    }

    /// Whether the trial is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Begins a new record, for example after a deployment. Returns whether the trial is on.
    pub fn restart(&self, now_s: u64) -> bool {
        self.feed(|state| {
            tracing::info!(event = "trial-new-record", reason = "restart");
            state.begin_new(now_s);
        })
        .is_some()
    }

    /// The number of the record in this process: what was learned for another one does not count for it.
    pub fn generation(&self) -> u64 {
        self.state().generation
    }

    /// Counts a request that could be answered from the cache. `saved`: the time that PHP worked for it, if it would
    /// have been a hit.
    pub fn request(&self, saved: Option<Duration>) {
        self.feed(|state| state.record.request(saved.map(micros)));
    }

    /// Counts a reference render: the origin had a place for it.
    pub fn rendered(&self, took: Duration) {
        self.feed(|state| {
            state.notices.remove(&TrialNotice::OriginFull);
            state.record.renders += 1;
            let total = &mut state.record.render_micros;
            *total = total.saturating_add(micros(took));
        });
    }

    /// The version of a page: a number that is the same for the same key and content, also after a restart.
    pub fn version_of(&self, key: &[u8], content: &[u8]) -> u64 {
        let secret = self.state().secret;
        let mut hash = Xxh3::with_seed(secret);
        hash.update(&(key.len() as u64).to_le_bytes());
        hash.update(key);
        hash.update(content);
        hash.digest()
    }

    /// Counts a comparison with a verdict. `page` is the path and query of the request. Without a version, the page is
    /// random as a whole, and counts for nothing towards a verdict.
    pub fn compared(&self, page: &str, version: Option<u64>) {
        self.feed(|state| {
            let has_room = state.versions.len() < VERSIONS_MAX;
            let is_new = has_room && version.is_some_and(|version| state.versions.insert(version));
            let patterns = &mut state.patterns;
            let pattern = if is_new { patterns.of(page) } else { patterns.known(page) };
            state.record.compared(&pattern, is_new);
        });
    }

    /// Counts a comparison without a verdict. With a difference, the page is a suspect from now on.
    pub fn unjudged(&self, page: &str, reason: UnjudgedReason, has_difference: bool) {
        self.feed(|state| {
            let patterns = &mut state.patterns;
            let pattern = if has_difference { patterns.of(page) } else { patterns.known(page) };
            state.record.unjudged(&pattern, reason, has_difference);
        });
    }

    /// Notes why a render of a page has failed, in a few words: the report says it if the page is a suspect by that.
    pub fn render_failed(&self, page: &str, why: String) {
        self.feed(|state| {
            let pattern = state.patterns.known(page);
            state.record.render_failed(pattern, why);
        });
    }

    /// The differences of a suspect were explained. One of [`SiteTrial::inherit_suspects`] stays, because it has others. The
    /// common one of all paths beyond the bound of patterns ends with the last difference of all (`are_all`).
    pub fn explained(&self, page: &str, are_all: bool) {
        self.feed(|state| {
            if are_all && !state.inherited.contains(OTHER_PATHS) {
                state.record.explained(OTHER_PATHS);
            }
            let pattern = state.patterns.known(page);
            if pattern != OTHER_PATHS && !state.inherited.contains(&pattern) {
                state.record.explained(&pattern);
            }
        });
    }

    /// The differences of the suspects so far are not known any more, after a restart or a pause: they stay until a new
    /// record begins.
    pub fn inherit_suspects(&self) {
        self.feed(|state| state.inherited = state.record.suspects().keys().cloned().collect());
    }

    /// Whether the operator accepts a difference of this class at this page.
    pub fn accepts(&self, class: DifferenceClass, page: &str) -> bool {
        let state = self.state();
        let pattern = state.patterns.known(page);
        state.settings.accepted.iter().any(|accepted| accepted.has(class, &pattern))
    }

    /// The worst problem of pages such as this one that is not accepted, in a few words: pattern, class and cause.
    pub fn problem_of(&self, page: &str) -> Option<String> {
        if !self.is_on() {
            return None;
        }
        let state = self.state();
        let pattern = state.patterns.known(page);
        let accepted = &state.settings.accepted;
        let problem = state.record.problems().into_iter().find(|problem| {
            problem.pattern == pattern
                && problem.class.is_wrong()
                && !accepted.iter().any(|accepted| accepted.has(problem.class, &pattern))
        })?;
        let cause = DifferenceCause::shown(problem.cause.as_ref(), problem.class, problem.late_by);
        let cause = cause.map(|cause| format!(", {cause}")).unwrap_or_default();
        Some(format!("`{pattern}` is `{}`{cause}", problem.class.name()))
    }

    /// Adds a difference. `page` is the path and query of the request.
    pub fn found(&self, page: &str, difference: FoundDifference, now_s: u64) {
        let FoundDifference { class, places, cause, late_ms, text } = difference;
        let places = places.into_iter().take(PLACES_MAX).map(cut).collect();
        self.feed(|state| {
            let pattern = state.patterns.of(page);
            if !text.is_empty() && state.lacks_text(class, &pattern) {
                state.texts.insert((class, pattern.clone()), text);
            }
            state.record.found(FoundProblem {
                class,
                pattern,
                example: example_url(page),
                places,
                cause,
                count: 1,
                late_by: late_ms,
                last: now_s,
                answers: 0,
                php_micros: 0,
                visitors: ComparedVisitors::default(),
            });
        });
    }

    /// Whether the words of a difference of this class at this page are wanted: there are none yet, and there is room.
    pub fn lacks_text(&self, class: DifferenceClass, page: &str) -> bool {
        let state = self.state();
        let pattern = state.patterns.known(page);
        self.is_on() && state.lacks_text(class, &pattern)
    }

    /// Notes the visitors who got the same, for a page that was found to be refused. `took`: the time that PHP worked for a
    /// further answer, which is counted then. `page` is the path and query of the request.
    pub fn refused(&self, page: &str, took: Option<Duration>, visitors: ComparedVisitors) {
        self.feed(|state| {
            let pattern = state.patterns.known(page);
            state.record.refused(&pattern, took.map(micros), visitors);
        });
    }

    /// Withdraws the advice to store such pages, until the record ends: two visitors got different answers.
    pub fn withdraw(&self, page: &str) {
        self.feed(|state| {
            let pattern = state.patterns.of(page);
            state.record.withdraw(&pattern);
        });
    }

    /// Whether it was withdrawn.
    pub fn is_withdrawn(&self, page: &str) -> bool {
        let state = self.state();
        let pattern = state.patterns.known(page);
        state.record.is_withdrawn(&pattern)
    }

    /// Notes that visitors have cookies that can make a difference: an advice needs different ones then.
    pub fn has_cookies(&self) {
        self.feed(|state| state.record.has_cookies = true);
    }

    /// Notes what is known about a parameter of URLs.
    pub fn parameter(&self, name: &str, seen: SeenParameter) {
        self.feed(|state| state.record.parameter(name, seen));
    }

    /// Notes whether a circumstance limits the trial, if it is on.
    pub fn notice(&self, notice: TrialNotice, is_there: bool) {
        if !self.is_on() {
            return;
        }
        let mut state = self.state();
        if is_there {
            state.notices.insert(notice);
        } else {
            state.notices.remove(&notice);
        }
    }

    /// The share in which a client is, below [`SHARES`]: it gets hits if this is less than `serve`. The address alone
    /// decides, with the secret of this site; of an IPv6 address its first 64 bits.
    pub fn share_of(&self, address: IpAddr) -> u32 {
        let secret = self.state().secret;
        let hash = match address.to_canonical() {
            IpAddr::V4(address) => xxh3_64_with_seed(&address.octets(), secret),
            IpAddr::V6(address) => xxh3_64_with_seed(&address.octets()[..8], secret),
        };
        (hash % u64::from(SHARES)) as u32
    }

    /// The report; `None` while the trial is off.
    pub fn status(&self) -> Option<TrialStatus> {
        if !self.is_on() {
            return None;
        }
        // Requests of visitors wait for the lock: the report is made of copies.
        let state = self.state();
        let (record, settings) = (state.record.clone(), state.settings.clone());
        let mut notices = state.notices.clone();
        if settings.file.is_none() {
            notices.insert(TrialNotice::NoDirectory);
        } else if self.file.has_failed() {
            notices.insert(TrialNotice::NotSaved);
        }
        drop(state);
        if record.compared > 0 {
            notices.remove(&TrialNotice::NothingStored);
        }
        let mut report = TrialReport::of(&record, &settings.accepted);
        let caches = [TrialNotice::CdnInFront, TrialNotice::TrustedCache];
        if caches.iter().any(|notice| notices.contains(notice)) {
            report = report.behind_cache();
        }
        Some(TrialStatus { report, serve: settings.serve, notices: notices.into_iter().collect() })
    }

    /// The same with the words that differ, for an operator who asks for them.
    pub fn status_with_text(&self) -> Option<TrialStatus> {
        let mut status = self.status()?;
        let state = self.state();
        for line in &mut status.report.problems {
            line.text = state.texts.get(&(line.class, line.pattern.clone())).cloned();
        }
        Some(status)
    }

    /// The memory of the record, its versions and the words beside it, in bytes.
    pub fn bytes(&self) -> usize {
        let state = self.state();
        let texts = state.texts.iter().map(|((_, pattern), text)| pattern.len() + text.bytes());
        let texts: usize = texts.sum();
        let versions = state.versions.capacity() * VERSION_BYTES;
        let inherited = state.inherited.iter().map(|pattern| size_of::<String>() + pattern.len());
        let beside = versions + texts + inherited.sum::<usize>();
        state.record.bytes() + state.patterns.bytes() + beside
    }

    /// Changes the state, if the trial is on.
    fn feed<T>(&self, change: impl FnOnce(&mut TrialState) -> T) -> Option<T> {
        self.is_on().then(|| {
            let mut state = self.state();
            self.file.changed();
            change(&mut state)
        })
    }

    fn state(&self) -> MutexGuard<'_, TrialState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SavedRecord for SiteTrial {
    fn file(&self) -> &RecordFile {
        &self.file
    }

    fn written(&self) -> Option<(PathBuf, String)> {
        let state = self.state();
        let path = state.settings.file.clone()?;
        // Requests of visitors wait for the lock: the text is made of copies.
        let (secret, versions) = (state.secret, state.versions.clone());
        let record = state.record.clone();
        drop(state);
        Some((path, trial_file::text(secret, versions, &record)))
    }
}

impl TrialState {
    fn lacks_text(&self, class: DifferenceClass, pattern: &str) -> bool {
        self.texts.len() < TEXTS_MAX && !self.texts.contains_key(&(class, pattern.to_owned()))
    }

    fn begin_new(&mut self, now_s: u64) {
        self.record = TrialRecord::new(now_s, self.settings.rules);
        self.patterns = PathPatterns::default();
        self.versions.clear();
        self.inherited.clear();
        self.notices.clear();
        self.texts.clear();
        self.generation += 1;
    }

    /// Reads the record of an earlier process.
    fn read(&mut self, file: &RecordFile) {
        let Some(path) = &self.settings.file else { return };
        let rules = self.settings.rules;
        let Some(earlier) = file.read(path, |text| trial_file::earlier(text, rules)) else {
            return;
        };
        self.secret = earlier.secret;
        let Some((record, mut versions)) = earlier.record else {
            tracing::info!(event = "trial-new-record", reason = "rules");
            return;
        };
        if versions.len() > VERSIONS_MAX {
            versions.clear();
        }
        // A pattern is the pattern of itself.
        let known = record.versions.keys().chain(record.suspects().keys());
        for pattern in known.filter(|pattern| pattern.starts_with('/')) {
            self.patterns.of(pattern);
        }
        (self.record, self.versions) = (record, versions);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Cuts a place to its longest form.
fn cut(mut place: String) -> String {
    let mut end = PLACE_BYTES_MAX.min(place.len());
    while !place.is_char_boundary(end) {
        end -= 1;
    }
    place.truncate(end);
    place
}

#[cfg(test)]
mod tests;
