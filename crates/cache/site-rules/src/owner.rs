//! Whose a private copy is: the owner of a request, known by cookies that the site names, and by nothing
//! else (no address, no user agent).
//!
//! | a request has | its owner |
//! |---|---|
//! | `Authorization` | none: the cookies do not say who it is |
//! | a named cookie twice, by PHP's reading of names | none: which one counts is not certain |
//! | one as the member of an array, `name[x]` | that one tells none; beside `name` it counts as twice |
//! | no named cookie with at least [`OWNER_VALUE_BYTES_MIN`] bytes | none |
//! | otherwise | all named cookies that are so long |
//!
//! Invariants: the key of a private copy has **every** cookie of the request in it that is not a script's,
//! as it stands and in order, so that no copy is found by a request that the application could take for
//! another; it begins with [`OWNER_PART`], which no key of a shared copy has in it, for their parts have
//! other names and no cookie has a line feed in it. Everything is bounded.

use crate::compile::SiteRules;
use crate::cookies::{CookieKind, cookie_glob, pairs};
use crate::glob::Glob;
use http_cache::{CookieName, Fields};

/// The shortest value that tells an owner: what is shorter could be guessed, or be the same for many.
pub const OWNER_VALUE_BYTES_MIN: usize = 16;
/// The most that the cookies in a private copy's key may come to, in bytes.
pub const OWNER_KEY_BYTES_MAX: usize = 4 << 10;
/// The most cookies that tell an owner.
pub const OWNER_COOKIES_MAX: usize = 4;
/// So begins the part of a key that only private copies have.
pub const OWNER_PART: &[u8] = b"\nowner ";

/// The cookies that hold the session of software that LiteSpeed's plugins are made for.
pub const LITESPEED_OWNERS: [&str; 8] = [
    "PHPSESSID",
    "wordpress_logged_in_*",
    "wp_woocommerce_session_*",
    "PrestaShop-*",
    "SESS*",
    "SSESS*",
    "xf_session",
    "frontend",
];

/// The names of the cookies that tell an owner.
#[derive(Clone, Debug)]
pub struct OwnerCookies {
    globs: Vec<Glob>,
}

/// A visitor who has private copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cookies that tell him, each as name, `=` and value, sorted, each once. Never empty.
    pub cookies: Vec<Vec<u8>>,
    /// What his cookies add to the key of a copy.
    pub key: Vec<u8>,
}

/// Why a request has no private copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOwner {
    /// It has no cookie that tells an owner.
    Nobody,
    /// It has one twice.
    Twice,
    /// Its cookies are too long, or too many tell an owner.
    TooLong,
    /// It has `Authorization`.
    Authorization,
}

impl NoOwner {
    /// The reason's name, as in the `detail` of Cache-Status; a request of nobody's is a session's like
    /// any other.
    pub fn as_str(self) -> &'static str {
        match self {
            NoOwner::Nobody => "session-cookie",
            NoOwner::Twice => "owner-cookie-twice",
            NoOwner::TooLong => "owner-cookies-too-long",
            NoOwner::Authorization => "owner-authorization",
        }
    }
}

impl OwnerCookies {
    /// Reads name patterns.
    ///
    /// # Errors
    /// One of them is no pattern, or fits every name.
    pub fn read(words: &[String]) -> Result<OwnerCookies, String> {
        let glob = |word: &String| match word.trim_matches('*').is_empty() {
            true => Err(format!("{word:?} fits any cookie: name those that hold a session")),
            false => cookie_glob(word),
        };
        Ok(OwnerCookies { globs: words.iter().map(glob).collect::<Result<_, _>>()? })
    }

    /// Calls `visit` with each cookie that has one of the names, as name, `=` and value, however short or
    /// often: for what is to be dropped.
    pub fn each(&self, fields: &dyn Fields, visit: &mut dyn FnMut(&[u8])) {
        fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                for name in self.named(&pair.name).into_iter().flat_map(|named| named.readings) {
                    visit(&[&name, &b"="[..], pair.value].concat());
                }
            }
        });
    }

    /// The name as it may be read, if one of the readings is one of these.
    fn named(&self, name: &CookieName<'_>) -> Option<Named> {
        let fits = |reading: &[u8]| self.globs.iter().any(|glob| glob.fits(reading));
        name.any(fits).then(|| Named { readings: name.readings() })
    }

    /// Whether a line of Set-Cookie sets one of them.
    pub fn are_set_by(&self, line: &[u8]) -> bool {
        pairs(line).next().is_some_and(|pair| self.named(&pair.name).is_some())
    }
}

/// What a cookie's name may be read as; never nothing.
struct Named {
    readings: Vec<Vec<u8>>,
}

impl Named {
    /// The name, if nobody reads it otherwise.
    fn only(&self) -> Option<&[u8]> {
        match &self.readings[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether one may stand in the other's place.
    fn is_same(&self, other: &Named) -> bool {
        self.readings.iter().any(|one| other.readings.contains(one))
    }
}

impl SiteRules {
    /// Whose private copies a request may be answered with, and the part of their key that is his.
    ///
    /// # Errors
    /// Why there are none for it.
    pub fn owner(&self, named: &OwnerCookies, fields: &dyn Fields) -> Result<Owner, NoOwner> {
        let mut authorization = false;
        fields.values("authorization", &mut |_| authorization = true);
        if authorization {
            return Err(NoOwner::Authorization);
        }
        let (mut cookies, mut key) = (Vec::new(), Vec::new());
        let mut names: Vec<Named> = Vec::new();
        let mut refused = None;
        fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                if let Some(name) = named.named(&pair.name) {
                    if names.iter().any(|known| known.is_same(&name)) {
                        refused = Some(NoOwner::Twice);
                    } else if names.len() == OWNER_COOKIES_MAX {
                        refused.get_or_insert(NoOwner::TooLong);
                    } else {
                        let is_long = pair.value.len() >= OWNER_VALUE_BYTES_MIN;
                        if let Some(only) = name.only().filter(|_| is_long) {
                            cookies.push([only, &b"="[..], pair.value].concat());
                        }
                        names.push(name);
                    }
                } else if self.lists.kind(&pair.name) == CookieKind::ScriptOnly {
                    continue;
                }
                if key.len() + pair.written.len() > OWNER_KEY_BYTES_MAX {
                    refused.get_or_insert(NoOwner::TooLong);
                    continue;
                }
                key.extend_from_slice(OWNER_PART);
                key.extend_from_slice(pair.written);
            }
        });
        match refused {
            _ if cookies.is_empty() => Err(refused.unwrap_or(NoOwner::Nobody)),
            Some(refused) => Err(refused),
            None => {
                cookies.sort_unstable();
                Ok(Owner { cookies, key })
            }
        }
    }
}

#[cfg(test)]
#[path = "owner_tests.rs"]
mod tests;
