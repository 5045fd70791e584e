//! A difference that a trial has found, until it is recorded.
//!
//! A page that is out of date is watched for a minute (`watch`), and judged again (`second_judgement`):
//!
//! | what happens to it | what is recorded |
//! |---|---|
//! | it is purged or marked | it was late |
//! | it is purged by another node | nothing: the write may have been in flight there, and is waited for here only |
//! | it expires | the difference |
//! | it cannot be judged again, for example without budget | the difference |
//! | it is judged again | the difference; but if the second judgement is another one, that |
//!
//! Its content is not held meanwhile: the store does not count it once it is replaced.

use crate::detections::PageIdentity;
use crate::judged_page::{identity, is_purged_elsewhere, stored_page};
use crate::samples::request_of;
use crate::second_judgement::judged_again;
use crate::trial_state::TrialState;
use crate::watch::{PageFate, watched};
use crate::without_verdict::explain_by_page;
use delivery::site::Site;
use delivery::trial::TrialRequest;
use http_cache::Timestamp;
use page_comparison::{
    Conclusion, DifferenceCause, DifferenceClass, DifferingText, UnjudgedReason, example_url,
};
use page_store::KeyBuf;
use std::sync::Arc;
use stored_pages::page::SharedPage;
use trial_record::FoundDifference;

/// The longest life of a form's nonce that is usual: WordPress's ends within a day. Milliseconds.
const NONCE_MS: u64 = 86_400_000;

/// A page that is watched, without its content.
struct WatchedPage {
    site: Arc<Site>,
    state: Arc<TrialState>,
    key: KeyBuf,
    version: PageIdentity,
    fresh_until: Timestamp,
    request: TrialRequest,
}

/// Records a difference; one that a purge or a second judgement may explain after the page was watched. A process that ends
/// or hands over does not record it.
pub(crate) fn record_after_watch(
    site: &Arc<Site>,
    state: &Arc<TrialState>,
    (page, request): (&SharedPage, &TrialRequest),
    found: FoundDifference,
) {
    let place = is_out_of_date(found.class).then(|| state.watches.clone().try_acquire_owned().ok());
    let Some(place) = place.flatten() else { return record(site, state, request, found) };
    let watched = WatchedPage {
        site: site.clone(),
        state: state.clone(),
        key: page.key().to_buf(),
        version: identity(site, page),
        fresh_until: page.payload().stored.fresh_until(),
        request: request.clone(),
    };
    let generation = site.trial.generation();
    // The key is free meanwhile: a later answer may be compared.
    site.counters.audit_watched.add();
    tokio::spawn(async move {
        let site = &watched.site;
        let result = watched.judged(found, generation).await;
        let url = watched.request.target.page();
        if watched.goes_on(generation) {
            match result {
                Ok(Some(found)) => record(site, &watched.state, &watched.request, found),
                Ok(None) => {}
                Err(reason) => site.trial.unjudged(url, reason, false),
            }
        }
        site.counters.audit_watched.sub();
        drop(place);
    });
}

impl WatchedPage {
    /// Watches the page, and judges it again. Returns the difference to record, if there is one.
    async fn judged(
        &self,
        found: FoundDifference,
        generation: u64,
    ) -> Result<Option<FoundDifference>, UnjudgedReason> {
        let begun = self.site.clock.now();
        let is_there = || self.page().is_some();
        let fate = watched(&self.site.clock, is_there, (begun, self.fresh_until)).await;
        let again = match fate {
            PageFate::Stored if self.goes_on(generation) => self.judged_again().await,
            _ => None,
        };
        let now = self.site.clock.now();
        if fate == PageFate::Purged || now < self.fresh_until && self.page().is_none() {
            if is_purged_elsewhere(&self.site, self.key.as_key().bytes()) {
                return Err(UnjudgedReason::ChangedMeanwhile);
            }
            let late_ms = now.0.saturating_sub(begun.0);
            let class = DifferenceClass::Late;
            return Ok(Some(FoundDifference { class, cause: None, late_ms, ..found }));
        }
        Ok(match again {
            Some(again) => second_difference(found, again),
            None => Some(found),
        })
    }

    /// Whether this process still records what the trial finds.
    fn goes_on(&self, generation: u64) -> bool {
        self.site.trial.generation() == generation && self.site.answers_from_cache()
    }

    fn page(&self) -> Option<SharedPage> {
        stored_page(&self.site, self.key.as_key(), self.version)
    }

    /// The second judgement, if one is possible. A page that is not wrong may be looked at again.
    async fn judged_again(&self) -> Option<Conclusion> {
        let (site, state) = (&self.site, &self.state);
        let page = self.page()?;
        let key = (self.request.key.as_slice(), state.pattern(self.request.target.page()));
        let before = state.noise(key.0, key.1);
        let mut noise = before.clone();
        let ask = request_of(&self.request, None);
        let again = judged_again(site, &state.audit, (&ask, &page), &mut noise).await.ok()?;
        state.learned(key, &before, noise);
        let is_wrong = matches!(again, Conclusion::Differs { class, .. } if class.is_wrong());
        if !is_wrong {
            state.found_wrong(self.version, false);
        }
        Some(again)
    }
}

/// The difference to record after a second judgement.
fn second_difference(found: FoundDifference, again: Conclusion) -> Option<FoundDifference> {
    let of = |class, places| {
        let text = DifferingText::default();
        Some(FoundDifference { class, places, cause: None, late_ms: 0, text })
    };
    match again {
        Conclusion::Differs { class, .. } if is_out_of_date(class) => Some(found),
        // The values that agreed before were a nonce, or a number that nobody sees.
        Conclusion::Differs { class: DifferenceClass::Noise, .. } => None,
        Conclusion::Differs { class, places, .. } => of(class, places),
        Conclusion::Unjudged(UnjudgedReason::Random) => of(DifferenceClass::Random, found.places),
        Conclusion::Unjudged(_) => Some(found),
        Conclusion::Same => of(DifferenceClass::OldApplication, found.places),
    }
}

/// Whether a page of this class was right once, and a change has made it wrong.
fn is_out_of_date(class: DifferenceClass) -> bool {
    matches!(class, DifferenceClass::BrokenPromise | DifferenceClass::Aged)
}

/// Whether the nonce of a form may end before its page: those of a short life are on most pages with a form, and are no
/// notice.
pub(crate) fn outlives_nonce(page: &SharedPage, places: &[String]) -> bool {
    let is_form = |place: &String| place.contains("input") && place.contains("[value]");
    page.payload().stored.lifetime_ms() > NONCE_MS && places.iter().any(is_form)
}

/// Adds a difference to the record. Suspects may be explained by it.
fn record(site: &Site, state: &TrialState, request: &TrialRequest, found: FoundDifference) {
    let url = request.target.page();
    explain_by_page(site, state, request, found.class);
    let (class, places) = (found.class.name(), found.places.join("; "));
    let cause = DifferenceCause::shown(found.cause.as_ref(), found.class, found.late_ms);
    let cause = cause.unwrap_or_default();
    tracing::info!(event = "trial-found", class, url = example_url(url), places, cause);
    site.trial.found(url, found, site.clock.now().0 / 1_000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differs(class: DifferenceClass) -> Conclusion {
        let (places, spots) = (vec!["p, word 1".to_owned()], vec![1]);
        let (tokens, samples, late_by, is_age) = (1, 5, None, false);
        Conclusion::Differs { class, places, spots, tokens, samples, late_by, is_age }
    }

    #[test]
    fn a_difference_is_recorded_if_two_judgements_agree_about_it() {
        use DifferenceClass::{Aged, BrokenPromise, ByTheClock, Noise, OldApplication, Random};
        let recorded = |again: Conclusion| {
            let found = FoundDifference {
                class: BrokenPromise,
                places: vec!["h1, word 2".to_owned()],
                cause: Some(DifferenceCause::Lifetime(60)),
                late_ms: 0,
                text: DifferingText::default(),
            };
            second_difference(found, again).map(|found| (found.class, found.cause.is_some()))
        };
        for (again, expected) in [
            (differs(BrokenPromise), Some((BrokenPromise, true))),
            (differs(Aged), Some((BrokenPromise, true))),
            (differs(ByTheClock), Some((ByTheClock, false))),
            (differs(Random), Some((Random, false))),
            (differs(OldApplication), Some((OldApplication, false))),
            (differs(Noise), None),
            (Conclusion::Same, Some((OldApplication, false))),
            (Conclusion::Unjudged(UnjudgedReason::Random), Some((Random, false))),
            (Conclusion::Unjudged(UnjudgedReason::ChangedMeanwhile), Some((BrokenPromise, true))),
        ] {
            assert_eq!(recorded(again.clone()), expected, "{again:?}");
        }
    }
}
