//! The challenges of a certificate authority over HTTP (HTTP-01, RFC 8555 section 8.3), for hosts whose certificates
//! are managed.
//!
//! Invariant: for such a host, a path below `/.well-known/acme-challenge/` is answered only here: with the pending
//! answer if host and token are exactly those of a pending challenge and the request came over plain HTTP, else with
//! 404. So no file and no page of the site can answer a challenge. Challenges of other hosts are files of the document root.

use certificates::ChallengeAnswer;
use delivery::body::{Content, ResponseBody};
use delivery::serve;
use delivery::site::Site;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use reasons::Reason;
use request_values::target::TargetUri;

/// The path of challenges.
const PATH: &str = "/.well-known/acme-challenge/";
/// The longest token in bytes.
const TOKEN_BYTES_MAX: usize = 256;

/// Whether a target with this path and query is a challenge.
pub fn is_challenge(path_and_query: &str) -> bool {
    path_and_query.starts_with(PATH)
}

/// Whether the target is a challenge of a host whose certificate is managed.
pub fn is_managed(site: &Site, target: &TargetUri) -> bool {
    is_challenge(&target.path_and_query)
        && site.certificates.get().is_some_and(|all| all.manages(name(&target.host)))
}

/// Whether clients get a certificate for the host of the target.
pub fn has_certificate(site: &Site, target: &TargetUri) -> bool {
    site.certificates.get().is_none_or(|all| all.is_ready(name(&target.host)))
}

/// Answers a challenge of a managed host.
pub async fn answer(site: &Site, target: &TargetUri) -> Response<ResponseBody> {
    let token = target.path_and_query.strip_prefix(PATH).unwrap_or_default();
    let is_possible = target.scheme == "http" && (1..=TOKEN_BYTES_MAX).contains(&token.len());
    let manager = site.certificates.get().and_then(|all| all.manager());
    let pending = match manager.filter(|_| is_possible) {
        Some(manager) => manager.challenge(name(&target.host)).await,
        None => None,
    };
    match pending {
        Some(ChallengeAnswer::Http { token: pending, content }) if pending == token => {
            let mut response = Response::new(ResponseBody::from(Content::Whole(content.into())));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        _ => serve::error(StatusCode::NOT_FOUND, Reason::AcmeChallenge, None),
    }
}

/// The host without its port.
fn name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_part_of_the_name() {
        assert_eq!(name("a.org:5002"), "a.org");
        assert_eq!(name("a.org"), "a.org");
        assert_eq!(name("[::1]"), "[::1]");
    }
}
