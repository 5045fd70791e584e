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
//! | a change commits after a render has read | the render did not see it; the page is not judged by it |
//! | a render reads a snapshot from before a change, `P` is from after it | the renders began after the first wait, when the change that `P` shows was settled; it may be a cache of the application, which later samples show |
//! | a change commits during the five renders | they disagree; five must agree afterwards, and step 4 sees whether it concerned `P` |
//! | `P` is replaced by a form with the same content | it is the same lease and variant: still `P` |
//! | `P` is replaced by other content | another lease: no verdict |
//! | `P` expires meanwhile | it was fresh when the hit was answered, which is what is judged |
//!
//! No verdict follows a wait of more than 60 seconds. After one, `P` is watched for a minute (`watch`) and rendered again:
//!
//! | what happens to it | result |
//! |---|---|
//! | it is purged or marked | late |
//! | it expires and is replaced | none, because it may have been late; but a leak is one, and a detection |
//! | the last render equals it: a replica was behind | the application was old |
//! | the last render differs as before | the verdict, and a detection (`detections`); a leak if it is right for the other class of devices (`by_device`) |

use crate::detections::{Detection, PageIdentity, PageUrl};
use crate::watch::{PageFate, pause, watched};
use crate::{AuditState, KeyGuard, WatchGuard};
use change_sources::{SettledWait, settled};
use config::target::TargetUri;
use delivery::audit::{AuditedHit, PathLimit};
use delivery::site::Site;
use delivery::trial::TrialRequest;
use history::ChangeSource;
use http::{HeaderMap, Method, StatusCode};
use http_cache::{ForwardReason, Timestamp};
use page_comparison::{
    Circumstances, Conclusion, DifferenceCause, DifferenceClass, Inquiry, InquiryStep,
    PageDependence, PageNoise, PageSample, PageTokens, UnjudgedReason, differing, example_url,
};
use page_store::{Key, KeyBuf, Lease};
use reasons::Reason;
use render::{NoReference, ReferenceRender, RenderRequest, SentParts, other_device, reference};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use stored_pages::page::{ReadPage, SharedPage};
use tokio::runtime::{Handle, RuntimeFlavor};
use trial_record::TrialNotice;

/// The longest wait for writes in flight and databases, in milliseconds.
const SETTLE_MAX_MS: u64 = 60_000;
/// A page without dependencies that differs while it is younger than this was made for its first visitor: its data has
/// hardly changed since. Milliseconds.
pub(crate) const YOUNG_MS: u64 = 10_000;
/// The tag by which an application says that a page shows ages such as "5 minutes ago", which its lifetime bounds. With
/// several sites in one application it follows the number of the site: `2/ages`.
const SHOWS_AGES: &[u8] = b"ages";

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

/// A page that was found wrong, without its content.
struct Suspect {
    conclusion: Conclusion,
    detection: Detection,
    at: PageUrl,
    /// The request of the last render; its page is looked up again.
    ask: RenderRequest,
    key: KeyBuf,
    noise: PageNoise,
    fresh_until: Timestamp,
    _watch: WatchGuard,
}

async fn judged(
    site: &Arc<Site>,
    hit: AuditedHit,
    state: &Arc<AuditState>,
    key: KeyGuard,
) -> Result<FirstVerdict, UnjudgedReason> {
    use DifferenceClass::{Aged, BrokenPromise, Leak};
    let facts = &hit.page.payload().stored;
    let age_ms = site.clock.now().0.saturating_sub(facts.request_time().0);
    let mut ask = request(&hit);
    let mut noise = state.noise(&hit.key);
    if noise.is_random() {
        return Err(UnjudgedReason::Random);
    }
    let first = render(site, &ask, state).await?;
    let stored = compute(site, state, || {
        let stored = stored_tokens(state, &hit.page);
        let difference = differing(&stored, &render_tokens(state, &first));
        (!noise.without_noise(&difference).is_empty()).then_some(stored)
    });
    let Some(stored) = stored else { return Ok(FirstVerdict::Final(Conclusion::Same, false)) };
    let mut inquiry = Inquiry::of_suspect(stored, facts.request_time().0);
    let last = sampled(site, &ask, state, &mut inquiry, &noise).await?;
    settle(site).await?;
    let has_dependencies = has_dependencies(&hit.page);
    let is_young = age_ms < YOUNG_MS;
    let page = identity(site, &hit.page);
    let circumstances = Circumstances {
        was_replaced: !is_stored(site, &hit.page),
        matched_when_stored: (is_young && !has_dependencies).then_some(false),
        ..circumstances(&hit.page)
    };
    let conclusion = compute(site, state, || inquiry.conclude(&mut noise, &circumstances));
    state.learned(&hit.key, noise.clone());
    let found = (conclusion, inquiry.stored(), &noise);
    let (conclusion, is_by_device) = by_device(site, &ask, state, &hit.page, found).await?;
    let (Conclusion::Differs { class: class @ (Aged | BrokenPromise | Leak), .. }, Some(last)) =
        (&conclusion, last)
    else {
        return Ok(FirstVerdict::Final(conclusion, is_by_device));
    };
    let class = *class;
    let at = PageUrl { url: site.audit.url(&hit.target), path: site.audit.path(&hit.target) };
    let before = state.lock().detections.of_page(page, at, site.clock.now().0);
    if let Some(before) = before {
        let limit = PathLimit { is_neutral: before.limit().is_neutral, ..PathLimit::default() };
        act(site, (&hit.target, limit), &hit.page, last.lease());
        let conclusion = conclusion.classified(before.class, None);
        return Ok(FirstVerdict::Final(conclusion, is_by_device));
    }
    let watch = WatchGuard::enter(site, state, page, at).ok_or(UnjudgedReason::NoBudget)?;
    // No further hit of the page is compared; those of other pages may be.
    drop(key);
    let is_of_visitor = is_young || class == DifferenceClass::Leak;
    ask.fallback = None;
    Ok(FirstVerdict::Suspect(Box::new(Suspect {
        detection: Detection { page, class, is_of_visitor, is_by_device },
        fresh_until: facts.fresh_until(),
        key: hit.page.key().to_buf(),
        conclusion,
        at,
        ask,
        noise,
        _watch: watch,
    })))
}

/// Whether a change can be reported that concerns the page.
pub(crate) fn has_dependencies(page: &SharedPage) -> bool {
    !page.payload().stored.tags().is_empty() || page.payload().reads().is_some()
}

/// The circumstances of a page that follow from its declarations.
pub(crate) fn circumstances(page: &SharedPage) -> Circumstances {
    let facts = &page.payload().stored;
    let dependence = if has_dependencies(page) {
        PageDependence::Followed
    } else {
        PageDependence::LifetimeOnly
    };
    let is_it = |tag: &[u8]| tag.rsplit(|byte| *byte == b'/').next() == Some(SHOWS_AGES);
    let may_lag = facts.tags().iter().any(is_it);
    Circumstances { may_lag, ..Circumstances::of(dependence) }
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
        pause(&site.clock, after).await;
        settle(site).await?;
        let begun = site.clock.now().0;
        let sample = render(site, ask, state).await?;
        compute(site, state, || {
            inquiry.add(PageSample { begun, tokens: render_tokens(state, &sample) }, false);
        });
        last = Some(sample);
    }
    Ok(last)
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

impl Suspect {
    /// Watches the page for a minute. If it is still wrong, this is a detection; the second one of its URL has
    /// consequences.
    async fn confirmed(
        self: Box<Self>,
        site: &Arc<Site>,
        state: &Arc<AuditState>,
    ) -> Result<Conclusion, UnjudgedReason> {
        let Suspect { conclusion, detection, at, ask, key, noise, fresh_until, _watch } = *self;
        let Conclusion::Differs { spots, .. } = &conclusion else { return Ok(conclusion) };
        let find = || stored_page(site, key.as_key(), detection.page);
        let begun = site.clock.now();
        site.counters.audit_suspected.add();
        let during = (begun, fresh_until);
        let fate = watched(&site.clock, || find().is_some(), during).await;
        if !site.answers_from_cache() {
            return Err(UnjudgedReason::ChangedMeanwhile);
        }
        let stored = match (fate, find()) {
            (PageFate::Stored, Some(stored)) => stored,
            (PageFate::Expired, _) if detection.class == DifferenceClass::Leak => {
                if state.lock().detections.count(detection, at, site.clock.now().0) {
                    site.audit.limit(&ask.target, detection.limit(), site.clock.now().0);
                }
                return Ok(conclusion);
            }
            (PageFate::Expired, _) => return Err(UnjudgedReason::ChangedMeanwhile),
            (PageFate::Purged | PageFate::Stored, _) => return Ok(late(site, conclusion, begun)),
        };
        settle(site).await?;
        let ask = RenderRequest { fallback: Some(stored.clone()), ..ask };
        let again = render(site, &ask, state).await?;
        let is_as_before = compute(site, state, || {
            let (stored, again) = (stored_tokens(state, &stored), render_tokens(state, &again));
            noise.without_noise(&differing(&stored, &again)).is_at(spots)
        });
        if !is_as_before {
            return Ok(conclusion.classified(DifferenceClass::OldApplication, None));
        }
        settle(site).await?;
        if find().is_none() {
            return Ok(late(site, conclusion, begun));
        }
        let is_second = detection.class != DifferenceClass::Aged
            && state.lock().detections.count(detection, at, site.clock.now().0);
        if is_second {
            act(site, (&ask.target, detection.limit()), &stored, again.lease());
        }
        Ok(conclusion)
    }
}

fn late(site: &Site, conclusion: Conclusion, begun: Timestamp) -> Conclusion {
    let late_by = site.clock.now().0.saturating_sub(begun.0);
    conclusion.classified(DifferenceClass::Late, Some(late_by))
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

/// Counts and logs the result of a comparison.
pub(crate) fn note(
    site: &Site,
    target: &TargetUri,
    (conclusion, cause): (&Conclusion, Option<DifferenceCause>),
) {
    let counters = &site.counters;
    let now_ms = site.clock.now().0;
    let (class, places, samples) = match conclusion {
        Conclusion::Same => {
            counters.audit_compared.add();
            site.audit.compared(false, now_ms);
            return;
        }
        Conclusion::Unjudged(reason) => {
            site.audit.had_no_verdict(*reason);
            return counters.audit_unjudged.add();
        }
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

/// The request of a visitor during a trial, for a render of this page.
pub(crate) fn request_of(request: &TrialRequest, page: Option<&SharedPage>) -> RenderRequest {
    let page_of = (request.target.clone(), request.key.clone(), request.plan);
    let asked = (Method::GET, request.version, request.headers.clone());
    let ask = RenderRequest::of_page(page_of, asked, request.client.clone(), ForwardReason::Stale);
    RenderRequest { fallback: page.cloned(), ..ask }
}

fn request(hit: &AuditedHit) -> RenderRequest {
    let page = (hit.target.clone(), hit.key.clone(), hit.plan);
    let asked = (Method::GET, hit.version, hit.headers.clone());
    let ask = RenderRequest::of_page(page, asked, hit.client.clone(), ForwardReason::Stale);
    RenderRequest { fallback: Some(hit.page.clone()), ..ask }
}

/// Compares, without keeping other tasks of this thread from their visitors. The time is counted, and part of the
/// budget.
pub(crate) fn compute<T>(site: &Site, state: &AuditState, comparison: impl FnOnce() -> T) -> T {
    let begun = site.clock.monotonic();
    let result = match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(comparison),
        _ => comparison(),
    };
    let took = site.clock.monotonic().saturating_sub(begun);
    site.counters.audit_compare_us.add_many(took.as_micros() as u64);
    state.budget.lock().unwrap_or_else(PoisonError::into_inner).compared(took);
    result
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
    if !budget().may_begin(site.clock.monotonic(), site.origin.places().count) {
        return Err(UnjudgedReason::NoBudget);
    }
    site.counters.audit_renders.add();
    match reference(site, ask, parts).await {
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
    tokio::select! {
        ended = wait => match ended {
            SettledWait::Settled => Ok(()),
            SettledWait::NotFollowed => {
                // Only a trial that is on has notices: nothing would remove it from another one.
                if site.trial.is_on() {
                    site.trial.notice(TrialNotice::DatabaseNotFollowed, true);
                }
                Err(UnjudgedReason::NotSettled)
            }
        },
        () = pause(&site.clock, SETTLE_MAX_MS) => Err(UnjudgedReason::NotSettled),
    }
}

/// The page of a key that is still stored and not marked: another form of the same response counts.
fn stored_page(site: &Site, key: Key<'_>, page: PageIdentity) -> Option<SharedPage> {
    let is_it = |other: &&SharedPage| identity(site, other) == page && !other.is_marked();
    site.store.peek(key).iter().find(is_it).cloned()
}

/// Whether this page is still stored and not marked.
pub(crate) fn is_stored(site: &Site, page: &SharedPage) -> bool {
    let is_found = || stored_page(site, page.key(), identity(site, page)).is_some();
    site.answers_from_cache() && is_found()
}

pub(crate) fn identity(site: &Site, page: &SharedPage) -> PageIdentity {
    PageIdentity {
        key: site.audit.key(page.key().bytes()),
        variant: page.variant(),
        lease: page.lease().get(),
        sent_ms: page.payload().stored.request_time().0,
    }
}

pub(crate) fn stored_tokens(state: &AuditState, page: &SharedPage) -> PageTokens {
    let response = page.response();
    tokens(state, (response.status, &response.headers), &page.content(), true)
}

pub(crate) fn render_tokens(state: &AuditState, render: &ReferenceRender) -> PageTokens {
    tokens(state, (render.status, &render.headers), &render.content, true)
}

pub(crate) fn tokens(
    state: &AuditState,
    (status, headers): (StatusCode, &HeaderMap),
    content: &[u8],
    keeps_numbers: bool,
) -> PageTokens {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    PageTokens::of(state.secret, status.as_u16(), fields, content, keeps_numbers)
}
