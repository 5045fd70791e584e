//! The owner of a private copy. An owner is identified by cookies that the site names, never by address or
//! User-Agent.
//!
//! | a request has | its owner |
//! |---|---|
//! | `Authorization` | none: the cookies do not identify the user |
//! | a named cookie twice, by PHP's reading of names | none: which of them counts is uncertain |
//! | one as the member of an array, `name[x]` | it identifies none; together with `name` it counts as twice |
//! | no named cookie with at least [`OWNER_VALUE_BYTES_MIN`] bytes | none |
//! | otherwise | all named cookies of that length |
//!
//! Invariants: the key of a private copy contains **every** cookie of the request that is not a script's,
//! exactly and in order. A request that the application might attribute to another user therefore never
//! finds the copy. The key contains [`OWNER_PART`], which no key of a shared copy contains: their parts
//! have other names, and no cookie contains a line feed. All sizes are limited.

use crate::cookies::{CookieKind, cookie_glob};
use crate::rules::SiteRules;
use http_cache::{CookieName, Fields};
use http_fields::cookies::pairs;
use rule_conditions::Glob;

/// The minimum length in bytes of a value that identifies an owner. Shorter values could be guessed, or be
/// common to many clients.
pub const OWNER_VALUE_BYTES_MIN: usize = 16;
/// The maximum length in bytes of the cookies in a private copy's key.
pub const OWNER_KEY_BYTES_MAX: usize = 4 << 10;
/// The maximum number of cookies that identify an owner.
pub const OWNER_COOKIES_MAX: usize = 4;
/// The beginning of a part of the key that only private copies have.
pub const OWNER_PART: &[u8] = b"\nowner ";

/// The names of the cookies that identify an owner.
#[derive(Clone, Debug)]
pub struct OwnerCookies {
    globs: Vec<Glob>,
}

/// A client that has private copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cookies that identify the client, each as name, `=` and value, sorted, without duplicates. Never
    /// empty.
    pub cookies: Vec<Vec<u8>>,
    /// The part of a copy's key that consists of the client's cookies.
    pub key: Vec<u8>,
}

/// The reason why a request has no private copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoOwner {
    /// It has no cookie that identifies an owner.
    Nobody,
    /// It has such a cookie twice.
    Twice,
    /// Its cookies are too long, or too many of them identify an owner.
    TooLong,
    /// It has `Authorization`.
    Authorization,
}

impl NoOwner {
    /// The name of the reason, as in the `detail` of Cache-Status. A request without an owner is like any
    /// other with a session cookie.
    pub const fn as_str(self) -> &'static str {
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
    /// A pattern is invalid, or matches every name.
    pub fn read(words: &[String]) -> Result<OwnerCookies, String> {
        let glob = |word: &String| {
            if word.trim_matches('*').is_empty() {
                Err(format!("{word:?} fits any cookie: name those that hold a session"))
            } else {
                cookie_glob(word)
            }
        };
        Ok(OwnerCookies { globs: words.iter().map(glob).collect::<Result<_, _>>()? })
    }

    /// Calls `visit` with each cookie that has one of the names, as name, `=` and value, whatever its
    /// length and however often it occurs. Used to purge private copies.
    pub fn each(&self, fields: &dyn Fields, visit: &mut dyn FnMut(&[u8])) {
        fields.values("cookie", &mut |line| {
            for pair in pairs(line) {
                for name in self.named(&pair.name).into_iter().flat_map(|named| named.readings) {
                    visit(&[&name, &b"="[..], pair.value].concat());
                }
            }
        });
    }

    /// The readings of the name, if one of them matches.
    fn named(&self, name: &CookieName<'_>) -> Option<NameReadings> {
        let fits = |reading: &[u8]| self.globs.iter().any(|glob| glob.fits(reading));
        name.any(fits).then(|| NameReadings { readings: name.readings() })
    }

    /// Whether a line of Set-Cookie sets one of them.
    pub fn are_set_by(&self, line: &[u8]) -> bool {
        pairs(line).next().is_some_and(|pair| self.named(&pair.name).is_some())
    }
}

/// The readings of a cookie's name; at least one.
struct NameReadings {
    readings: Vec<Vec<u8>>,
}

impl NameReadings {
    /// The name, if it has only one reading.
    fn only(&self) -> Option<&[u8]> {
        match &self.readings[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether both may be the same cookie.
    fn is_same(&self, other: &NameReadings) -> bool {
        self.readings.iter().any(|one| other.readings.contains(one))
    }
}

impl SiteRules {
    /// The owner whose private copies may answer a request, and the part of their key for this owner.
    ///
    /// # Errors
    /// The reason why there is no owner.
    pub fn owner(&self, named: &OwnerCookies, fields: &dyn Fields) -> Result<Owner, NoOwner> {
        let mut authorization = false;
        fields.values("authorization", &mut |_| authorization = true);
        if authorization {
            return Err(NoOwner::Authorization);
        }
        let (mut cookies, mut key) = (Vec::new(), Vec::new());
        let mut names: Vec<NameReadings> = Vec::new();
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
