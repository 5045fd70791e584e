//! The audit: compares a sample of the cache hits with renders, in the background and for ever (`audit = "1 in 1000"`).
//!
//! | step | file |
//! |---|---|
//! | a hit comes from the queue (`delivery::audit`); one comparison of a key at a time, 16 in all | here |
//! | a first render; if it is equal, the page is right | `comparison` |
//! | five more, each begun after everything was applied and settled; then the verdict | `comparison` |
//! | a page that was found wrong is watched for a minute, and rendered once more; if its text has changed again, it is judged again | `suspect`, `watch`, `second_judgement` |
//! | a second detection for the URL: the page is purged, and the URL perhaps limited for an hour | `detections` |
//! | the renders, and comparing, are counted against a budget | `samples`, `budget` |
//!
//! Invariants: a visitor never waits for an audit. URLs with an action or a secret in them are never requested. A verdict
//! against a page is given only if every change that the renders can have seen was applied before the page was looked at
//! again (`comparison`). The decisions of an audit count for one URL only, with its query, and need two detections, so that
//! a stranger decides nothing. No text of a response, no value of a field, cookie or parameter is logged. The judgement
//! itself is the crate `page-comparison`.

mod budget;
mod cause;
mod comparison;
mod detections;
mod judged_page;
mod known_parameters;
mod made_page;
mod parameters;
mod refused_pages;
mod samples;
mod second_judgement;
mod seen_answer;
mod seen_visitors;
mod suspect;
pub mod trial;
mod trial_judgement;
mod trial_notices;
mod trial_state;
mod trial_text;
mod trial_watch;
mod unexplained;
mod watch;
mod without_verdict;

use budget::RenderBudget;
use delivery::audit::AuditedHit;
use delivery::byte_account::{AccountedBytes, ByteAccount};
use delivery::site::Site;
use detections::{Detections, PageIdentity, PageUrl};
use page_comparison::{PageNoise, TokenSecret, is_replayable_url};
use random_number::random_number;
use request_values::target::TargetUri;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use telemetry::phase::{Phase, PhaseWatch};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Comparisons at the same time: most wait for databases to settle.
const AT_ONCE: usize = 16;
/// Keys whose noise is remembered, and pages that were found right. Beyond, all are forgotten and learned again.
const KEYS_MAX: usize = 1_024;

/// The state that the comparisons of one site share. Memory: the numbers of 1,024 right pages, 64 watched pages without
/// their content, and what the account counts: the responses of 16 comparisons as tokens (usually some hundred kilobytes
/// each), and the noise of 1,024 keys with at most 16 KB each.
pub(crate) struct AuditState {
    secret: TokenSecret,
    memory: Arc<ByteAccount>,
    budget: Mutex<RenderBudget>,
    shared: Mutex<SharedState>,
    /// Whether its renders are those of the trial, whose report counts them.
    is_of_trial: bool,
}

#[derive(Default)]
struct SharedState {
    /// The keys that are being compared.
    keys: HashSet<Vec<u8>>,
    noise: HashMap<Vec<u8>, (PageNoise, AccountedBytes)>,
    /// Pages that were equal to a render: they have nothing of their first visitors.
    right: HashSet<PageIdentity>,
    detections: Detections,
}

impl AuditState {
    fn new(site: &Site) -> AuditState {
        AuditState::with(RenderBudget::new(site.clock.monotonic()), &site.audit.memory)
    }

    fn with(budget: RenderBudget, memory: &Arc<ByteAccount>) -> AuditState {
        let (secret, memory) = (TokenSecret::of(random_number()), memory.clone());
        let (budget, shared) = (Mutex::new(budget), Mutex::default());
        AuditState { secret, memory, budget, shared, is_of_trial: false }
    }

    fn of_trial(budget: RenderBudget, memory: &Arc<ByteAccount>) -> AuditState {
        AuditState { is_of_trial: true, ..AuditState::with(budget, memory) }
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noise(&self, key: &[u8]) -> PageNoise {
        self.lock().noise.get(key).map(|(noise, _)| noise.clone()).unwrap_or_default()
    }

    /// Remembers the noise of a key, if there is room.
    fn learned(&self, key: &[u8], noise: PageNoise) {
        let mut shared = self.lock();
        if shared.noise.len() >= KEYS_MAX && !shared.noise.contains_key(key) {
            shared.noise.clear();
        }
        let mut bytes = AccountedBytes::of(&self.memory);
        if bytes.grow(key.len() + noise.bytes()) {
            shared.noise.insert(key.to_vec(), (noise, bytes));
        }
    }

    /// Notes that a page is equal to a render.
    fn found_right(&self, page: PageIdentity) {
        let mut shared = self.lock();
        if shared.right.len() >= KEYS_MAX {
            shared.right.clear();
        }
        shared.right.insert(page);
    }

    /// Whether a page was equal to a render: if it differs now, its data have changed.
    fn was_right(&self, page: PageIdentity) -> bool {
        self.lock().right.contains(&page)
    }
}

/// A key that is being compared, and the place of its comparison, until this is dropped. A page that is only watched has
/// none.
struct KeyGuard {
    state: Arc<AuditState>,
    key: Vec<u8>,
    _place: OwnedSemaphorePermit,
}

impl KeyGuard {
    fn enter(state: &Arc<AuditState>, key: &[u8], place: OwnedSemaphorePermit) -> Option<KeyGuard> {
        let is_new = state.lock().keys.insert(key.to_vec());
        is_new.then(|| KeyGuard { state: state.clone(), key: key.to_vec(), _place: place })
    }
}

impl Drop for KeyGuard {
    fn drop(&mut self) {
        self.state.lock().keys.remove(&self.key);
    }
}

/// A page that is watched, until this is dropped.
struct WatchGuard {
    site: Arc<Site>,
    state: Arc<AuditState>,
    page: PageIdentity,
}

impl WatchGuard {
    fn enter(
        site: &Arc<Site>,
        state: &Arc<AuditState>,
        page: PageIdentity,
        at: PageUrl,
    ) -> Option<WatchGuard> {
        state.lock().detections.watch(page, at).then(|| {
            site.counters.audit_watched.add();
            WatchGuard { site: site.clone(), state: state.clone(), page }
        })
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        self.state.lock().detections.unwatch(self.page);
        self.site.counters.audit_watched.sub();
    }
}

/// Compares hits until the server stops. Returns at once if the audit is off.
pub async fn run(site: Arc<Site>, mut stop: PhaseWatch) {
    if site.config.audit.is_none() {
        return;
    }
    let Some(mut hits) = site.audit.receive() else { return };
    let (state, at_once) = (Arc::new(AuditState::new(&site)), Arc::new(Semaphore::new(AT_ONCE)));
    loop {
        let hit = tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            Some(hit) = hits.recv() => hit,
        };
        if !may_request(&site.now(), &hit.target)
            || state.lock().detections.is_watched(judged_page::identity(&site, &hit.page))
        {
            continue;
        }
        let Ok(place) = at_once.clone().try_acquire_owned() else { continue };
        let Some(key) = KeyGuard::enter(&state, &hit.key, place) else { continue };
        let (site, state, mut stop) = (site.now(), state.clone(), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = stop.wait_for(Phase::is_leaving) => {}
                () = audit(&site, hit, &state, key) => {}
            }
        });
    }
}

/// Whether the page may be requested for a comparison: its URL names no action, has nothing that looks like a secret, and
/// is not in `trial.never`.
fn may_request(site: &Site, target: &TargetUri) -> bool {
    is_replayable_url(&target.path_and_query) && !site.config.unrequested.has(target.path())
}

async fn audit(site: &Arc<Site>, hit: AuditedHit, state: &Arc<AuditState>, key: KeyGuard) {
    let target = hit.target.clone();
    let (conclusion, cause) = comparison::compared(site, hit, state, key).await;
    comparison::note(site, &target, (&conclusion, cause));
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::clock::Clock;

    fn state() -> AuditState {
        AuditState::with(RenderBudget::new(Clock::still().monotonic()), &ByteAccount::new(1 << 20))
    }

    #[test]
    fn the_noise_of_keys_is_bounded_and_counted() {
        let state = state();
        (0..KEYS_MAX).for_each(|key| state.learned(&key.to_le_bytes(), PageNoise::default()));
        let all = state.memory.used();
        assert_eq!(all, KEYS_MAX * (size_of::<usize>() + PageNoise::default().bytes()));
        state.learned(b"again", PageNoise::default());
        state.learned(b"again", PageNoise::default());
        assert_eq!(state.memory.used(), 5 + PageNoise::default().bytes());
        state.learned(&vec![0; 2 << 20], PageNoise::default());
        assert_eq!(state.lock().noise.len(), 1, "there is no room");
    }

    #[test]
    fn the_pages_that_were_right_are_bounded() {
        let state = state();
        let page = |lease| PageIdentity { key: 1, variant: 0, lease, sent_ms: 0 };
        (0..2 * KEYS_MAX as u64 + 5).for_each(|lease| state.found_right(page(lease)));
        assert_eq!(state.lock().right.len(), 5);
        assert!(state.was_right(page(2 * KEYS_MAX as u64)) && !state.was_right(page(0)));
    }

    #[test]
    fn a_key_is_compared_once_at_a_time() {
        let state = Arc::new(state());
        let places = Arc::new(Semaphore::new(2));
        let place = || places.clone().try_acquire_owned().expect("it is free");
        let key = KeyGuard::enter(&state, b"a", place()).expect("it is new");
        assert!(KeyGuard::enter(&state, b"a", place()).is_none());
        drop(key);
        assert_eq!(places.available_permits(), 2);
        assert!(KeyGuard::enter(&state, b"a", place()).is_some());
    }
}
