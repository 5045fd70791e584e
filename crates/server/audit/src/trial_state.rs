//! The state of a trial: the first requests of keys, the sample of pages that are compared when they are stored, and how
//! often a page was compared.
//!
//! All of it is bounded; beyond a bound something is forgotten and learned again, so that at most a page more is rendered.
//! Memory: what accounts count (answers, noise of keys), and tables of numbers: 8 MB at most, usually much less.

use crate::AuditState;
use crate::budget::RenderBudget;
use crate::detections::PageIdentity;
use crate::known_parameters::KnownParameters;
use crate::refused_pages::RefusedPages;
use crate::seen_answer::{FirstAnswer, SeenAnswer};
use crate::trial_notices::ProxyWindow;
use crate::unexplained::{Explanation, UnexplainedDifference, UnexplainedDifferences};
use delivery::byte_account::ByteAccount;
use delivery::site::Site;
use page_comparison::{PageNoise, PatternNoise, path_pattern};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;
use trial_record::TrialNotice;

/// Keys that are known to have been requested.
const FIRST_MAX: usize = 4_096;
/// First requests that are remembered with their fields and answers.
const FIRST_REQUESTS_MAX: usize = 64;
/// Keys, and versions of pages, whose comparisons are counted; beyond, all are forgotten.
const KEYS_MAX: usize = 4_096;
/// Looks into the differences from one version of a page, at any time; then one after each pause. Most later differences
/// say nothing new, but the data of the page may have changed.
const EXAMINED_MAX: u8 = 3;
const EXAMINED_AGAIN_MS: u64 = 600_000;
/// The sum of `purged` and `overtaken` of a key at which its page writes at each view, and is left alone for an hour.
const RESTLESS_MAX: u8 = 3;
const RESTLESS_MS: u64 = 3_600_000;
/// Pages of one kind that are compared with a neutral render when they are stored; then one in so many.
const LEAK_CHECKS: u32 = 10;
const LEAK_CHECKS_AFTER: u32 = 100;
/// Patterns whose common noise is learned.
const NOISY_PATTERNS_MAX: usize = 256;
/// Pages that are watched at the same time.
const WATCHED_MAX: usize = 64;

/// The state that the comparisons of a trial share.
pub(crate) struct TrialState {
    pub(crate) audit: Arc<AuditState>,
    shared: Mutex<SharedTrial>,
    parameters: Mutex<KnownParameters>,
    refused: Mutex<RefusedPages>,
    /// Whether a visitor has had a cookie that can make a difference.
    has_cookies: AtomicBool,
    first_answers: Arc<ByteAccount>,
    pub(crate) hasher: RandomState,
    pub(crate) watches: Arc<Semaphore>,
}

#[derive(Default)]
struct SharedTrial {
    /// The keys that were requested once; the newest with their requests.
    first: HashMap<u64, Option<Box<FirstAnswer>>>,
    /// The same keys, oldest first.
    order: VecDeque<u64>,
    examined: HashMap<u64, KeyExaminations>,
    versions: HashMap<PageIdentity, VersionExaminations>,
    /// The pages that were stored, by kind.
    stored: HashMap<u64, u32>,
    /// The keys whose page was stored before: it is made again at once.
    made: HashSet<u64>,
    unexplained: UnexplainedDifferences,
    /// The places that are noise for several keys, by pattern of paths.
    noise: HashMap<u64, PatternNoise>,
    proxies: ProxyWindow,
}

/// Why nothing is rendered for a key for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveReason {
    /// The page writes at each view.
    WritesAtEachView,
    /// Its render was not stored.
    NotStored,
    /// Its page was a leak.
    Leak,
}

/// Whether a difference from a version of a page is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionLook {
    Now,
    /// It is left out: there were several looks, and the last was a short time ago.
    Later,
    /// The version is known to be wrong.
    Never,
}

/// The comparisons of a key.
#[derive(Clone, Copy, Default)]
struct KeyExaminations {
    /// Comparisons in a row that a purge has ended.
    purged: u8,
    /// Renders in a row that were not stored, because a change of their data overtook them.
    overtaken: u8,
    /// Until when the key is left alone, and why.
    until_ms: u64,
    left_alone: Option<LeaveReason>,
    /// Whether the next version is looked at in any case.
    is_due: bool,
}

/// The comparisons of one version of a page.
#[derive(Clone, Copy, Default)]
struct VersionExaminations {
    /// How often it was compared with renders because an answer differed, and when it was last.
    count: u8,
    looked_ms: u64,
    is_wrong: bool,
    /// Whether it had nothing of its maker when it was stored.
    is_for_all: bool,
    /// Whether it was equal to a render for a visitor of whom nothing is known.
    is_equal: bool,
}

impl KeyExaminations {
    /// Leaves the page alone from now on if it writes at each view. Returns whether it does.
    fn leave_if_restless(&mut self, now_ms: u64) -> bool {
        let is_restless = self.purged.saturating_add(self.overtaken) >= RESTLESS_MAX;
        if is_restless {
            (self.purged, self.overtaken) = (0, 0);
            self.leave_alone(LeaveReason::WritesAtEachView, now_ms + RESTLESS_MS);
        }
        is_restless
    }

    fn leave_alone(&mut self, why: LeaveReason, until_ms: u64) {
        (self.left_alone, self.until_ms) = (Some(why), until_ms);
    }
}

impl SharedTrial {
    fn examined(&mut self, key: u64) -> &mut KeyExaminations {
        if self.examined.len() >= KEYS_MAX && !self.examined.contains_key(&key) {
            self.examined.clear();
        }
        self.examined.entry(key).or_default()
    }

    fn version(&mut self, page: PageIdentity) -> &mut VersionExaminations {
        if self.versions.len() >= KEYS_MAX && !self.versions.contains_key(&page) {
            self.versions.clear();
        }
        self.versions.entry(page).or_default()
    }
}

impl TrialState {
    /// A state that knows nothing yet. The suspects that the record has already stay in it from now on.
    pub(crate) fn new(site: &Site) -> TrialState {
        site.trial.inherit_suspects();
        TrialState {
            audit: Arc::new(AuditState::of_trial(budget_of(site), &site.audit.memory)),
            shared: Mutex::default(),
            parameters: Mutex::default(),
            refused: Mutex::default(),
            has_cookies: AtomicBool::new(false),
            first_answers: site.trial_queue.first_answers.clone(),
            hasher: RandomState::new(),
            watches: Arc::new(Semaphore::new(WATCHED_MAX)),
        }
    }

    /// The state for a new record: only the budget of renders and the pages that are being compared go on.
    pub(crate) fn of_new_record(&self) -> TrialState {
        self.audit.lock().noise.clear();
        TrialState {
            audit: self.audit.clone(),
            shared: Mutex::default(),
            parameters: Mutex::default(),
            refused: Mutex::default(),
            has_cookies: AtomicBool::new(false),
            first_answers: self.first_answers.clone(),
            hasher: RandomState::new(),
            watches: self.watches.clone(),
        }
    }

    /// Begins the budget of renders that the site has now. All that was learned goes on.
    pub(crate) fn begin_budget(&self, site: &Site) {
        *self.audit.budget.lock().unwrap_or_else(PoisonError::into_inner) = budget_of(site);
    }

    fn lock(&self) -> MutexGuard<'_, SharedTrial> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The known parameters of URLs.
    pub(crate) fn parameters(&self) -> MutexGuard<'_, KnownParameters> {
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no page was stored in this trial.
    pub(crate) fn has_made_none(&self) -> bool {
        self.lock().made.is_empty()
    }

    /// The pages that are not stored although all got the same so far.
    pub(crate) fn refused_pages(&self) -> MutexGuard<'_, RefusedPages> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a visitor has a cookie that can make a difference. Returns whether it is the first one.
    pub(crate) fn is_first_cookie(&self) -> bool {
        !self.has_cookies.swap(true, Ordering::Relaxed)
    }

    /// The first request of a key, if this is the second; this one, if there was a page already or the first is
    /// forgotten. Otherwise this one is remembered.
    pub(crate) fn first_of(
        &self,
        key: u64,
        second: impl FnOnce() -> SeenAnswer,
    ) -> Option<SeenAnswer> {
        let mut shared = self.lock();
        if shared.made.contains(&key) {
            return Some(second());
        }
        if let Some(first) = shared.first.remove(&key) {
            shared.order.retain(|known| *known != key);
            return Some(first.map_or_else(second, |first| first.answer));
        }
        shared.order.push_back(key);
        if shared.order.len() > FIRST_MAX
            && let Some(oldest) = shared.order.pop_front()
        {
            shared.first.remove(&oldest);
        }
        if let Some(at) = shared.order.len().checked_sub(FIRST_REQUESTS_MAX + 1) {
            let old = shared.order[at];
            shared.first.insert(old, None);
        }
        let first = Some(second()).filter(SeenAnswer::may_wait);
        let first = first.map(|answer| Box::new(FirstAnswer::of(answer, &self.first_answers)));
        shared.first.insert(key, first);
        None
    }

    /// Notes that the page of a key was stored.
    pub(crate) fn made(&self, key: u64) {
        let mut shared = self.lock();
        if shared.made.len() >= KEYS_MAX {
            shared.made.clear();
        }
        shared.made.insert(key);
        // Its render has not changed it: the earlier changes came from elsewhere.
        if let Some(known) = shared.examined.get_mut(&key) {
            known.overtaken = 0;
        }
        drop(shared);
        let mut refused = self.refused_pages();
        refused.forget(key);
        refused.note_storable(key);
    }

    /// Looks at a page again that was left alone because it was not stored: a visitor got an answer that could be. That
    /// says nothing about a page that is left alone for another reason.
    pub(crate) fn look_again(&self, key: u64) {
        self.refused_pages().note_storable(key);
        if let Some(known) = self.lock().examined.get_mut(&key)
            && known.left_alone == Some(LeaveReason::NotStored)
        {
            known.until_ms = 0;
        }
    }

    /// Whether a page of this kind is compared when it is stored.
    pub(crate) fn is_checked_for_leaks(&self, kind: u64) -> bool {
        let mut shared = self.lock();
        if shared.stored.len() >= KEYS_MAX && !shared.stored.contains_key(&kind) {
            shared.stored.clear();
        }
        let count = shared.stored.entry(kind).or_insert(0);
        *count = count.saturating_add(1);
        *count <= LEAK_CHECKS || count.is_multiple_of(LEAK_CHECKS_AFTER)
    }

    /// Whether a difference from this version of a page is looked into. If it is now, this counts as a look.
    pub(crate) fn look_into(&self, page: PageIdentity, now_ms: u64) -> VersionLook {
        let mut shared = self.lock();
        let known = shared.version(page);
        if known.is_wrong {
            return VersionLook::Never;
        }
        let again_ms = known.looked_ms.saturating_add(EXAMINED_AGAIN_MS);
        if known.count >= EXAMINED_MAX && now_ms < again_ms {
            return VersionLook::Later;
        }
        known.count = known.count.saturating_add(1);
        known.looked_ms = now_ms;
        VersionLook::Now
    }

    /// Notes that this version of a page has nothing of its maker: it was compared when it was stored.
    pub(crate) fn found_for_all(&self, page: PageIdentity) {
        self.lock().version(page).is_for_all = true;
    }

    /// Notes that this version of a page was equal to a neutral render. `is_new`: when it was stored.
    pub(crate) fn found_equal(&self, page: PageIdentity, is_new: bool) {
        let mut shared = self.lock();
        let known = shared.version(page);
        known.is_equal = true;
        known.is_for_all |= is_new;
    }

    /// Whether it was: then its text is that of a render for nobody.
    pub(crate) fn was_equal(&self, page: PageIdentity) -> bool {
        self.lock().versions.get(&page).is_some_and(|known| known.is_equal)
    }

    /// Whether a difference of this version can be its maker's. Then the next one is compared when it is stored.
    pub(crate) fn may_be_of_maker(&self, key: u64, page: PageIdentity) -> bool {
        let mut shared = self.lock();
        let may_be = shared.versions.get(&page).is_none_or(|known| !known.is_for_all);
        shared.examined(key).is_due |= may_be;
        may_be
    }

    /// Whether the next version of a page was to be compared when it is stored. It is now.
    pub(crate) fn was_due(&self, key: u64) -> bool {
        std::mem::take(&mut self.lock().examined(key).is_due)
    }

    /// Takes back a look that [`TrialState::look_into`] has counted: no render was possible.
    pub(crate) fn not_examined(&self, page: PageIdentity) {
        let mut shared = self.lock();
        let known = shared.version(page);
        known.count = known.count.saturating_sub(1);
        known.looked_ms = 0;
    }

    /// The pattern of a path as a number.
    pub(crate) fn pattern(&self, page: &str) -> u64 {
        self.hasher.hash_one(path_pattern(page))
    }

    /// The noise of a key, with that of its pattern.
    pub(crate) fn noise(&self, key: &[u8], pattern: u64) -> PageNoise {
        let mut noise = self.audit.noise(key);
        if let Some(common) = self.lock().noise.get(&pattern) {
            common.add_to(&mut noise);
        }
        noise
    }

    /// Remembers the noise of a key, which was `before` until now.
    pub(crate) fn learned(
        &self,
        (key, pattern): (&[u8], u64),
        before: &PageNoise,
        noise: PageNoise,
    ) {
        let mut shared = self.lock();
        if shared.noise.len() < NOISY_PATTERNS_MAX || shared.noise.contains_key(&pattern) {
            shared.noise.entry(pattern).or_default().learn(before, &noise);
        }
        drop(shared);
        self.audit.learned(key, noise);
    }

    /// Notes whether this version of a page is wrong: if so, further answers need no renders.
    pub(crate) fn found_wrong(&self, page: PageIdentity, is_wrong: bool) {
        self.lock().version(page).is_wrong = is_wrong;
    }

    /// Notes a difference of a key, of this pattern of paths, that was not explained.
    pub(crate) fn suspect(&self, at: (u64, u64), difference: UnexplainedDifference) {
        self.lock().unexplained.add(at, difference);
    }

    /// Explains the difference of this key. If it was the last of its pattern that this state knows, returns whether it was
    /// the last of all. Those of an earlier process stay in the report (`SiteTrial::inherit_suspects`).
    pub(crate) fn explains_last(
        &self,
        at: (u64, u64),
        by: Explanation<'_>,
        noise: &PageNoise,
    ) -> Option<bool> {
        let unexplained = &mut self.lock().unexplained;
        unexplained.explain(at, (by, noise)).then(|| unexplained.is_empty())
    }

    /// Leaves a key alone until this time: nothing is rendered for it, and differences of it say nothing new.
    pub(crate) fn leave_alone(&self, key: u64, why: LeaveReason, until_ms: u64) {
        self.lock().examined(key).leave_alone(why, until_ms);
    }

    /// Why nothing is rendered for a key now, if it is left alone.
    pub(crate) fn left_alone(&self, key: u64, now_ms: u64) -> Option<LeaveReason> {
        let shared = self.lock();
        let known = shared.examined.get(&key).filter(|known| now_ms < known.until_ms);
        known.and_then(|known| known.left_alone)
    }

    /// Counts a comparison. Returns whether the page writes at each view, as with this one.
    pub(crate) fn count_comparison(&self, key: u64, was_purged: bool, now_ms: u64) -> bool {
        let mut shared = self.lock();
        let known = shared.examined(key);
        if was_purged {
            known.purged = known.purged.saturating_add(1);
            return known.leave_if_restless(now_ms);
        }
        (known.purged, known.overtaken) = (0, 0);
        false
    }

    /// Counts a render that was not stored because a change of its data overtook it. Returns whether the page writes at
    /// each view.
    pub(crate) fn count_overtaken(&self, key: u64, now_ms: u64) -> bool {
        let mut shared = self.lock();
        let known = shared.examined(key);
        known.overtaken = known.overtaken.saturating_add(1);
        known.leave_if_restless(now_ms)
    }

    /// Counts an answer by the proxy in front; see [`ProxyWindow::count`].
    pub(crate) fn in_front(&self, seen: Option<TrialNotice>) -> Option<[(TrialNotice, bool); 2]> {
        self.lock().proxies.count(seen)
    }
}

/// The budget of renders, as the configuration of the site says.
fn budget_of(site: &Site) -> RenderBudget {
    let percent = site.config.trial.as_ref().and_then(|trial| trial.budget);
    RenderBudget::of_trial(site.clock.monotonic(), percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::clock::Clock;

    fn state() -> TrialState {
        let budget = RenderBudget::of_trial(Clock::still().monotonic(), Some(100));
        let account = ByteAccount::new(1 << 20);
        TrialState {
            audit: Arc::new(AuditState::of_trial(budget, &account)),
            shared: Mutex::default(),
            parameters: Mutex::default(),
            refused: Mutex::default(),
            has_cookies: AtomicBool::new(false),
            first_answers: account,
            hasher: RandomState::new(),
            watches: Arc::new(Semaphore::new(WATCHED_MAX)),
        }
    }

    fn page(lease: u64, variant: u32, sent_ms: u64) -> PageIdentity {
        PageIdentity { key: 1, variant, lease, sent_ms }
    }

    #[test]
    fn pages_of_a_kind_are_checked_ten_times_and_then_one_in_a_hundred() {
        let state = state();
        let checked = (0..1_000).filter(|_| state.is_checked_for_leaks(7)).count();
        assert_eq!(checked, 20);
        assert!(state.is_checked_for_leaks(8), "another kind has its own count");
        (0..2 * KEYS_MAX as u64).for_each(|kind| {
            let _ = state.is_checked_for_leaks(kind);
        });
        assert!(state.lock().stored.len() <= KEYS_MAX);
    }

    #[test]
    fn a_version_is_looked_into_three_times_and_then_after_pauses_and_a_wrong_one_never_again() {
        use VersionLook::{Later, Never, Now};
        let state = state();
        let begun = EXAMINED_AGAIN_MS;
        let looks = |page, now_ms| -> Vec<VersionLook> {
            (0..5).map(|_| state.look_into(page, now_ms)).collect()
        };
        assert_eq!(looks(page(5, 0, 0), begun), [Now, Now, Now, Later, Later]);
        assert_eq!(looks(page(6, 0, 0), begun), [Now, Now, Now, Later, Later], "another version");
        assert_eq!(state.look_into(page(5, 0, 0), begun), Later, "as with two variants in turn");
        for pause in 1..=2 {
            let due = begun + pause * EXAMINED_AGAIN_MS;
            assert_eq!(state.look_into(page(5, 0, 0), due - 1), Later);
            assert_eq!(looks(page(5, 0, 0), due), [Now, Later, Later, Later, Later]);
        }
        let due = begun + 3 * EXAMINED_AGAIN_MS;
        for _ in 0..9 {
            assert_eq!(state.look_into(page(5, 0, 0), due), Now, "no render was possible");
            state.not_examined(page(5, 0, 0));
        }
        state.found_wrong(page(7, 0, 0), true);
        assert_eq!(looks(page(7, 0, 0), begun), [Never; 5]);
        let others = [page(7, 1, 0), page(7, 0, 1)].map(|page| state.look_into(page, begun));
        assert_eq!(others, [Now; 2], "another variant; a later page");
        assert_eq!(state.of_new_record().look_into(page(7, 0, 0), begun), Now);
        (0..2 * KEYS_MAX as u64).for_each(|lease| state.found_wrong(page(lease, 0, 0), true));
        assert!(state.lock().versions.len() <= KEYS_MAX);
    }

    #[test]
    fn a_version_that_was_not_compared_when_it_was_stored_makes_the_next_one_due() {
        let state = state();
        state.found_for_all(page(5, 0, 0));
        assert!(!state.may_be_of_maker(1, page(5, 0, 0)) && !state.was_due(1));
        let others = [page(6, 0, 0), page(5, 1, 0), page(5, 0, 1)];
        for other in others {
            assert!(state.may_be_of_maker(1, other) && state.was_due(1) && !state.was_due(1));
        }
        assert!(!state.was_equal(page(5, 0, 0)), "it may have been found for all by its class");
        state.found_equal(page(5, 0, 0), false);
        assert!(state.was_equal(page(5, 0, 0)) && !state.was_equal(page(5, 0, 1)));
        state.found_equal(page(6, 0, 0), true);
        assert!(!state.may_be_of_maker(1, page(6, 0, 0)));
    }

    #[test]
    fn a_page_that_is_stored_between_changes_does_not_write_at_each_view() {
        let state = state();
        for _ in 0..9 {
            assert!(!state.count_overtaken(1, 0) && !state.count_overtaken(1, 0));
            state.made(1);
        }
        assert!(!state.count_overtaken(1, 0) && state.left_alone(1, 0).is_none());
        assert!(!state.count_comparison(1, true, 0), "overtaken, and then purged");
        let writes = Some(LeaveReason::WritesAtEachView);
        assert!(state.count_overtaken(1, 0) && state.left_alone(1, RESTLESS_MS - 1) == writes);
        assert!(!state.count_comparison(2, true, 0) && !state.count_comparison(2, true, 0));
        state.made(2);
        assert!(state.count_comparison(2, true, 0), "each view has ended the page that was stored");
    }

    #[test]
    fn a_page_that_is_purged_at_each_view_is_left_alone_for_an_hour() {
        let state = state();
        assert!(!state.count_comparison(1, true, 0) && !state.count_comparison(1, true, 0));
        assert!(!state.count_comparison(1, false, 0), "a comparison with a result between them");
        assert!(!state.count_comparison(1, true, 0) && !state.count_comparison(1, true, 0));
        assert!(state.count_comparison(1, true, 0));
        let writes = Some(LeaveReason::WritesAtEachView);
        assert_eq!((state.left_alone(1, RESTLESS_MS - 1), state.left_alone(2, 0)), (writes, None));
        assert_eq!(state.left_alone(1, RESTLESS_MS), None);
        for why in [LeaveReason::Leak, LeaveReason::NotStored] {
            state.leave_alone(2, why, 9);
            assert_eq!((state.left_alone(2, 8), state.left_alone(2, 9)), (Some(why), None));
        }
    }
    #[test]
    fn an_answer_that_could_be_stored_ends_the_rest_of_a_refused_page_only() {
        let state = state();
        for (why, left) in [
            (LeaveReason::NotStored, None),
            (LeaveReason::WritesAtEachView, Some(LeaveReason::WritesAtEachView)),
            (LeaveReason::Leak, Some(LeaveReason::Leak)),
        ] {
            state.refused_pages().refuse(1, false);
            state.leave_alone(1, why, 9);
            state.look_again(1);
            assert_eq!(
                (state.left_alone(1, 8), state.refused_pages().is_unstorable(1)),
                (left, false)
            );
        }
        state.look_again(2);
        assert_eq!(state.left_alone(2, 0), None, "nothing is known about it");
    }
}
