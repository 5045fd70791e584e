//! A page that is judged: whether it is still stored, the facts about it that a judgement needs, and its tokens.
//!
//! A page is known by its key, variant and lease, so another form of the same response is the same page.

use crate::AuditState;
use crate::detections::PageIdentity;
use delivery::lookup::decide_on;
use delivery::site::Site;
use delivery::trial::TrialRequest;
use history::ChangeSource;
use http::{HeaderMap, Method, StatusCode, header};
use http_cache::{Reuse, Verdict};
use page_comparison::{Circumstances, Conclusion, DifferenceClass, PageDependence, PageTokens};
use page_store::Key;
use render::ReferenceRender;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::request_fields::read_facts;

/// The tag by which an application says that a page shows ages such as "5 minutes ago", which its lifetime bounds. With
/// several sites in one application it follows the number of the site: `2/ages`.
const SHOWS_AGES: &[u8] = b"ages";

/// A page that lives no longer may show ages and times of its render. It is the remedy of a page that follows the clock.
/// Milliseconds.
const CLOCK_LIFETIME_MS: u64 = 60_000;

/// Whether a change can be reported that concerns the page.
pub(crate) fn has_dependencies(page: &SharedPage) -> bool {
    !page.payload().stored.tags().is_empty() || page.payload().reads().is_some()
}

/// Whether a page differs by an age or a time only, within a lifetime that allows it.
pub(crate) fn is_brief_age(page: &SharedPage, conclusion: &Conclusion) -> bool {
    use DifferenceClass::{Aged, BrokenPromise, ByTheClock};
    let is_age = matches!(
        conclusion,
        Conclusion::Differs { class: Aged | BrokenPromise | ByTheClock, is_age: true, .. }
    );
    is_age && page.payload().stored.lifetime_ms() <= CLOCK_LIFETIME_MS
}

/// Whether a verdict is by renders of a time at which the page was not sent any more.
pub(crate) fn is_after_lifetime(
    page: &SharedPage,
    decided_at: Option<u64>,
    conclusion: &Conclusion,
) -> bool {
    let is_wrong = matches!(conclusion, Conclusion::Differs { class, .. } if class.is_wrong());
    is_wrong && decided_at.is_some_and(|at| at >= page.payload().stored.fresh_until().0)
}

/// Whether another node has purged the page of this key, so that the write may have been in flight there when the page was
/// compared. In doubt it has.
pub(crate) fn is_purged_elsewhere(site: &Site, key: &[u8]) -> bool {
    site.cluster.is_some()
        && site.history.of_key(key).is_none_or(|entry| {
            let last = entry.dropped();
            last.is_none_or(|last| matches!(*last.by, ChangeSource::Cluster { .. }))
        })
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

/// The page of a key that is still stored and not marked: another form of the same response counts.
pub(crate) fn stored_page(site: &Site, key: Key<'_>, page: PageIdentity) -> Option<SharedPage> {
    let is_it = |other: &&SharedPage| identity(site, other) == page && !other.is_marked();
    site.store.peek(key).iter().find(is_it).cloned()
}

/// The fresh page that would answer a request, if there is one.
pub(crate) fn fresh_page(site: &Site, request: &TrialRequest) -> Option<SharedPage> {
    // A reload of the visitor does not ask for another answer here.
    let mut headers = (*request.headers).clone();
    let directives = [header::CACHE_CONTROL, header::PRAGMA];
    directives.iter().for_each(|name| drop(headers.remove(name)));
    let facts = read_facts(&Method::GET, &headers);
    let (pages, verdict) = decide_on(site, &facts, &headers, &request.plan, &request.key);
    match verdict {
        Verdict::Reuse { candidate, state: Reuse::Fresh, .. } => {
            Some(pages.as_slice()[candidate].clone())
        }
        _ => None,
    }
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
