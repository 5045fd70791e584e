//! A trial: makes the pages that would have been stored, and compares them with the answers that visitors get.
//!
//! | the answer | what follows |
//! |---|---|
//! | the first of its key | remembered, with its content as tokens |
//! | the second | the page is rendered as for the first visitor and stored; for a sample it is compared at once with a neutral render, and with both answers (a leak) |
//! | of a fresh page, and equal | the page is right for this visitor |
//! | of a fresh page, and different | neutral renders: if they agree with the page, the visitor's request is searched for the cause; otherwise the page is judged as in an audit |
//!
//! The waits before a verdict, and the argument why it is right, are those of an audit (`comparison`): an answer of a
//! visitor is never a sample against a page, only the occasion to look. A page that is found out of date is watched for a
//! minute (`watch`): a purge within that time was late.
//!
//! | interleaving | why nothing wrong is reported |
//! |---|---|
//! | a change purges the page while the visitor's answer is made | the page was looked up before; it is gone, so there is no verdict |
//! | the answer shows older data than the page (a slow render, a replica) | the neutral renders agree with the page, and no control render shows the difference: a suspect, not a verdict |
//! | a reload ends the trial during a comparison | the page stays as it is; feeds of a record that is off are dropped |
//! | the page expires, or is made again | another lease: no verdict |
//!
//! Memory: 4,096 keys with their first requests, the tokens of 64 of their answers (usually some hundred kilobytes
//! each), 4,096 keys with the number of their comparisons, and 16 comparisons at a time.

use crate::budget::RenderBudget;
use crate::cause::{cause, class_of, is_replayable};
use crate::comparison::{render, render_tokens, request_of, sampled, settle, stored_tokens};
use crate::watch::{PageFate, watched};
use crate::{AT_ONCE, AuditState, KeyGuard};
use delivery::lookup::decide_on;
use delivery::site::Site;
use delivery::trial::{TrialRequest, VisitorAnswer, VisitorContent, follow};
use http::{HeaderMap, Method, StatusCode, header};
use http_cache::{Reuse, Verdict};
use page_comparison::{
    Circumstances, Conclusion, DifferenceCause, DifferenceClass, Inquiry, PageDependence,
    PageTokens, UnjudgedReason, differing, example_url, is_replayable_url, path_pattern,
};
use render::{store_for_trial, visitors_form};
use site_rules::Peer;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::client::Spent;
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_fields::{AsSent, read_facts};
use tokio::sync::Semaphore;
use trial_record::{FoundDifference, TrialNotice};

/// Keys whose first request is remembered.
const FIRST_MAX: usize = 4_096;
/// First requests whose answers are remembered.
const FIRST_ANSWERS_MAX: usize = 64;
/// Keys whose comparisons are counted; beyond, all are forgotten.
const KEYS_MAX: usize = 4_096;
/// Renders for the same version of a page: later differences say nothing new.
const EXAMINED_MAX: u8 = 3;
/// Comparisons of a key in a row that end with a purge: the page writes at each view, and is left alone for an hour.
const RESTLESS_MAX: u8 = 3;
const RESTLESS_MS: u64 = 3_600_000;
/// Pages of one kind that are compared with a neutral render when they are stored; then one in so many.
const LEAK_CHECKS: u32 = 10;
const LEAK_CHECKS_AFTER: u32 = 100;
/// An answer that is younger than this shows the same data as the page. Milliseconds.
const YOUNG_MS: u64 = 10_000;
/// The answers among which those of proxies are counted.
const PROXY_WINDOW: u32 = 128;
/// Pages that are watched at the same time.
const WATCHED_MAX: usize = 256;

/// The state that the comparisons of a trial share.
struct TrialState {
    audit: Arc<AuditState>,
    shared: Mutex<SharedTrial>,
    hasher: RandomState,
    watches: Arc<Semaphore>,
}

#[derive(Default)]
struct SharedTrial {
    first: HashMap<u64, Seen>,
    /// The same keys, oldest first.
    order: VecDeque<u64>,
    examined: HashMap<u64, Examined>,
    /// The pages that were stored, by kind.
    stored: HashMap<u64, u32>,
    /// The keys whose page was stored before: it is made again at once.
    made: HashSet<u64>,
    /// The answers of this window, and those that came through a proxy which is not trusted.
    proxied: (u32, u32),
}

/// A request with its answer as tokens.
struct Seen {
    request: TrialRequest,
    /// The header lines of the answer as sent.
    headers: HeaderMap,
    tokens: Option<PageTokens>,
    begun_ms: u64,
}

/// The comparisons of a key.
#[derive(Clone, Copy, Default)]
struct Examined {
    /// The version of the page, how often it was compared with renders, and whether it was found wrong.
    lease: u64,
    count: u8,
    is_wrong: bool,
    restless: u8,
    /// Until when the key is left alone.
    until_ms: u64,
}

/// The relation of an answer to the page with which it is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerKind {
    /// The page would have been sent instead.
    WouldBeHit,
    /// The page was made for this request.
    OfMaker,
}

impl TrialState {
    fn new(site: &Site) -> TrialState {
        let percent = site.config.trial.as_ref().and_then(|trial| trial.budget);
        let budget = RenderBudget::of_share(site.clock.monotonic(), percent);
        TrialState {
            audit: Arc::new(AuditState::with_budget(budget)),
            shared: Mutex::default(),
            hasher: RandomState::new(),
            watches: Arc::new(Semaphore::new(WATCHED_MAX)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SharedTrial> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first request of a key, if this is the second; this one, if there was a page already. Otherwise this one is
    /// remembered.
    fn first_of(&self, key: u64, second: impl FnOnce() -> Seen) -> Option<Seen> {
        let mut shared = self.lock();
        if shared.made.contains(&key) {
            return Some(second());
        }
        if let Some(first) = shared.first.remove(&key) {
            shared.order.retain(|known| *known != key);
            return Some(first);
        }
        shared.order.push_back(key);
        if shared.order.len() > FIRST_MAX
            && let Some(oldest) = shared.order.pop_front()
        {
            shared.first.remove(&oldest);
        }
        if let Some(at) = shared.order.len().checked_sub(FIRST_ANSWERS_MAX + 1) {
            let old = shared.order[at];
            if let Some(old) = shared.first.get_mut(&old) {
                old.tokens = None;
            }
        }
        shared.first.insert(key, second());
        None
    }

    /// Notes that the page of a key was stored.
    fn made(&self, key: u64) {
        let mut shared = self.lock();
        if shared.made.len() >= KEYS_MAX {
            shared.made.clear();
        }
        shared.made.insert(key);
    }

    /// Whether a page of this kind is compared when it is stored.
    fn is_checked_for_leaks(&self, kind: u64) -> bool {
        let mut shared = self.lock();
        if shared.stored.len() >= KEYS_MAX && !shared.stored.contains_key(&kind) {
            shared.stored.clear();
        }
        let count = shared.stored.entry(kind).or_insert(0);
        *count = count.saturating_add(1);
        *count <= LEAK_CHECKS || count.is_multiple_of(LEAK_CHECKS_AFTER)
    }

    /// Whether a difference from this version of a page is looked into.
    fn may_examine(&self, key: u64, lease: u64, now_ms: u64) -> bool {
        let mut shared = self.lock();
        if shared.examined.len() >= KEYS_MAX && !shared.examined.contains_key(&key) {
            shared.examined.clear();
        }
        let known = shared.examined.entry(key).or_default();
        if known.lease != lease {
            (known.lease, known.count, known.is_wrong) = (lease, 0, false);
        }
        known.count = known.count.saturating_add(1);
        known.count <= EXAMINED_MAX && !known.is_wrong && now_ms >= known.until_ms
    }

    /// Notes that this version of a page is wrong: further answers need no renders.
    fn found_wrong(&self, key: u64, lease: u64) {
        let mut shared = self.lock();
        let known = shared.examined.entry(key).or_default();
        (known.lease, known.is_wrong) = (lease, true);
    }

    fn is_left_alone(&self, key: u64, now_ms: u64) -> bool {
        self.lock().examined.get(&key).is_some_and(|known| now_ms < known.until_ms)
    }

    /// Counts a comparison that ended because the page was purged. Returns whether this happens at each view.
    fn is_restless(&self, key: u64, was_purged: bool, now_ms: u64) -> bool {
        let mut shared = self.lock();
        let known = shared.examined.entry(key).or_default();
        known.restless = if was_purged { known.restless.saturating_add(1) } else { 0 };
        let is_restless = known.restless >= RESTLESS_MAX;
        if is_restless {
            known.until_ms = now_ms + RESTLESS_MS;
            known.restless = 0;
        }
        is_restless
    }

    /// Counts an answer, and whether it came through a proxy that is not trusted. Returns the share at the end of a window:
    /// whether most did.
    fn is_behind_proxy(&self, is_proxied: bool) -> Option<bool> {
        let mut shared = self.lock();
        let (all, proxied) = &mut shared.proxied;
        (*all, *proxied) = (*all + 1, *proxied + u32::from(is_proxied));
        if *all < PROXY_WINDOW {
            return None;
        }
        let is_most = *proxied * 2 > *all;
        (*all, *proxied) = (0, 0);
        Some(is_most)
    }
}

/// Compares the answers of a trial until the server stops. Waits while there is none.
pub async fn run(site: Arc<Site>, mut stop: PhaseWatch) {
    let Some(mut answers) = site.trial_queue.receive() else { return };
    follow(&site);
    let (mut state, at_once) = (None, Arc::new(Semaphore::new(AT_ONCE)));
    loop {
        let answer = tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            Some(answer) = answers.recv() => answer,
        };
        let site = site.now();
        let Some(trial) = site.config.trial.clone() else {
            state = None;
            continue;
        };
        let (settings, known) =
            state.get_or_insert_with(|| (trial.clone(), Arc::new(TrialState::new(&site))));
        if *settings != trial {
            (*settings, *known) = (trial, Arc::new(TrialState::new(&site)));
        }
        let state = known.clone();
        notice(&site, &state, &answer);
        let key = state.hasher.hash_one(&answer.request.key);
        let done = DoneGuard(site.clone());
        let Ok(place) = at_once.clone().try_acquire_owned() else { continue };
        let Some(guard) = KeyGuard::enter(&state.audit, &answer.request.key, place) else {
            continue;
        };
        let mut stop = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = stop.wait_for(Phase::is_leaving) => {}
                () = compared(&site, &state, answer, (key, guard)) => {}
            }
            drop(done);
        });
    }
}

/// Counts an answer when its comparison has ended, or there is none.
struct DoneGuard(Arc<Site>);

impl Drop for DoneGuard {
    fn drop(&mut self) {
        self.0.counters.trial_answers.add();
    }
}

/// Notes what limits the trial, as far as requests show it.
fn notice(site: &Site, state: &TrialState, answer: &VisitorAnswer) {
    let headers = &answer.request.headers;
    let has = |name: &str| headers.contains_key(name);
    let is_proxied = answer.request.client.connection.proxy_trust == Peer::Anybody
        && (has("via") || has("x-forwarded-for") || has("cf-ray") || has("forwarded"));
    if let Some(is_most) = state.is_behind_proxy(is_proxied) {
        site.trial.notice(TrialNotice::CdnInFront, is_most);
        let has_ramp = site.config.trial.as_ref().is_some_and(|trial| trial.serve > 0);
        let is_refused = has_ramp && site.trial_queue.is_one_mostly();
        site.trial.notice(TrialNotice::RampRefused, is_refused);
    }
}

async fn compared(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    mut answer: VisitorAnswer,
    (key, guard): (u64, KeyGuard),
) {
    let page = answer.page.take();
    let may_render = {
        let url = answer.request.written.path_and_query.as_str();
        let path = answer.request.target.path();
        let is_named = site.config.trial.as_ref().is_some_and(|trial| !trial.may_request(path));
        is_replayable_url(url) && !is_named && !state.is_left_alone(key, site.clock.now().0)
    };
    match page {
        Some(page) => hit(site, state, (page, answer), (key, guard), may_render).await,
        None if may_render => missed(site, state, answer, (key, guard)).await,
        None => {}
    }
}

/// An answer instead of which this page would have been sent.
async fn hit(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (page, mut answer): (SharedPage, VisitorAnswer),
    (key, guard): (u64, KeyGuard),
    may_render: bool,
) {
    let url = answer.request.target.page().to_owned();
    let Some((of_page, of_visitor)) = both_tokens(site, &state.audit, &page, &answer) else {
        site.trial.unjudged(&url, UnjudgedReason::NoBudget, false);
        return;
    };
    let noise = state.audit.noise(&answer.request.key);
    let difference = noise.without_noise(&differing(&of_page, &of_visitor));
    if difference.is_empty() {
        site.trial.compared(&url, version(site, &page));
        return;
    }
    drop((of_page, difference));
    let now_ms = site.clock.now().0;
    if !may_render || !state.may_examine(key, page.lease().get(), now_ms) {
        // Looked into for this version before, or not allowed.
        if !may_render {
            site.trial.unjudged(&url, UnjudgedReason::RenderFailed, true);
        }
        return;
    }
    let whole = matches!(answer.content, VisitorContent::OfPage)
        .then(|| visitor_tokens(site, &state.audit, &answer, &page.content()));
    let tokens = Some(whole.unwrap_or(of_visitor));
    answer.forget();
    let VisitorAnswer { request, headers, begun_ms, .. } = answer;
    let seen = Seen { request, headers, tokens, begun_ms };
    examine(site, state, (&page, &seen), AnswerKind::WouldBeHit, (key, &guard)).await;
}

/// An answer of a key for which there is no page.
async fn missed(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    mut answer: VisitorAnswer,
    (key, guard): (u64, KeyGuard),
) {
    let tokens = match &answer.content {
        VisitorContent::Other(content) => {
            Some(visitor_tokens(site, &state.audit, &answer, content))
        }
        VisitorContent::OfPage | VisitorContent::Unknown => None,
    };
    answer.forget();
    let VisitorAnswer { request, headers, begun_ms, .. } = answer;
    let seen = Seen { request, headers, tokens, begun_ms };
    let mut second = Some(seen);
    let Some(first) = state.first_of(key, || second.take().expect("it is taken once")) else {
        return;
    };
    let Some(page) = stored_for(site, state, &first).await else { return };
    state.made(key);
    let kind = state.hasher.hash_one(kind_of(site, &first.request));
    if !state.is_checked_for_leaks(kind) {
        return;
    }
    let is_right = examine(site, state, (&page, &first), AnswerKind::OfMaker, (key, &guard)).await;
    let second = second.filter(|second| second.request.headers != first.request.headers);
    if let Some(second) = second.filter(|_| is_right && is_stored(site, &page)) {
        examine(site, state, (&page, &second), AnswerKind::WouldBeHit, (key, &guard)).await;
    }
}

/// The kind of a page, for the sample of leak checks: pattern, unknown cookies, device, language.
fn kind_of(site: &Site, request: &TrialRequest) -> (String, Vec<Box<str>>, bool, String) {
    let fields = AsSent(&*request.headers);
    let mut cookies = site.config.rules.stranger_cookies(&request.plan, &fields);
    cookies.sort();
    let text = |name: header::HeaderName| {
        let value = request.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let language: String = text(header::ACCEPT_LANGUAGE).chars().take(2).collect();
    let is_mobile = text(header::USER_AGENT).contains("Mobile");
    (path_pattern(request.target.page()), cookies, is_mobile, language)
}

/// Makes the page that would have been stored for this request; none if it would not be, or the budget is used.
async fn stored_for(site: &Arc<Site>, state: &TrialState, first: &Seen) -> Option<SharedPage> {
    let budget = || state.audit.budget.lock().unwrap_or_else(PoisonError::into_inner);
    if !budget().may_begin(site.clock.monotonic(), site.config.limits.origin_connections) {
        return None;
    }
    let mut ask = request_of(&first.request, None);
    let spent = Spent::default();
    ask.client.extras.spent = Some(spent.clone());
    ask.client.extras.trace = None;
    let is_replayable = is_replayable(site, &ask);
    store_for_trial(site, ask, is_replayable).await;
    let took = Duration::from_micros(spent.micros().unwrap_or_default());
    budget().spent(took);
    site.trial.rendered(took);
    let request = &first.request;
    let facts = read_facts(&Method::GET, &request.headers);
    let (pages, verdict) = decide_on(site, &facts, &request.headers, &request.plan, &request.key);
    match verdict {
        Verdict::Reuse { candidate, state: Reuse::Fresh, .. } => {
            Some(pages.as_slice()[candidate].clone())
        }
        _ => None,
    }
}

/// Compares a page with renders, and records the result. Returns whether the page and the answer are right.
async fn examine(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (page, seen): (&SharedPage, &Seen),
    kind: AnswerKind,
    (key, _guard): (u64, &KeyGuard),
) -> bool {
    let url = seen.request.target.page();
    let result = judged(site, state, (page, seen), kind).await;
    let now_ms = site.clock.now().0;
    let was_purged = matches!(result, Err(UnjudgedReason::ChangedMeanwhile))
        || matches!(result, Ok((Conclusion::Unjudged(UnjudgedReason::ChangedMeanwhile), _)));
    let is_restless = state.is_restless(key, was_purged, now_ms);
    if is_restless {
        site.trial.notice(TrialNotice::WritesAtEachView, true);
        site.trial.unjudged(url, UnjudgedReason::WritesAtEachView, true);
        return false;
    }
    let (conclusion, cause) = match result {
        Ok(found) => found,
        Err(reason) => (Conclusion::Unjudged(reason), None),
    };
    if let Conclusion::Unjudged(reason) = conclusion {
        let is_failing = reason == UnjudgedReason::RenderFailed;
        site.trial.notice(TrialNotice::OriginFailing, is_failing);
        if reason == UnjudgedReason::NotSettled {
            site.trial.notice(TrialNotice::DatabaseNotFollowed, true);
        }
        // A page that was purged meanwhile would not have been sent any more.
        let is_suspect =
            kind == AnswerKind::WouldBeHit && reason != UnjudgedReason::ChangedMeanwhile;
        site.trial.unjudged(url, reason, is_suspect);
        return false;
    }
    site.trial.notice(TrialNotice::OriginFailing, false);
    site.trial.notice(TrialNotice::DatabaseNotFollowed, false);
    site.trial.compared(url, version(site, page));
    site.trial.explained(url);
    let Conclusion::Differs { class, places, .. } = conclusion else { return true };
    if class.is_wrong() {
        state.found_wrong(key, page.lease().get());
    }
    let found = FoundDifference { class, places, cause, late_ms: 0 };
    let may_be_late = matches!(class, DifferenceClass::BrokenPromise | DifferenceClass::Aged);
    let place = may_be_late.then(|| state.watches.clone().try_acquire_owned().ok()).flatten();
    let Some(place) = place else {
        record(site, url, found);
        return false;
    };
    let (site, page, url) = (site.clone(), page.clone(), url.to_owned());
    // The key is free meanwhile: a later answer may be compared.
    tokio::spawn(async move {
        let begun = site.clock.now();
        let fresh_until = page.payload().stored.fresh_until();
        let fate = watched(&site.clock, || is_stored(&site, &page), (begun, fresh_until)).await;
        let found = match fate {
            PageFate::Purged => FoundDifference {
                class: DifferenceClass::Late,
                cause: None,
                late_ms: site.clock.now().0.saturating_sub(begun.0),
                ..found
            },
            PageFate::Expired | PageFate::Stored => found,
        };
        record(&site, &url, found);
        drop(place);
    });
    false
}

/// Adds a difference to the record. A nonce is on most pages with a form: it is no notice.
fn record(site: &Site, url: &str, found: FoundDifference) {
    if found.class == DifferenceClass::Noise {
        return;
    }
    let (class, places) = (found.class.name(), found.places.join("; "));
    let cause = found.cause.as_ref().map(DifferenceCause::text).unwrap_or_default();
    tracing::info!(event = "trial-found", class, url = example_url(url), places, cause);
    site.trial.found(url, found, site.clock.now().0 / 1_000);
}

type Judged = (Conclusion, Option<DifferenceCause>);

async fn judged(
    site: &Arc<Site>,
    state: &TrialState,
    (page, seen): (&SharedPage, &Seen),
    kind: AnswerKind,
) -> Result<Judged, UnjudgedReason> {
    let audit = &state.audit;
    let ask = request_of(&seen.request, Some(page));
    let mut noise = audit.noise(&seen.request.key);
    let stored = stored_tokens(audit, page);
    let first = render(site, &ask, audit).await?;
    let is_like = |a: &PageTokens, b: &PageTokens| noise.without_noise(&differing(a, b)).is_empty();
    let is_right = is_like(&stored, &render_tokens(audit, &first));
    let is_visitors = seen.tokens.as_ref().is_none_or(|tokens| is_like(&stored, tokens));
    if is_right && is_visitors {
        return Ok((Conclusion::Same, None));
    }
    let facts = &page.payload().stored;
    let has_dependencies = !facts.tags().is_empty() || page.payload().reads().is_some();
    let dependence =
        if has_dependencies { PageDependence::Followed } else { PageDependence::LifetimeOnly };
    let mut inquiry = Inquiry::of_suspect(stored.clone(), facts.request_time().0);
    sampled(site, &ask, audit, &mut inquiry, &noise).await?;
    settle(site).await?;
    let is_new = kind == AnswerKind::OfMaker;
    let age_ms = site.clock.now().0.saturating_sub(facts.request_time().0);
    let is_young = is_new || (age_ms < YOUNG_MS && !has_dependencies);
    let circumstances = Circumstances {
        was_replaced: !is_stored(site, page),
        matched_when_stored: is_young.then_some(false),
        ..Circumstances::of(dependence)
    };
    let conclusion = inquiry.conclude(&mut noise, &circumstances);
    audit.learned(&seen.request.key, noise.clone());
    let at = (&seen.request, &seen.headers);
    let shows = |target: &PageTokens, tokens: &PageTokens| {
        noise.without_noise(&differing(target, tokens)).is_empty()
    };
    match &conclusion {
        Conclusion::Differs { class: DifferenceClass::Leak, .. } if is_new => {
            // The page was made for this visitor, just now.
            let cause = cause(site, &ask, audit, at, |tokens| shows(&stored, tokens)).await?;
            Ok((conclusion, Some(cause)))
        }
        Conclusion::Differs { class, .. } => {
            let cause = explained(page, *class, has_dependencies);
            Ok((conclusion, cause))
        }
        Conclusion::Same => {
            let Some(tokens) = &seen.tokens else { return Ok((Conclusion::Same, None)) };
            let difference = noise.without_noise(&differing(&stored, tokens));
            if difference.is_empty() {
                return Ok((Conclusion::Same, None));
            }
            let cause = cause(site, &ask, audit, at, |render| shows(tokens, render)).await?;
            if !is_stored(site, page) {
                return Err(UnjudgedReason::ChangedMeanwhile);
            }
            let is_young = facts.request_time().0.saturating_sub(seen.begun_ms) < YOUNG_MS;
            let class = match cause {
                // The first answer would have been stored, and no other request gets the same.
                DifferenceCause::Unknown
                    if kind == AnswerKind::OfMaker && is_young && !has_dependencies =>
                {
                    DifferenceClass::Leak
                }
                DifferenceCause::Unknown => return Err(UnjudgedReason::CauseUnknown),
                _ => class_of(site, &request_of(&seen.request, None), &cause),
            };
            let places = difference.places(&stored, tokens, 3);
            let conclusion = Conclusion::Differs {
                class,
                places,
                spots: Vec::new(),
                tokens: 0,
                samples: page_comparison::SAMPLES_BEFORE_VERDICT,
                late_by: None,
            };
            Ok((conclusion, Some(cause)))
        }
        Conclusion::Unjudged(_) => Ok((conclusion, None)),
    }
}

/// The cause of a difference that no part of a request makes.
fn explained(
    page: &SharedPage,
    class: DifferenceClass,
    has_dependencies: bool,
) -> Option<DifferenceCause> {
    let facts = &page.payload().stored;
    match class {
        DifferenceClass::BrokenPromise if has_dependencies => {
            let tags = facts.tags().iter().filter_map(|tag| str::from_utf8(tag).ok());
            Some(DifferenceCause::unreported(tags, page.payload().reads().is_some()))
        }
        DifferenceClass::Aged => Some(DifferenceCause::Lifetime(facts.lifetime_ms() / 1_000)),
        _ => None,
    }
}

/// Whether the page is still stored and not marked: another form of the same response counts.
fn is_stored(site: &Site, page: &SharedPage) -> bool {
    let is_it = |other: &SharedPage| {
        other.variant() == page.variant() && other.lease() == page.lease() && !other.is_marked()
    };
    site.answers_from_cache() && site.store.peek(page.key()).iter().any(is_it)
}

/// The version of a page, for the count of different versions.
fn version(site: &Site, page: &SharedPage) -> u64 {
    site.trial.version_of(page.key().bytes(), &page.content())
}

/// The tokens of a page and of the answer in its place; without their content, if that is the same. None if the
/// content of the answer is unknown.
fn both_tokens(
    site: &Arc<Site>,
    state: &AuditState,
    page: &SharedPage,
    answer: &VisitorAnswer,
) -> Option<(PageTokens, PageTokens)> {
    match &answer.content {
        VisitorContent::OfPage => {
            let response = page.response();
            let status = response.status;
            let of_page = tokens(state, (status, &response.headers), &[], true);
            Some((of_page, visitor_tokens(site, state, answer, &[])))
        }
        VisitorContent::Other(content) => {
            let of_visitor = visitor_tokens(site, state, answer, content);
            Some((stored_tokens(state, page), of_visitor))
        }
        VisitorContent::Unknown => None,
    }
}

fn visitor_tokens(
    site: &Arc<Site>,
    state: &AuditState,
    answer: &VisitorAnswer,
    content: &[u8],
) -> PageTokens {
    let ask = request_of(&answer.request, None);
    let headers = visitors_form(site, &ask, (answer.status, &answer.headers));
    tokens(state, (answer.status, &headers), content, false)
}

fn tokens(
    state: &AuditState,
    (status, headers): (StatusCode, &HeaderMap),
    content: &[u8],
    keeps_numbers: bool,
) -> PageTokens {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    PageTokens::of(state.secret, status.as_u16(), fields, content, keeps_numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::clock::Clock;

    fn state() -> TrialState {
        let now = Clock::still().monotonic();
        TrialState {
            audit: Arc::new(AuditState::with_budget(RenderBudget::of_share(now, Some(100)))),
            shared: Mutex::default(),
            hasher: RandomState::new(),
            watches: Arc::new(Semaphore::new(WATCHED_MAX)),
        }
    }

    #[test]
    fn pages_of_a_kind_are_checked_ten_times_and_then_one_in_a_hundred() {
        let state = state();
        let checked = (0..1_000).filter(|_| state.is_checked_for_leaks(7)).count();
        assert_eq!(checked, 20);
        assert!(state.is_checked_for_leaks(8), "another kind has its own count");
        (0..2 * KEYS_MAX as u64).for_each(|kind| drop(state.is_checked_for_leaks(kind)));
        assert!(state.lock().stored.len() <= KEYS_MAX);
    }

    #[test]
    fn a_version_is_looked_into_three_times_and_a_wrong_one_never_again() {
        let state = state();
        let count = |lease| (0..9).filter(|_| state.may_examine(1, lease, 0)).count();
        assert_eq!(count(5), usize::from(EXAMINED_MAX));
        assert_eq!(count(6), usize::from(EXAMINED_MAX), "another version");
        state.found_wrong(1, 7);
        assert_eq!(count(7), 0);
        assert!(state.may_examine(1, 8, 0));
    }

    #[test]
    fn a_page_that_is_purged_at_each_view_is_left_alone_for_an_hour() {
        let state = state();
        assert!(!state.is_restless(1, true, 0) && !state.is_restless(1, true, 0));
        assert!(!state.is_restless(1, false, 0), "a comparison with a result between them");
        assert!(!state.is_restless(1, true, 0) && !state.is_restless(1, true, 0));
        assert!(state.is_restless(1, true, 0));
        assert!(state.is_left_alone(1, RESTLESS_MS - 1) && !state.may_examine(1, 5, 0));
        assert!(!state.is_left_alone(1, RESTLESS_MS) && !state.is_left_alone(2, 0));
    }

    #[test]
    fn most_answers_through_a_proxy_are_noticed_at_the_end_of_a_window() {
        let state = state();
        let last = |share: u32| {
            (0..PROXY_WINDOW).filter_map(|n| state.is_behind_proxy(n % 4 < share)).last()
        };
        assert_eq!(last(3), Some(true));
        assert_eq!(last(2), Some(false));
    }
}
