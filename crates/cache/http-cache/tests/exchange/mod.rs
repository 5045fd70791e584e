//! Shared by the tests: short forms of exchanges.
//!
//! All of them take place at [`NOW`], Sun, 06 Nov 1994 08:49:37 GMT, unless stated otherwise.
#![allow(dead_code, reason = "each test file uses its part")]

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use http_cache::{
    Candidate, NotStored, Policy, RequestControl, RequestFacts, StoredResponse, Timestamp, Verdict,
    decide, storable,
};

/// Header lines.
pub type Lines<'a> = &'a [(&'a str, &'a str)];

/// The time of all exchanges.
pub const NOW: Timestamp = Timestamp::from_seconds(784_111_777);

/// The point in time `seconds` after [`NOW`].
pub fn after(seconds: u64) -> Timestamp {
    NOW.plus(seconds * 1000)
}

/// Header lines as a map.
pub fn headers(lines: Lines<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    headers
}

/// The caching-related fields of a request.
pub fn request<'a>(method: &Method, lines: Lines<'a>) -> RequestFacts<'a> {
    RequestFacts::read(
        method,
        lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())),
    )
}

/// A policy that obeys request directives.
pub fn honouring() -> Policy {
    Policy { request_directives: RequestControl::Honour, ..Policy::default() }
}

/// Stores the response to a request.
pub fn store_for(
    method: &Method,
    request_lines: Lines<'_>,
    status: u16,
    lines: Lines<'_>,
    policy: &Policy,
) -> Result<StoredResponse, NotStored> {
    let facts = request(method, request_lines);
    let status = StatusCode::from_u16(status).expect("a status");
    let fields = headers(request_lines);
    storable(&facts, &fields, status, &headers(lines), NOW, NOW, policy)
}

/// Stores a 200 to a plain GET under the default policy.
pub fn store(lines: Lines<'_>) -> Result<StoredResponse, NotStored> {
    store_for(&Method::GET, &[], 200, lines, &Policy::default())
}

/// Stores a 200 to a plain GET under the default policy; panics if it is not storable.
pub fn stored(lines: Lines<'_>) -> StoredResponse {
    store(lines).expect("storable")
}

/// The decision on a GET, with one stored response, `seconds` after it was stored.
pub fn reuse(stored: &StoredResponse, lines: Lines<'_>, seconds: u64, policy: &Policy) -> Verdict {
    let facts = request(&Method::GET, lines);
    let candidates = [Candidate { stored, marked: None }];
    decide(&facts, &headers(lines), candidates.into_iter(), policy, after(seconds))
}
