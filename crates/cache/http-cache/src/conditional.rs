//! Evaluates the preconditions and ranges of a request against a stored response (RFC 9110 §13, §14, RFC
//! 9111 §4.3.2).
//!
//! Invariant: the order is that of RFC 9110 §13.2.2: If-Match, else If-Unmodified-Since; If-None-Match,
//! else If-Modified-Since; Range with If-Range last. A cache may ignore If-Match and If-Unmodified-Since.
//! This one evaluates them, because it acts as the origin and only it knows its own entity tags. If content
//! is sent in several codings, the tag of any of them satisfies a condition. If-Range requires the tag of
//! the uncompressed content, from which ranges are cut. Unreadable dates are ignored (§13.1.3, §13.1.4).

use crate::codings::{strong_match_any_form, weak_match_any_form};
use crate::range::{Ranges, ResolvedRange, resolve};
use crate::request::{Method, RequestFacts};
use crate::stored::{Forms, StoredFacts, StoredResponse};
use crate::validators::{any_match, strong_match, weak_match};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_fields::date;

/// The part of a stored response to send. For HEAD the same, without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The whole response.
    Whole,
    /// 304, with [`not_modified_fields`].
    NotModified,
    /// 206 with these ranges; one or several.
    Ranges(Ranges),
    /// 416, with [`unsatisfied_content_range`](crate::range::unsatisfied_content_range).
    RangeNotSatisfiable,
    /// 412.
    PreconditionFailed,
}

/// The answer to a GET or HEAD from a stored response, or from one just fetched. `content_length` is the
/// length of its content in bytes; ranges are ignored while it is unknown.
pub fn answer(
    request: &RequestFacts<'_>,
    stored: &StoredFacts,
    content_length: Option<u64>,
) -> Answer {
    // §13.2.1: preconditions are ignored if the response without them is not a success.
    if !stored.status.is_success() || stored.forms == Forms::Assembled {
        return Answer::Whole;
    }
    if fails_precondition(request, stored) {
        return Answer::PreconditionFailed;
    }
    if is_not_modified(request, stored) {
        return Answer::NotModified;
    }
    match (request.range, content_length) {
        (Some(range), Some(length)) if may_cut(request, stored) => match resolve(range, length) {
            ResolvedRange::Whole => Answer::Whole,
            ResolvedRange::Parts(ranges) => Answer::Ranges(ranges),
            ResolvedRange::Unsatisfiable => Answer::RangeNotSatisfiable,
        },
        _ => Answer::Whole,
    }
}

/// The fields of a stored response to send with a 304.
pub fn not_modified_fields(
    stored: &StoredResponse,
) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let goes = goes_with_not_modified(&stored.headers);
    stored.headers.iter().filter(move |(name, _)| goes(name))
}

/// Which fields of a stored response to send with a 304 (RFC 9110 §15.4.5): those that do not describe the
/// content, and Content-Location; Last-Modified only if there is no ETag.
pub fn goes_with_not_modified(headers: &HeaderMap) -> impl Fn(&HeaderName) -> bool + use<> {
    let has_etag = headers.contains_key(header::ETAG);
    move |name| match name.as_str() {
        "content-location" => true,
        "last-modified" => !has_etag,
        name => !name.starts_with("content-") || name.starts_with("content-security-policy"),
    }
}

/// If-Match (§13.1.1), else If-Unmodified-Since (§13.1.4).
fn fails_precondition(request: &RequestFacts<'_>, stored: &StoredFacts) -> bool {
    if request.if_match.is_present() {
        let tag = stored.etag.text();
        let tag = tag.as_deref();
        let same = match stored.forms {
            Forms::One | Forms::Assembled => strong_match,
            Forms::ByCoding => strong_match_any_form,
        };
        return request.if_match.get().is_some_and(|lines| !any_match(lines, tag, same));
    }
    let since =
        request.if_unmodified_since.and_then(|value| date::parse(value, stored.response_time));
    matches!((stored.modified(), since), (Some(modified), Some(since)) if modified > since)
}

/// If-None-Match (§13.1.2), else If-Modified-Since (§13.1.3, RFC 9111 §4.3.2).
fn is_not_modified(request: &RequestFacts<'_>, stored: &StoredFacts) -> bool {
    if request.if_none_match.is_present() {
        let tag = stored.etag.text();
        let tag = tag.as_deref();
        let same = match stored.forms {
            Forms::One | Forms::Assembled => weak_match,
            Forms::ByCoding => weak_match_any_form,
        };
        return request.if_none_match.get().is_some_and(|lines| any_match(lines, tag, same));
    }
    let Some(value) = request.if_modified_since else { return false };
    let Some(since) = date::parse(value, stored.response_time) else { return false };
    match stored.modified() {
        Some(modified) => modified <= since,
        // RFC 9111 §4.3.2 uses Date if there is no Last-Modified, and treats equal dates as unmodified. A
        // page may be invalidated and rendered twice in one second, so here Date must be earlier.
        None => stored.date() < since,
    }
}

/// Whether ranges may be cut: the request is a GET (§14.2), the response a 200, and If-Range holds
/// (§13.1.5).
fn may_cut(request: &RequestFacts<'_>, stored: &StoredFacts) -> bool {
    if request.method != Method::Get || stored.status != StatusCode::OK {
        return false;
    }
    let Some(condition) = request.if_range else { return true };
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        return stored.etag.text().is_some_and(|tag| strong_match(condition, &tag));
    }
    let date = date::parse(condition, stored.response_time);
    match (stored.modified(), date) {
        // The date is a strong validator only if it is at least a second before Date, §8.8.2.2.
        (Some(modified), Some(date)) => modified == date && stored.date().since(modified) >= 1000,
        _ => false,
    }
}
