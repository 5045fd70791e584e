//! One comparison: renders, waits, the verdict, and what follows from it.
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
//! | … by a write whose content is still arriving at `t` | the origin has nothing of it, so no render saw it: it is not waited for |
//! | a change commits after a render has read | the render did not see it; the page is not judged by it |
//! | a render reads a snapshot from before a change, `P` is from after it | the renders began after the first wait, when the change that `P` shows was settled; it may be a cache of the application, which later samples show |
//! | a change commits during the five renders | they disagree; five must agree afterwards, and step 4 sees whether it concerned `P` |
//! | `P` is replaced by a form with the same content | it is the same lease and variant: still `P` |
//! | `P` is replaced by other content | another lease: no verdict |
//! | `P` expires before the first of the five renders has ended | no verdict: the data may have changed afterwards |
//!
//! No verdict follows a wait of more than 60 seconds. After one, `P` is watched for a minute (`suspect`).
//! An audit does not know the request for which a page was made, so these renders decide whether it is a **leak**:
//!
//! | what is known | result |
//! |---|---|
//! | a render for the other class of devices equals it, or one with the fields of the visitor whose hit is compared; neutral ones before and after it do not | a leak: its data are still there, for a request like its maker's |
//! | the page was equal to a render before | no leak: its data have changed |
//! | neither; it has no dependencies, and is younger than ten seconds | one of the two (`LeakOrAged`), handled as a leak, because that is safe for both |
//! | neither; it is older | aged: its data are likelier to have changed |

use crate::cause::is_made_again;
use crate::detections::{Detection, PageUrl};
use crate::judged_page::{
    identity, is_after_lifetime, is_brief_age, is_stored, render_tokens, stored_tokens,
};
use crate::samples::{
    compute, concluded, render, render_with, request_of, room_for, sampled, seen_at, settle,
};
use crate::suspect::Suspect;
use crate::{AuditState, KeyGuard, WatchGuard};
use delivery::audit::{AuditedHit, PathLimit};
use delivery::site::Site;
use delivery::trial::TrialRequest;
use history::ChangeSource;
use page_comparison::{
    Conclusion, DifferenceCause, DifferenceClass, Inquiry, PageNoise, PageTokens, UnjudgedReason,
    differing, example_url,
};
use page_store::Lease;
use reasons::Reason;
use render::{ReferenceRender, RenderRequest, other_device};
use request_values::target::TargetUri;
use std::sync::Arc;
use stored_pages::page::{ReadPage, SharedPage};

/// A page without dependencies that differs while it is younger than this may have been made for its first visitor: its data
/// have hardly changed since. Milliseconds.
pub(crate) const YOUNG_MS: u64 = 10_000;

/// Compares the page of a hit with renders, and acts if it is found wrong for the second time.
pub(crate) async fn compared(
    site: &Arc<Site>,
    hit: AuditedHit,
    state: &Arc<AuditState>,
    key: KeyGuard,
) -> (Conclusion, Option<DifferenceCause>) {
    let (result, is_by_device) = match judged(site, hit, state, key).await {
        Ok(FirstVerdict::Final(conclusion, is_by_device)) => (Ok(conclusion), is_by_device),
        Ok(FirstVerdict::Suspect(suspect)) => {
            let is_by_device = suspect.detection.is_by_device;
            (suspect.confirmed(site, state).await, is_by_device)
        }
        Err(reason) => (Err(reason), false),
    };
    let cause = is_by_device.then(DifferenceCause::device);
    (result.unwrap_or_else(Conclusion::Unjudged), cause)
}

/// The result of the first renders.
enum FirstVerdict {
    /// The comparison has ended. Whether the page was made for one class of devices.
    Final(Conclusion, bool),
    /// The page was found wrong, and is watched.
    Suspect(Box<Suspect>),
}

async fn judged(
    site: &Arc<Site>,
    hit: AuditedHit,
    state: &Arc<AuditState>,
    key: KeyGuard,
) -> Result<FirstVerdict, UnjudgedReason> {
    use DifferenceClass::{Aged, BrokenPromise, Leak, LeakOrAged};
    let facts = &hit.page.payload().stored;
    let age_ms = site.clock.now().0.saturating_sub(facts.request_time().0);
    let page = identity(site, &hit.page);
    let visitor = visitor_of(&hit);
    let mut ask = request_of(&visitor, Some(&hit.page));
    let mut noise = state.noise(&hit.key);
    if noise.is_random() {
        return Err(UnjudgedReason::Random);
    }
    let mut held = room_for(site, &hit.page)?;
    let Some(stored) = differs_at_first(site, &ask, state, (&hit.page, &noise)).await? else {
        state.found_right(page);
        return Ok(FirstVerdict::Final(Conclusion::Same, false));
    };
    let mut inquiry = Inquiry::of_suspect(stored, facts.request_time().0);
    let last = sampled(site, &ask, state, (&mut inquiry, &mut held), &noise).await?;
    let conclusion = concluded(site, state, (&inquiry, &hit.page, None), &mut noise).await?;
    state.learned(&hit.key, noise.clone());
    let found = (conclusion, inquiry.stored(), &noise);
    let is_young = age_ms < YOUNG_MS && !state.was_right(page);
    let (conclusion, is_by_device) =
        by_maker(site, state, (&ask, &visitor), (&hit.page, is_young), found).await?;
    if is_brief_age(&hit.page, &conclusion) {
        return Ok(FirstVerdict::Final(Conclusion::Same, false));
    }
    let (Conclusion::Differs { class, spots, .. }, Some(last)) = (&conclusion, last) else {
        return Ok(FirstVerdict::Final(conclusion, is_by_device));
    };
    // A leak was one while it was sent.
    if *class != Leak && is_after_lifetime(&hit.page, inquiry.decided_at(), &conclusion) {
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    let (class, seen) = (*class, seen_at(site, state, &last, spots));
    if !matches!(class, Aged | BrokenPromise | Leak | LeakOrAged) {
        return Ok(FirstVerdict::Final(conclusion, is_by_device));
    }
    let at = PageUrl { url: site.audit.url(&hit.target), path: site.audit.path(&hit.target) };
    let before = state.lock().detections.of_page(page, at, site.clock.now().0);
    if let Some(before) = before {
        let is_neutral = before.limit().is_neutral || class == Leak && !is_by_device;
        let limit = PathLimit { is_neutral, ..PathLimit::default() };
        act(site, (&hit.target, limit), &hit.page, last.lease());
        let class = if class == Leak { class } else { before.class };
        return Ok(FirstVerdict::Final(conclusion.classified(class, None), is_by_device));
    }
    let watch = WatchGuard::enter(site, state, page, at).ok_or(UnjudgedReason::NoBudget)?;
    // No further hit of the page is compared; those of other pages may be.
    drop(key);
    let is_of_visitor = is_young || class == Leak;
    ask.fallback = None;
    Ok(FirstVerdict::Suspect(Box::new(Suspect {
        detection: Detection { page, class, is_of_visitor, is_by_device },
        until: facts.fresh_until(),
        key: hit.page.key().to_buf(),
        conclusion,
        at,
        ask,
        noise,
        seen,
        watch,
    })))
}

/// The page as tokens, if a first render differs from it.
async fn differs_at_first(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    (page, noise): (&SharedPage, &PageNoise),
) -> Result<Option<PageTokens>, UnjudgedReason> {
    let first = render(site, ask, state).await?;
    Ok(compute(site, state, || {
        let stored = stored_tokens(state, page);
        let difference = differing(&stored, &render_tokens(state, &first));
        (!noise.without_noise(&difference).is_empty()).then_some(stored)
    }))
}

/// Whether a page that was found wrong is right for devices of the other class, so that it is a leak. A settled render
/// for such a device equals it, and one for the visitor's class still differs: the data are not what they were.
/// Returns the conclusion, and whether the page is for one class.
pub(crate) async fn by_device(
    site: &Arc<Site>,
    ask: &RenderRequest,
    state: &AuditState,
    page: &SharedPage,
    (conclusion, stored, noise): (Conclusion, &PageTokens, &PageNoise),
) -> Result<(Conclusion, bool), UnjudgedReason> {
    use DifferenceClass::{Aged, BrokenPromise, Leak};
    let class = match &conclusion {
        Conclusion::Differs { class: class @ (Aged | BrokenPromise | Leak), .. } => *class,
        _ => return Ok((conclusion, false)),
    };
    let Some(other) = other_device(ask) else { return Ok((conclusion, false)) };
    let is_page = |render: &ReferenceRender| {
        let difference = || differing(stored, &render_tokens(state, render));
        compute(site, state, || noise.without_noise(&difference()).is_empty())
    };
    let is_others = match render_with(site, ask, state, &other).await {
        Ok(render) => is_page(&render),
        // It is a leak in any case.
        Err(_) if class == Leak => return Ok((conclusion, false)),
        Err(reason) => return Err(reason),
    };
    let is_back = is_others && is_page(&render(site, ask, state).await?);
    settle(site).await?;
    if is_back || !is_stored(site, page) {
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    Ok((if is_others { conclusion.classified(Leak, None) } else { conclusion }, is_others))
}

/// The class of a page that an audit found wrong, as far as the request decides it for which it was made; see the table at
/// the top. Returns the conclusion, and whether the page is for one class of devices.
async fn by_maker(
    site: &Arc<Site>,
    state: &AuditState,
    (ask, visitor): (&RenderRequest, &TrialRequest),
    (page, is_young): (&SharedPage, bool),
    (conclusion, stored, noise): (Conclusion, &PageTokens, &PageNoise),
) -> Result<(Conclusion, bool), UnjudgedReason> {
    use DifferenceClass::{Aged, BrokenPromise, Leak, LeakOrAged};
    let found = (conclusion, stored, noise);
    let (conclusion, is_by_device) = by_device(site, ask, state, page, found).await?;
    let class = match &conclusion {
        Conclusion::Differs { class: class @ (Aged | BrokenPromise), .. } => *class,
        _ => return Ok((conclusion, is_by_device)),
    };
    let shows = |render: &ReferenceRender| {
        noise.without_noise(&differing(stored, &render_tokens(state, render))).is_empty()
    };
    let was_right = state.was_right(identity(site, page));
    // Without such a render nothing is known.
    let is_leak =
        !was_right && is_made_again(site, ask, state, visitor, shows).await.unwrap_or(false);
    let class = match class {
        _ if is_leak => Leak,
        Aged if is_young => LeakOrAged,
        class => class,
    };
    Ok((conclusion.classified(class, None), false))
}

/// Purges a page here and on other nodes, and limits its URL for an hour.
pub(crate) fn act(
    site: &Arc<Site>,
    (target, limit): (&TargetUri, PathLimit),
    page: &SharedPage,
    lease: &Lease,
) {
    if limit != PathLimit::default() {
        site.audit.limit(target, limit, site.clock.now().0);
    }
    let by = ChangeSource::Superseded {
        status: page.response().status.as_u16(),
        reason: Reason::Audited,
    };
    site.changes().end_page(page, lease, target.page().as_bytes(), by);
    site.counters.audit_purged.add();
}

/// Counts and logs the result of a comparison. That it has ended is counted last: the rest is known by then.
pub(crate) fn note(
    site: &Site,
    target: &TargetUri,
    (conclusion, cause): (&Conclusion, Option<DifferenceCause>),
) {
    let counters = &site.counters;
    let now_ms = site.clock.now().0;
    match conclusion {
        Conclusion::Unjudged(reason) => {
            site.audit.had_no_verdict(*reason);
            return counters.audit_unjudged.add();
        }
        Conclusion::Same => site.audit.hours.compared(false, now_ms),
        Conclusion::Differs { class, places, samples, .. } => {
            site.audit.hours.compared(class.is_wrong(), now_ms);
            note_difference(site, target, (*class, cause), (places.as_slice(), *samples));
        }
    }
    counters.audit_compared.add();
}

/// Counts and logs a difference.
fn note_difference(
    site: &Site,
    target: &TargetUri,
    (class, cause): (DifferenceClass, Option<DifferenceCause>),
    (places, samples): (&[String], usize),
) {
    let counters = &site.counters;
    match class {
        DifferenceClass::BrokenPromise => counters.audit_broken_promises.add(),
        DifferenceClass::Leak => counters.audit_leaks.add(),
        DifferenceClass::LeakOrAged => counters.audit_leaks_or_aged.add(),
        DifferenceClass::Aged => counters.audit_aged.add(),
        DifferenceClass::Late => counters.audit_late.add(),
        DifferenceClass::ByTheClock => counters.audit_by_the_clock.add(),
        DifferenceClass::OldApplication => counters.audit_old_application.add(),
        DifferenceClass::Random | DifferenceClass::Loses => counters.audit_random.add(),
        // A nonce is on most pages with a form: it is counted as right.
        DifferenceClass::Noise | DifferenceClass::RefusedButSame => return,
    }
    let (is_wrong, meaning) = (class.is_wrong(), class.meaning());
    let cause = cause.filter(|_| class == DifferenceClass::Leak);
    let cause = cause.as_ref().map(DifferenceCause::text).unwrap_or_default();
    let (class, places) = (class.name(), places.join("; "));
    let url = example_url(target.page());
    if is_wrong {
        tracing::warn!(event = "audit-found", class, url, places, samples, meaning, cause);
    } else {
        tracing::info!(event = "audit-found", class, url, places, samples, meaning);
    }
}

/// The request of the visitor whose hit is compared.
fn visitor_of(hit: &AuditedHit) -> TrialRequest {
    let mut client = hit.client.clone();
    // The visitor has its answer: a render is no part of its time and its trace.
    (client.extras.spent, client.extras.trace) = (None, None);
    TrialRequest {
        target: hit.target.clone(),
        written: hit.target.clone(),
        key: hit.key.clone(),
        headers: hit.headers.clone(),
        version: hit.version,
        client,
        plan: hit.plan,
    }
}
