//! The judgement of one answer of a trial: the page beside neutral renders, and the answer beside the page.
//!
//! Comparing is the work of the processor, up to some tens of milliseconds for a large page. It is done by `compute`,
//! so that other tasks of the same thread go on.

use crate::AuditState;
use crate::cause::{cause, class_of};
use crate::comparison::{
    YOUNG_MS, by_device, circumstances, compute, has_dependencies, is_stored, render,
    render_tokens, request_of, sampled, settle, stored_tokens, tokens,
};
use crate::trial_state::{SeenAnswer, TrialState};
use delivery::site::Site;
use delivery::trial::{VisitorAnswer, VisitorContent};
use page_comparison::{
    Circumstances, Conclusion, DifferenceCause, DifferenceClass, Inquiry, MAX_COMPARED_BYTES,
    PageNoise, PageTokens, SAMPLES_BEFORE_VERDICT, UnjudgedReason, differing,
};
use render::{ReferenceRender, RenderRequest, visitors_form};
use std::sync::Arc;
use stored_pages::page::{ReadPage, SharedPage};

/// Content above this size takes more than a millisecond to decompress.
const LARGE_BYTES: usize = 64 << 10;

/// Places that are named for one difference.
const SHOWN_PLACES: usize = 3;

/// The relation of an answer to the page with which it is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The page would have been sent instead.
    WouldBeHit,
    /// The page was made for this request.
    OfMaker,
}

/// The result of a comparison: what differs, and the part of the request that makes the difference.
pub(crate) type ExaminedAnswer = (Conclusion, Option<DifferenceCause>);

/// Compares a page with renders, and then with the answer that a visitor got. `second` is the answer to the request
/// after the page's maker.
pub(crate) async fn judged(
    site: &Arc<Site>,
    state: &TrialState,
    (page, seen, second): (&SharedPage, &SeenAnswer, Option<&SeenAnswer>),
    kind: AnswerKind,
) -> Result<ExaminedAnswer, UnjudgedReason> {
    let audit = &state.audit;
    let ask = request_of(&seen.request, Some(page));
    let pattern = state.pattern(seen.request.target.page());
    let mut noise = state.noise(&seen.request.key, pattern);
    if noise.is_random() {
        return Err(UnjudgedReason::Random);
    }
    let first = render(site, &ask, audit).await?;
    let look = || first_look(audit, (page, &first), seen, &noise);
    let (stored, is_right, is_visitors) = compute(site, audit, look);
    drop(first);
    if is_right && is_visitors {
        return Ok((Conclusion::Same, None));
    }
    let facts = &page.payload().stored;
    let age_ms = site.clock.now().0.saturating_sub(facts.request_time().0);
    let has_dependencies = has_dependencies(page);
    let mut inquiry = Inquiry::of_suspect(stored.clone(), facts.request_time().0);
    sampled(site, &ask, audit, &mut inquiry, &noise).await?;
    settle(site).await?;
    let is_new = kind == AnswerKind::OfMaker;
    let is_young = age_ms < YOUNG_MS && !has_dependencies;
    let matched_when_stored = if is_new { Some(is_right) } else { is_young.then_some(false) };
    let circumstances = Circumstances {
        was_replaced: !is_stored(site, page),
        matched_when_stored,
        ..circumstances(page)
    };
    let before = noise.clone();
    let conclusion = compute(site, audit, || inquiry.conclude(&mut noise, &circumstances));
    let decided_at = inquiry.decided_at();
    drop(inquiry);
    state.learned((seen.request.key.as_slice(), pattern), &before, noise.clone());
    let found = (conclusion, &stored, &noise);
    let (conclusion, is_by_device) = by_device(site, &ask, audit, page, found).await?;
    if is_by_device {
        return Ok((conclusion, Some(DifferenceCause::device())));
    }
    with_cause(site, audit, (page, seen, second), (&ask, &stored, &noise), {
        JudgedPage { conclusion, is_new, has_dependencies, decided_at }
    })
    .await
}

/// The judgement of a page beside renders.
struct JudgedPage {
    conclusion: Conclusion,
    /// Whether the page was made for the answer's request, just now.
    is_new: bool,
    has_dependencies: bool,
    /// When the renders began that decided.
    decided_at: Option<u64>,
}

/// Adds the cause of a difference, and looks at the answer of the visitor if the page is right.
async fn with_cause(
    site: &Arc<Site>,
    audit: &Arc<AuditState>,
    (page, seen, second): (&SharedPage, &SeenAnswer, Option<&SeenAnswer>),
    (ask, stored, noise): (&RenderRequest, &PageTokens, &PageNoise),
    judged: JudgedPage,
) -> Result<ExaminedAnswer, UnjudgedReason> {
    let JudgedPage { conclusion, is_new, has_dependencies, decided_at } = judged;
    let fresh_until = page.payload().stored.fresh_until().0;
    let at = (&seen.request, &seen.headers);
    match &conclusion {
        Conclusion::Differs { class: DifferenceClass::Leak, .. } if is_new => {
            // The page was made for this visitor, just now.
            let shows = |tokens: &PageTokens| is_like(noise, stored, tokens);
            let cause = cause(site, ask, audit, at, shows).await?;
            Ok((conclusion, Some(cause)))
        }
        // The renders show data of a time at which the page was not sent any more.
        Conclusion::Differs { class, .. }
            if class.is_wrong()
                && !has_dependencies
                && decided_at.is_some_and(|at| at >= fresh_until) =>
        {
            Err(UnjudgedReason::ChangedMeanwhile)
        }
        Conclusion::Differs { class, .. } => {
            let cause = explained(page, *class, has_dependencies);
            Ok((conclusion, cause))
        }
        Conclusion::Same => {
            let is_for_each = |second: &SeenAnswer| {
                compute(site, audit, || is_another(noise, stored, (seen, second)))
            };
            let is_leak = is_new && !has_dependencies && second.is_some_and(is_for_each);
            of_visitor(site, audit, (page, seen), (ask, stored, noise), is_leak).await
        }
        Conclusion::Unjudged(_) => Ok((conclusion, None)),
    }
}

/// Compares a page with its first render and with the answer of a visitor. Returns the page as tokens, whether the
/// render is like it, and whether the answer is.
fn first_look(
    audit: &AuditState,
    (page, first): (&SharedPage, &ReferenceRender),
    seen: &SeenAnswer,
    noise: &PageNoise,
) -> (PageTokens, bool, bool) {
    let stored = stored_tokens(audit, page);
    let is_right = is_like(noise, &stored, &render_tokens(audit, first));
    let is_visitors = seen.tokens.as_ref().is_none_or(|tokens| is_like(noise, &stored, tokens));
    (stored, is_right, is_visitors)
}

/// Whether two responses differ at places of noise only.
fn is_like(noise: &PageNoise, one: &PageTokens, other: &PageTokens) -> bool {
    noise.without_noise(&differing(one, other)).is_empty()
}

/// Whether two visitors got different answers, and neither is the page. If only the first differs, its data may have
/// changed before the second request.
fn is_another(
    noise: &PageNoise,
    stored: &PageTokens,
    (first, second): (&SeenAnswer, &SeenAnswer),
) -> bool {
    let (Some(first), Some(second)) = (&first.tokens, &second.tokens) else { return false };
    !is_like(noise, stored, second) && !is_like(noise, first, second)
}

/// The answer of a visitor differs from a page that is right for a visitor of whom nothing is known. `is_of_maker`: the
/// page was made from this answer's request, nothing that it depends on is known, and the next visitor got something
/// else again.
async fn of_visitor(
    site: &Arc<Site>,
    audit: &AuditState,
    (page, seen): (&SharedPage, &SeenAnswer),
    (ask, stored, noise): (&RenderRequest, &PageTokens, &PageNoise),
    is_of_maker: bool,
) -> Result<ExaminedAnswer, UnjudgedReason> {
    let Some(tokens) = &seen.tokens else { return Ok((Conclusion::Same, None)) };
    let difference = compute(site, audit, || noise.without_noise(&differing(stored, tokens)));
    if difference.is_empty() {
        return Ok((Conclusion::Same, None));
    }
    let shows = |render: &PageTokens| is_like(noise, tokens, render);
    let cause = cause(site, ask, audit, (&seen.request, &seen.headers), shows).await?;
    if !is_stored(site, page) {
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    let stored_at = page.payload().stored.request_time().0;
    let is_young = stored_at.saturating_sub(seen.begun_ms) < YOUNG_MS;
    let class = match cause {
        // The first answer would have been stored, and each visitor gets another.
        DifferenceCause::Unknown if is_of_maker && is_young => DifferenceClass::Leak,
        DifferenceCause::Unknown => return Err(UnjudgedReason::CauseUnknown),
        _ => class_of(site, &request_of(&seen.request, None), &cause),
    };
    let conclusion = Conclusion::Differs {
        class,
        places: difference.places_of_visitor(stored, tokens, SHOWN_PLACES),
        spots: Vec::new(),
        tokens: 0,
        samples: SAMPLES_BEFORE_VERDICT,
        late_by: None,
    };
    Ok((conclusion, Some(cause)))
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

/// The version of a page, for the count of different versions.
pub(crate) fn version(site: &Site, state: &AuditState, page: &SharedPage) -> u64 {
    let version = || site.trial.version_of(page.key().bytes(), &page.content());
    // The content may have to be decompressed.
    if page.length() > LARGE_BYTES { compute(site, state, version) } else { version() }
}

/// Runs a comparison with an answer: by `compute`, unless only header sections are compared.
pub(crate) fn compute_with<T>(
    site: &Site,
    state: &AuditState,
    answer: &VisitorAnswer,
    comparison: impl FnOnce() -> T,
) -> T {
    match &answer.content {
        VisitorContent::Other(_) | VisitorContent::TooLong => compute(site, state, comparison),
        VisitorContent::OfPage | VisitorContent::Unknown => comparison(),
    }
}

/// The tokens of a page and of the answer in its place; without their content, if that is the same. None if the
/// content of the answer is unknown. One that is too long is some other content, which no render has.
pub(crate) fn both_tokens(
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
        VisitorContent::TooLong => {
            let other = vec![0; MAX_COMPARED_BYTES + 1];
            let of_visitor = visitor_tokens(site, state, answer, &other);
            Some((stored_tokens(state, page), of_visitor))
        }
        VisitorContent::Unknown => None,
    }
}

pub(crate) fn visitor_tokens(
    site: &Arc<Site>,
    state: &AuditState,
    answer: &VisitorAnswer,
    content: &[u8],
) -> PageTokens {
    let ask = request_of(&answer.request, None);
    let headers = visitors_form(site, &ask, (answer.status, &answer.headers));
    tokens(state, (answer.status, &headers), content, false)
}
