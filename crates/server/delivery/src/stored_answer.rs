//! Answers a request by a stored page, fresh or stale: counts it, and adds `Cache-Status`.
//! Hits over HTTP/1.1 that need no more than that are answered by the hit path in `front` instead.
//! Whether a stored page answers is decided in `lookup`, its form in `stored_pages::page`.

use crate::body::ResponseBody;
use crate::codings::{self};
use crate::serve;
use crate::site::Site;
use http::{Response, header};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{Answer, Method as Kind, RequestFacts, StaleBecause};
use reasons::Reason;
use std::sync::Arc;
use stored_pages::page::{SharedPage, ttl_seconds};

/// Answers a request by a fresh stored page, and counts the hit.
pub fn hit(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    answer: Answer,
) -> Response<ResponseBody> {
    site.counters.hits.add();
    page.serve();
    from_store(site, facts, (page, answer), None)
}

/// Answers a request by a stale stored page, and counts the stale hit.
pub fn stale_hit(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    (page, answer): (&SharedPage, Answer),
    because: StaleBecause,
) -> Response<ResponseBody> {
    site.counters.stale_hits.add();
    page.serve();
    from_store(site, facts, (page, answer), Some(because.into()))
}

fn from_store(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    (page, answer): (&SharedPage, Answer),
    reason: Option<Reason>,
) -> Response<ResponseBody> {
    let now = site.clock.now();
    let payload = page.payload();
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Hit);
    status.ttl_seconds = Some(ttl_seconds(page, now));
    status.detail = reason.map(Reason::as_str);
    let response = serve::page(facts, page, answer, now, &status);
    let in_none = !response.headers().contains_key(header::CONTENT_ENCODING);
    if in_none && response.status() == payload.stored.status && facts.method == Kind::Get {
        codings::keep_plain(site, page);
        codings::wanted(site, facts, page);
    }
    response
}
