//! LiteSpeed's compatibility headers between origin and client. Requests to the origin announce a cache
//! to plugins (`X-LSCACHE`); responses report invalidations (`X-LiteSpeed-Purge`); the plugin's crawler
//! gets the cache result (`X-LiteSpeed-Cache`). The parser is `http_cache::litespeed`.
//!
//! Invariants: the invalidations of each origin response are applied once, whatever its method and
//! status, and before any client gets it. A list that cannot be parsed purges the whole site.
//! LiteSpeed's ESI is announced where it is enabled (`esi`). `private` applies purges with private
//! scope, to the private copies of the client that sent the request.

use crate::owner_copies;
use config::Dialects;
use delivery::esi;
use delivery::site::Site;
use history::ChangeSource;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use http_cache::litespeed::{
    CACHE_CONTROL_FIELD, CacheControl, Purge, PurgeTarget, Scope, Staleness, StorePermission,
    VARY_VALUE_FIELD, has_esi, read_purges,
};
use http_cache::{FieldUse, StoredResponse};
use origin::LiteSpeedFeatures;
use page_store::{ChangeTarget as Changed, Strength};
use purge_requests::{Coverage, Purge as PurgeRequest, Selection};
use reasons::Reason;
use site_rules::Plan;

/// The beginnings of the `User-Agent` of LiteSpeed's crawlers.
const CRAWLERS: [&[u8]; 2] = [b"lscache_runner", b"lscache_walker"];

/// Adds the vary value for the client's device to the request, if the plan distinguishes mobile
/// devices.
pub fn give_vary_value(dialects: &Dialects, plan: &Plan, headers: &mut HeaderMap) {
    if dialects.litespeed == FieldUse::Obey && plan.is_mobile() {
        let name = HeaderName::from_static(VARY_VALUE_FIELD);
        headers.insert(name, HeaderValue::from_static("ismobile"));
    }
}

/// Applies the invalidations in the fields of an origin response. Private purges apply to the copies of
/// the client that sent `request`. `method` and `place` (the URL) are used in the log and in
/// explanations.
pub fn take_in(
    site: &Site,
    (method, place): (&Method, impl Fn() -> String),
    request: &HeaderMap,
    headers: &HeaderMap,
) {
    owner_copies::signed(site, request, headers);
    if site.config.dialects.litespeed == FieldUse::Ignore {
        return;
    }
    let purges = match read_purges(headers) {
        Ok(purges) if purges.is_empty() => return,
        Ok(purges) => purges,
        Err(reason) => {
            let reason = reason.as_str();
            tracing::error!(event = "change-unreadable", url = place(), reason);
            let by = ChangeSource::response(method, &place());
            site.changes().apply(&[Changed::Everything], Strength::Drop, by);
            return;
        }
    };
    // Hard purges first: a page that was removed need not be marked.
    for (staleness, strength) in
        [(Staleness::Gone, Strength::Drop), (Staleness::Stale, Strength::Mark)]
    {
        let own = purges.iter().filter(|purge| purge.staleness == staleness);
        owner_copies::purged(site, request, own, strength);
        apply(site, &purges, staleness, strength, || ChangeSource::response(method, &place()));
    }
}

/// Which pages a purge request selects by LiteSpeed's response fields; `None` if it has none of them. A
/// list that cannot be parsed selects everything.
pub fn named(dialects: &Dialects, headers: &HeaderMap) -> Option<PurgeRequest> {
    if dialects.litespeed == FieldUse::Ignore {
        return None;
    }
    let Ok(purges) = read_purges(headers) else {
        let hard = vec![Selection::Everything];
        return Some(PurgeRequest { hard, taken: Coverage::Everything, ..PurgeRequest::default() });
    };
    if purges.is_empty() {
        return None;
    }
    let mut named = PurgeRequest::default();
    for purge in purges.into_iter().filter(|purge| purge.scope == Scope::Public) {
        let what = match purge.what {
            PurgeTarget::Tag(tag) => Selection::Tag(tag),
            PurgeTarget::Url(url) => Selection::Url(url),
            PurgeTarget::Everything => Selection::Everything,
        };
        match purge.staleness {
            Staleness::Gone => named.hard.push(what),
            Staleness::Stale => named.soft.push(what),
        }
    }
    Some(named)
}

/// Applies the public purges of one strength as one change.
fn apply(
    site: &Site,
    purges: &[Purge],
    staleness: Staleness,
    strength: Strength,
    by: impl Fn() -> ChangeSource,
) {
    let form = site.config.rules.form();
    let concerned = |purge: &&Purge| purge.staleness == staleness && purge.scope == Scope::Public;
    // Pages are stored under normalised URLs.
    let urls: Vec<_> = purges
        .iter()
        .filter(concerned)
        .filter_map(|purge| match &purge.what {
            PurgeTarget::Url(url) => Some(form.normal(url).page),
            _ => None,
        })
        .collect();
    let others = purges.iter().filter(concerned).filter_map(|purge| match &purge.what {
        PurgeTarget::Tag(tag) => Some(Changed::Tag(tag)),
        PurgeTarget::Everything => Some(Changed::Everything),
        PurgeTarget::Url(_) => None,
    });
    let urls = urls.iter().map(|url| Changed::Url(url.as_bytes()));
    let changed: Vec<Changed<'_>> = others.chain(urls).collect();
    if !changed.is_empty() {
        site.changes().apply(&changed, strength, by());
    }
}

/// The reason for not storing a complete page because of ESI, if there is one. The page must declare
/// `esi=on`. Its content must be impossible to examine (encoded or partial), or have ESI elements where
/// LiteSpeed's ESI is disabled.
pub fn against_storing(site: &Site, stored: &StoredResponse, content: &[u8]) -> Option<Reason> {
    let coded = stored.headers.contains_key(header::CONTENT_ENCODING);
    let part = stored.status == http::StatusCode::PARTIAL_CONTENT;
    let is_unsupported = || !esi::is_litespeeds(site) && has_esi(content);
    let has = stored.says_esi() && (coded || part || is_unsupported());
    has.then_some(Reason::EsiUnsupported)
}

/// The features that are announced to LiteSpeed's plugins.
pub fn features(site: &Site) -> LiteSpeedFeatures {
    match (site.config.dialects.litespeed, site.config.dialects.litespeed_esi) {
        (FieldUse::Ignore, _) => LiteSpeedFeatures::Nothing,
        (FieldUse::Obey, FieldUse::Ignore) => LiteSpeedFeatures::Cache,
        (FieldUse::Obey, FieldUse::Obey) => LiteSpeedFeatures::CacheWithEsi,
    }
}

/// Response extension: the origin does not want the response cached. Used for crawlers.
#[derive(Clone, Copy)]
struct NotToBeKept;

/// Response extension: a private copy is the response. Used for crawlers.
#[derive(Clone, Copy)]
pub struct FromPrivateCopy;

/// Marks a response if the origin's cache control, `said`, does not allow public caching.
pub fn remember_refusal<B>(said: Option<CacheControl>, response: &mut Response<B>) {
    let refused = said.is_some_and(|said| {
        said.keeping == StorePermission::Forbidden || said.scope != Scope::Public
    });
    if refused {
        response.extensions_mut().insert(NotToBeKept);
    }
}

/// Whether a request comes from a plugin's crawler, and the site uses LiteSpeed's headers.
pub fn is_told(dialects: &Dialects, headers: &HeaderMap) -> bool {
    dialects.litespeed == FieldUse::Obey
        && headers.get(header::USER_AGENT).is_some_and(|agent| is_crawler(agent.as_bytes()))
}

/// Whether a `User-Agent` value is that of a plugin's crawler.
pub fn is_crawler(agent: &[u8]) -> bool {
    CRAWLERS.iter().any(|name| agent.starts_with(name))
}

/// Adds the fields that a plugin's crawler needs. `X-LiteSpeed-Cache` is on every response, because the
/// crawler does not request pages without it again. `X-LiteSpeed-Cache-Control: no-cache` is on
/// responses that the origin does not want cached.
pub fn tell_crawler<B>(response: &mut Response<B>) {
    let last = response.headers().get_all("cache-status").iter().next_back();
    let hit = last.is_some_and(|value| value.as_bytes().starts_with(b"pagewell; hit"));
    let refused = response.extensions().get::<NotToBeKept>().is_some();
    let private = response.extensions().get::<FromPrivateCopy>().is_some();
    let headers = response.headers_mut();
    let word = HeaderValue::from_static(match (hit, private) {
        (true, true) => "hit,private",
        (true, false) => "hit",
        (false, _) => "miss",
    });
    headers.insert(HeaderName::from_static("x-litespeed-cache"), word);
    if refused {
        let name = HeaderName::from_static(CACHE_CONTROL_FIELD);
        headers.insert(name, HeaderValue::from_static("no-cache"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: &'static str, said: &str) -> (String, bool) {
        let mut lines = HeaderMap::new();
        lines.insert(CACHE_CONTROL_FIELD, HeaderValue::from_str(said).expect("a value"));
        let mut response = Response::new(());
        response.headers_mut().append("cache-status", HeaderValue::from_static("other; hit"));
        response.headers_mut().append("cache-status", HeaderValue::from_static(status));
        remember_refusal(CacheControl::read(&lines), &mut response);
        tell_crawler(&mut response);
        let headers = response.headers();
        let word = headers["x-litespeed-cache"].to_str().expect("a word").to_owned();
        (word, headers.contains_key(CACHE_CONTROL_FIELD))
    }

    #[test]
    fn the_crawler_gets_the_result_in_its_fields() {
        assert_eq!(told("pagewell; hit; ttl=9", "public,max-age=9"), ("hit".into(), false));
        let stored = "pagewell; fwd=uri-miss; stored";
        assert_eq!(told(stored, "public,max-age=9"), ("miss".into(), false));
        for said in ["no-cache", "private,max-age=9", "no-cache,esi=on"] {
            assert_eq!(told("pagewell; fwd=uri-miss", said), ("miss".into(), true), "{said}");
        }
        assert!(is_crawler(b"lscache_runner Mozilla/5.0"));
        assert!(!is_crawler(b"Mozilla/5.0 lscache_runner"));
    }
}
