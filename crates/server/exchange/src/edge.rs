//! The rules at the beginning and the end of a request: whether a rule refuses it (`deny`), which checks it has to
//! pass (`limit`, `auth_file`; [`checks`](crate::checks) carries them out), whether it is redirected (`redirect`,
//! `slash`, redirect files), and the fields of its response (`set_headers` and others). Which rule applies is decided
//! in `site_rules`; when, in [`steps`](crate::steps).
//!
//! Invariants: the response to a request that another client might be refused is `private`, so that no shared cache
//! gives it to that client. The fields of every response of the site are changed.

use crate::steps::AskedRequest;
use delivery::body::ResponseBody;
use delivery::error_pages::put_error_page;
use delivery::serve;
use delivery::site::Site;
use http::header::{ALLOW, CACHE_CONTROL, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Response};
use origin::routes::{Route, route_in};
use reasons::Reason;
use request_values::target::TargetUri;
use rule_conditions::RequestView;
use site_rules::{AccessRequest, Denial, LimitRule, Redirect, SlashChange};
use std::sync::OnceLock;
use telemetry::request_fields::{AsSent, view_of};

/// Whether a field permits storing to some shared caches, whatever `Cache-Control` says.
fn is_for_shared_caches(name: &[u8]) -> bool {
    name.ends_with(b"-cache-control")
        || matches!(name, b"edge-control" | b"surrogate-control" | b"x-accel-expires")
}

/// Removes the fields of other shared caches, from a response that is for one client or for some.
pub(crate) fn remove_fields_of_shared_caches(headers: &mut HeaderMap) {
    let is_removed = |name: &&HeaderName| is_for_shared_caches(name.as_str().as_bytes());
    let removed: Vec<HeaderName> = headers.keys().filter(is_removed).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

/// The rules that apply to one request, each kind found at most once: also after `Authorization` is consumed, they are
/// those for the request as it was sent.
#[derive(Debug, Default)]
pub struct EdgeMatches {
    denial: OnceLock<Option<Denial>>,
    limit: OnceLock<Option<LimitRule>>,
    password: OnceLock<Option<usize>>,
    redirect: OnceLock<Option<Redirect>>,
}

impl EdgeMatches {
    /// Finds the rules of all kinds, for a request that is going to be changed.
    pub(crate) fn find_all(&self, asked: &AskedRequest<'_>) {
        let _ = (denial(asked), limit(asked), password(asked), redirect(asked));
    }

    /// The redirect that was found, if there is one.
    pub(crate) fn redirect(&self) -> Option<&Redirect> {
        self.redirect.get()?.as_ref()
    }
}

/// The refusal of a request, if a rule refuses it.
pub(crate) fn denial(asked: &AskedRequest<'_>) -> Option<Denial> {
    let rules = &asked.site.config.rules;
    if !rules.has_access_rules() {
        return None;
    }
    let find = |request: &AccessRequest<'_>| {
        if asked.is_fragment { rules.fragment_denial(request) } else { rules.denial(request) }
    };
    *asked.matches.denial.get_or_init(|| with_views(asked, find))
}

/// The limit under which a request counts.
pub(crate) fn limit(asked: &AskedRequest<'_>) -> Option<LimitRule> {
    let rules = &asked.site.config.rules;
    if !rules.has_limits() {
        return None;
    }
    *asked.matches.limit.get_or_init(|| with_views(asked, |request| rules.limit_rule(request)))
}

/// The number of the rule whose password a request needs.
pub(crate) fn password(asked: &AskedRequest<'_>) -> Option<usize> {
    let rules = &asked.site.config.rules;
    if !rules.has_checks() {
        return None;
    }
    let find = |request: &AccessRequest<'_>| rules.auth_rule(request).map(|auth| auth.rule);
    *asked.matches.password.get_or_init(|| with_views(asked, find))
}

/// The redirect of a request, if a rule or a line of a file has one. A page's request for a fragment gets none.
pub fn redirect<'a>(asked: &AskedRequest<'a>) -> Option<&'a Redirect> {
    // The front has compared the same rules, unless a reload has replaced them.
    let is_compared = asked.client.extras.unredirected == asked.site.reading();
    if !asked.site.config.rules.may_answer() || asked.is_fragment || is_compared {
        return None;
    }
    let find = |request: &AccessRequest<'_>| found_redirect(asked.site, request);
    asked.matches.redirect.get_or_init(|| with_views(asked, find)).as_ref()
}

/// Finds the redirect. `slash` makes no difference for what is there: a directory of the document root, whose address
/// ends in a slash, and a file, whose address does not.
pub(crate) fn found_redirect(site: &Site, request: &AccessRequest<'_>) -> Option<Redirect> {
    let found = site.config.rules.redirect(request)?;
    let path = request.sent.path();
    let is_there = |change: SlashChange| {
        site.root().is_some_and(|root| match (change, route_in(root, path.trim_end_matches('/'))) {
            (SlashChange::Remove, route) => matches!(route, Route::AddSlash(_)),
            (SlashChange::Add, route) => matches!(route, Route::Static(_) | Route::Hidden(_)),
        })
    };
    (!found.source.slash.is_some_and(is_there)).then_some(found)
}

/// The response to a request that is redirected.
pub(crate) fn redirected(site: &Site, redirect: &Redirect) -> Response<ResponseBody> {
    site.counters.redirected.add();
    // A target is visible ASCII (`UrlTarget`).
    serve::moved(redirect.source.status, Reason::Redirected, redirect.location.as_deref())
}

fn with_views<T>(
    asked: &AskedRequest<'_>,
    decide: impl FnOnce(&AccessRequest<'_>) -> Option<T>,
) -> Option<T> {
    let target = asked.target.ok()?;
    let (fields, normal) = (AsSent(asked.headers), asked.site.shared(target));
    let view = |target| view_of(target, asked.method, &fields, asked.client);
    let sent = RequestView { path_and_query: &target.path_and_query, ..view(target) };
    decide(&AccessRequest::new(&asked.site.config.rules, sent, normal.as_ref().map(view)))
}

/// The response to a request that a rule refuses.
pub(crate) fn refused(site: &Site, denial: Denial) -> Response<ResponseBody> {
    site.counters.denied.add();
    let mut response = serve::error(denial.status, Reason::Denied, None);
    let headers = response.headers_mut();
    if denial.status == http::StatusCode::METHOD_NOT_ALLOWED
        && let Ok(methods) = HeaderValue::from_str(&denial.allow())
    {
        // RFC 9110 section 15.5.6: a 405 response lists the allowed methods.
        headers.insert(ALLOW, methods);
    }
    if let Some(seconds) = denial.retry_after_seconds {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The changes of the response to a request.
pub(crate) struct ResponseChanges {
    /// The request, if rules change the fields of its response.
    fields: Option<Box<(Method, TargetUri)>>,
    /// Whether another client might be refused the request.
    is_for_some: bool,
}

impl ResponseChanges {
    pub(crate) fn of(asked: &AskedRequest<'_>) -> ResponseChanges {
        let rules = &asked.site.config.rules;
        let fields = asked.target.ok().filter(|_| rules.has_response_fields()).map(|target| {
            let target = asked.site.shared(target).unwrap_or_else(|| target.clone());
            Box::new((asked.method.clone(), target))
        });
        let is_for_some = rules.has_access_rules()
            && with_views(asked, |request| Some(rules.is_for_some_clients(request))) == Some(true);
        ResponseChanges { fields, is_for_some }
    }

    /// The response with its changes.
    pub(crate) fn applied(
        self,
        site: &Site,
        mut response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        self.apply(site, &mut response);
        response
    }

    /// Changes the fields of the response.
    pub(crate) fn apply(self, site: &Site, response: &mut Response<ResponseBody>) {
        put_error_page(site, response);
        let status = response.status();
        if let Some(request) = self.fields {
            let (method, target) = &*request;
            let view = RequestView::of_url(method, target.scheme, &target.host, target.page());
            site.config.rules.change_fields(&view, status, response.headers_mut());
        }
        if self.is_for_some {
            keep_from_shared_caches(response.headers_mut());
        }
    }
}

/// Makes a response `private` (RFC 9111 section 5.2.2.7).
fn keep_from_shared_caches(headers: &mut HeaderMap) {
    remove_fields_of_shared_caches(headers);
    let mut value = Vec::new();
    let lines = headers.get_all(CACHE_CONTROL);
    write_private_value(lines.iter().map(HeaderValue::as_bytes), &mut value);
    if let Ok(value) = HeaderValue::from_bytes(&value) {
        headers.insert(CACHE_CONTROL, value);
    }
}

/// Appends the value of `Cache-Control` of a response with these values, if it is made `private`.
fn write_private_value<'a>(values: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"private");
    for value in values {
        let is_text = value.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        let value = if is_text { value } else { &b"no-store"[..] };
        // A directive with a quoted list may be cut here; what is left of it is no directive.
        for directive in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            let name = directive.split(|byte| *byte == b'=').next().unwrap_or_default();
            let is = |other: &[u8]| name.trim_ascii().eq_ignore_ascii_case(other);
            if !(is(b"") || is(b"private") || is(b"public") || is(b"s-maxage")) {
                out.extend_from_slice(b", ");
                out.extend_from_slice(directive);
            }
        }
    }
}

/// Appends the header lines of a page with the empty line, as they are laid out with it (names in lower case), for a
/// response that only some clients get: the same changes as those of a response's fields, and nothing is allocated.
pub fn write_private_lines(lines: &[u8], out: &mut Vec<u8>) {
    const NAME: &[u8] = b"cache-control: ";
    let all = || lines.split_inclusive(|byte| *byte == b'\n');
    for line in all() {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if !line.starts_with(NAME) && !is_for_shared_caches(name) && line != b"\r\n" {
            out.extend_from_slice(line);
        }
    }
    out.extend_from_slice(NAME);
    let values = all().filter_map(|line| line.strip_prefix(NAME)?.strip_suffix(b"\r\n"));
    write_private_value(values, out);
    out.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_for_some_clients_is_private() {
        let of = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CACHE_CONTROL, HeaderValue::from_static(line));
            }
            let of_others = ["surrogate-control", "netlify-cdn-cache-control", "edge-control"];
            for name in of_others {
                headers.insert(name, HeaderValue::from_static("max-age=9"));
            }
            keep_from_shared_caches(&mut headers);
            assert!(of_others.iter().all(|name| !headers.contains_key(*name)));
            let all: Vec<_> = headers.get_all(CACHE_CONTROL).iter().collect();
            assert_eq!(all.len(), 1);
            all[0].to_str().unwrap().to_owned()
        };
        assert_eq!(of(&[]), "private");
        assert_eq!(of(&["public, max-age=9", "S-Maxage=60"]), "private, max-age=9");
        assert_eq!(of(&["no-store, private"]), "private, no-store");
    }

    #[test]
    fn the_lines_of_a_page_are_changed_as_the_fields_of_a_response() {
        let fields = [
            ("content-type", "text/html"),
            ("cache-control", "public, max-age=9"),
            ("surrogate-control", "max-age=9"),
            ("x-empty", ""),
            ("cache-control", "S-Maxage=60,no-transform"),
            ("cdn-cache-control", "max-age=9"),
            ("etag", "\"a: b\""),
        ];
        for fields in [&fields[..], &fields[..1], &fields[..0]] {
            let (mut headers, mut lines) = (HeaderMap::new(), String::new());
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
                lines.push_str(&format!("{name}: {value}\r\n"));
            }
            keep_from_shared_caches(&mut headers);
            let mut written = Vec::new();
            write_private_lines(format!("{lines}\r\n").as_bytes(), &mut written);
            let text = String::from_utf8(written).expect("text");
            let section = text.strip_suffix("\r\n\r\n").expect("the empty line");
            let mut found: Vec<_> = section.split("\r\n").map(str::to_owned).collect();
            let text_of = |value: &HeaderValue| value.to_str().expect("text").to_owned();
            let right = headers.iter().map(|(name, value)| format!("{name}: {}", text_of(value)));
            let mut right: Vec<_> = right.collect();
            found.sort();
            right.sort();
            assert_eq!(found, right);
        }
        let mut value = Vec::new();
        write_private_value([&b"max-age=9\xe9"[..]].into_iter(), &mut value);
        assert_eq!(value, b"private, no-store");
    }
}
