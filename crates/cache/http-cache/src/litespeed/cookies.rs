//! `lsc-cookie`: a cookie that the application wants kept with the page and given to everybody who gets
//! it, so that a page need not go unstored for the sake of a harmless cookie. The one kind of cookie
//! that a stored page may set.
//!
//! Invariants: bounded in number and bytes, and over the bound the page is not stored; each has a name
//! and a value. Whether its name is one that the site knows as a session's, in which case the page must
//! not be stored, is for whoever knows the site's lists.

use crate::fields::{lines, trim};
use http::{HeaderMap, HeaderValue};

/// The field that carries the cookie.
pub const LSC_COOKIE: &str = "lsc-cookie";
/// The most such cookies of a page.
pub const LSC_COOKIES_MAX: usize = 8;
/// The most bytes of all of them.
pub const LSC_COOKIES_MAX_BYTES: usize = 4 << 10;

/// The cookies of a response that are for everybody, as `Set-Cookie` has them; `None` when they are over
/// a bound, or one of them has no name.
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
