//! A trial: makes the pages that would have been stored, and compares them with the answers that visitors get.
//!
//! | the answer | what follows |
//! |---|---|
//! | the first of its key | remembered, with its content as tokens |
//! | the second | the page is rendered as for the first visitor and stored; for a sample it is compared at once with a neutral render, and with both answers (a leak) |
//! | of a fresh page, and equal | the page is right for this visitor |
//! | of a fresh page, and different | neutral renders: if they agree with the page, the visitor's request is searched for the cause; otherwise the page is judged as in an audit. A young one that was not compared when it was stored is ended, and the next one is compared then |
//!
//! The waits before a verdict, and the argument why it is right, are those of an audit (`comparison`): an answer of a
//! visitor is never a sample against a page, only the occasion to look. A page that is found out of date is watched for a
//! minute, and judged again (`trial_watch`).
//!
//! | interleaving | why nothing wrong is reported |
//! |---|---|
//! | data change while the page is made | it is not there, but not refused: it is made again, and left alone after three times |
//! | a change purges the page while the visitor's answer is made | the page was looked up before; it is gone, so there is no verdict |
//! | the answer shows older data than the page (a slow render, a replica) | the neutral renders agree with the page, and no control render shows the difference: a suspect, not a verdict |
//! | data without dependencies changes between the first request and the second | the second answer equals the page: the first is no leak |
//! | it changes between the page and its neutral render | the page's own request, sent again, does not show the page either: it is no leak |
//! | it changes with the clock or at each view, so that no answer is like another | the request as a whole does not show its answer again, or the page differs after as long a time: no leak |
//! | the page is purged, or its key left alone, while an answer beside it waits | nothing is rendered, and its path is not suspect |
//! | another visitor gets what the page has, or another part of a request is a cause | the difference is not explained (`unexplained`) |
//! | a restart or a pause ends the state that knows a suspect, and another page of its pattern is explained | the record keeps the suspect |
//! | a reload ends the trial during a comparison | the page stays as it is; feeds of a record that is off are dropped |
//! | the page expires, or is made again | another lease: no verdict |
//! | the renders of the search for a cause see a change that ends the page | everything is settled before the page is looked at again |
//!
//! Memory: 64 first requests with the tokens of their answers (32 MiB at most), 4,096 keys and as many versions of pages
//! with the number of their requests and comparisons, and 16 comparisons at a time.

use crate::comparison::act;
use crate::detections::{Detection, PageUrl};
use crate::judged_page::{identity, is_brief_age, is_stored, render_tokens};
use crate::made_page::{MadePage, stored_for};
use crate::parameters;
use crate::refused_pages::RefusedAnswer;
use crate::samples::{compute, render, request_of};
use crate::seen_answer::{SeenAnswer, could_be_stored, is_personal, is_refused_beside};
use crate::seen_visitors::VisitorNumbers;
use crate::trial_judgement::{
    AnswerKind, answer_tokens, both_tokens, compute_with, is_ended_by_change, judged,
    reason_without_render, version, visitor_tokens,
};
use crate::trial_notices::{cache_in_front, writes_at_each_view};
use crate::trial_state::{LeaveReason, TrialState, VersionLook};
use crate::trial_watch::{outlives_nonce, record_after_watch};
use crate::unexplained::{Explanation, places_of};
use crate::without_verdict::{explain_by_visitor, note_unjudged, without_verdict};
use crate::{AT_ONCE, KeyGuard, may_request};
use delivery::audit::PathLimit;
use delivery::site::Site;
use delivery::trial::{TrialRequest, VisitorAnswer, VisitorContent};
use http::{StatusCode, header};
use page_comparison::{
    Conclusion, DifferenceCause, DifferenceClass, DifferingText, UnjudgedReason, differing,
    path_pattern,
};
use render::is_of_mobile;
use request_values::target::TargetUri;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_fields::AsSent;
use tokio::sync::Semaphore;
use trial_record::{FoundDifference, TrialNotice};

/// How long a page that is not stored is not made again, unless a visitor's answer could be stored now. Milliseconds.
const REFUSED_MS: u64 = 600_000;

/// How long after the last answer the end of a trial is noticed: requests of visitors are not kept any longer.
const END_SEEN_AFTER: Duration = Duration::from_secs(60);

/// The state of a trial, with the budget and the record for which it is.
struct CurrentTrial {
    budget: Option<u32>,
    generation: u64,
    state: Arc<TrialState>,
}

impl CurrentTrial {
    /// The trial of the site, if there is one: the state so far, if the record is the same. No setting of a trial ends
    /// it, because a suspect that it does not know is never explained.
    fn of(site: &Site, before: Option<CurrentTrial>) -> Option<CurrentTrial> {
        let budget = site.config.trial.as_ref()?.budget;
        let generation = site.trial.generation();
        let Some(before) = before else {
            let state = Arc::new(TrialState::new(site));
            return Some(CurrentTrial { budget, generation, state });
        };
        if before.budget != budget {
            before.state.begin_budget(site);
        }
        let is_same = before.generation == generation;
        let state = if is_same { before.state } else { Arc::new(before.state.of_new_record()) };
        Some(CurrentTrial { budget, generation, state })
    }
}

/// Compares the answers of a trial until the server stops. Waits while there is none.
pub async fn run(site: Arc<Site>, mut stop: PhaseWatch) {
    let Some(mut answers) = site.trial_queue.receive() else { return };
    let (mut current, at_once) = (None::<CurrentTrial>, Arc::new(Semaphore::new(AT_ONCE)));
    loop {
        let answer = tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            Some(answer) = answers.recv() => Some(answer),
            () = tokio::time::sleep(END_SEEN_AFTER), if current.is_some() => None,
        };
        let site = site.now();
        current = CurrentTrial::of(&site, current.take());
        let (Some(CurrentTrial { state, .. }), Some(answer)) = (&current, answer) else { continue };
        let state = state.clone();
        let key = state.hasher.hash_one(&answer.request.key);
        let visitor = VisitorNumbers::of(&site, &state.hasher, &answer.request);
        notice(&site, &state, (&answer, visitor));
        refused_again(&site, &state, (&answer, visitor), key);
        let done = DoneGuard(site.clone());
        let Ok(place) = at_once.clone().try_acquire_owned() else { continue };
        let Some(guard) = KeyGuard::enter(&state.audit, &answer.request.key, place) else {
            continue;
        };
        let mut stop = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = stop.wait_for(Phase::is_leaving) => {}
                () = compared(&site, &state, (answer, visitor), (key, guard)) => {}
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
fn notice(site: &Site, state: &TrialState, (answer, visitor): (&VisitorAnswer, VisitorNumbers)) {
    if visitor.cookies.is_some() && state.is_first_cookie() {
        site.trial.has_cookies();
    }
    let trust = answer.request.client.connection.proxy_trust;
    let seen = cache_in_front(&answer.request.headers, trust);
    for (notice, is_there) in state.in_front(seen).into_iter().flatten() {
        site.trial.notice(notice, is_there);
    }
}

async fn compared(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (mut answer, visitor): (VisitorAnswer, VisitorNumbers),
    (key, guard): (u64, KeyGuard),
) {
    parameters::look(site, state, (&answer, visitor)).await;
    let page = answer.page.take();
    if page.is_none() && is_storable_now(site, state, &answer, key) {
        state.look_again(key);
    }
    // Renders are of the page: they have no parameter that was removed from it.
    let left_alone = state.left_alone(key, site.clock.now().0);
    let may_render = may_request(site, &answer.request.target) && left_alone.is_none();
    match page {
        Some(page) => {
            let way = (may_render, left_alone);
            hit(site, state, (page, answer, visitor), (key, guard), way).await;
        }
        None if may_render => missed(site, state, (answer, visitor), (key, guard)).await,
        // Its page would be stored, and nothing is known about it.
        None if left_alone.is_none() && could_be_stored(site, &answer) => {
            site.trial.unjudged(answer.request.target.page(), UnjudgedReason::NotRequested, false);
        }
        None => {}
    }
}

/// Compares an answer with the page that would have been sent instead. `left_alone`: the reason why nothing is rendered
/// for the key now.
async fn hit(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (page, answer, visitor): (SharedPage, VisitorAnswer, VisitorNumbers),
    (key, guard): (u64, KeyGuard),
    (may_render, left_alone): (bool, Option<LeaveReason>),
) {
    let url = answer.request.target.page().to_owned();
    let pattern = state.pattern(&url);
    let noise = state.noise(&answer.request.key, pattern);
    let found = compute_with(site, &state.audit, &answer, || {
        let (of_page, of_visitor) = both_tokens(site, &state.audit, &page, &answer)?;
        let all = differing(&of_page, &of_visitor);
        Some((noise.without_noise(&all), !all.is_empty(), of_visitor))
    });
    let (difference, has_noise, of_visitor) = match found {
        Ok(found) => found,
        Err(reason) => return site.trial.unjudged(&url, reason, false),
    };
    let is_equal = difference.is_empty();
    // The noise may have been learned after a difference was seen.
    if is_equal
        && has_noise
        && let Some(are_all) = state.explains_last((pattern, key), Explanation::Noise, &noise)
    {
        site.trial.explained(&url, are_all);
    }
    if is_equal && has_noise && noise.is_random() {
        site.trial.unjudged(&url, UnjudgedReason::Random, false);
        return;
    }
    if is_equal {
        site.trial.notice(TrialNotice::OriginFailing, false);
        site.trial.compared(&url, version(site, &state.audit, (&page, &noise)));
        state.count_comparison(key, false, 0);
        return;
    }
    if !may_render {
        let is_refused = is_refused_beside(answer.status, &page);
        let why = reason_without_render(left_alone, is_stored(site, &page), is_refused);
        if let Some(why) = why {
            note_unjudged(site, state, (&url, (pattern, key)), why, || places_of(&difference));
        }
        return;
    }
    match state.look_into(identity(site, &page), site.clock.now().0) {
        VersionLook::Now => {}
        VersionLook::Later => return site.trial.unjudged(&url, UnjudgedReason::NoBudget, false),
        VersionLook::Never => return,
    }
    let tokens = Some(match &answer.content {
        VisitorContent::OfPage => compute(site, &state.audit, || {
            visitor_tokens(site, &state.audit, &answer, &page.content())
        }),
        _ => of_visitor,
    });
    let seen = SeenAnswer::of(site, (answer, visitor), tokens);
    examine(site, state, (&page, &seen, None), AnswerKind::WouldBeHit, (key, &guard)).await;
}

/// Whether an answer could be stored, and those beside its page could not be when that was refused.
fn is_storable_now(site: &Arc<Site>, state: &TrialState, answer: &VisitorAnswer, key: u64) -> bool {
    let is_unstorable = state.refused_pages().is_unstorable(key);
    is_unstorable && could_be_stored(site, answer)
}

/// An answer of a key for which there is no page.
async fn missed(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (answer, visitor): (VisitorAnswer, VisitorNumbers),
    (key, guard): (u64, KeyGuard),
) {
    let is_storable = could_be_stored(site, &answer);
    let tokens = match answer_tokens(site, &state.audit, &answer) {
        Ok(tokens) => tokens,
        Err(reason) => return site.trial.unjudged(answer.request.target.page(), reason, false),
    };
    let seen = SeenAnswer::of(site, (answer, visitor), tokens);
    let mut second = Some(seen);
    let Some(first) = state.first_of(key, || second.take().expect("it is taken once")) else {
        return;
    };
    let page = match stored_for(site, state, &first).await {
        MadePage::Stored(page) => page,
        MadePage::NotNow(reason) => {
            if let Some(reason) = reason {
                site.trial.unjudged(first.request.target.page(), reason, false);
            }
            return;
        }
        MadePage::Overtaken => {
            if state.count_overtaken(key, site.clock.now().0) {
                writes_at_each_view(site, first.request.target.page());
            }
            return;
        }
        MadePage::Refused => {
            state.refused_pages().refuse(key, is_storable);
            if state.has_made_none() {
                site.trial.notice(TrialNotice::NothingStored, true);
            }
            state.leave_alone(key, LeaveReason::NotStored, site.clock.now().0 + REFUSED_MS);
            // A page that an audit does not let be stored is none that could be.
            let limit = site.audit.limit_of(&first.request.target, site.clock.now().0);
            if let Some(second) = second.filter(|_| limit == PathLimit::default()) {
                refused(site, state, (&first, &second), key).await;
            }
            return;
        }
    };
    state.made(key);
    site.trial.notice(TrialNotice::NothingStored, false);
    let kind = state.hasher.hash_one(kind_of(site, &first.request));
    let is_due = state.was_due(key);
    if !state.is_checked_for_leaks(kind) && !is_due {
        return;
    }
    let of_maker = (&page, &first, second.as_ref());
    let is_right = examine(site, state, of_maker, AnswerKind::OfMaker, (key, &guard)).await;
    let second = second.filter(|second| second.request.headers != first.request.headers);
    if let Some(second) = second.filter(|_| is_right && is_stored(site, &page)) {
        let of_second = (&page, &second, None);
        examine(site, state, of_second, AnswerKind::OfSecond, (key, &guard)).await;
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
    (path_pattern(request.target.page()), cookies, is_of_mobile(&request.headers), language)
}

/// Two visitors got answers that are not stored. If both, and a neutral render, are the same all the same, the page is
/// watched: an advice may rest on more visitors.
async fn refused(
    site: &Arc<Site>,
    state: &TrialState,
    (first, second): (&SeenAnswer, &SeenAnswer),
    key: u64,
) {
    let page = first.request.target.page();
    if site.trial.is_withdrawn(page) || state.refused_pages().visitors(key).is_some() {
        return;
    }
    let (Some(one), Some(other)) = (&first.tokens, &second.tokens) else { return };
    if is_personal(&first.headers) || is_personal(&second.headers) || !one.is_same(other) {
        site.trial.withdraw(page);
        return;
    }
    if first.request.headers == second.request.headers {
        return;
    }
    // Answers that arrive during the render are compared, too.
    state.refused_pages().watch(key, one.digest(), [first.visitor, second.visitor]);
    let ask = request_of(&first.request, None);
    let neutral = render(site, &ask, &state.audit).await;
    let neutral = neutral.ok().filter(|render| render.status == StatusCode::OK);
    let Some(neutral) = neutral else { return state.refused_pages().forget(key) };
    if !compute(site, &state.audit, || render_tokens(&state.audit, &neutral).is_same(one)) {
        state.refused_pages().forget(key);
        site.trial.withdraw(page);
        return;
    }
    // It was withdrawn meanwhile if it is not watched any more.
    let seen = state.refused_pages().visitors(key);
    let Some(seen) = seen else { return };
    let class = DifferenceClass::RefusedButSame;
    let cause = second.field_of_cache().map(|field| DifferenceCause::OtherCache(field.into()));
    let text = DifferingText::default();
    let found = FoundDifference { class, places: Vec::new(), cause, late_ms: 0, text };
    site.trial.found(page, found, site.clock.now().0 / 1_000);
    site.trial.refused(page, None, seen);
}

/// Compares a further answer of a page that is not stored although all got the same so far. It needs no render, so only
/// those are left out that were not kept, or have no budget. A worker would leave it out while its key is compared.
fn refused_again(
    site: &Arc<Site>,
    state: &TrialState,
    (answer, visitor): (&VisitorAnswer, VisitorNumbers),
    key: u64,
) {
    if answer.page.is_some() || state.refused_pages().visitors(key).is_none() {
        return;
    }
    let page = answer.request.target.page();
    let tokens = match &answer.content {
        VisitorContent::OfPage | VisitorContent::Unknown => return,
        _ if is_personal(&answer.headers) => Ok(None),
        _ => answer_tokens(site, &state.audit, answer),
    };
    let digest = match tokens {
        Ok(tokens) => tokens.map(|tokens| tokens.digest()),
        Err(reason) => return site.trial.unjudged(page, reason, false),
    };
    let compared = state.refused_pages().compare(key, digest, visitor);
    match compared {
        Some(RefusedAnswer::Same(seen)) => site.trial.refused(page, Some(answer.took), seen),
        Some(RefusedAnswer::Differs) => site.trial.withdraw(page),
        None => {}
    }
}

/// Compares a page with renders, and records the result. Returns whether the page and the answer are right.
async fn examine(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (page, seen, second): (&SharedPage, &SeenAnswer, Option<&SeenAnswer>),
    kind: AnswerKind,
    (key, _guard): (u64, &KeyGuard),
) -> bool {
    let url = seen.request.target.page();
    let generation = site.trial.generation();
    let (result, text) = if is_stored(site, page) {
        judged(site, state, (page, seen, second), kind).await
    } else {
        (Err(UnjudgedReason::ChangedMeanwhile), DifferingText::default())
    };
    if site.trial.generation() != generation {
        // A new record begins with nothing of the old one.
        return false;
    }
    let pattern = state.pattern(url);
    let (conclusion, cause) = match result {
        Ok((conclusion, _)) if is_brief_age(page, &conclusion) => (Conclusion::Same, None),
        result => result.unwrap_or_else(|why| (Conclusion::Unjudged(why), None)),
    };
    let is_changed = conclusion == Conclusion::Unjudged(UnjudgedReason::ChangedMeanwhile);
    let was_purged = is_changed && is_ended_by_change(site, page);
    // A page that has expired, or that the trial has ended, shows nothing about its views.
    let is_counted = was_purged || !is_changed;
    if is_counted && state.count_comparison(key, was_purged, site.clock.now().0) {
        writes_at_each_view(site, url);
        return false;
    }
    let at = (pattern, key);
    if let Conclusion::Unjudged(reason) = conclusion {
        let reason = if is_stored(site, page) { reason } else { UnjudgedReason::ChangedMeanwhile };
        without_verdict(site, state, (page, seen), kind, (at, reason));
        return false;
    }
    let noise = state.noise(&seen.request.key, pattern);
    site.trial.compared(url, version(site, &state.audit, (page, &noise)));
    let class = match &conclusion {
        Conclusion::Differs { class, .. } => Some(*class),
        Conclusion::Same | Conclusion::Unjudged(_) => None,
    };
    if kind != AnswerKind::OfMaker {
        explain_by_visitor(site, state, (page, seen), (at, class, &noise));
    }
    let Conclusion::Differs { class, places, .. } = conclusion else { return true };
    if class == DifferenceClass::Noise && !outlives_nonce(page, &places) {
        return false;
    }
    if class.is_wrong() {
        state.found_wrong(identity(site, page), true);
    }
    if class == DifferenceClass::Leak {
        let is_by_device = cause == Some(DifferenceCause::device());
        end_leak(site, state, (page, &seen.request.target), (key, is_by_device));
    }
    let found = FoundDifference { class, places, cause, late_ms: 0, text };
    record_after_watch(site, state, (page, &seen.request), found);
    false
}

/// Ends a page that is a leak if visitors may get it (`trial.serve`), and leaves its key alone for a while, unless the
/// operator has accepted the difference by name. A second page of the same URL within an hour limits the URL as in an
/// audit; then the page has nothing of one visitor, and stays.
fn end_leak(
    site: &Arc<Site>,
    state: &TrialState,
    (page, target): (&SharedPage, &TargetUri),
    (key, is_by_device): (u64, bool),
) {
    let now_ms = site.clock.now().0;
    let is_sent = site.config.trial.as_ref().is_some_and(|trial| trial.serve > 0);
    if !is_sent
        || site.trial.accepts(DifferenceClass::Leak, target.page())
        || site.audit.limit_of(target, now_ms) != PathLimit::default()
    {
        return;
    }
    let detection = Detection {
        page: identity(site, page),
        class: DifferenceClass::Leak,
        is_of_visitor: true,
        is_by_device,
    };
    let at = PageUrl { url: site.audit.url(target), path: site.audit.path(target) };
    let is_second = state.audit.lock().detections.count(detection, at, now_ms);
    let limit = if is_second { detection.limit() } else { PathLimit::default() };
    act(site, (target, limit), page, &site.store.lease());
    state.leave_alone(key, LeaveReason::Leak, now_ms + REFUSED_MS);
}
