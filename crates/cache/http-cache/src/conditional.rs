//! Answering a request's preconditions and ranges from a stored response (RFC 9110 §13, §14,
//! RFC 9111 §4.3.2).
//!
//! Invariant: the order of RFC 9110 §13.2.2: If-Match, else If-Unmodified-Since; If-None-Match, else
//! If-Modified-Since; Range with If-Range last. If-Match and If-Unmodified-Since, which a cache may
//! ignore, are evaluated, for this cache stands in for the origin and its own entity tags are known
//! nowhere else. Where content is sent in several codings the tag of any form meets a condition, but
//! If-Range only that of the untouched one, of which ranges are cut. Dates that cannot be read are ignored (§13.1.3, §13.1.4).

use crate::codings::{strong_match_any_form, weak_match_any_form};
use crate::date;
use crate::range::{Ranges, Resolved, resolve};
use crate::request::{Method, RequestFacts};
use crate::stored::{Forms, Stored, StoredFacts};
use crate::validators::{any_match, strong_match, weak_match};
use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

/// What to send of a stored response. For HEAD the same, but without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response as it is.
    Whole,
    /// 304, with [`not_modified_fields`].
    NotModified,
    /// 206 with these parts; one or several.
    Ranges(Ranges),
    /// 416, with [`unsatisfied_content_range`](crate::range::unsatisfied_content_range).
    RangeNotSatisfiable,
    /// 412.
    PreconditionFailed,
}

/// What to send to a GET or HEAD of a stored response, or of one just fetched, with
/// `content_length` bytes of content; ranges are ignored while that is unknown.
pub fn answer(
    request: &RequestFacts<'_>,
    stored: &StoredFacts,
    content_length: Option<u64>,
) -> Answer {
    // §13.2.1: no preconditions where the answer without them would be no success.
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
            Resolved::Whole => Answer::Whole,
            Resolved::Parts(ranges) => Answer::Ranges(ranges),
            Resolved::Unsatisfiable => Answer::RangeNotSatisfiable,
        },
        _ => Answer::Whole,
    }
}

/// The fields of a stored response that go with a 304.
pub fn not_modified_fields(stored: &Stored) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let goes = goes_with_not_modified(&stored.headers);
    stored.headers.iter().filter(move |(name, _)| goes(name))
}

/// Which of the fields of a stored response go with a 304 (RFC 9110 §15.4.5): all that describe not the
/// content, and Content-Location; Last-Modified only where there is no ETag to go by.
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
        // RFC 9111 §4.3.2 takes Date where there is no Last-Modified, and equality for unmodified.
        // A page that was invalidated may be made twice in one second, so here it must be earlier.
        None => stored.date() < since,
    }
}

/// Whether parts may be cut: GET (§14.2) of a 200, and If-Range holds (§13.1.5).
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
        // A strong validator only if a second older than Date, §8.8.2.2.
        (Some(modified), Some(date)) => modified == date && stored.date().since(modified) >= 1000,
        _ => false,
    }
}
