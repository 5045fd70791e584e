//! Whether a response may be stored, and which of its fields (RFC 9111 §3, §3.1, §3.5).
//!
//! Invariant: every refusal has a name. The stored fields are those of §3.1: no hop-by-hop fields, none
//! that the origin withheld by name, and none that are meant for this cache only.

use crate::freshness::{
    LifetimeSource, Times, initial_age_ms, is_heuristically_cacheable, lifetime,
};
use crate::litespeed::{CacheControl, PURGE_FIELDS, shared_cookies};
use crate::not_stored::NotStored;
use crate::policy::{FieldUse, Policy, RequestControl};
use crate::refusal;
use crate::request::{Method, RequestFacts};
use crate::stored::{ResponseExtras, StoredFacts, StoredResponse};
use crate::tags::DIALECTS;
use crate::targeted::{Declaration, declared};
use crate::validators::EntityTag;
use crate::variants::NominatedFields;
use http::header::SET_COOKIE;
use http::{HeaderMap, HeaderName, StatusCode};
use http_fields::directives::ResponseDirectives;
use http_fields::fields::{self, Fields};
use http_fields::time::Timestamp;

/// Whether the response to `request` may be stored (RFC 9111 §3), and the stored response.
///
/// `request_fields` are the request's fields as they went to the origin, for the nominated fields.
/// `headers` are the response's fields as received. The caller ensures that the content is complete.
///
/// # Errors
/// The first reason against storing it.
pub fn storable(
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    status: StatusCode,
    headers: &HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> Result<StoredResponse, NotStored> {
    let times = Times { request: request_time, response: response_time };
    let declared = declared(headers, policy, response_time);
    may_store(request, status, headers, &declared.directives, policy)?;
    if refusal::is_refused(headers) {
        let reason = NotStored::NotOffered;
        return Err(if status.is_server_error() { NotStored::ServerError } else { reason });
    }
    let tags = crate::tags::read_tags(headers)?; // A truncated or unreadable list would miss changes.
    let content_length = content_length(headers);
    if content_length.is_some_and(|length| length > policy.content_max_bytes) {
        return Err(NotStored::TooLarge);
    }
    let nominated = NominatedFields::of(headers, request_fields, policy)?;
    let cookies = match policy.litespeed {
        FieldUse::Obey => shared_cookies(headers).ok_or(NotStored::SharedCookies)?,
        FieldUse::Ignore => Vec::new(),
    };
    let mut stored = keep(status, headers, declared, nominated, times, policy)?;
    stored.set_tags(tags);
    for cookie in cookies {
        stored.headers.append(SET_COOKIE, cookie);
    }
    check_reusable(stored, policy)
}

/// The conditions of RFC 9111 §3 that need no computation.
///
/// The reason is the one that the operator can act on first. An error of the origin is an error whatever
/// its directives are. A cookie is the usual cause of `private` or `no-store` beside it.
pub(crate) fn may_store(
    request: &RequestFacts<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    policy: &Policy,
) -> Result<(), NotStored> {
    permits(request, status, headers, directives, policy).map_err(|reason| match reason {
        NotStored::NoStore
        | NotStored::Private
        | NotStored::SetCookie
        | NotStored::Authorization
            if status.is_server_error() =>
        {
            NotStored::ServerError
        }
        NotStored::NoStore | NotStored::Private if headers.contains_key(SET_COOKIE) => {
            NotStored::SetCookie
        }
        _ => reason,
    })
}

/// The conditions of [`may_store`], with the first reason against storing the response.
fn permits(
    request: &RequestFacts<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    policy: &Policy,
) -> Result<(), NotStored> {
    if request.method != Method::Get {
        return Err(NotStored::Method);
    }
    match status.as_u16() {
        100..=199 => return Err(NotStored::Interim),
        206 => return Err(NotStored::PartialContent),
        304 => return Err(NotStored::NotModified),
        _ => {}
    }
    if directives.must_understand && !is_understood(status) {
        return Err(NotStored::StatusNotUnderstood);
    }
    // §5.2.2.3: a cache that understands the status ignores the no-store that accompanies must-understand.
    if directives.no_store && !directives.must_understand {
        return Err(NotStored::NoStore);
    }
    // Even with must-understand, which may be inside the quoted string.
    if directives.unreadable {
        return Err(NotStored::DirectivesUnreadable);
    }
    if policy.request_directives == RequestControl::Honour && request.cache_control.no_store {
        return Err(NotStored::RequestNoStore);
    }
    if directives.private {
        return Err(NotStored::Private);
    }
    // A deviation: RFC 9111 §7.3 leaves it to the origin. `no-cache="set-cookie"` does not permit it,
    // because some application servers add it to every response with a cookie.
    if headers.contains_key(SET_COOKIE) {
        return Err(NotStored::SetCookie);
    }
    if request.authorization && !directives.allows_authorization() {
        return Err(NotStored::Authorization); // §3.5
    }
    Ok(())
}

/// The statuses whose meaning for caches is known: those of RFC 9110 §15, except the ones that are never
/// stored.
fn is_understood(status: StatusCode) -> bool {
    matches!(status.as_u16(),
        200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

/// The value of Content-Length, if it is a single number.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    fields::digits(fields::first(headers, "content-length")?, u64::MAX)
}

/// Creates the stored response.
pub(crate) fn keep(
    status: StatusCode,
    headers: &HeaderMap,
    declared: Declaration,
    nominated: NominatedFields,
    times: Times,
    policy: &Policy,
) -> Result<StoredResponse, NotStored> {
    let initial_age_ms = initial_age_ms(headers, times);
    let lifetime = lifetime(status, headers, &declared, initial_age_ms, times, policy);
    let (lifetime_ms, lifetime_source) = match lifetime {
        Some(found) => found,
        // §3: a response with `public` or a storable status may be stored for validation. This happens only
        // with no-cache, which requires validation.
        None if declared.directives.no_cache && may_be_undeclared(status, &declared.directives) => {
            (0, LifetimeSource::None)
        }
        None if status.is_server_error() => return Err(NotStored::ServerError),
        None => return Err(NotStored::NoLifetime),
    };
    let kept = kept_fields(headers, &declared.directives, policy);
    let mut facts = StoredFacts::of(status, times.response);
    facts.set_request_time(times.request);
    facts.set_initial_age_ms(initial_age_ms);
    facts.set_lifetime_ms(lifetime_ms);
    facts.lifetime_source = lifetime_source;
    facts.directives = (&declared.directives).into();
    facts.set_nominated(nominated);
    facts.etag = EntityTag::of_origin(&kept);
    facts.set_content_length(content_length(headers));
    let litespeed = match policy.litespeed {
        FieldUse::Obey => CacheControl::read(headers),
        FieldUse::Ignore => None,
    };
    facts.set_extras(ResponseExtras { litespeed, ..ResponseExtras::default() });
    let mut stored = StoredResponse::of_parts(facts, kept, internal_fields(headers, policy));
    stored.read_dates();
    Ok(stored)
}

fn may_be_undeclared(status: StatusCode, directives: &ResponseDirectives) -> bool {
    directives.public || is_heuristically_cacheable(status)
}

/// The number of fields that may be added to the stored ones: a date, an entity tag, and `Vary` for
/// compression.
const FIELDS_ADDED: usize = 3;

/// The fields that are stored (RFC 9111 §3.1, §5.2.2.4, §5.2.2.7).
fn kept_fields(headers: &HeaderMap, directives: &ResponseDirectives, policy: &Policy) -> HeaderMap {
    let hop = fields::OneHop::of(headers);
    // The last three are written on each use, from the store. A response has few fields, so testing each of
    // them is faster than looking up all names to remove.
    let is_left_out = |name: &HeaderName| {
        hop.has(name)
            || directives.withheld.contains(name)
            || policy.internal_fields.contains(name)
            || [http::header::AGE, http::header::CONTENT_LENGTH, SET_COOKIE].contains(name)
    };
    let mut kept = HeaderMap::with_capacity(headers.len() + FIELDS_ADDED);
    for (name, value) in headers.iter().filter(|(name, _)| !is_left_out(name)) {
        kept.append(name, value.clone());
    }
    kept
}

/// The fields for this cache only, stored separately for the case that a 304 omits them.
fn internal_fields(headers: &HeaderMap, policy: &Policy) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if policy.internal_fields.contains(name) && is_needed_again(name.as_str()) {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// Whether an internal field must be stored. Tags are stored as such, and purges have been applied already.
fn is_needed_again(name: &str) -> bool {
    !PURGE_FIELDS.contains(&name) && DIALECTS.iter().all(|dialect| dialect.field != name)
}

/// Checks that the response can ever be reused: fresh, after validation, or stale.
fn check_reusable(stored: StoredResponse, policy: &Policy) -> Result<StoredResponse, NotStored> {
    let fresh = stored.is_fresh(stored.response_time) && !stored.directives.no_cache();
    if fresh || stored.can_be_validated() || crate::stale::may_ever_be(&stored, policy) {
        return Ok(stored);
    }
    let is_error = stored.status.is_server_error();
    Err(if is_error { NotStored::ServerError } else { NotStored::NeverReusable })
}
