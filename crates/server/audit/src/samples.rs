//! The samples of a judgement: renders of Pagewell's own, each begun after everything before it was applied and settled.
//!
//! Each render, and each comparison, is counted against the budget (`budget`). Without a free place at the origin, or
//! without memory for the responses, there is none: a visitor never waits for it.

use crate::AuditState;
use crate::budget::{OriginUse, RenderBudget};
use crate::judged_page::{circumstances, is_stored, render_tokens};
use crate::trial_notices::note_render;
use crate::watch::pause;
use change_sources::{SettledWait, settled};
use delivery::byte_account::AccountedBytes;
use delivery::site::Site;
use delivery::trial::TrialRequest;
use http::Method;
use http_cache::ForwardReason;
use page_comparison::{
    Circumstances, Conclusion, Inquiry, InquiryStep, PageNoise, PageSample, UnjudgedReason,
    values_at,
};
use render::{NoReference, ReferenceRender, RenderRequest, SentParts, reference};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use stored_pages::page::{ReadPage, SharedPage};
use tokio::runtime::{Handle, RuntimeFlavor};

/// The longest wait for writes in flight and databases, in milliseconds.
const SETTLE_MAX_MS: u64 = 60_000;

/// The memory for a render of a page, which is asked for before it is made.
pub(crate) fn room_for(site: &Site, page: &SharedPage) -> Result<AccountedBytes, UnjudgedReason> {
    let mut held = AccountedBytes::of(&site.audit.memory);
    if held.grow(page.length()) { Ok(held) } else { Err(UnjudgedReason::NoBudget) }
}

/// Takes the samples that an inquiry needs, each begun after everything before it was applied and settled. Returns the
/// last. Ends once the page is gone: then nothing can be said, and no further render is made. Ends also if there is no
/// memory for the samples: they are counted in `held`, in addition to what it has.
pub(crate) async fn sampled(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    (inquiry, held): (&mut Inquiry, &mut AccountedBytes),
    noise: &PageNoise,
) -> Result<Option<ReferenceRender>, UnjudgedReason> {
    let before = held.bytes();
    let mut last: Option<ReferenceRender> = None;
    loop {
        let content = last.as_ref().map_or(0, |render| render.content.len());
        if !held.set(before + inquiry.bytes() + content) {
            return Err(UnjudgedReason::NoBudget);
        }
        let InquiryStep::Sample { after } = inquiry.step(noise) else { return Ok(last) };
        pause(&site.clock, after).await;
        settle(site).await?;
        if ask.fallback.as_ref().is_some_and(|page| !is_stored(site, page)) {
            return Err(UnjudgedReason::ChangedMeanwhile);
        }
        let begun = site.clock.now().0;
        let sample = render(site, ask, state).await?;
        compute(site, state, || {
            inquiry.add(PageSample { begun, tokens: render_tokens(state, &sample) });
        });
        last = Some(sample);
    }
}

/// Makes a judgement from its samples, after everything before was applied and settled: a page that was replaced meanwhile
/// is not judged. `matched_when_stored`: whether a neutral render right after the page was stored was equal to it, if there
/// was one.
pub(crate) async fn concluded(
    site: &Arc<Site>,
    state: &AuditState,
    (inquiry, page, matched_when_stored): (&Inquiry, &SharedPage, Option<bool>),
    noise: &mut PageNoise,
) -> Result<Conclusion, UnjudgedReason> {
    settle(site).await?;
    let was_replaced = !is_stored(site, page);
    let circumstances = Circumstances { was_replaced, matched_when_stored, ..circumstances(page) };
    Ok(compute(site, state, || inquiry.conclude(noise, &circumstances)))
}

/// The request of a visitor during a trial, for a render of this page.
pub(crate) fn request_of(request: &TrialRequest, page: Option<&SharedPage>) -> RenderRequest {
    let page_of = (request.target.clone(), request.key.clone(), request.plan);
    let asked = (Method::GET, request.version, request.headers.clone());
    let ask = RenderRequest::of_page(page_of, asked, request.client.clone(), ForwardReason::Stale);
    RenderRequest { fallback: page.cloned(), ..ask }
}

/// Compares, without keeping other tasks of this thread from their visitors. The time is counted, and part of the
/// budget.
pub(crate) fn compute<T>(site: &Site, state: &AuditState, comparison: impl FnOnce() -> T) -> T {
    timed(site, state, comparison, RenderBudget::compared)
}

/// The same for an answer of a visitor, in the part of the budget that [`may_compare`] looks at.
pub(crate) fn compute_answer<T>(
    site: &Site,
    state: &AuditState,
    comparison: impl FnOnce() -> T,
) -> T {
    timed(site, state, comparison, RenderBudget::compared_answer)
}

/// Whether the budget has time to compare an answer of a visitor; without it, the answer is left out.
pub(crate) fn may_compare(site: &Site, state: &AuditState) -> bool {
    let (now, used) = (site.clock.monotonic(), origin_use(site));
    state.budget.lock().unwrap_or_else(PoisonError::into_inner).may_compare(now, used)
}

fn timed<T>(
    site: &Site,
    state: &AuditState,
    comparison: impl FnOnce() -> T,
    count: fn(&mut RenderBudget, Duration),
) -> T {
    let begun = site.clock.monotonic();
    let result = match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(comparison),
        _ => comparison(),
    };
    let took = site.clock.monotonic().saturating_sub(begun);
    site.counters.audit_compare_us.add_many(took.as_micros() as u64);
    count(&mut state.budget.lock().unwrap_or_else(PoisonError::into_inner), took);
    result
}

/// The places of the site's origin, and the time that its visitors have used.
pub(crate) fn origin_use(site: &Site) -> OriginUse {
    let places = site.origin.places();
    OriginUse { places: places.count, visitors: places.busy_time() }
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
    let used = origin_use(site);
    if !budget().may_begin(site.clock.monotonic(), used) {
        return Err(UnjudgedReason::NoBudget);
    }
    let begun = site.clock.monotonic();
    let rendered = reference(site, ask, parts).await;
    let took = match &rendered {
        Ok(render) => render.took,
        // It may have held a place until the origin's timeout.
        Err(why) if why.was_sent() => site.clock.monotonic().saturating_sub(begun),
        Err(_) => Duration::ZERO,
    };
    let failure = rendered.as_ref().err().copied();
    if failure != Some(NoReference::NoPlace) {
        budget().spent(took);
    }
    site.counters.audit_origin_us.add_many(took.as_micros() as u64);
    if state.is_of_trial {
        note_render(site, ask.target.page(), (failure, took), parts.is_empty());
    }
    rendered.map_err(|why| match why {
        NoReference::NoPlace => UnjudgedReason::NoPlace,
        _ => UnjudgedReason::RenderFailed,
    })
}

/// Waits until all writes in flight have ended, and then everything committed is applied and settled.
pub(crate) async fn settle(site: &Arc<Site>) -> Result<(), UnjudgedReason> {
    let wait = async {
        site.pending.ended_before(site.pending.mark()).await;
        settled(site.state(), &site.sources).await
    };
    tokio::select! {
        ended = wait => match ended {
            SettledWait::Settled => Ok(()),
            SettledWait::NotFollowed => Err(UnjudgedReason::NotSettled),
        },
        () = pause(&site.clock, SETTLE_MAX_MS) => Err(UnjudgedReason::NotSettled),
    }
}

/// The values of a render at some places.
pub(crate) fn seen_at(
    site: &Site,
    state: &AuditState,
    render: &ReferenceRender,
    spots: &[u64],
) -> Vec<u64> {
    compute(site, state, || values_at(&render_tokens(state, render), spots))
}
