//! The answers of a trial whose comparison had no verdict, and the verdicts that explain them later.
//!
//! Whether a path is suspect by an answer is decided by `trial_judgement`; which verdict explains which difference, by
//! `unexplained`. Here both are noted: in the state, by places, and in the record of the site, by pattern of paths.

use crate::judged_page::{identity, stored_tokens};
use crate::samples::compute;
use crate::seen_answer::SeenAnswer;
use crate::trial_judgement::AnswerKind;
use crate::trial_state::TrialState;
use crate::unexplained::{
    DifferingPlaces, Explanation, UnexplainedDifference, is_of_page, places_of,
};
use delivery::site::Site;
use delivery::trial::TrialRequest;
use page_comparison::{DifferenceClass, PageNoise, UnjudgedReason, differing};
use std::hash::BuildHasher;
use stored_pages::page::SharedPage;

/// Notes that the comparison of an answer had no verdict.
pub(crate) fn without_verdict(
    site: &Site,
    state: &TrialState,
    (page, seen): (&SharedPage, &SeenAnswer),
    kind: AnswerKind,
    (at, reason): ((u64, u64), UnjudgedReason),
) {
    let reason = match (kind, reason) {
        // These answers are from before the page was made, so their data may have been other data.
        (AnswerKind::OfMaker | AnswerKind::OfSecond, UnjudgedReason::CauseUnknown) => {
            UnjudgedReason::ChangedMeanwhile
        }
        (_, reason) => reason,
    };
    if kind != AnswerKind::OfMaker && reason.is_without_render() {
        state.not_examined(identity(site, page));
    }
    let is_suspect = kind.is_suspect(reason, seen.refused_beside(page).is_some());
    let noise = || state.noise(&seen.request.key, at.0);
    let places = || places_beside(site, state, (page, seen), &noise());
    note_unjudged(site, state, (seen.request.target.page(), at), (reason, is_suspect), places);
}

/// Ends the suspects of a key that the verdict about a visitor's answer explains: with the places at which it differs, if
/// a part of the request is the cause (`loses`), and with noise alone otherwise.
pub(crate) fn explain_by_visitor(
    site: &Site,
    state: &TrialState,
    (page, seen): (&SharedPage, &SeenAnswer),
    (at, class, noise): ((u64, u64), Option<DifferenceClass>, &PageNoise),
) {
    let is_of_visitor = class == Some(DifferenceClass::Loses);
    let places = is_of_visitor.then(|| places_beside(site, state, (page, seen), noise)).flatten();
    let by = places.as_deref().map_or(Explanation::Noise, Explanation::Visitor);
    if let Some(are_all) = state.explains_last(at, by, noise) {
        site.trial.explained(seen.request.target.page(), are_all);
    }
}

/// Ends the suspects of a key for which a difference of this class is recorded, if it is the page's own.
pub(crate) fn explain_by_page(
    site: &Site,
    state: &TrialState,
    request: &TrialRequest,
    class: DifferenceClass,
) {
    let url = request.target.page();
    let at = (state.pattern(url), state.hasher.hash_one(&request.key));
    let by = Explanation::Page;
    if !is_of_page(class) {
        return;
    }
    if let Some(are_all) = state.explains_last(at, by, &PageNoise::default()) {
        site.trial.explained(url, are_all);
    }
}

/// Counts a comparison without a verdict. With `is_suspect`, its path is suspect until the difference at these `places`
/// is explained.
pub(crate) fn note_unjudged(
    site: &Site,
    state: &TrialState,
    (url, at): (&str, (u64, u64)),
    (reason, is_suspect): (UnjudgedReason, bool),
    places: impl FnOnce() -> DifferingPlaces,
) {
    if is_suspect {
        let was_searched = reason == UnjudgedReason::CauseUnknown;
        state.suspect(at, UnexplainedDifference { places: places(), was_searched });
    }
    site.trial.unjudged(url, reason, is_suspect);
}

/// The places at which an answer differs from its page.
fn places_beside(
    site: &Site,
    state: &TrialState,
    (page, seen): (&SharedPage, &SeenAnswer),
    noise: &PageNoise,
) -> DifferingPlaces {
    let (tokens, audit) = (seen.tokens.as_ref()?, &state.audit);
    compute(site, audit, || {
        places_of(&noise.without_noise(&differing(&stored_tokens(audit, page), tokens)))
    })
}
