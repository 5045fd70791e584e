//! `X-LiteSpeed-Vary`: further cookies that a page depends on, and the cookies that tell copies apart at
//! any site that has them.
//!
//! A cookie's name counts as all that an application may read it as ([`CookieName`]): a name written
//! otherwise reaches the application as the same cookie, and would choose another page without being
//! looked at here.
//! Invariant: bounded; a list that cannot be read is refused.

use crate::CookieName;
use crate::fields::{members, trim};
use http::HeaderMap;

/// The field that names further cookies.
pub const VARY_FIELD: &str = "x-litespeed-vary";
/// The request field by which the server gives the application a word of its own: `ismobile`.
pub const VARY_VALUE_FIELD: &str = "x-lscache-vary-value";

/// The beginning of the names of cookies that are always in the key.
const LSCACHE_VARY: &[u8] = b"_lscache_vary";
/// Magento's: which group, currency and store a visitor is of.
const MAGENTO_VARY: &[u8] = b"x-magento-vary";

/// Whether a cookie of this name tells copies apart wherever it occurs: `_lscache_vary…` of LiteSpeed's
/// plugins, `X-Magento-Vary`. In any case, for one copy too many is no harm.
pub fn is_vary_cookie(name: &CookieName<'_>) -> bool {
    name.any(is_vary_reading)
}

/// The same of one way of reading a name.
pub fn is_vary_reading(name: &[u8]) -> bool {
    let begins =
        |known: &[u8]| name.get(..known.len()).is_some_and(|part| part.eq_ignore_ascii_case(known));
    begins(LSCACHE_VARY) || (name.len() == MAGENTO_VARY.len() && begins(MAGENTO_VARY))
}

/// What `X-LiteSpeed-Vary` lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vary {
    /// The names of cookies, each once, sorted.
    pub(crate) cookies: Vec<Vec<u8>>,
    /// `value=`: the page is for requests to which the server gives this word.
    pub(crate) value: Option<Vec<u8>>,
}

/// Why the list cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VaryRefused {
    Unreadable,
    TooLong,
}

/// Reads the field: at most `most` cookies.
pub(crate) fn vary_of(headers: &HeaderMap, most: usize) -> Result<Vary, VaryRefused> {
    let mut vary = Vary::default();
    for member in headers.get_all(VARY_FIELD).iter().flat_map(|line| members(line.as_bytes())) {
        let equals = member.iter().position(|byte| *byte == b'=').ok_or(VaryRefused::Unreadable)?;
        let (word, name) = (trim(&member[..equals]), trim(&member[equals + 1..]));
        if name.is_empty() {
            return Err(VaryRefused::Unreadable);
        }
        if word.eq_ignore_ascii_case(b"cookie") {
            let read = CookieName::of(name);
            if !vary.cookies.iter().any(|known| CookieName::of(known).is_same(&read)) {
                vary.cookies.push(name.to_vec());
            }
        } else if word.eq_ignore_ascii_case(b"value") && vary.value.is_none() {
            vary.value = Some(name.to_vec());
        } else {
            return Err(VaryRefused::Unreadable);
        }
        if vary.cookies.len() > most {
            return Err(VaryRefused::TooLong);
        }
    }
    vary.cookies.sort_unstable();
    Ok(vary)
}
