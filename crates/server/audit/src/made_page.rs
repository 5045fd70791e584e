//! Makes the page of a trial: a request of a visitor is rendered as if it had missed, and stored.
//!
//! The render takes time of the budget, and a place only while two are free (`render::store_for_trial`). A page that is
//! not there afterwards was not made, was overtaken by a change, or may not be stored; the history of its key decides.
//! Not here: the comparison of the page, and what follows from each result (`trial`).

use crate::cause::is_replayable;
use crate::judged_page::fresh_page;
use crate::samples::{origin_use, request_of};
use crate::seen_answer::SeenAnswer;
use crate::trial_state::TrialState;
use delivery::site::Site;
use history::StoreOutcome;
use page_comparison::UnjudgedReason;
use reasons::Reason;
use render::{NoReference, store_for_trial};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use stored_pages::page::SharedPage;
use telemetry::client::Spent;
use trial_record::TrialNotice;

/// The result of making a page.
pub(crate) enum MadePage {
    Stored(SharedPage),
    /// It would not be stored.
    Refused,
    /// A change of its data has overtaken it. It is made again, unless that happens each time.
    Overtaken,
    /// It was not made: there is no budget or no place; without a reason there is no memory, nothing is stored now, or no
    /// page of the key answers this visitor.
    NotNow(Option<UnjudgedReason>),
}

/// Makes the page that would have been stored for this request.
pub(crate) async fn stored_for(
    site: &Arc<Site>,
    state: &TrialState,
    first: &SeenAnswer,
) -> MadePage {
    let budget = || state.audit.budget.lock().unwrap_or_else(PoisonError::into_inner);
    let used = origin_use(site);
    // Nothing is stored while a database is away: the page may be made later.
    if site.sources.feeds.iter().any(|feed| feed.keeps_pages_out()) {
        return MadePage::NotNow(None);
    }
    if !budget().may_begin(site.clock.monotonic(), used) {
        return MadePage::NotNow(Some(UnjudgedReason::NoBudget));
    }
    let mut ask = request_of(&first.request, None);
    let spent = Spent::default();
    ask.client.extras.spent = Some(spent.clone());
    ask.client.extras.trace = None;
    let limit = site.audit.limit_of(&ask.target, site.clock.now().0);
    let is_replayable = is_replayable(site, &ask) && !limit.is_neutral;
    let sent = store_for_trial(site, ask, is_replayable).await;
    if sent == Err(NoReference::NoPlace) {
        site.trial.notice(TrialNotice::OriginFull, true);
        return MadePage::NotNow(Some(UnjudgedReason::NoPlace));
    }
    let took = Duration::from_micros(spent.micros().unwrap_or_default());
    budget().spent(took);
    if sent.is_ok() {
        site.trial.rendered(took);
    }
    match fresh_page(site, &first.request) {
        Some(page) => MadePage::Stored(page),
        // No request was sent.
        None if spent.micros().is_none() => MadePage::NotNow(None),
        None => not_there(site, &first.request.key),
    }
}

/// Why there is no page of a key, by its last render.
fn not_there(site: &Site, key: &[u8]) -> MadePage {
    let is_gone = || site.store.peek(site.store.key(key)).as_slice().is_empty();
    match site.history.of_key(key).and_then(|entry| entry.render).map(|last| last.outcome) {
        Some(StoreOutcome::Stored(_)) if is_gone() => MadePage::Overtaken,
        Some(StoreOutcome::NotStored(Reason::ChangedSince | Reason::ReadsChanged)) => {
            MadePage::Overtaken
        }
        Some(StoreOutcome::NotStored(reason)) if reason.is_of_this_render() => {
            MadePage::NotNow(None)
        }
        // It has expired since, or is another variant: it was made without the visitor's fields.
        Some(StoreOutcome::Stored(_)) => MadePage::NotNow(None),
        _ => MadePage::Refused,
    }
}
