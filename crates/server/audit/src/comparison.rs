//! One comparison: renders, waits, the verdict, and what follows from it.
//!
//! **Why a verdict against a page is right.** The page `P` is found wrong only after these steps, in this order:
//!
//! 1. **Wait**: the writes in flight have ended, then everything committed is applied and settled.
//! 2. Five renders begin after this wait, and agree with each other. The last ends at `t`.
//! 3. **Wait** again, begun at `t`.
//! 4. `P` is still stored and not marked, by key, variant and lease.
//!
//! | interleaving | why it leads to no wrong verdict |
//! |---|---|
//! | a change commits before a render and is seen by it; it concerns `P` | it committed before `t`, so the second wait applies it: `P` is gone at step 4 |
//! | … and is announced by the response of a write that is in flight at `t` | the second wait lets that write end, and its tags are applied before it ends |
//! | a change commits after a render has read | the render did not see it; the page is not judged by it |
//! | a render reads a snapshot from before a change, `P` is from after it | the renders began after the first wait, when the change that `P` shows was settled; it may be a cache of the application, which later samples show |
//! | a change commits during the five renders | they disagree; five must agree afterwards, and step 4 sees whether it concerned `P` |
//! | `P` is replaced by a form with the same content | it is the same lease and variant: still `P` |
//! | `P` is replaced by other content | another lease: no verdict |
//! | `P` expires meanwhile | it was fresh when the hit was answered, which is what is judged |
//!
//! If a wait takes longer than 60 seconds, there is no verdict.

use crate::{AuditState, KeyGuard};
use change_sources::{SettledWait, settled};
use delivery::audit::{AuditedHit, PathLimit};
use delivery::site::Site;
use delivery::trial::TrialRequest;
use history::ChangeSource;
use http::{HeaderMap, Method};
use http_cache::ForwardReason;
use page_comparison::{
    Circumstances, Conclusion, DifferenceClass, Inquiry, InquiryStep, PageDependence, PageNoise,
    PageSample, PageTokens, UnjudgedReason, differing, example_url,
};
use reasons::Reason;
use render::{
    ExtraFields, NoReference, Ranges, ReferenceRender, RenderRequest, SentParts, control,
};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use stored_pages::page::{ReadPage, SharedPage};

/// The longest wait for writes in flight and databases.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// How long a page is watched that was found wrong: a purge within this time was late.
const LATE_SECONDS: u32 = 60;
/// A page without dependencies that differs while it is younger than this was made for its first visitor: its data has
/// hardly changed since. Milliseconds.
const YOUNG_MS: u64 = 10_000;

/// Compares the page of a hit with renders, and acts if it is found wrong for the second time.
pub(crate) async fn compared(
    site: &Arc<Site>,
    hit: &AuditedHit,
    state: &AuditState,
    key: KeyGuard,
) -> Conclusion {
    match judged(site, hit, state, key).await {
        Ok(conclusion) => conclusion,
        Err(reason) => Conclusion::Unjudged(reason),
    }
}

async fn judged(
    site: &Arc<Site>,
    hit: &AuditedHit,
    state: &AuditState,
    key: KeyGuard,
) -> Result<Conclusion, UnjudgedReason> {
    let ask = request(hit);
    let mut noise = state.noise(&hit.key);
    let stored = stored_tokens(state, &hit.page);
    let first = render(site, &ask, state).await?;
    if noise.without_noise(&differing(&stored, &render_tokens(state, &first))).is_empty() {
        return Ok(Conclusion::Same);
    }
    let facts = &hit.page.payload().stored;
    let age_ms = site.clock.now().0.saturating_sub(facts.request_time().0);
    let mut inquiry = Inquiry::of_suspect(stored, facts.request_time().0);
    let last = sampled(site, &ask, state, &mut inquiry, &noise).await?;
    settle(site).await?;
    let has_dependencies = !facts.tags().is_empty() || hit.page.payload().reads().is_some();
    let dependence =
        if has_dependencies { PageDependence::Followed } else { PageDependence::LifetimeOnly };
    let is_young = age_ms < YOUNG_MS;
    let mut circumstances = Circumstances {
        was_replaced: !is_stored(site, &hit.page),
        matched_when_stored: (is_young && !has_dependencies).then_some(false),
        ..Circumstances::of(dependence)
    };
    let mut conclusion = inquiry.conclude(&mut noise, &circumstances);
    state.learned(&hit.key, noise.clone());
    let (Conclusion::Differs { class, .. }, Some(last)) = (&conclusion, last) else {
        return Ok(conclusion);
    };
    let is_harmful = matches!(class, DifferenceClass::BrokenPromise | DifferenceClass::Leak);
    if !is_harmful {
        return Ok(conclusion);
    }
    let now_ms = site.clock.now().0;
    if state.is_second_detection(site.audit.path(&hit.target), now_ms) {
        act(site, hit, &last, is_young, *class);
        return Ok(conclusion);
    }
    // The next hit may be compared meanwhile: it may be the second detection.
    drop((last, key));
    site.counters.audit_suspected.add();
    if let Some(seconds) = purged_within(site, hit).await {
        circumstances.was_replaced = true;
        circumstances.purged_after = Some(u64::from(seconds) * 1_000);
        conclusion = inquiry.conclude(&mut noise, &circumstances);
    }
    Ok(conclusion)
}

/// Takes the samples that an inquiry needs, each begun after everything before it was applied and settled. Returns the
/// last.
pub(crate) async fn sampled(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    inquiry: &mut Inquiry,
    noise: &PageNoise,
) -> Result<Option<ReferenceRender>, UnjudgedReason> {
    let mut last = None;
    while let InquiryStep::Sample { after } = inquiry.step(noise) {
        passed(site, after).await;
        settle(site).await?;
        let begun = site.clock.now().0;
        let sample = render(site, ask, state).await?;
        inquiry.add(PageSample { begun, tokens: render_tokens(state, &sample) }, false);
        last = Some(sample);
    }
    Ok(last)
}

/// Waits for so many milliseconds by the site's clock, which tests can set.
async fn passed(site: &Site, milliseconds: u64) {
    let until = site.clock.now().0 + milliseconds;
    while let Some(rest @ 1..) = until.checked_sub(site.clock.now().0) {
        tokio::time::sleep(Duration::from_millis(rest.min(250))).await;
    }
}

/// Purges the page here and on other nodes, and limits its path for an hour. A young page may have been made for its
/// first visitor, whatever it depends on.
fn act(
    site: &Arc<Site>,
    hit: &AuditedHit,
    last: &ReferenceRender,
    is_young: bool,
    class: DifferenceClass,
) {
    let limit = PathLimit {
        is_short: class == DifferenceClass::BrokenPromise,
        is_neutral: is_young || class == DifferenceClass::Leak,
    };
    site.audit.limit(&hit.target, limit, site.clock.now().0);
    let by = ChangeSource::Superseded { status: last.status.as_u16(), reason: Reason::Audited };
    site.changes().end_page(&hit.page, last.lease(), hit.target.page().as_bytes(), by);
    site.counters.audit_purged.add();
}

/// Counts and logs the result of a comparison.
pub(crate) fn note(site: &Site, hit: &AuditedHit, conclusion: &Conclusion) {
    let counters = &site.counters;
    let now_ms = site.clock.now().0;
    let (class, places, samples) = match conclusion {
        Conclusion::Same => {
            counters.audit_compared.add();
            site.audit.compared(false, now_ms);
            return;
        }
        Conclusion::Unjudged(_) => return counters.audit_unjudged.add(),
        Conclusion::Differs { class, places, samples, .. } => (*class, places, *samples),
    };
    counters.audit_compared.add();
    site.audit.compared(class.is_wrong(), now_ms);
    match class {
        DifferenceClass::BrokenPromise => counters.audit_broken_promises.add(),
        DifferenceClass::Leak => counters.audit_leaks.add(),
        DifferenceClass::Aged => counters.audit_aged.add(),
        DifferenceClass::Late => counters.audit_late.add(),
        DifferenceClass::ByTheClock => counters.audit_by_the_clock.add(),
        DifferenceClass::OldApplication => counters.audit_old_application.add(),
        DifferenceClass::Random | DifferenceClass::Loses => counters.audit_random.add(),
        // A nonce is on most pages with a form: it is counted as right.
        DifferenceClass::Noise | DifferenceClass::RefusedButSame => return,
    }
    let (class, places) = (class.name(), places.join("; "));
    let url = example_url(hit.target.page());
    let meaning = DifferenceClass::of_name(class).map_or("", DifferenceClass::meaning);
    if DifferenceClass::of_name(class).is_some_and(DifferenceClass::is_wrong) {
        tracing::warn!(event = "audit-found", class, url, places, samples, meaning);
    } else {
        tracing::info!(event = "audit-found", class, url, places, samples, meaning);
    }
}

/// The request of a visitor during a trial, for a render of this page.
pub(crate) fn request_of(request: &TrialRequest, page: Option<&SharedPage>) -> RenderRequest {
    RenderRequest {
        target: request.target.clone(),
        key: request.key.clone(),
        method: Method::GET,
        headers: request.headers.clone(),
        version: request.version,
        client: request.client.clone(),
        plan: request.plan,
        why: ForwardReason::Stale,
        validate: None,
        fallback: page.cloned(),
        ranges: Ranges::Cut,
        owner: None,
        extra_fields: ExtraFields::default(),
    }
}

fn request(hit: &AuditedHit) -> RenderRequest {
    RenderRequest {
        target: hit.target.clone(),
        key: hit.key.clone(),
        method: Method::GET,
        headers: hit.headers.clone(),
        version: hit.version,
        client: hit.client.clone(),
        plan: hit.plan,
        why: ForwardReason::Stale,
        validate: None,
        fallback: Some(hit.page.clone()),
        ranges: Ranges::Cut,
        owner: None,
        extra_fields: ExtraFields::default(),
    }
}

/// A reference render, if the budget and the places at the origin allow it.
pub(crate) async fn render(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
) -> Result<ReferenceRender, UnjudgedReason> {
    render_with(site, ask, state, &SentParts::default()).await
}

/// The same with some parts of a visitor's request.
pub(crate) async fn render_with(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    parts: &SentParts,
) -> Result<ReferenceRender, UnjudgedReason> {
    let budget = || state.budget.lock().unwrap_or_else(PoisonError::into_inner);
    if !budget().may_begin(site.clock.monotonic(), site.config.limits.origin_connections) {
        return Err(UnjudgedReason::NoBudget);
    }
    site.counters.audit_renders.add();
    match control(site, ask, parts).await {
        Ok(render) => {
            budget().spent(render.took);
            site.trial.rendered(render.took);
            site.counters.audit_origin_us.add_many(render.took.as_micros() as u64);
            Ok(render)
        }
        Err(NoReference::NoPlace) => Err(UnjudgedReason::NoBudget),
        Err(NoReference::OnlyForVisitor | NoReference::Failed | NoReference::NotCompared) => {
            budget().spent(Duration::ZERO);
            Err(UnjudgedReason::RenderFailed)
        }
    }
}

/// Waits until all writes in flight have ended, and then everything committed is applied and settled.
pub(crate) async fn settle(site: &Arc<Site>) -> Result<(), UnjudgedReason> {
    let wait = async {
        site.pending.ended_before(site.pending.mark()).await;
        settled(site.state(), &site.sources).await
    };
    match tokio::time::timeout(SETTLE_MAX, wait).await {
        Ok(SettledWait::Settled) => Ok(()),
        Ok(SettledWait::NotFollowed) | Err(_) => Err(UnjudgedReason::NotSettled),
    }
}

/// Whether the page is still stored and not marked: another form of the same response counts.
fn is_stored(site: &Site, page: &SharedPage) -> bool {
    let is_it = |other: &SharedPage| {
        other.variant() == page.variant() && other.lease() == page.lease() && !other.is_marked()
    };
    site.answers_from_cache() && site.store.peek(page.key()).iter().any(is_it)
}

/// Watches a page that was found wrong; after how many seconds it was purged, if so. None if a second detection has
/// purged it: that is no late announcement.
async fn purged_within(site: &Site, hit: &AuditedHit) -> Option<u32> {
    for seconds in 1..=LATE_SECONDS {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if !is_stored(site, &hit.page) {
            let limit = site.audit.limit_of(&hit.target, site.clock.now().0);
            return (limit == PathLimit::default()).then_some(seconds);
        }
    }
    None
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

pub(crate) fn stored_tokens(state: &AuditState, page: &SharedPage) -> PageTokens {
    let response = page.response();
    let (status, content) = (response.status.as_u16(), page.content());
    PageTokens::of(state.secret, status, fields(&response.headers), &content, true)
}

pub(crate) fn render_tokens(state: &AuditState, render: &ReferenceRender) -> PageTokens {
    let status = render.status.as_u16();
    PageTokens::of(state.secret, status, fields(&render.headers), &render.content, true)
}
