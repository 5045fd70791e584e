//! LiteSpeed's dialect where it meets the origin and the client: what tells plugins that there is a cache
//! in front (`X-LSCACHE`), what a response says has changed (`X-LiteSpeed-Purge`), and what the plugin's
//! crawler is told (`X-LiteSpeed-Cache`). The grammar is `http_cache::litespeed`'s.
//!
//! Invariants: a change is applied once for each response of the origin, whatever its method and status,
//! and before anybody gets that response; a list that cannot be read means everything of the site. The
//! ability to work through ESI is not announced, for it is not there. Changes of private scope are applied
//! by `private`, to the copies of whoever sent the request.

use crate::config::Dialects;
use crate::private;
use crate::site::Site;
use crate::why::Cause;
use fastcgi::{Params, ParamsRefused};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, header};
use http_cache::litespeed::{
    CACHE_CONTROL_FIELD, CacheControl, Keeping, LSC_COOKIE, Purge, Purged, Scope, Staleness,
    VARY_VALUE_FIELD, has_esi, read_purges,
};
use http_cache::{FieldUse, NotStored, Policy, Stored, fields};
use page_store::{Strength, Target as Changed};
use purge_requests::{Coverage, Purge as PurgeRequest, Selection};
use site_rules::Plan;

/// Request fields by which plugins find that there is a cache.
const ANNOUNCED: [(&str, &str); 2] = [("x-lscache", "on,crawler"), ("x-litemage", "on")];

/// The same for FastCGI scripts: as fields, and as params of their own, as LiteSpeed's servers give them to
/// scripts.
const ANNOUNCED_PARAMS: [(&str, &str); 4] = [
    ("HTTP_X_LSCACHE", "on,crawler"),
    ("X-LSCACHE", "on,crawler"),
    ("HTTP_X_LITEMAGE", "on"),
    ("X-LITEMAGE", "on"),
];

/// The param that the word for the visitor's device is given in, besides its field.
const VARY_VALUE_PARAM: &str = "LSCACHE_VARY_VALUE";

/// The crawlers of LiteSpeed's plugins call themselves so, before anything else.
const CRAWLERS: [&[u8]; 2] = [b"lscache_runner", b"lscache_walker"];

/// Tells the application that there is a cache that understands it.
pub fn announce(dialect: FieldUse, headers: &mut HeaderMap) {
    if dialect == FieldUse::Ignore {
        return;
    }
    for (name, value) in ANNOUNCED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// Tells a FastCGI script the same, and the word for the visitor's device.
///
/// # Errors
/// The params have grown over their bound.
pub fn announce_to_script(
    dialect: FieldUse,
    headers: &HeaderMap,
    params: &mut Params,
) -> Result<(), ParamsRefused> {
    if dialect == FieldUse::Obey {
        for (name, value) in ANNOUNCED_PARAMS {
            params.push(name, value)?;
        }
    }
    match fields::lines(headers, VARY_VALUE_FIELD).next() {
        Some(value) => params.push(VARY_VALUE_PARAM, value.as_bytes()),
        None => Ok(()),
    }
}

/// Gives the origin the word for the visitor's device, where the plan tells devices apart.
pub fn give_vary_value(dialects: &Dialects, plan: &Plan, headers: &mut HeaderMap) {
    if dialects.litespeed == FieldUse::Obey && plan.is_mobile() {
        let name = HeaderName::from_static(VARY_VALUE_FIELD);
        headers.insert(name, HeaderValue::from_static("ismobile"));
    }
}

/// Takes in what a response of the origin says has changed, for everybody, or for whoever sent the lines
/// of `request`. `method` and `place`, its address, are for the log and for explanations.
pub fn take_in(
    site: &Site,
    (method, place): (&Method, impl Fn() -> String),
    request: &HeaderMap,
    headers: &HeaderMap,
) {
    private::signed(site, request, headers);
    if site.config.dialects.litespeed == FieldUse::Ignore {
        return;
    }
    let purges = match read_purges(headers) {
        Ok(purges) if purges.is_empty() => return,
        Ok(purges) => purges,
        Err(reason) => {
            let reason = reason.as_str();
            tracing::error!(event = "change-unreadable", url = place(), reason);
            let by = Cause::response(method, &place());
            site.change(&[Changed::Everything], Strength::Drop, by);
            return;
        }
    };
    // Hard ones first: what is gone need not be marked.
    for (staleness, strength) in
        [(Staleness::Gone, Strength::Drop), (Staleness::Stale, Strength::Mark)]
    {
        let own = purges.iter().filter(|purge| purge.staleness == staleness);
        private::purged(site, request, own, strength);
        apply(site, &purges, staleness, strength, || Cause::response(method, &place()));
    }
}

/// What a request to purge names by the fields that responses name it by; `None` where it has none. A
/// list that cannot be read names everything.
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
            Purged::Tag(tag) => Selection::Tag(tag),
            Purged::Url(url) => Selection::Url(url),
            Purged::Everything => Selection::Everything,
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
    by: impl Fn() -> Cause,
) {
    let form = site.config.rules.form();
    let concerned = |purge: &&Purge| purge.staleness == staleness && purge.scope == Scope::Public;
    // Pages are stored by the normal form of their address.
    let urls: Vec<_> = purges
        .iter()
        .filter(concerned)
        .filter_map(|purge| match &purge.what {
            Purged::Url(url) => Some(form.normal(url).page),
            _ => None,
        })
        .collect();
    let others = purges.iter().filter(concerned).filter_map(|purge| match &purge.what {
        Purged::Tag(tag) => Some(Changed::Tag(tag)),
        Purged::Everything => Some(Changed::Everything),
        Purged::Url(_) => None,
    });
    let urls = urls.iter().map(|url| Changed::Url(url.as_bytes()));
    let changed: Vec<Changed<'_>> = others.chain(urls).collect();
    if !changed.is_empty() {
        site.change(&changed, strength, by());
    }
}

/// Whether ESI stands against storing a complete page: it says `esi=on`, and there are elements of ESI in
/// its content, or nobody can tell, because it is in a coding, or a part.
pub fn against_storing(stored: &Stored, content: &[u8]) -> Option<&'static str> {
    let coded = stored.headers.contains_key(header::CONTENT_ENCODING);
    let part = stored.status == http::StatusCode::PARTIAL_CONTENT;
    let has = stored.says_esi() && (coded || part || has_esi(content));
    has.then_some(NotStored::EsiUnsupported.as_str())
}

/// Turns `lsc-cookie` into the cookie that it is, in a response that is not stored.
pub fn set_shared_cookies(policy: &Policy, headers: &mut HeaderMap) {
    if policy.litespeed == FieldUse::Ignore {
        return;
    }
    let cookies: Vec<HeaderValue> = headers.get_all(LSC_COOKIE).iter().cloned().collect();
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
}

/// What the origin said of keeping a response, for a crawler that has to be told.
#[derive(Clone, Copy)]
struct NotToBeKept;

/// Remembers with a response that the origin did not want it kept.
pub fn remember_refusal<B>(said: Option<CacheControl>, response: &mut Response<B>) {
    let refused =
        said.is_some_and(|said| said.keeping == Keeping::Forbidden || said.scope != Scope::Public);
    if refused {
        response.extensions_mut().insert(NotToBeKept);
    }
}

/// Whether a request is that of a plugin's crawler, at a site that speaks its dialect.
pub fn is_told(dialects: &Dialects, headers: &HeaderMap) -> bool {
    dialects.litespeed == FieldUse::Obey
        && headers.get(header::USER_AGENT).is_some_and(|agent| is_crawler(agent.as_bytes()))
}

/// Whether that is what a crawler of a plugin calls itself.
pub fn is_crawler(agent: &[u8]) -> bool {
    CRAWLERS.iter().any(|name| agent.starts_with(name))
}

/// Tells a plugin's crawler what it looks for: `X-LiteSpeed-Cache` on every answer (one without it is
/// never asked for again), and `X-LiteSpeed-Cache-Control: no-cache` on what the origin wants nobody to
/// keep.
pub fn tell_crawler<B>(response: &mut Response<B>) {
    let last = response.headers().get_all("cache-status").iter().next_back();
    let hit = last.is_some_and(|value| value.as_bytes().starts_with(b"pagewell; hit"));
    let refused = response.extensions().get::<NotToBeKept>().is_some();
    let private = last.is_some_and(|value| value.as_bytes().ends_with(b"detail=private"));
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
    fn crawlers_are_told() {
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
