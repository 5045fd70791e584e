//! Storing a private response for the client that requested it (RFC 9111 §3, §5.2.2.7). For such a copy
//! this cache is a private cache: `s-maxage` does not apply (§5.2.2.10).
//!
//! Invariants: every reason against storing a shared response applies here too, except `private` itself. A
//! lifetime must be declared; it is never heuristic or from a rule. The copy is sent with `private`. Not in
//! this module: who the owner is, and the cache key that keeps other clients from the copy.

use crate::freshness::{LifetimeSource, Times};
use crate::litespeed::{Scope, shared_cookies, tags_by_scope};
use crate::not_stored::NotStored;
use crate::policy::{FieldUse, Policy};
use crate::request::RequestFacts;
use crate::stored::{ResponseExtras, StoredResponse};
use crate::storing::{content_length, keep, may_store};
use crate::tags::read_tags;
use crate::targeted::{Declaration, DeclaredBy, declared};
use crate::variants::NominatedFields;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_fields::directives::ResponseDirectives;
use http_fields::fields::Fields;
use http_fields::time::{SECONDS_MAX, Timestamp};

/// Which fields may declare a response private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateWord {
    /// Any field that applies to this cache.
    Anybodys,
    /// Only `X-LiteSpeed-Cache-Control`.
    LiteSpeeds,
}

/// The times of the exchange, and the conditions for storing the response for its owner.
#[derive(Clone, Copy, Debug)]
pub struct OwnedTerms {
    /// When the request was sent to the origin.
    pub request_time: Timestamp,
    /// When the response was received.
    pub response_time: Timestamp,
    /// Which fields may declare the response private.
    pub word: PrivateWord,
    /// The maximum lifetime in milliseconds, from the time of reception.
    pub lifetime_max_ms: u64,
}

/// The stored copy of a response for the client that sent `request`. `Ok(None)` if the response is not
/// declared private.
///
/// # Errors
/// The first reason against storing it.
pub fn storable_for_owner(
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    status: StatusCode,
    headers: &HeaderMap,
    terms: OwnedTerms,
    policy: &Policy,
) -> Result<Option<StoredResponse>, NotStored> {
    let Declaration { mut directives, by } = declared(headers, policy, terms.response_time);
    // `private="x-name"` does not count: it only withholds fields of a shared page (§5.2.2.7).
    let is_asked =
        directives.private && (by == DeclaredBy::LiteSpeed || terms.word == PrivateWord::Anybodys);
    if !is_asked {
        return Ok(None);
    }
    if directives.no_store {
        return Err(NotStored::NoStore); // Even with must-understand: if in doubt, the response is not stored.
    }
    if directives.no_cache {
        return Err(NotStored::NeverReusable);
    }
    if request.authorization {
        return Err(NotStored::Authorization);
    }
    directives.private = false;
    directives.s_maxage = None; // §5.2.2.10: for shared caches.
    may_store(request, status, headers, &directives, policy)?;
    if content_length(headers).is_some_and(|length| length > policy.content_max_bytes) {
        return Err(NotStored::TooLarge);
    }
    let nominated = NominatedFields::of(headers, request_fields, policy)?;
    let cookies = match policy.litespeed {
        FieldUse::Obey => shared_cookies(headers).ok_or(NotStored::SharedCookies)?,
        FieldUse::Ignore => Vec::new(),
    };
    let times = Times { request: terms.request_time, response: terms.response_time };
    let mut stored =
        keep(status, headers, Declaration { directives, by }, nominated, times, policy)?;
    limit(&mut stored, terms.lifetime_max_ms)?;
    for cookie in cookies {
        stored.headers.append(http::header::SET_COOKIE, cookie);
    }
    let (everybodys, owners) = tags(headers)?;
    stored.set_tags(everybodys);
    let litespeed = stored.extras().litespeed;
    stored.set_extras(ResponseExtras { owner_tags: owners, litespeed });
    stored.directives = stored.directives.made_private();
    say_private(&mut stored);
    Ok(Some(stored))
}

/// Limits the declared lifetime to the maximum of the site.
fn limit(stored: &mut StoredResponse, max_ms: u64) -> Result<(), NotStored> {
    match stored.lifetime_source {
        LifetimeSource::Targeted
        | LifetimeSource::LiteSpeed
        | LifetimeSource::SurrogateControl
        | LifetimeSource::XAccelExpires
        | LifetimeSource::SMaxage
        | LifetimeSource::MaxAge
        | LifetimeSource::Expires => {}
        LifetimeSource::Rule
        | LifetimeSource::Reads
        | LifetimeSource::Heuristic
        | LifetimeSource::None => {
            return Err(NotStored::NoLifetime);
        }
    }
    let most = max_ms.saturating_add(stored.initial_age_ms()).min(u64::from(SECONDS_MAX) * 1000);
    let allowed = stored.lifetime_ms().min(most);
    stored.set_lifetime_ms(allowed);
    if stored.is_fresh(stored.response_time) { Ok(()) } else { Err(NotStored::NeverReusable) }
}

/// The tags that everybody's changes invalidate, and the tags that only the owner's changes invalidate.
fn tags(headers: &HeaderMap) -> Result<(crate::tags::Tags, crate::tags::Tags), NotStored> {
    let mut others = headers.clone();
    others.remove("x-litespeed-tag");
    let scoped = tags_by_scope(headers, Scope::Private)?;
    Ok((read_tags(&others)?.joined(&scoped.public)?, scoped.private))
}

/// Downstream caches obey Cache-Control, whichever field applied to this cache.
fn say_private(stored: &mut StoredResponse) {
    let lines = stored.headers.get_all(CACHE_CONTROL).iter().map(|value| value.as_bytes());
    let said = ResponseDirectives::read(lines);
    if !said.private && !said.no_store {
        stored.headers.insert(CACHE_CONTROL, HeaderValue::from_static("private"));
    }
}

#[cfg(test)]
#[path = "owned_tests.rs"]
mod tests;
