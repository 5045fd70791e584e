//! Validation of a stored response by the origin, and the effect of the origin's response (RFC 9111 §4.3.1,
//! §4.3.3–§4.3.5, §3.2).
//!
//! Invariants: a 304 freshens only the response that was validated, and only if its validators do not
//! contradict. It never changes fields that describe the stored content. The result meets the same
//! conditions as a newly stored response.

use crate::not_stored::NotStored;
use crate::policy::Policy;
use crate::request::{Method, RequestFacts};
use crate::stored::StoredResponse;
use crate::storing::storable;
use crate::validators::{EtagSource, weak_match};
use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderName, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, SET_COOKIE,
};
use http::{HeaderMap, StatusCode};
use http_fields::fields::{self, Fields};
use http_fields::time::Timestamp;

/// Changes the fields of a forwarded request so that it requests the whole response, or validates `stored`
/// (RFC 9111 §4.3.1). The client's own preconditions and Range are removed, because the origin's response
/// may be stored; evaluate them with [`answer`](crate::answer). Only for GET and HEAD.
pub fn make_conditional(headers: &mut HeaderMap, stored: Option<&StoredResponse>) {
    const CONDITIONS: [HeaderName; 6] =
        [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
    if headers.keys().any(|name| CONDITIONS.contains(name)) {
        for name in CONDITIONS {
            headers.remove(name);
        }
    }
    let Some(stored) = stored else { return };
    if let Some(tag) = stored.etag.value_if(EtagSource::Origins) {
        headers.insert(IF_NONE_MATCH, tag);
    }
    if let Some(modified) = stored.last_modified() {
        headers.insert(IF_MODIFIED_SINCE, modified.clone());
    }
}

/// The reason why a 304 does not freshen a stored response. The caller then repeats the request
/// unconditionally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFreshened {
    /// The 304 refers to another response: its validator differs (RFC 9111 §4.3.4).
    OtherValidator,
    /// With its fields, the response may no longer be stored.
    NotStored(NotStored),
}

impl NotFreshened {
    /// The name of the reason, as logs and metrics show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            NotFreshened::OtherValidator => "other-validator",
            NotFreshened::NotStored(reason) => reason.as_str(),
        }
    }
}

/// The stored response, freshened by a 304 to the request from [`make_conditional`] (RFC 9111 §4.3.4).
/// `request` and `request_fields` are as for [`storable`]; a HEAD may validate.
///
/// # Errors
/// The 304 refers to another response, or forbids storing.
pub fn freshen(
    old: &StoredResponse,
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    headers_304: &HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> Result<StoredResponse, NotFreshened> {
    if !is_about(old, headers_304) {
        return Err(NotFreshened::OtherValidator);
    }
    update(old, request, request_fields, headers_304, [request_time, response_time], policy)
        .map_err(NotFreshened::NotStored)
}

/// The effect of the response to a forwarded HEAD on the stored GET response (RFC 9111 §4.3.5).
#[derive(Clone, Debug)]
pub enum HeadFinding {
    /// The stored response is the one that the HEAD describes, and is freshened here.
    Freshened(Box<StoredResponse>),
    /// The page has changed: the stored response must be treated as stale.
    Differs,
    /// The two responses cannot be compared.
    Nothing,
}

/// Compares the response to a HEAD with the stored response that the request selects. Freshens the stored
/// response if validators or Content-Length are present and all agree (RFC 9111 §4.3.5).
pub fn freshen_by_head(
    old: &StoredResponse,
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    (status, headers): (StatusCode, &HeaderMap),
    request_time: Timestamp,
    response_time: Timestamp,
    policy: &Policy,
) -> HeadFinding {
    if status != StatusCode::OK {
        return HeadFinding::Nothing; // §4.3.5 concerns 200 only; some applications reject HEAD.
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

/// Whether a 304 refers to the stored response: by entity tag if both have one, else by Last-Modified. A
/// tag without a stored one refers to another response (RFC 9111 §4.3.4). A bare 304, which PHP
/// applications send, refers to the only response whose validators were in the request.
fn is_about(old: &StoredResponse, headers: &HeaderMap) -> bool {
    match (same_tag(old, headers), same_modified(old, headers)) {
        (Some(same), _) => same,
        (None, Some(same)) => same,
        (None, None) => !headers.contains_key(ETAG),
    }
}

/// Whether the entity tags agree by weak comparison, if both have one. §4.3.4 requires a strong comparison
/// of strong tags, in order to choose among several stored responses. Here one response was validated, and
/// nginx, for example, weakens the tag of a compressed 200 but not that of the 304.
fn same_tag(old: &StoredResponse, headers: &HeaderMap) -> Option<bool> {
    let tag = old.etag.text().filter(|_| old.etag.source() == Some(EtagSource::Origins))?;
    Some(weak_match(fields::first(headers, "etag")?, &tag))
}

/// Whether the Last-Modified values agree, if both have one.
fn same_modified(old: &StoredResponse, headers: &HeaderMap) -> Option<bool> {
    let stored = old.last_modified()?;
    Some(fields::first(headers, "last-modified")? == fields::trim(stored.as_bytes()))
}

/// The stored response with the newer fields (RFC 9111 §3.2), stored as if it had just been received.
fn update(
    old: &StoredResponse,
    request: &RequestFacts<'_>,
    request_fields: &dyn Fields,
    newer: &HeaderMap,
    [request_time, response_time]: [Timestamp; 2],
    policy: &Policy,
) -> Result<StoredResponse, NotStored> {
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
    // The tags of both are joined: a superfluous tag costs a render, a missing one leaves a page outdated.
    let tags = stored.tags().clone().joined(old.tags())?.joined(&old.left_out_tags()?)?;
    stored.set_tags(tags);
    stored.forget_table_fields();
    if let Some(tag) = old.etag.value_if(EtagSource::Own) {
        stored.set_own_etag(tag);
    } else if old.etag.source() == Some(EtagSource::Origins) {
        // The tag as the origin gave it; the one for clients may have been weakened.
        stored.etag = old.etag.clone();
    }
    Ok(stored)
}

/// Replaces the stored fields by the newer ones, except fields that describe the bytes of the stored
/// content and hop-by-hop fields (RFC 9111 §3.2). Date and Age come from the newer response only.
fn merge(old: &StoredResponse, newer: &HeaderMap) -> HeaderMap {
    let mut newer = newer.clone();
    fields::remove_hop_by_hop(&mut newer);
    let kept: [&HeaderName; 3] = [&CONTENT_LENGTH, &CONTENT_ENCODING, &CONTENT_RANGE];
    for name in kept {
        newer.remove(name);
    }
    if old.etag.source() == Some(EtagSource::Origins) {
        newer.remove(ETAG); // It differs only in weakness, and clients received the stored one.
    }
    let mut merged = old.headers.clone();
    merged.remove(SET_COOKIE); // From lsc-cookie, which is among the internal fields.
    merged.extend(old.internal.clone());
    if old.etag.source() == Some(EtagSource::Own) {
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
