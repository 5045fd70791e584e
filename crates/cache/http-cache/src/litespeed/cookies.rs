//! `lsc-cookie`: a cookie that the application wants stored with the page and sent to every client. It
//! allows a page with a harmless cookie to be stored, and is the only kind of cookie that a stored page may
//! set.
//!
//! Invariants: number and length are limited; beyond the limits the page is not stored. Each cookie has a
//! name and a value. The caller checks the name: a page with a cookie that the site lists as a session
//! cookie must not be stored.

use http::{HeaderMap, HeaderValue};
use http_fields::fields::{lines, trim};

/// The field with the cookie.
pub const LSC_COOKIE: &str = "lsc-cookie";
/// The maximum number of these cookies in a page.
pub const LSC_COOKIES_MAX: usize = 8;
/// The maximum total length of these cookies in bytes.
pub const LSC_COOKIES_MAX_BYTES: usize = 4 << 10;

/// The shared cookies of a response, in the form of `Set-Cookie` values. `None` if they exceed a limit, or
/// if one of them has no name.
pub(crate) fn shared_cookies(headers: &HeaderMap) -> Option<Vec<HeaderValue>> {
    let mut found = Vec::new();
    let mut bytes = 0;
    for value in lines(headers, LSC_COOKIE) {
        bytes += value.len();
        if found.len() == LSC_COOKIES_MAX || bytes > LSC_COOKIES_MAX_BYTES {
            return None;
        }
        let name = value.as_bytes().split(|byte| matches!(byte, b'=' | b';')).next();
        let named = name.is_some_and(|name| !trim(name).is_empty());
        if !named || !value.as_bytes().contains(&b'=') {
            return None;
        }
        found.push(value.clone());
    }
    Some(found)
}
