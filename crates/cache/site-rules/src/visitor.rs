//! Cookies as evidence about a client that waits for the origin: sessions that the application can confirm, logins, and
//! the ticket of a deferred request.
//!
//! A session is the set of the request's session cookies, because only the application knows which of them counts: a
//! client that copies one of them has another set. Sets with a secret in common may be one session beside invented
//! cookies. So secrets have neither a name nor a spelling: PHP reads several of both. A login cookie is one that
//! applications set for signed-in visitors only, with a secret. A session cookie that changes at a POST is no evidence:
//! Laravel changes it with each response, and PHP in strict mode for each value that a client invents.

use crate::cookies::{AFTER_WRITE_COOKIE, CookieKind, TICKET_COOKIE, UnknownCookies};
use crate::rules::SiteRules;
use http_cache::Fields;
use http_fields::cookies::{CookiePair, pairs};
use http_fields::percent::decode;
use known_names::LOGIN_COOKIES;
use subtle::ConstantTimeEq;

/// The most session cookies of a request that are evidence.
const COOKIES_MAX: usize = 16;
/// The longest evidence of a request, in bytes.
const BYTES_MAX: usize = 8 << 10;
/// A shorter value may be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// The names of cookies begin so whose values others may have or know: carts, messages, names, addresses, settings.
const COMMON_VALUES: [&[u8]; 7] =
    [b"woocommerce_", b"comment_author_", b"bp-", b"mage-", b"sw-", b"user_", b"xf_emoji"];
/// … or end so.
const COMMON_VALUE_END: &[u8] = b"username";

/// The cookies of one request as evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitorCookies {
    /// The session cookies as written, sorted and each once; empty if none has a secret, or there are too many.
    pub session: Vec<u8>,
    /// The secrets in them, decoded.
    pub secrets: Vec<Vec<u8>>,
    /// Those of them that applications set at a login.
    pub logins: Vec<Vec<u8>>,
    /// The value of the ticket.
    pub ticket: Option<Vec<u8>>,
    /// The valid mark of a client that has sent a write just before.
    pub written: Option<Vec<u8>>,
}

impl SiteRules {
    /// The cookies of a request to `host` as evidence. `changed` are the Set-Cookie lines of its response: then the
    /// session is that of the client's next request.
    pub fn visitor_cookies<'a>(
        &self,
        fields: &dyn Fields,
        changed: impl Iterator<Item = &'a [u8]>,
        (host, now_ms): (&str, u64),
    ) -> VisitorCookies {
        let mut found = VisitorCookies::default();
        let mut session: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                if pair.name.written() == TICKET_COOKIE.as_bytes() {
                    found.ticket = Some(pair.value.to_vec());
                } else if pair.name.written() == AFTER_WRITE_COOKIE.as_bytes() {
                    if self.secret.holds(pair.value, host, now_ms) {
                        found.written = Some(pair.value.to_vec());
                    }
                } else if self.lists.kind(&pair.name) == CookieKind::Session {
                    session.push((pair.name.written().to_vec(), pair.written.to_vec()));
                    if is_login(&pair) {
                        found.logins.push(pair.written.to_vec());
                    }
                }
            }
        });
        for line in changed {
            let Some(pair) = pairs(line).next() else { continue };
            if self.lists.kind(&pair.name) == CookieKind::Session {
                session.retain(|(name, _)| name != pair.name.written());
                if !pair.value.is_empty() && pair.value != b"deleted" {
                    session.push((pair.name.written().to_vec(), pair.written.to_vec()));
                }
            }
        }
        session.sort();
        session.dedup();
        let bytes: usize = session.iter().map(|(_, written)| written.len() + 1).sum();
        let secrets = session.iter().filter_map(|(_, written)| secret_of(written));
        let secrets: Vec<Vec<u8>> = secrets.collect();
        if !secrets.is_empty() && session.len() <= COOKIES_MAX && bytes <= BYTES_MAX {
            for (_, written) in session {
                found.session.extend_from_slice(&written);
                found.session.push(b'\n');
            }
            found.secrets = secrets;
        }
        found.logins.truncate(COOKIES_MAX);
        found
    }

    /// The cookies of a line that are no session of the application, as they were written; `None` if there are none.
    /// Left out are session and login cookies, those that a rule names as a session, and unknown cookies if the site
    /// treats these as sessions. A cookie whose name `is_other` accepts is not left out.
    pub fn cookies_without_sessions(
        &self,
        line: &[u8],
        is_other: impl Fn(&[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let is_session = |pair: &CookiePair<'_>| {
            let kind = self.lists.kind(&pair.name);
            kind == CookieKind::Session
                || (kind == CookieKind::Unknown && self.lists.unknown == UnknownCookies::Bypass)
                || is_login(pair)
                || self.rules.iter().any(|rule| rule.names_session(&pair.name))
        };
        let stays = |pair: &CookiePair<'_>| is_other(pair.name.written()) || !is_session(pair);
        let left: Vec<&[u8]> = pairs(line).filter(stays).map(|pair| pair.written).collect();
        (!left.is_empty()).then(|| left.join(&b"; "[..]))
    }

    /// The login cookie that a line of Set-Cookie sets, as requests will have it.
    pub fn login_set_by<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        pairs(line).next().filter(is_login).map(|pair| pair.written)
    }

    /// The code of a ticket for `host`.
    pub fn ticket_code(&self, host: &str, ticket: &[u8]) -> [u8; 16] {
        self.secret.code_of(b"\0ticket", &[host.as_bytes(), b"\0", ticket])
    }
}

/// Whether two codes are the same, in a time that does not depend on where they differ.
pub fn is_same_code(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// The decoded value of a cookie as written, if no other visitor can have it.
fn secret_of(written: &[u8]) -> Option<Vec<u8>> {
    let pair = pairs(written).next()?;
    let (name, value) = (pair.name.written().to_ascii_lowercase(), decode(pair.value));
    let is_common = name.ends_with(COMMON_VALUE_END)
        || COMMON_VALUES.iter().any(|begin| name.starts_with(begin));
    (value.len() >= SECRET_BYTES_MIN && !is_common).then_some(value)
}

/// Whether every reading of the name is that of a login, and the value a secret.
fn is_login(pair: &CookiePair<'_>) -> bool {
    let mut is_login = pair.value.len() >= SECRET_BYTES_MIN;
    pair.name.any(|reading| {
        is_login &= LOGIN_COOKIES.iter().any(|begin| reading.starts_with(begin.as_bytes()));
        false
    });
    is_login
}
