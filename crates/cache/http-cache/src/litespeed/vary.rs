//! `X-LiteSpeed-Vary`: additional cookies by which a page varies, and the cookies that select a variant on
//! every site.
//!
//! A cookie name counts in every way in which an application may read it ([`CookieName`]). Otherwise a
//! different spelling would select another page in the application without being noticed here. Invariant:
//! lists are limited, and an unreadable list is refused.

use http::HeaderMap;
use http_fields::CookieName;
use http_fields::fields::{members, trim};

/// The field that names additional cookies.
pub const VARY_FIELD: &str = "x-litespeed-vary";
/// The request field in which the server passes a value to the application, such as `ismobile`.
pub const VARY_VALUE_FIELD: &str = "x-lscache-vary-value";

/// The prefix of cookie names that are always in the cache key.
const LSCACHE_VARY: &[u8] = b"_lscache_vary";
/// Magento's cookie with the customer group, currency and store of a client.
const MAGENTO_VARY: &[u8] = b"x-magento-vary";

/// Whether a cookie of this name selects a variant on every site: `_lscache_vary…` of LiteSpeed's plugins,
/// and `X-Magento-Vary`. In any case, because an additional variant does no harm.
pub fn is_vary_cookie(name: &CookieName<'_>) -> bool {
    name.any(is_vary_reading)
}

/// Whether one reading of a cookie name selects a variant on every site, see [`is_vary_cookie`].
pub fn is_vary_reading(name: &[u8]) -> bool {
    let begins =
        |known: &[u8]| name.get(..known.len()).is_some_and(|part| part.eq_ignore_ascii_case(known));
    begins(LSCACHE_VARY) || (name.len() == MAGENTO_VARY.len() && begins(MAGENTO_VARY))
}

/// The content of `X-LiteSpeed-Vary`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vary {
    /// The names of cookies, sorted, without duplicates.
    pub(crate) cookies: Vec<Vec<u8>>,
    /// `value=`: the page is for requests to which the server passes this value.
    pub(crate) value: Option<Vec<u8>>,
}

/// The reason why the field cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VaryRefused {
    Unreadable,
    TooLong,
}

/// Reads the field.
///
/// # Errors
/// The field is unreadable, or names more than `most` cookies.
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
