//! The URLs that a response to an unsafe request invalidates (RFC 9111 §4.4): the target URI, and the URLs
//! in Location and Content-Location on the same host.
//!
//! Invariants: at most three URLs. A rejected request (4xx, 501) invalidates nothing. A request that failed
//! but may have been executed invalidates only its target, and so does one whose response names the changed
//! groups. Pages of another host are never invalidated, because any site could empty the cache of another.
//! The default ports of http and https are the same host: behind a TLS proxy, an application writes
//! `https:` although the request arrived as `http:`.

use crate::reference::Reference;
use crate::request::Method;
use http::{HeaderMap, StatusCode, Uri};
use http_fields::fields;

/// The path and query of each page that a response with `status` and `headers` to an unsafe request for
/// `target` invalidates. `authority` is the host of the request, with its port if it has one. Empty for
/// safe methods and for rejected requests.
pub fn invalidates(
    method: Method,
    authority: &str,
    target: &Uri,
    status: StatusCode,
    headers: &HeaderMap,
) -> Vec<String> {
    if method != Method::Unsafe {
        return Vec::new();
    }
    let target = target.path_and_query().map_or("/", |path| path.as_str());
    let mut pages = vec![target.to_owned()];
    // §4.4: "a non-error response is one with a 2xx or 3xx status code".
    if !(status.is_success() || status.is_redirection()) {
        return if may_have_been_executed(status) { pages } else { Vec::new() };
    }
    // The application names the changed groups (RFC 9875 §3). §4.4 requires only the target.
    if fields::is_there(headers, "cache-group-invalidation") {
        return pages;
    }
    for name in ["location", "content-location"] {
        let reference = fields::first(headers, name).and_then(|value| str::from_utf8(value).ok());
        if let Some(page) = reference.and_then(|reference| page_of(reference, authority, target))
            && !pages.contains(&page)
        {
            pages.push(page);
        }
    }
    pages
}

/// Whether an unsafe request that failed may have been executed. §4.4 requires nothing in this case. But a
/// script that writes and then fails returns a 500, and a gateway that loses the response returns a 502 or
/// 504. A 501 means an unknown method, and a 4xx a rejected request.
fn may_have_been_executed(status: StatusCode) -> bool {
    status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// The path and query of a reference to a page of the same host. `None` if it refers to another host or is not
/// an http URI.
fn page_of(reference: &str, authority: &str, target: &str) -> Option<String> {
    let resolved = Reference::resolve(reference, target)?;
    let own = without_own_port(authority);
    let is_same = |host: &str| without_own_port(host).eq_ignore_ascii_case(own);
    resolved.host.as_deref().is_none_or(is_same).then_some(resolved.page)
}

fn without_own_port(host: &str) -> &str {
    host.strip_suffix(":80").or_else(|| host.strip_suffix(":443")).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderName, HeaderValue};

    fn pages(method: Method, status: u16, lines: &[(&'static str, &str)]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers
                .insert(HeaderName::from_static(name), HeaderValue::from_str(value).expect("text"));
        }
        let status = StatusCode::from_u16(status).expect("a status");
        let target = Uri::from_static("/a/b?c");
        invalidates(method, "example.org", &target, status, &headers)
    }

    #[test]
    fn unsafe_methods_that_succeed_invalidate_their_target() {
        // §4.4.
        for status in [200, 201, 204, 302, 303] {
            assert_eq!(pages(Method::Unsafe, status, &[]), ["/a/b?c"]);
        }
        for status in [400, 404, 501] {
            assert!(pages(Method::Unsafe, status, &[]).is_empty());
        }
        for method in [Method::Get, Method::Head, Method::OtherSafe] {
            assert!(pages(method, 200, &[("location", "/x")]).is_empty());
            assert!(pages(method, 500, &[]).is_empty());
        }
    }

    #[test]
    fn a_failed_write_may_have_been_executed() {
        for status in [500, 502, 503, 504, 599] {
            assert_eq!(pages(Method::Unsafe, status, &[("location", "/x")]), ["/a/b?c"]);
        }
    }

    #[test]
    fn a_scheme_s_own_port_does_not_make_another_host() {
        for (authority, reference, same) in [
            ("example.org:80", "https://example.org/x", true),
            ("example.org:443", "http://example.org:80/x", true),
            ("example.org:8080", "http://example.org:8080/x", true),
            ("example.org:8080", "http://example.org/x", false),
        ] {
            assert_eq!(
                page_of(reference, authority, "/").is_some(),
                same,
                "{authority} {reference}"
            );
        }
    }

    #[test]
    fn location_and_content_location_on_the_same_host() {
        let with = |location| {
            let mut found = pages(Method::Unsafe, 201, &[("location", location)]);
            found.remove(0);
            found
        };
        for (reference, page) in [
            ("/x/y?z", "/x/y?z"),
            ("http://example.org/x", "/x"),
            ("HTTPS://EXAMPLE.org:443/x#y", "/x"),
            ("http://u:p@example.org:80", "/"),
            ("//example.org?q", "/?q"),
            ("x", "/a/x"),
            ("./x", "/a/x"),
            ("../x/", "/x/"),
            ("../../../x/./y/..", "/x/"),
            ("?d", "/a/b?d"),
            ("x?u=http://other/", "/a/x?u=http://other/"),
        ] {
            assert_eq!(with(reference), [page], "{reference}");
        }
        for reference in
            ["http://other.org/x", "http://example.org:8080/x", "//evil/", "mailto:a@b", "#x", ""]
        {
            assert!(with(reference).is_empty(), "{reference}");
        }
        // The application names the changed groups, possibly none.
        for said in ["", "\"news\""] {
            let lines = [("location", "/x"), ("cache-group-invalidation", said)];
            assert_eq!(pages(Method::Unsafe, 302, &lines), ["/a/b?c"]);
        }
        let both = pages(Method::Unsafe, 200, &[("location", "/x"), ("content-location", "/y")]);
        assert_eq!(both, ["/a/b?c", "/x", "/y"]);
    }
}
