//! Asking the origin whether a stored response still holds, and what its answer changes
//! (RFC 9111 §4.3.1, §4.3.3–§4.3.5, §3.2).
//!
//! Invariants: a 304 freshens only the response that was validated, and only if its validators do
//! not say otherwise; what describes the stored content is never changed by it; what comes out obeys
//! the same conditions as a response that is stored anew.

use crate::fields::{self, Fields};
use crate::not_stored::NotStored;
use crate::policy::Policy;
use crate::request::{Method, RequestFacts};
use crate::stored::Stored;
use crate::storing::storable;
use crate::time::Timestamp;
use crate::validators::{Whose, weak_match};
use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderName, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, SET_COOKIE,
};
use http::{HeaderMap, StatusCode};

/// Makes the forwarded request's fields ask for the whole response, or for the validation of
/// `stored` (RFC 9111 §4.3.1). The client's own preconditions and Range go, for the origin's answer
/// may be stored; evaluate them with [`answer`](crate::answer). Only for GET and HEAD.
pub fn make_conditional(headers: &mut HeaderMap, stored: Option<&Stored>) {
    const CONDITIONS: [HeaderName; 6] =
        [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
    if headers.keys().any(|name| CONDITIONS.contains(name)) {
        for name in CONDITIONS {
            headers.remove(name);
        }
    }
    let Some(stored) = stored else { return };
    if let Some(tag) = stored.etag.value_if(Whose::Origins) {
        headers.insert(IF_NONE_MATCH, tag);
    }
    if let Some(modified) = stored.last_modified() {
        headers.insert(IF_MODIFIED_SINCE, modified.clone());
    }
}

/// Why a 304 does not freshen a stored response. The request is then to be sent once more,
/// unconditionally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFreshened {
    /// It is about another response: its validator differs (RFC 9111 §4.3.4).
    OtherValidator,
    /// With its fields the response may not be stored any more.
    NotStored(NotStored),
}

impl NotFreshened {
    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NotFreshened::OtherValidator => "other-validator",
            NotFreshened::NotStored(reason) => reason.as_str(),
        }
    }
}

/// The stored response, freshened by a 304 to the request that [`make_conditional`] made for it
/// (RFC 9111 §4.3.4). `request` and `request_fields` are as for [`storable`]; a HEAD may validate.
///
/// # Errors
/// When the 304 is about another response, or forbids storing.
pub fn freshen(
    old: &Stored,
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    headers_304: &HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> Result<Stored, NotFreshened> {
    if !is_about(old, headers_304) {
        return Err(NotFreshened::OtherValidator);
    }
    update(old, request, request_fields, headers_304, [request_time, response_time], policy)
        .map_err(NotFreshened::NotStored)
}

/// What the response to a forwarded HEAD says of the stored GET response (RFC 9111 §4.3.5).
#[derive(Clone, Debug)]
pub enum HeadFinding {
    /// It is the same: here it is freshened.
    Freshened(Box<Stored>),
    /// It has changed: the stored one is to be taken for stale.
    Differs,
    /// Nothing can be told.
    Nothing,
}

/// Compares the response to a HEAD with the stored response that the request selects, and freshens
/// that if validators or Content-Length are there and all agree (RFC 9111 §4.3.5).
pub fn freshen_by_head(
    old: &Stored,
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    (status, headers): (StatusCode, &HeaderMap),
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> HeadFinding {
    if status != StatusCode::OK {
        return HeadFinding::Nothing; // §4.3.5 speaks of 200 only; some programs refuse HEAD.
    }
    if old.status != StatusCode::OK {
        return HeadFinding::Differs;
    }
    let length =
        fields::first(headers, "content-length").map(|text| fields::digits(text, u64::MAX));
    let same_length = match (length, old.content_length()) {
        (Some(Some(length)), Some(known)) => Some(length == known),
        _ => None,
    };
    let evidence = [same_tag(old, headers), same_modified(old, headers), same_length];
    if evidence.contains(&Some(false)) {
        return HeadFinding::Differs;
    }
    if !evidence.contains(&Some(true)) {
        return HeadFinding::Nothing;
    }
    match update(old, request, request_fields, headers, [request_time, response_time], policy) {
        Ok(stored) => HeadFinding::Freshened(Box::new(stored)),
        Err(_) => HeadFinding::Differs,
    }
}

/// Whether a 304 is about the stored response: by entity tag if both have one, else by
/// Last-Modified; a tag out of nowhere is about another (RFC 9111 §4.3.4). A bare 304, as PHP
/// programs send it, can only mean the one response whose validators went with the request.
fn is_about(old: &Stored, headers: &HeaderMap) -> bool {
    match (same_tag(old, headers), same_modified(old, headers)) {
        (Some(same), _) => same,
        (None, Some(same)) => same,
        (None, None) => !headers.contains_key(ETAG),
    }
}

/// Whether the entity tags agree, where both have one. Weakly: §4.3.4 asks for a strong match where
/// the 304's tag is strong, to choose among several stored responses; here one was validated, and
/// nginx, for one, weakens the tag of a compressed 200 but not that of the 304.
fn same_tag(old: &Stored, headers: &HeaderMap) -> Option<bool> {
    let tag = old.etag.text().filter(|_| old.etag.whose() == Some(Whose::Origins))?;
    Some(weak_match(fields::first(headers, "etag")?, &tag))
}

/// Whether the dates of modification agree, where both have one.
fn same_modified(old: &Stored, headers: &HeaderMap) -> Option<bool> {
    let stored = old.last_modified()?;
    Some(fields::first(headers, "last-modified")? == fields::trim(stored.as_bytes()))
}

/// The stored response with the fields of the newer (RFC 9111 §3.2), stored as if it had just come.
fn update(
    old: &Stored,
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    newer: &HeaderMap,
    [request_time, response_time]: [Timestamp; 2],
    policy: &Policy,
) -> Result<Stored, NotStored> {
    let merged = merge(old, newer);
    let request = RequestFacts { method: Method::Get, ..*request };
    let mut stored = storable(
        &request,
        request_fields,
        old.status,
        &merged,
        request_time,
        response_time,
        policy,
    )?;
    stored.set_content_length(old.content_length());
    // Tags are joined: one too many makes a page anew too often, one too few leaves it outdated.
    let tags = stored.tags().clone().joined(old.tags())?;
    stored.set_tags(tags);
    if let Some(tag) = old.etag.value_if(Whose::Own) {
        stored.set_own_etag(tag);
    } else if old.etag.whose() == Some(Whose::Origins) {
        // As the origin gave it; the one for clients may have been weakened.
        stored.etag = old.etag.clone();
    }
    Ok(stored)
}

/// All fields of the newer replace those stored, but for those that say how the stored content is to
/// be read byte by byte, and those of one hop (RFC 9111 §3.2). Date and Age are the newer's, or
/// nobody's.
fn merge(old: &Stored, newer: &HeaderMap) -> HeaderMap {
    let mut newer = newer.clone();
    fields::remove_hop_by_hop(&mut newer);
    let kept: [&HeaderName; 3] = [&CONTENT_LENGTH, &CONTENT_ENCODING, &CONTENT_RANGE];
    for name in kept {
        newer.remove(name);
    }
    if old.etag.whose() == Some(Whose::Origins) {
        newer.remove(ETAG); // The same but for weakness, and the stored one was given to clients.
    }
    let mut merged = old.headers.clone();
    merged.remove(SET_COOKIE); // From lsc-cookie, which is among the internal fields.
    merged.extend(old.internal.clone());
    if old.etag.whose() == Some(Whose::Own) {
        merged.remove(ETAG);
    }
    for name in [AGE, DATE] {
        merged.remove(name);
    }
    for name in newer.keys() {
        merged.remove(name);
    }
    for (name, value) in &newer {
        merged.append(name, value.clone());
    }
    merged
}
