//! The circumstances that limit a trial, as far as its requests and comparisons show them: an origin that fails or is
//! full, and pages that write at each view.
//!
//! A full origin is noticed by a render that gets no place, and until one gets one (`trial_record`): visitors' answers
//! that equal a page say nothing about free places. Not here: a page that nobody may store (`trial`), and the file of
//! the record (`trial_record`).

use delivery::site::Site;
use page_comparison::UnjudgedReason;
use trial_record::TrialNotice;

/// Notes whether the origin fails or is full, as far as a comparison without a verdict shows it.
pub(crate) fn note_origin(site: &Site, reason: UnjudgedReason) {
    match reason {
        UnjudgedReason::NoPlace => site.trial.notice(TrialNotice::OriginFull, true),
        UnjudgedReason::RenderFailed => site.trial.notice(TrialNotice::OriginFailing, true),
        // Nothing was sent.
        reason if reason.is_without_render() => {}
        _ => site.trial.notice(TrialNotice::OriginFailing, false),
    }
}

/// Notes that a page changes at each view, and is left alone.
pub(crate) fn writes_at_each_view(site: &Site, page: &str, has_difference: bool) {
    site.trial.notice(TrialNotice::WritesAtEachView, true);
    site.trial.unjudged(page, UnjudgedReason::WritesAtEachView, has_difference);
}
