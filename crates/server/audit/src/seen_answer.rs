//! The answer of a visitor while it is compared, or remembered as the first of its key.
//!
//! Of its header lines only what later comparisons need is kept: no value of a cookie, and no password.

use crate::samples::request_of;
use crate::seen_visitors::VisitorNumbers;
use delivery::byte_account::{AccountedBytes, ByteAccount};
use delivery::site::Site;
use delivery::trial::{TrialRequest, VisitorAnswer};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use page_comparison::PageTokens;
use render::may_be_stored;
use std::sync::Arc;
use stored_pages::page::{ReadPage, SharedPage};
use telemetry::client::ClientExtras;

/// Fields by which a cache behind Pagewell says that it has answered, or that it is there.
const OF_CACHES: [&str; 9] = [
    "age",
    "cache-status",
    "x-cache",
    "x-cache-status",
    "x-varnish",
    "x-proxy-cache",
    "x-fastcgi-cache",
    "x-litespeed-cache",
    "cf-cache-status",
];

/// A request with its answer as tokens.
pub(crate) struct SeenAnswer {
    pub(crate) request: TrialRequest,
    /// The header lines of the answer that are needed later: `Cache-Control`, the names of cookies that it sets, and those of
    /// fields of another cache.
    pub(crate) headers: HeaderMap,
    pub(crate) tokens: Option<PageTokens>,
    pub(crate) visitor: VisitorNumbers,
    pub(crate) begun_ms: u64,
    refusal: Option<VisitorRefusal>,
}

/// An answer by which the origin refuses its visitor, whatever the page is.
#[derive(Clone, Copy)]
pub(crate) struct VisitorRefusal {
    pub(crate) status: StatusCode,
    /// Whether it could be stored, and sent to others.
    pub(crate) may_be_stored: bool,
}

impl SeenAnswer {
    /// Takes what later comparisons need of an answer: of its header lines whether and how it may be stored, and the
    /// names of the cookies that it sets.
    pub(crate) fn of(
        site: &Arc<Site>,
        (answer, visitor): (VisitorAnswer, VisitorNumbers),
        tokens: Option<PageTokens>,
    ) -> SeenAnswer {
        let refusal = is_refusal(answer.status).then(|| VisitorRefusal {
            status: answer.status,
            may_be_stored: could_be_stored(site, &answer),
        });
        let VisitorAnswer { mut request, headers, begun_ms, .. } = answer;
        let extras = &mut request.client.extras;
        *extras = ClientExtras { fragment: extras.fragment.take(), ..ClientExtras::default() };
        let headers = needed_lines(&headers);
        SeenAnswer { request, headers, tokens, visitor, begun_ms, refusal }
    }

    /// The refusal, if the visitor was refused in place of this page.
    pub(crate) fn refused_beside(&self, page: &SharedPage) -> Option<VisitorRefusal> {
        self.refusal.filter(|refusal| refusal.status != page.response().status)
    }

    /// Whether the answer may be remembered for a later request: no password is.
    pub(crate) fn may_wait(&self) -> bool {
        let headers = &self.request.headers;
        !headers.contains_key(header::AUTHORIZATION)
            && !headers.contains_key(header::PROXY_AUTHORIZATION)
    }

    /// The field by which a cache behind Pagewell is known, if there is one.
    pub(crate) fn field_of_cache(&self) -> Option<&'static str> {
        OF_CACHES.into_iter().find(|name| self.headers.contains_key(*name))
    }

    /// The bytes of its tokens.
    pub(crate) fn bytes(&self) -> usize {
        self.tokens.as_ref().map_or(0, PageTokens::bytes)
    }
}

/// The first answer of a key, and the memory of its tokens.
pub(crate) struct FirstAnswer {
    pub(crate) answer: SeenAnswer,
    _bytes: AccountedBytes,
}

impl FirstAnswer {
    /// The answer; without its tokens if there is no room.
    pub(crate) fn of(mut answer: SeenAnswer, account: &Arc<ByteAccount>) -> FirstAnswer {
        let mut bytes = AccountedBytes::of(account);
        if !bytes.grow(answer.bytes()) {
            answer.tokens = None;
        }
        FirstAnswer { answer, _bytes: bytes }
    }
}

/// Whether the origin has refused a visitor by this status, in place of this page.
pub(crate) fn is_refused_beside(status: StatusCode, page: &SharedPage) -> bool {
    is_refusal(status) && status != page.response().status
}

/// Whether a status says something about a request, and not about the page: all of 4xx but 404, 410 and 451. A page
/// that is withheld by law (451, RFC 7725) is a difference that the operator must know.
fn is_refusal(status: StatusCode) -> bool {
    let is_of_page = matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    );
    status.is_client_error() && !is_of_page
}

/// Whether an answer could be stored, and sent to others, if nothing in its visitor's request forbids it.
pub(crate) fn could_be_stored(site: &Arc<Site>, answer: &VisitorAnswer) -> bool {
    let request = request_of(&answer.request, None);
    may_be_stored(site, &request, (answer.status, &answer.headers))
}

/// Whether an answer is for its client only, or sets a cookie.
pub(crate) fn is_personal(headers: &HeaderMap) -> bool {
    let is_forbidden = |value: &HeaderValue| {
        let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        value.contains("no-store") || value.contains("private")
    };
    headers.contains_key(header::SET_COOKIE)
        || headers.get_all(header::CACHE_CONTROL).iter().any(is_forbidden)
}

/// `Cache-Control`, and `Set-Cookie` and the fields of other caches without values.
fn needed_lines(headers: &HeaderMap) -> HeaderMap {
    let mut needed = HeaderMap::new();
    for value in headers.get_all(header::CACHE_CONTROL) {
        needed.append(header::CACHE_CONTROL, value.clone());
    }
    for value in headers.get_all(header::SET_COOKIE) {
        let name = value.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        if let Ok(name) = HeaderValue::from_bytes(&[name, &b"="[..]].concat()) {
            needed.append(header::SET_COOKIE, name);
        }
    }
    for name in OF_CACHES.into_iter().filter(|name| headers.contains_key(*name)) {
        needed.insert(name, HeaderValue::from_static(""));
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_not_there_is_no_refusal() {
        let refusals = [400, 401, 403, 405, 406, 418, 431];
        let others = [200, 204, 301, 304, 404, 410, 451, 500, 503];
        let is_one = |status: u16| is_refusal(StatusCode::from_u16(status).expect("a status"));
        assert!(refusals.into_iter().all(is_one) && !others.into_iter().any(is_one));
    }

    #[test]
    fn no_value_of_a_cookie_is_remembered() {
        let mut headers = HeaderMap::new();
        for line in ["cart=s3cr3t; path=/", "lang=en"] {
            headers.append(header::SET_COOKIE, HeaderValue::from_static(line));
        }
        headers.append(header::CACHE_CONTROL, HeaderValue::from_static("private"));
        headers.append("x-cache", HeaderValue::from_static("s3cr3t"));
        headers.append(header::LOCATION, HeaderValue::from_static("/s3cr3t"));
        let needed = needed_lines(&headers);
        let lines: Vec<&str> = needed.values().filter_map(|value| value.to_str().ok()).collect();
        assert!(
            needed.len() == 4
                && needed.contains_key("x-cache")
                && lines.contains(&"cart=")
                && lines.contains(&"lang=")
        );
        assert!(!lines.iter().any(|line| line.contains("s3cr3t")));
    }
}
