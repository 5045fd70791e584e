//! The response to a deferred request: a page that loads again, with a ticket that keeps the client's place, or plain
//! text for programs.
//!
//! A client that is deferred a second time is sent to the challenge, if there is one and it says so (`challenge`).
//!
//! `serve::origin_failed` makes the response; [`finish`] adds what depends on the request. It is called for each
//! response that a failure of the origin caused, and changes only those of deferred requests.

use crate::body::{Content, ResponseBody};
use crate::challenge;
use crate::serve;
use crate::site::Site;
use crate::visitors;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_cache::status::CacheStatus;
use miss_control::Ticket;
use random_number::random_number;
use reasons::Reason;
use request_values::target::TargetUri;
use rule_conditions::{Agent, RequestClient};
use site_rules::TICKET_COOKIE;
use std::sync::Arc;
use telemetry::client::{Client, RequestPurpose};
use telemetry::request_fields::AsSent;

/// After this many seconds a program that calls itself a crawler may ask again.
const CRAWLER_RETRIES_AFTER: HeaderValue = HeaderValue::from_static("60");

/// Marks a response to a deferred request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeferredResponse;

/// Completes the response to a request of this method and with these header lines, if the request was deferred.
pub fn finish(
    site: &Arc<Site>,
    (method, headers): (&Method, &HeaderMap),
    target: &TargetUri,
    client: &Client,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    // The client sees the response to the page, not to its fragment.
    if client.extras.purpose == RequestPurpose::Fragment
        || response.extensions_mut().remove::<DeferredResponse>().is_none()
    {
        return response;
    }
    if Agent::of(&AsSent(headers)) == Agent::Crawler {
        response.headers_mut().insert(header::RETRY_AFTER, CRAWLER_RETRIES_AFTER);
    }
    if !is_navigation(method, headers) {
        return as_text(method, response);
    }
    let held = visitors::ticket_of(site, headers, &target.host);
    if held.is_some()
        && let Some(location) = challenge::redirect_to(site, (client, target, headers))
    {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        response.headers_mut().remove(header::RETRY_AFTER);
        response.headers_mut().insert(header::LOCATION, location);
    } else if let Some(line) = ticket(site, held, (client, target)) {
        site.counters.tickets_issued.add();
        response.headers_mut().append(header::SET_COOKIE, line);
    }
    if method == Method::HEAD { serve::without_body(response) } else { response }
}

/// The response to a request for a page, if a rule allows no more renders for so many seconds.
pub fn renders_limited(mut status: CacheStatus<'_>, seconds: u32) -> Response<ResponseBody> {
    let (code, reason) = (StatusCode::TOO_MANY_REQUESTS, Reason::RendersLimited);
    status.detail = Some(reason.as_str());
    let mut response = serve::error(code, reason, Some(&status));
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Whether a person waits for a page.
fn is_navigation(method: &Method, headers: &HeaderMap) -> bool {
    let has = |name: &str, word: &str| {
        let values = headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).any(|value| value.contains(word))
    };
    let is_fetch = headers.contains_key("sec-fetch-mode") && !has("sec-fetch-mode", "navigate");
    (method == Method::GET || method == Method::HEAD) && has("accept", "text/html") && !is_fetch
}

fn as_text(method: &Method, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let text = Bytes::from_static(
        b"The site is busy. Repeat the request after the time in Retry-After.\n",
    );
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, plain);
    headers.insert(header::CONTENT_LENGTH, text.len().into());
    let is_head = method == Method::HEAD;
    *response.body_mut() =
        ResponseBody::from(if is_head { Content::Empty } else { Content::Whole(text) });
    response
}

/// The Set-Cookie line with a new ticket; none if the client has one, which it keeps with its rate.
fn ticket(
    site: &Site,
    held: Option<Ticket>,
    (client, target): (&Client, &TargetUri),
) -> Option<HeaderValue> {
    let now_s = site.clock.now().0 / 1000;
    if held.is_some_and(|ticket| !ticket.is_ending(now_s)) {
        return None;
    }
    // No other ticket has this number, also on another node.
    let ticket = Ticket::new(random_number(), now_s, client.address());
    let value = ticket.value(site.config.rules.ticket_code(&target.host, &ticket.signed()));
    let lasts = Ticket::LIFETIME.as_secs();
    let secure = if target.scheme == "https" { "; Secure" } else { "" };
    let line =
        format!("{TICKET_COOKIE}={value}; Max-Age={lasts}; Path=/; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::from_str(&line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_persons() {
        let of = |method: Method, lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            is_navigation(&method, &headers)
        };
        let html = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        assert!(of(Method::GET, &[html]));
        assert!(of(Method::HEAD, &[html, ("sec-fetch-mode", "navigate")]));
        assert!(!of(Method::GET, &[html, ("sec-fetch-mode", "cors")]));
        assert!(!of(Method::POST, &[html]));
        assert!(!of(Method::GET, &[("accept", "*/*")]) && !of(Method::GET, &[]));
    }
}
