//! The judgement of one answer of a trial: the page beside neutral renders, and the answer beside the page.
//!
//! Comparing is the work of the processor, up to some tens of milliseconds for a large page. It is done by `compute`,
//! so that other tasks of the same thread go on.

use crate::AuditState;
use crate::cause::{cause, class_of, is_made_again, is_made_otherwise, is_sent_whole};
use crate::comparison::{YOUNG_MS, act, by_device};
use crate::judged_page::{
    has_dependencies, identity, is_after_lifetime, is_stored, render_tokens, stored_tokens, tokens,
};
use crate::samples::{
    compute, compute_answer, concluded, may_compare, render, request_of, room_for, sampled, settle,
};
use crate::seen_answer::SeenAnswer;
use crate::trial_state::{LeaveReason, TrialState};
use crate::trial_text::text_of;
use crate::watch::pause;
use delivery::audit::PathLimit;
use delivery::byte_account::AccountedBytes;
use delivery::site::Site;
use delivery::trial::{VisitorAnswer, VisitorContent};
use history::ChangeSource;
use page_comparison::{
    Conclusion, DifferenceCause, DifferenceClass, DifferingText, Inquiry, MAX_COMPARED_BYTES,
    PageNoise, PageTokens, SAMPLES_BEFORE_VERDICT, TokenSecret, UnjudgedReason, differing,
};
use reasons::Reason;
use render::{ReferenceRender, RenderRequest, visitors_form};
use std::hash::BuildHasher;
use std::sync::Arc;
use stored_pages::page::{ReadPage, SharedPage};

/// Content above this size takes more than a millisecond to decompress.
const LARGE_BYTES: usize = 64 << 10;

/// Places that are named for one difference.
const SHOWN_PLACES: usize = 3;

/// The relation of an answer to the page with which it is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    /// The page would have been sent instead, and differs.
    WouldBeHit,
    /// The page was made for this request.
    OfMaker,
    /// The page would have been sent instead of this second answer; whether it differs, the first render will show.
    OfSecond,
}

impl AnswerKind {
    /// Whether an answer without a verdict differs from a page that other visitors get, so that its path is suspect.
    /// `is_refused`: the origin has refused its visitor in place of the page.
    pub(crate) fn is_suspect(self, reason: UnjudgedReason, is_refused: bool) -> bool {
        match (self, reason) {
            // A page that was purged meanwhile would not have been sent any more. One that is another at each render says
            // nothing about a visitor, and its further answers are no suspects.
            (AnswerKind::OfMaker, _)
            | (_, UnjudgedReason::ChangedMeanwhile | UnjudgedReason::Random) => false,
            // One visitor may be refused what all others get. A page that strangers do not get makes renders fail.
            (_, reason) if is_refused => reason == UnjudgedReason::RenderFailed,
            (AnswerKind::OfSecond, reason) => !reason.is_without_render(),
            (AnswerKind::WouldBeHit, _) => true,
        }
    }
}

/// The reason why an answer that differs from its page has no verdict, if nothing may be rendered for it, and whether
/// its path is suspect by it; `None` if it says nothing new. `left_alone`: the reason why nothing is rendered for the
/// key now; without one, the page may not be requested. `is_stored`: whether the page is still there. `is_refused`:
/// whether the origin has refused the visitor in place of the page, which says nothing about the page without a render.
pub(crate) fn reason_without_render(
    left_alone: Option<LeaveReason>,
    is_stored: bool,
    is_refused: bool,
) -> Option<(UnjudgedReason, bool)> {
    match left_alone {
        Some(LeaveReason::Leak) => None,
        Some(LeaveReason::WritesAtEachView) => Some((UnjudgedReason::WritesAtEachView, false)),
        // A page that was purged meanwhile would not have been sent any more.
        _ if !is_stored => Some((UnjudgedReason::ChangedMeanwhile, false)),
        Some(LeaveReason::NotStored) => Some((UnjudgedReason::NotStored, !is_refused)),
        None => Some((UnjudgedReason::NotRequested, !is_refused)),
    }
}

/// Whether a change has ended a page: it is gone before the end of its lifetime, and the trial itself has not ended it.
pub(crate) fn is_ended_by_change(site: &Site, page: &SharedPage) -> bool {
    let is_over = site.clock.now() >= page.payload().stored.fresh_until();
    if is_over || is_stored(site, page) {
        return false;
    }
    let entry = site.history.of_key(page.key().bytes());
    let last = entry.as_ref().and_then(|entry| entry.dropped());
    // A page that was evicted has none.
    last.is_some_and(|last| {
        !matches!(*last.by, ChangeSource::Superseded { reason: Reason::Audited, .. })
    })
}

/// The result of a comparison: what differs, and the part of the request that makes the difference.
pub(crate) type ExaminedAnswer = (Conclusion, Option<DifferenceCause>);

/// Compares a page with renders, and then with the answer that a visitor got. `second` is the answer to the request
/// after the page's maker. Returns also the words that differ, as far as they may be shown.
pub(crate) async fn judged(
    site: &Arc<Site>,
    state: &TrialState,
    (page, seen, second): (&SharedPage, &SeenAnswer, Option<&SeenAnswer>),
    kind: AnswerKind,
) -> (Result<ExaminedAnswer, UnjudgedReason>, DifferingText) {
    let pattern = state.pattern(seen.request.target.page());
    let (mut last, mut noise) = (None, state.noise(&seen.request.key, pattern));
    let of_page = (page, seen, second);
    let learned = (&mut last, &mut noise);
    let result = judged_by_renders(site, state, of_page, kind, learned).await;
    let text = match &result {
        Ok((conclusion, _)) => text_of(site, state, (page, seen), (conclusion, last, &noise)),
        Err(_) => DifferingText::default(),
    };
    (result, text)
}

/// The same without the words. `last` gets the last of the renders, and `noise` the noise that they show.
async fn judged_by_renders(
    site: &Arc<Site>,
    state: &TrialState,
    (page, seen, second): (&SharedPage, &SeenAnswer, Option<&SeenAnswer>),
    kind: AnswerKind,
    (last, noise): (&mut Option<ReferenceRender>, &mut PageNoise),
) -> Result<ExaminedAnswer, UnjudgedReason> {
    let audit = &state.audit;
    let ask = request_of(&seen.request, Some(page));
    if noise.is_random() {
        return Err(UnjudgedReason::Random);
    }
    let mut held = held_by(site, page, seen, second)?;
    let first = render(site, &ask, audit).await?;
    let look = || first_look(audit, (page, &first), seen, noise);
    let (stored, is_right, is_visitors) = compute(site, audit, look);
    drop(first);
    let is_new = kind == AnswerKind::OfMaker;
    let (key, version) = (state.hasher.hash_one(&seen.request.key), identity(site, page));
    if is_right {
        state.found_equal(version, is_new);
    }
    if is_right && is_visitors {
        return Ok((Conclusion::Same, None));
    }
    let facts = &page.payload().stored;
    let age_ms = site.clock.now().0.saturating_sub(facts.request_time().0);
    let has_dependencies = has_dependencies(page);
    let mut inquiry = Inquiry::of_suspect(stored.clone(), facts.request_time().0);
    *last = sampled(site, &ask, audit, (&mut inquiry, &mut held), noise).await?;
    let before = noise.clone();
    let of_page = (&inquiry, page, is_new.then_some(is_right));
    let conclusion = concluded(site, audit, of_page, noise).await?;
    let is_young = age_ms < YOUNG_MS && !has_dependencies;
    let noise: &PageNoise = noise;
    let decided_at = inquiry.decided_at();
    drop(inquiry);
    let pattern = state.pattern(seen.request.target.page());
    state.learned((seen.request.key.as_slice(), pattern), &before, noise.clone());
    let found = (conclusion, &stored, noise);
    let (conclusion, is_by_device) = by_device(site, &ask, audit, page, found).await?;
    if is_by_device {
        return Ok((conclusion, Some(DifferenceCause::device())));
    }
    let class = match &conclusion {
        Conclusion::Differs { class, .. } => Some(*class),
        Conclusion::Same | Conclusion::Unjudged(_) => None,
    };
    let is_aged = class == Some(DifferenceClass::Aged);
    let is_unjudged = matches!(conclusion, Conclusion::Unjudged(_));
    if is_new && class != Some(DifferenceClass::Leak) && !is_unjudged {
        state.found_for_all(version);
    }
    if !is_new && is_young && is_aged && state.may_be_of_maker(key, version) {
        // Its data or its maker: the next page of the key shows it.
        let at = (&seen.request.target, PathLimit::default());
        act(site, at, page, &site.store.lease());
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    with_cause(site, audit, (page, seen, second), (&ask, &stored, noise), {
        JudgedPage { conclusion, is_new, has_dependencies, decided_at }
    })
    .await
}

/// The memory of the first render, and of the answers of visitors that are compared.
fn held_by(
    site: &Site,
    page: &SharedPage,
    seen: &SeenAnswer,
    second: Option<&SeenAnswer>,
) -> Result<AccountedBytes, UnjudgedReason> {
    let mut held = room_for(site, page)?;
    let bytes = seen.bytes() + second.map_or(0, SeenAnswer::bytes);
    if held.grow(bytes) { Ok(held) } else { Err(UnjudgedReason::NoBudget) }
}

/// The judgement of a page beside renders.
struct JudgedPage {
    conclusion: Conclusion,
    /// Whether the page was made for the answer's request, just now.
    is_new: bool,
    has_dependencies: bool,
    /// When the first of the renders had ended that decided.
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
    let at = (&seen.request, &seen.headers, None);
    match &conclusion {
        Conclusion::Differs { class: DifferenceClass::Leak, .. } if is_new => {
            // The page was made for this visitor, just now.
            let shows =
                |render: &ReferenceRender| is_like(noise, stored, &render_tokens(audit, render));
            let are_alike = |one: &PageTokens, other: &PageTokens| is_like(noise, one, other);
            let cause = cause(site, ask, audit, at, shows).await?;
            if cause != DifferenceCause::Unknown
                || is_made_again(site, ask, audit, &seen.request, shows).await?
                || is_made_otherwise(site, ask, audit, &seen.request, are_alike).await?
            {
                return Ok((conclusion, Some(cause)));
            }
            settle(site).await?;
            if !is_stored(site, page) || is_after_lifetime(page, decided_at, &conclusion) {
                return Err(UnjudgedReason::ChangedMeanwhile);
            }
            let class = if has_dependencies {
                DifferenceClass::BrokenPromise
            } else {
                DifferenceClass::Aged
            };
            let cause = explained(site, page, class, has_dependencies);
            Ok((conclusion.classified(class, None), cause))
        }
        _ if is_after_lifetime(page, decided_at, &conclusion) => {
            Err(UnjudgedReason::ChangedMeanwhile)
        }
        Conclusion::Differs { class, .. } => {
            let cause = explained(site, page, *class, has_dependencies);
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
/// changed before the second request. Answers to the same visitor that differ are not the visitor's.
fn is_another(
    noise: &PageNoise,
    stored: &PageTokens,
    (first_seen, second_seen): (&SeenAnswer, &SeenAnswer),
) -> bool {
    let (Some(first), Some(second)) = (&first_seen.tokens, &second_seen.tokens) else {
        return false;
    };
    let is_other = first_seen.request.headers != second_seen.request.headers
        || first_seen.request.client.peer.map(|peer| peer.ip())
            != second_seen.request.client.peer.map(|peer| peer.ip());
    is_other && !is_like(noise, stored, second) && !is_like(noise, first, second)
}

/// Whether the page stays as it is for as long as its maker's answer was older. A text that differs with time would change
/// again.
async fn stays(
    site: &Arc<Site>,
    audit: &AuditState,
    (page, ask): (&SharedPage, &RenderRequest),
    (stored, noise): (&PageTokens, &PageNoise),
    older_ms: u64,
) -> Result<bool, UnjudgedReason> {
    pause(&site.clock, older_ms.max(1_000)).await;
    settle(site).await?;
    if !is_stored(site, page) {
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    let again = render(site, ask, audit).await?;
    Ok(compute(site, audit, || is_like(noise, stored, &render_tokens(audit, &again))))
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
    let refusal = seen.refused_beside(page);
    let status = refusal.map(|refusal| refusal.status);
    let shows = |render: &ReferenceRender| match status {
        // Each refusal may have a number of its own.
        Some(status) => render.status == status,
        None => is_like(noise, tokens, &render_tokens(audit, render)),
    };
    let at = (&seen.request, &seen.headers, status);
    let cause = match cause(site, ask, audit, at, shows).await {
        // All else by which the visitor is refused says no more about the page.
        Err(UnjudgedReason::RenderFailed) if refusal.is_some() => DifferenceCause::Unknown,
        cause => cause?,
    };
    let class = match cause {
        DifferenceCause::Unknown => None,
        // The page has nothing of its maker, and no other visitor would be refused instead of it.
        _ if refusal.is_some_and(|refusal| !refusal.may_be_stored) => Some(DifferenceClass::Loses),
        _ => {
            let is_page =
                |render: &ReferenceRender| is_like(noise, stored, &render_tokens(audit, render));
            Some(class_of(site, ask, audit, at, &cause, is_page).await?)
        }
    };
    // The renders of the search may have seen a change that ends the page.
    settle(site).await?;
    if !is_stored(site, page) {
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    let stored_at = page.payload().stored.request_time().0;
    let older_ms = stored_at.saturating_sub(seen.begun_ms);
    let may_be_leak = is_of_maker
        && refusal.is_none()
        && older_ms < YOUNG_MS
        && !is_sent_whole(site, &seen.request, &seen.headers);
    let is_leak = cause == DifferenceCause::Unknown
        && may_be_leak
        && stays(site, audit, (page, ask), (stored, noise), older_ms).await?;
    let class = match class {
        Some(class) => class,
        // The first answer would have been stored, and each visitor gets another.
        None if is_leak => DifferenceClass::Leak,
        None => return Err(UnjudgedReason::CauseUnknown),
    };
    let conclusion = Conclusion::Differs {
        class,
        places: difference.places_of_visitor(stored, tokens, SHOWN_PLACES),
        spots: Vec::new(),
        tokens: 0,
        samples: SAMPLES_BEFORE_VERDICT,
        late_by: None,
        is_age: false,
    };
    Ok((conclusion, Some(cause)))
}

/// The cause of a difference that no part of a request makes.
fn explained(
    site: &Site,
    page: &SharedPage,
    class: DifferenceClass,
    has_dependencies: bool,
) -> Option<DifferenceCause> {
    let facts = &page.payload().stored;
    match class {
        DifferenceClass::BrokenPromise if has_dependencies => {
            let tags = facts.tags().iter().filter_map(|tag| str::from_utf8(tag).ok());
            let reads = page.payload().reads();
            let tables = reads.map(|reads| site.footprints.tables_of(reads));
            Some(DifferenceCause::unreported(tags, tables.as_deref()))
        }
        DifferenceClass::Aged => Some(DifferenceCause::Lifetime(facts.lifetime_ms() / 1_000)),
        _ => None,
    }
}

/// The version of a page, for the count of different versions: its content without what is known to be noise. A page
/// with text that is drawn at each render has one version, because its words are never at the same places; one that is
/// random as a whole proves nothing, and has none.
pub(crate) fn version(
    site: &Site,
    state: &AuditState,
    (page, noise): (&SharedPage, &PageNoise),
) -> Option<u64> {
    if noise.is_random() {
        return None;
    }
    let of = |content: &[u8]| site.trial.version_of(page.key().bytes(), content);
    if noise.is_drawn() {
        return Some(of(b""));
    }
    let version = || {
        if noise.is_empty() {
            return of(&page.content());
        }
        of(&noise.comparable_bytes(&version_tokens(page)))
    };
    // Its content is cut into tokens, or may have to be decompressed.
    let takes_time = !noise.is_empty() || page.length() > LARGE_BYTES;
    Some(if takes_time { compute_answer(site, state, version) } else { version() })
}

/// A page as tokens whose hashes are the same after a restart. They are hashed with the secret of the record.
fn version_tokens(page: &SharedPage) -> PageTokens {
    let response = page.response();
    let fields = response.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    PageTokens::of(TokenSecret::of(0), response.status.as_u16(), fields, &page.content(), false)
}

/// Runs a comparison of a page with an answer: by `compute_answer`, unless only header sections are compared.
/// `comparison` returns `None` if the content of the answer is unknown: there was no memory for it, or it could not be
/// decoded. An error also if the budget allows no comparison. It allows none of an equal answer either: the confidence
/// bound supposes that the result of a comparison does not decide whether it is made.
pub(crate) fn compute_with<T>(
    site: &Site,
    state: &AuditState,
    answer: &VisitorAnswer,
    comparison: impl FnOnce() -> Option<T>,
) -> Result<T, UnjudgedReason> {
    if !may_compare(site, state) {
        return Err(UnjudgedReason::NoBudget);
    }
    let is_other = matches!(&answer.content, VisitorContent::Other(_) | VisitorContent::TooLong);
    let compared = if is_other { compute_answer(site, state, comparison) } else { comparison() };
    compared.ok_or(UnjudgedReason::NoBudget)
}

/// The tokens of an answer without a page; none if its content is not known. An error if the budget does not allow it.
pub(crate) fn answer_tokens(
    site: &Arc<Site>,
    state: &AuditState,
    answer: &VisitorAnswer,
) -> Result<Option<PageTokens>, UnjudgedReason> {
    let VisitorContent::Other(content) = &answer.content else { return Ok(None) };
    if !may_compare(site, state) {
        return Err(UnjudgedReason::NoBudget);
    }
    Ok(Some(compute_answer(site, state, || visitor_tokens(site, state, answer, content))))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_may_differ_makes_its_path_suspect() {
        use UnjudgedReason::{CauseUnknown, ChangedMeanwhile, NoBudget, NoPlace, RenderFailed};
        let suspects = |kind: AnswerKind| {
            [NoPlace, NoBudget, RenderFailed, CauseUnknown, ChangedMeanwhile]
                .map(|reason| kind.is_suspect(reason, false))
        };
        assert_eq!(suspects(AnswerKind::WouldBeHit), [true, true, true, true, false]);
        assert_eq!(suspects(AnswerKind::OfSecond), [false, false, true, true, false]);
        assert_eq!(suspects(AnswerKind::OfMaker), [false; 5]);
        for kind in [AnswerKind::WouldBeHit, AnswerKind::OfSecond, AnswerKind::OfMaker] {
            assert!(!kind.is_suspect(UnjudgedReason::Random, false));
        }
    }

    #[test]
    fn a_refused_visitor_makes_a_path_suspect_only_if_renders_for_nobody_fail() {
        use UnjudgedReason::{CauseUnknown, ChangedMeanwhile, NoBudget, NoPlace, RenderFailed};
        for kind in [AnswerKind::WouldBeHit, AnswerKind::OfSecond] {
            let suspects = [NoPlace, NoBudget, CauseUnknown, ChangedMeanwhile, RenderFailed]
                .map(|reason| kind.is_suspect(reason, true));
            assert_eq!(suspects, [false, false, false, false, true]);
        }
        assert!(!AnswerKind::OfMaker.is_suspect(RenderFailed, true));
    }

    #[test]
    fn without_a_render_only_a_page_that_is_still_sent_makes_its_path_suspect() {
        use UnjudgedReason::{ChangedMeanwhile, NotRequested, NotStored, WritesAtEachView};
        for (left_alone, why) in [(None, NotRequested), (Some(LeaveReason::NotStored), NotStored)] {
            let reason = |is_stored, is_refused| {
                reason_without_render(left_alone, is_stored, is_refused).expect("it is counted")
            };
            assert_eq!(reason(true, false), (why, true));
            assert_eq!(reason(true, true), (why, false), "its visitor was refused");
            assert_eq!(reason(false, false), (ChangedMeanwhile, false));
            assert_eq!(reason(false, true), (ChangedMeanwhile, false));
        }
        for (is_stored, is_refused) in [(true, false), (true, true), (false, false), (false, true)]
        {
            let reason = |why| reason_without_render(Some(why), is_stored, is_refused);
            assert_eq!(reason(LeaveReason::WritesAtEachView), Some((WritesAtEachView, false)));
            assert_eq!(reason(LeaveReason::Leak), None);
        }
    }
}
