//! A page that an audit found wrong, while it is watched for a minute (`watch`) and rendered once more.
//!
//! | what happens to it | result |
//! |---|---|
//! | it is purged or marked | late, unless it was shown to be a leak |
//! | it is purged by another node | none: the write may have been in flight there, and is waited for here only |
//! | it expires and is replaced | none, because it may have been late; but a leak is one, and a detection |
//! | the last render equals it: a replica was behind | the application was old |
//! | the last render differs as before | the verdict, and a detection (`detections`) |
//! | it differs from the earlier renders, too | a page that may be a leak is aged: the text goes on for every client |
//! | … and the page was called out of date | it is judged again (`second_judgement`): the renders agreed by accident, or not |
//!
//! Memory: 64 of them at most, without the content of their pages.

use crate::comparison::act;
use crate::detections::{Detection, PageUrl};
use crate::judged_page::{is_purged_elsewhere, render_tokens, stored_page, stored_tokens};
use crate::samples::{compute, render, seen_at, settle};
use crate::second_judgement::judged_again;
use crate::watch::{PageFate, watched};
use crate::{AuditState, WatchGuard};
use delivery::site::Site;
use http_cache::Timestamp;
use page_comparison::{Conclusion, DifferenceClass, PageNoise, UnjudgedReason, differing};
use page_store::{Key, KeyBuf};
use render::{ReferenceRender, RenderRequest};
use std::sync::Arc;
use stored_pages::page::SharedPage;

/// A page that was found wrong, without its content.
pub(crate) struct Suspect {
    pub(crate) conclusion: Conclusion,
    pub(crate) detection: Detection,
    pub(crate) at: PageUrl,
    /// The request of the last render; its page is looked up again.
    pub(crate) ask: RenderRequest,
    pub(crate) key: KeyBuf,
    pub(crate) noise: PageNoise,
    /// The hashes of the last render at the places of the difference.
    pub(crate) seen: Vec<u64>,
    /// The end of the page's lifetime.
    pub(crate) until: Timestamp,
    pub(crate) watch: WatchGuard,
}

impl Suspect {
    /// Watches the page for a minute. If it is still wrong, this is a detection; the second one of its URL has
    /// consequences.
    pub(crate) async fn confirmed(
        self: Box<Self>,
        site: &Arc<Site>,
        state: &Arc<AuditState>,
    ) -> Result<Conclusion, UnjudgedReason> {
        let Suspect { conclusion, detection, at, ask, key, noise, seen, until, watch: _watch } =
            *self;
        let Conclusion::Differs { spots, .. } = &conclusion else { return Ok(conclusion) };
        let find = || stored_page(site, key.as_key(), detection.page);
        let is_leak = detection.class == DifferenceClass::Leak;
        let may_be_leak = is_leak || detection.class == DifferenceClass::LeakOrAged;
        // A text that is the same for all visitors now was so a minute ago: a text that goes on is no visitor's, unless a
        // render for one has shown it again.
        let is_settled =
            |again: &ReferenceRender| is_leak || seen_at(site, state, again, spots) == seen;
        site.counters.audit_suspected.add();
        let during = (site.clock.now(), until);
        let fate = watched(&site.clock, || find().is_some(), during).await;
        if !site.answers_from_cache() {
            return Err(UnjudgedReason::ChangedMeanwhile);
        }
        let stored = match (fate, find()) {
            (PageFate::Stored, Some(stored)) => stored,
            // A purge says nothing about a page that was made for its first visitor.
            (fate, None) if is_leak || may_be_leak && fate == PageFate::Expired => {
                if !is_leak {
                    settle(site).await?;
                    if !is_settled(&render(site, &ask, state).await?) {
                        return Err(UnjudgedReason::ChangedMeanwhile);
                    }
                }
                if state.lock().detections.count(detection, at, site.clock.now().0) {
                    site.audit.limit(&ask.target, detection.limit(), site.clock.now().0);
                }
                return Ok(conclusion);
            }
            (PageFate::Expired, _) => return Err(UnjudgedReason::ChangedMeanwhile),
            (PageFate::Purged | PageFate::Stored, _) => {
                return late(site, key.as_key(), conclusion, during);
            }
        };
        settle(site).await?;
        let ask = RenderRequest { fallback: Some(stored.clone()), ..ask };
        let again = render(site, &ask, state).await?;
        let differing = || differing(&stored_tokens(state, &stored), &render_tokens(state, &again));
        if !compute(site, state, || noise.without_noise(&differing()).is_at(spots)) {
            return Ok(conclusion.classified(DifferenceClass::OldApplication, None));
        }
        settle(site).await?;
        if find().is_none() && !is_leak {
            return late(site, key.as_key(), conclusion, during);
        }
        if !is_settled(&again) {
            if may_be_leak {
                return Ok(conclusion.classified(DifferenceClass::Aged, None));
            }
            let second = second_judgement(site, state, (&ask, &stored), noise).await?;
            if !matches!(second, Conclusion::Differs { class, .. } if class.is_wrong()) {
                return Ok(second);
            }
        }
        let is_second = detection.class != DifferenceClass::Aged
            && state.lock().detections.count(detection, at, site.clock.now().0);
        if is_second {
            act(site, (&ask.target, detection.limit()), &stored, again.lease());
        }
        Ok(conclusion)
    }
}

async fn second_judgement(
    site: &Arc<Site>,
    state: &AuditState,
    (ask, page): (&RenderRequest, &SharedPage),
    mut noise: PageNoise,
) -> Result<Conclusion, UnjudgedReason> {
    let result = judged_again(site, state, (ask, page), &mut noise).await;
    state.learned(&ask.key, noise);
    result
}

/// The conclusion about a page that is gone some time after `begun`: it was late, unless it has expired.
fn late(
    site: &Site,
    key: Key<'_>,
    conclusion: Conclusion,
    (begun, fresh_until): (Timestamp, Timestamp),
) -> Result<Conclusion, UnjudgedReason> {
    let now = site.clock.now();
    if now >= fresh_until || is_purged_elsewhere(site, key.bytes()) {
        return Err(UnjudgedReason::ChangedMeanwhile);
    }
    Ok(conclusion.classified(DifferenceClass::Late, Some(now.0.saturating_sub(begun.0))))
}
