//! Authorises calls to the control interface. A caller must send the token if one is configured; without
//! one it must use an IP address or `localhost` as the host. It must not be a page of another site in a
//! browser.
//!
//! Three checks protect against a malicious page in an operator's browser. A `Host` with a domain
//! name is rejected, because anyone can point a name at this address (DNS rebinding), unless the call has
//! the token, which such a page does not know: a container is called by the name of its service. A call that
//! the browser marks as cross-site is rejected (`Sec-Fetch-Site`, or `Origin` in older browsers).
//! Calls that change anything must be `application/json`, which a page of another site cannot send
//! without a preflight request. Not here: the last check (`read_json`).

use super::ControlError;
use http::{HeaderMap, header};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Rejects a `Host` with a domain name, which could belong to anyone, in a call without the token.
pub(super) fn check_host(headers: &HeaderMap, token: Option<&str>) -> Result<(), ControlError> {
    if token.is_some() && check_token(headers, token).is_ok() {
        return Ok(());
    }
    let name = match host(headers) {
        None => return Ok(()),
        Some(host) if host.starts_with('[') => host.split(']').next().map(|h| &h[1..]),
        Some(host) => host.split(':').next(),
    };
    match name {
        Some("localhost" | "") => Ok(()),
        Some(name) if name.parse::<IpAddr>().is_ok() => Ok(()),
        _ => Err(ControlError::HostRefused),
    }
}

/// Rejects requests that a browser sends for a page of another origin. Another port of this machine
/// is another origin, and the site's own pages are on another port.
pub(super) fn check_browser(headers: &HeaderMap) -> Result<(), ControlError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    // The value "none" means that the user typed the address.
    let fetched_here =
        text("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"));
    let own = |origin: &str| {
        let origin = origin.split_once("://").map(|(_, authority)| authority);
        origin.is_some() && origin == host(headers)
    };
    if fetched_here && text("origin").is_none_or(own) {
        Ok(())
    } else {
        Err(ControlError::CrossSite)
    }
}

/// Checks the token, if one is configured.
pub(super) fn check_token(headers: &HeaderMap, token: Option<&str>) -> Result<(), ControlError> {
    let Some(token) = token else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let given = given.and_then(|value| value.strip_prefix(b"Bearer ")).unwrap_or_default();
    if given.ct_eq(token.as_bytes()).into() { Ok(()) } else { Err(ControlError::TokenRefused) }
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST).and_then(|host| host.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn calls_of_other_pages_are_refused() {
        let here = ("host", "127.0.0.1:8081");
        for (line, right) in [
            (("accept", "*/*"), true),
            (("sec-fetch-site", "same-origin"), true),
            (("sec-fetch-site", "none"), true),
            (("sec-fetch-site", "same-site"), false),
            (("sec-fetch-site", "cross-site"), false),
            (("sec-fetch-site", "something-new"), false),
            (("origin", "http://127.0.0.1:8081"), true),
            (("origin", "https://127.0.0.1:8081"), true),
            (("origin", "http://127.0.0.1:8080"), false),
            (("origin", "http://evil.test"), false),
            (("origin", "null"), false),
        ] {
            assert_eq!(check_browser(&headers(&[here, line])).is_ok(), right, "{line:?}");
        }
        assert!(check_browser(&headers(&[("origin", "http://127.0.0.1")])).is_err());
    }

    #[test]
    fn names_are_refused() {
        for (host, right) in [
            ("localhost", true),
            ("localhost:9", true),
            ("127.0.0.1:8081", true),
            ("[::1]:8081", true),
            ("", true),
            ("evil.test:8081", false),
            ("[evil", false),
        ] {
            assert_eq!(check_host(&headers(&[("host", host)]), None).is_ok(), right, "{host}");
            let with_token = headers(&[("host", host), ("authorization", "Bearer secret")]);
            assert_eq!(
                check_host(&with_token, None).is_ok(),
                right,
                "{host}: no token is asked for"
            );
            assert_eq!(
                check_host(&with_token, Some("other")).is_ok(),
                right,
                "{host}: another token"
            );
            assert!(check_host(&with_token, Some("secret")).is_ok(), "{host}: with the token");
        }
    }
}
