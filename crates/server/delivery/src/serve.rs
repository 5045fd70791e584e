//! Builds the responses to clients: from a stored page, from a file, and Pagewell's own errors.
//!
//! A response contains the whole content, a part of it, or only the information that the content
//! has not changed (RFC 9110 sections 13 to 15). Every response has a Cache-Status field (RFC
//! 9211).

use crate::body::{Content, ResponseBody};
use crate::deferral::DeferredResponse;
use crate::site::Site;
use crate::template_mark;
use bytes::Bytes;
use config::Address;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_cache::FieldUse;
use http_cache::codings::{Coding, coded_etag, describe};
use http_cache::litespeed::LSC_COOKIE;
use http_cache::range::{ByteRange, Multipart, Ranges, unsatisfied_content_range};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{
    Answer, Failure, Method, Policy, RequestFacts, StoredResponse, Timestamp, answer, fields,
    not_modified_fields,
};
use reasons::Reason;
use request_values::target::TargetUri;
use std::collections::VecDeque;
use std::ops::Range;
use stored_pages::page::{EncodedForm, ReadPage, SharedPage, select, select_coding};
use telemetry::client::Spent;

/// The name of this cache in Cache-Status.
pub const CACHE_NAME: &str = "pagewell";

/// The boundary between the parts of a multipart response; random, so that it does not occur in a
/// page.
const BOUNDARY: &str = "pagewell7f3a9c1e5b2d4860";

/// Answers a request by a stored page: whole, partial, or 304, as `answer` says.
pub fn page(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    answer: Answer,
    now: Timestamp,
    status: &CacheStatus<'_>,
) -> Response<ResponseBody> {
    cache_status_line(reuse_page(facts, page, answer), page, now, status)
}

/// Answers a request by a page that was rendered for it and is not stored.
pub fn unstored_page(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    now: Timestamp,
    status: &CacheStatus<'_>,
) -> Response<ResponseBody> {
    let answer = answer(facts, &page.payload().stored, Some(page.length() as u64));
    self::page(facts, page, answer, now, status)
}

/// Answers a request by a newly stored page and the fields from which it was created. This avoids
/// parsing the fields of the stored header section again.
pub fn new_page(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    fields: HeaderMap,
    now: Timestamp,
    status: &CacheStatus<'_>,
) -> Response<ResponseBody> {
    let (stored, length) = (&page.payload().stored, page.length() as u64);
    let answer = answer(facts, stored, Some(length));
    let is_kept = page.plain().content().is_some() && page.payload().forms().codings().is_empty();
    if answer != Answer::Whole || !is_kept || stored.status == StatusCode::NO_CONTENT {
        return self::page(facts, page, answer, now, status);
    }
    let mut response = Response::new(Content::Empty.into());
    *response.status_mut() = stored.status;
    *response.headers_mut() = fields;
    template_mark::mark_as(stored, &mut response);
    cache_status_line(
        fill(facts, response, length, Content::Whole(page.content())),
        page,
        now,
        status,
    )
}

/// Adds Cache-Status and Age to a response that contains a page.
fn cache_status_line(
    mut response: Response<ResponseBody>,
    page: &SharedPage,
    now: Timestamp,
    status: &CacheStatus<'_>,
) -> Response<ResponseBody> {
    let response_status = response.status();
    response.body_mut().is_of(page);
    let headers = response.headers_mut();
    if matches!(
        response_status,
        StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE
    ) {
        // Only Pagewell's own errors keep that field; here the page's Cache-Status replaces it.
        headers.remove("cache-status");
    }
    let age = page.payload().stored.age_seconds(now);
    // RFC 9111 section 5.1: Age indicates that the response was not generated for this request.
    let first_hand = matches!(status.handled, CacheOutcome::Forwarded(_)) && !status.collapsed;
    if age > 0 || !first_hand {
        headers.insert(header::AGE, HeaderValue::from(age));
    }
    headers.append("cache-status", status_value(status));
    response
}

/// Formats the value of Cache-Status.
pub fn status_value(status: &CacheStatus<'_>) -> HeaderValue {
    let mut text = Vec::with_capacity(64);
    status.write(&mut text);
    HeaderValue::from_maybe_shared(Bytes::from(text))
        .unwrap_or(HeaderValue::from_static(CACHE_NAME))
}

/// Adds the origin's response time in milliseconds, if a request was sent to it (Server Timing,
/// W3C).
pub fn tell_timing(response: &mut Response<ResponseBody>, spent: Option<&Spent>) {
    let Some(us) = spent.and_then(Spent::micros) else { return };
    let value = format!("origin;dur={}.{:03}", us / 1_000, us % 1_000);
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().append("server-timing", value);
    }
}

/// Converts a response to one for HEAD: the fields stay, the content is removed.
pub fn without_body(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    *response.body_mut() = Content::Empty.into();
    response
}

/// Answers a request by a file in the form that the request selects. `plain` answers with the
/// uncompressed form, which has `length` bytes. See [`file`] and [`large_file`].
pub fn file_in_form(
    facts: &RequestFacts<'_>,
    stored: &StoredResponse,
    length: u64,
    forms: (&[Coding], &dyn Fn(Coding) -> Option<Bytes>),
    plain: impl FnOnce(Answer) -> Response<ResponseBody>,
) -> Response<ResponseBody> {
    let (codings, content_in) = forms;
    let answer = answer(facts, stored, Some(length));
    let coding = select_coding(facts, stored, codings, &answer);
    of_file(reuse_in_form(facts, stored, (answer, coding), content_in, || plain(answer)))
}

/// Answers a request by a small file.
pub fn file(
    facts: &RequestFacts<'_>,
    stored: &StoredResponse,
    answer: Answer,
    content: Bytes,
) -> Response<ResponseBody> {
    of_file(reuse(facts, stored, answer, content))
}

/// The Cache-Status of a file, which comes neither from the store nor from the origin.
pub const FILE_STATUS: &str = "pagewell; detail=file";

fn of_file(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let value = HeaderValue::from_static(FILE_STATUS);
    response.headers_mut().entry("cache-status").or_insert(value);
    response
}

/// Answers a request by a large file. `open` streams a number of bytes from an offset.
pub fn large_file(
    facts: &RequestFacts<'_>,
    stored: &StoredResponse,
    answer: Answer,
    length: u64,
    open: impl FnOnce(u64, u64) -> Content,
) -> Response<ResponseBody> {
    of_file(match answer {
        Answer::Ranges(ranges) if ranges.as_slice().len() == 1 => {
            let range = ranges.as_slice()[0];
            let mut response = with(stored, StatusCode::PARTIAL_CONTENT, Content::Empty);
            set(response.headers_mut(), header::CONTENT_RANGE, &range.content_range(length));
            fill(facts, response, range.length(), open(range.first, range.length()))
        }
        // For several ranges of a large file, the whole file is sent (RFC 9110 section 14.2 allows
        // that).
        Answer::Whole | Answer::Ranges(_) => {
            fill(facts, with(stored, stored.status, Content::Empty), length, open(0, length))
        }
        other => without_content(other, stored, length),
    })
}

fn fill(
    facts: &RequestFacts<'_>,
    mut response: Response<ResponseBody>,
    length: u64,
    content: Content,
) -> Response<ResponseBody> {
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    if facts.method != Method::Head {
        *response.body_mut() = content.into();
    }
    response
}

fn reuse(
    facts: &RequestFacts<'_>,
    stored: &StoredResponse,
    answer: Answer,
    content: Bytes,
) -> Response<ResponseBody> {
    let length = content.len() as u64;
    match answer {
        Answer::Whole => {
            let response = with(stored, stored.status, Content::Empty);
            match stored.status.as_u16() {
                // RFC 9110 section 8.6: a 204 response has no Content-Length.
                204 => response,
                _ => fill(facts, response, length, Content::Whole(content)),
            }
        }
        Answer::Ranges(ranges) => parts(stored, &content, ranges),
        other => without_content(other, stored, length),
    }
}

/// Answers by a page in the form that the request selects.
fn reuse_page(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    answer: Answer,
) -> Response<ResponseBody> {
    let stored = &page.response();
    let selected = select(facts, page, &answer);
    let content_in = |coding| page.payload().forms().get(coding).and_then(EncodedForm::shared);
    let plain = || match answer {
        Answer::Whole | Answer::Ranges(_) => reuse(facts, stored, answer, page.content()),
        other => without_content(other, stored, page.length() as u64),
    };
    reuse_in_form(facts, stored, (answer, selected.coding), &content_in, plain)
}

/// Answers in the selected content coding, for which `content_in` returns the content. `plain`
/// answers with the uncompressed form.
fn reuse_in_form(
    facts: &RequestFacts<'_>,
    stored: &StoredResponse,
    (answer, coding): (Answer, Option<Coding>),
    content_in: &dyn Fn(Coding) -> Option<Bytes>,
    plain: impl FnOnce() -> Response<ResponseBody>,
) -> Response<ResponseBody> {
    match (answer, coding) {
        (Answer::Whole, Some(coding)) => match content_in(coding) {
            Some(content) => {
                let mut response = with(stored, stored.status, Content::Empty);
                describe(response.headers_mut(), coding);
                fill(facts, response, content.len() as u64, Content::Whole(content))
            }
            None => plain(),
        },
        (Answer::NotModified, Some(coding)) => {
            let mut response = plain();
            if let Some(tag) = stored.etag.text().and_then(|tag| coded_etag(&tag, coding)) {
                response.headers_mut().insert(header::ETAG, tag);
            }
            response
        }
        _ => plain(),
    }
}

fn without_content(answer: Answer, stored: &StoredResponse, length: u64) -> Response<ResponseBody> {
    match answer {
        Answer::NotModified => {
            let mut response = Response::new(Content::Empty.into());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            let headers = response.headers_mut();
            for (name, value) in not_modified_fields(stored) {
                headers.append(name.clone(), value.clone());
            }
            response
        }
        Answer::PreconditionFailed => {
            error(StatusCode::PRECONDITION_FAILED, Reason::PreconditionFailed, None)
        }
        _ => {
            let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, Reason::Range, None);
            let value = unsatisfied_content_range(length);
            set(response.headers_mut(), header::CONTENT_RANGE, &value);
            response
        }
    }
}

/// Builds a 206 response with the ranges (RFC 9110 section 14).
fn parts(stored: &StoredResponse, bytes: &Bytes, ranges: Ranges) -> Response<ResponseBody> {
    let cut = |at: usize| {
        let range = ranges.as_slice()[at];
        // The ranges were resolved against the length of this content.
        bytes.slice(range.first as usize..=range.last as usize)
    };
    if ranges.as_slice().len() == 1 {
        let content = cut(0);
        let mut response = with(stored, StatusCode::PARTIAL_CONTENT, Content::Empty);
        let value = ranges.as_slice()[0].content_range(bytes.len() as u64);
        set(response.headers_mut(), header::CONTENT_RANGE, &value);
        response.headers_mut().insert(header::CONTENT_LENGTH, content.len().into());
        *response.body_mut() = Content::Whole(content).into();
        return response;
    }
    let content_type = stored.headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    let multipart =
        Multipart { ranges, boundary: BOUNDARY, content_type, complete_length: bytes.len() as u64 };
    let mut pieces = VecDeque::new();
    for at in 0..ranges.as_slice().len() {
        pieces.push_back(Bytes::from(multipart.part_head(at)));
        pieces.push_back(cut(at));
    }
    pieces.push_back(Bytes::from(multipart.closing()));
    let mut response = with(stored, StatusCode::PARTIAL_CONTENT, Content::Pieces(pieces));
    set(response.headers_mut(), header::CONTENT_TYPE, &multipart.content_type());
    response.headers_mut().insert(header::CONTENT_LENGTH, multipart.content_length().into());
    response
}

/// Answers by a range of a stored part: `range` is its position in the whole page, `at` its
/// position in the part's content.
pub fn of_part(
    part: &SharedPage,
    range: ByteRange,
    at: Range<usize>,
    now: Timestamp,
    status: &CacheStatus<'_>,
) -> Response<ResponseBody> {
    let content = Content::Whole(part.content().slice(at));
    let mut response = with(&part.response(), StatusCode::PARTIAL_CONTENT, content);
    response.body_mut().is_of(part);
    let headers = response.headers_mut();
    // A stored part contains the length of the whole page.
    let complete_length = part.payload().stored.content_length().unwrap_or_default();
    set(headers, header::CONTENT_RANGE, &range.content_range(complete_length));
    headers.insert(header::CONTENT_LENGTH, range.length().into());
    headers.insert(header::AGE, HeaderValue::from(part.payload().stored.age_seconds(now)));
    headers.append("cache-status", status_value(status));
    response
}

/// Builds a response with the stored header lines, a status and content.
pub fn with(
    stored: &StoredResponse,
    status: StatusCode,
    content: Content,
) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(content));
    *response.status_mut() = status;
    response.headers_mut().clone_from(&stored.headers);
    template_mark::mark_as(stored, &mut response);
    response
}

/// Returns the header lines of a forwarded response.
pub fn passed_on(mut headers: HeaderMap, policy: &Policy, status: &CacheStatus<'_>) -> HeaderMap {
    fields::remove_hop_by_hop(&mut headers);
    set_shared_cookies(policy, &mut headers);
    for name in &policy.internal_fields {
        headers.remove(name);
    }
    headers.append("cache-status", status_value(status));
    headers
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    // A URL may have bytes of other characters, as it was sent.
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name, value);
    }
}

/// A redirect of Pagewell. `location` is the value of `Location`, if there is one.
pub fn moved(code: StatusCode, reason: Reason, location: Option<&str>) -> Response<ResponseBody> {
    let mut response = error(code, reason, None);
    if let Some(location) = location {
        set(response.headers_mut(), header::LOCATION, location);
    }
    response
}

/// A redirect to another path of the site; the query is preserved.
pub fn redirect(path: &str, query: Option<&str>) -> Response<ResponseBody> {
    let location = match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    moved(StatusCode::MOVED_PERMANENTLY, Reason::AddSlash, Some(&location))
}

/// A redirect to the same target over HTTPS. If the request contains a port, the target is
/// Pagewell's own HTTPS port. Otherwise it is the default port, which another machine may serve.
pub fn to_https(site: &Site, target: &TargetUri) -> Response<ResponseBody> {
    let code = site.config.https_redirect.unwrap_or(StatusCode::PERMANENT_REDIRECT);
    let bracket = target.host.rfind(']').unwrap_or(0);
    let (name, named_port) = match target.host[bracket..].rfind(':') {
        Some(at) => (&target.host[..bracket + at], true),
        None => (&target.host[..], false),
    };
    let port = site.config.listen_tls.iter().find_map(|address| match address {
        Address::Tcp(address) if named_port && address.port() != 443 => Some(address.port()),
        _ => None,
    });
    let port = port.map_or(String::new(), |port| format!(":{port}"));
    let location = format!("https://{name}{port}{}", target.path_and_query);
    moved(code, Reason::ToHttps, Some(&location))
}

/// A redirect to the same target at the canonical host.
pub fn to_canonical(site: &Site, target: &TargetUri) -> Response<ResponseBody> {
    let TargetUri { scheme, host, path_and_query, .. } = target;
    let Some((code, location)) = canonical_address(site, scheme, host, path_and_query) else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None);
    };
    site.counters.redirected.add();
    moved(code, Reason::ToCanonical, Some(&location))
}

/// The address of a target at the canonical host, and the status with which its own host is redirected there, if it is.
pub fn canonical_address(
    site: &Site,
    scheme: &str,
    host: &str,
    path_and_query: &str,
) -> Option<(StatusCode, String)> {
    let (host, code) = site.config.hosts.redirect_of(host)?;
    Some((code, [scheme, "://", host, path_and_query].concat()))
}

/// Marks an error of Pagewell's own: it is counted, and an error page may replace its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnError(Reason);

/// The reason for the response, if it is an error of Pagewell, not of the application.
pub fn own_error(response: &Response<ResponseBody>) -> Option<Reason> {
    response.extensions().get::<OwnError>().map(|error| error.0)
}

/// An error response of Pagewell: a status code, and the reason.
pub fn error(
    code: StatusCode,
    reason: Reason,
    status: Option<&CacheStatus<'_>>,
) -> Response<ResponseBody> {
    // A deferred request is repeated by the browser, also without JavaScript.
    let repeated = "<meta http-equiv=\"refresh\" content=\"2\">";
    let (repeated, explained) = match reason {
        Reason::Deferred => {
            (repeated, "The site is busy at the moment. This page loads again in two seconds.")
        }
        Reason::RendersLimited => (
            "",
            "Too many pages of this kind are requested at the moment. Please try again shortly.",
        ),
        _ => ("", explained(code)),
    };
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">{repeated}\n<title>{code}</title>\n<style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}}</style>\n<h1>{code}</h1>\n<p>{explained}</p>\n<p><small>pagewell: {reason}</small></p>\n</html>\n",
    );
    let length = text.len();
    let mut response = Response::new(ResponseBody::from(Content::Whole(Bytes::from(text))));
    *response.status_mut() = code;
    if code.is_client_error() || code.is_server_error() {
        response.extensions_mut().insert(OwnError(reason));
    }
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let status = match status {
        Some(status) => status_value(status),
        None => HeaderValue::from_str(&format!("pagewell; detail={reason}"))
            .unwrap_or(HeaderValue::from_static("pagewell")),
    };
    headers.insert("cache-status", status);
    response
}

/// The response to a write whose changes could not be published to the cluster.
pub fn unpublished() -> Response<ResponseBody> {
    let mut response = error(StatusCode::SERVICE_UNAVAILABLE, Reason::ClusterUnpublished, None);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    response
}

fn explained(code: StatusCode) -> &'static str {
    match code.as_u16() {
        301 | 302 | 303 | 307 | 308 => "This page is at another address.",
        400 => "The request could not be understood.",
        401 => "This address needs a user name and a password.",
        403 => "This address is not open to you.",
        404 => "There is nothing at this address.",
        410 => "The page at this address has been removed.",
        405 => "This cannot be done with that address.",
        429 => "Too many requests have come from your address. Please try again shortly.",
        502 => "The site could not make this page. Its operator finds the cause in the log.",
        503 => "The site has more to do than it can at the moment. Please try again shortly.",
        504 => "The site took too long to make this page. Please try again shortly.",
        _ => "The request could not be answered.",
    }
}

/// The response if the origin failed: 502, 503 or 504, depending on the failure.
pub fn origin_failed(failure: Failure, status: &CacheStatus<'_>) -> Response<ResponseBody> {
    let code = match failure {
        Failure::Refused | Failure::HungUp | Failure::InvalidResponse => StatusCode::BAD_GATEWAY,
        Failure::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        Failure::Overloaded | Failure::Deferred => StatusCode::SERVICE_UNAVAILABLE,
        Failure::Limited(_) => StatusCode::TOO_MANY_REQUESTS,
        Failure::Status(code) => code,
    };
    let mut response = error(code, failure.into(), Some(status));
    if matches!(failure, Failure::Refused | Failure::Overloaded | Failure::Deferred) {
        // Both are temporary: PHP-FPM is restarted, or the queue becomes shorter.
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    }
    if failure == Failure::Deferred {
        response.extensions_mut().insert(DeferredResponse);
    }
    if let Failure::Limited(seconds) = failure {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Adds each `lsc-cookie` as `StorageCommand-Cookie` to a response that is not stored.
fn set_shared_cookies(policy: &Policy, headers: &mut HeaderMap) {
    if policy.litespeed == FieldUse::Ignore {
        return;
    }
    let cookies: Vec<HeaderValue> = headers.get_all(LSC_COOKIE).iter().cloned().collect();
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
}
