//! Announces a compatible cache to the origin, as LiteSpeed's server does, so that LiteSpeed's plugins work.
//!
//! Over HTTP by request fields, to a FastCGI script by params. Reading what the plugins answer is
//! `litespeed`'s in the crate above. See docs/guide/litespeed.md.

use fastcgi::{Params, ParamsRefused};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_cache::litespeed::VARY_VALUE_FIELD;
use http_cache::{FieldUse, fields};

/// Request fields by which plugins detect a cache.
const ANNOUNCED: [(&str, &str); 2] = [("x-lscache", "on,crawler"), ("x-litemage", "on")];

/// The same for FastCGI scripts: as fields, and as separate params, as LiteSpeed's servers pass them to
/// scripts.
const ANNOUNCED_PARAMS: [(&str, &str); 4] = [
    ("HTTP_X_LSCACHE", "on,crawler"),
    ("X-LSCACHE", "on,crawler"),
    ("HTTP_X_LITEMAGE", "on"),
    ("X-LITEMAGE", "on"),
];

/// The param that contains the vary value for the client's device, in addition to its field.
const VARY_VALUE_PARAM: &str = "LSCACHE_VARY_VALUE";

/// Adds the fields that announce a compatible cache, unless the site ignores LiteSpeed's headers.
pub fn announce(dialect: FieldUse, headers: &mut HeaderMap) {
    if dialect == FieldUse::Ignore {
        return;
    }
    for (name, value) in ANNOUNCED {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// Adds the same announcement, and the vary value for the client's device, to the params of a FastCGI
/// script.
///
/// # Errors
/// The params exceed their maximum size.
pub fn announce_to_script(
    dialect: FieldUse,
    headers: &HeaderMap,
    params: &mut Params,
) -> Result<(), ParamsRefused> {
    if dialect == FieldUse::Obey {
        for (name, value) in ANNOUNCED_PARAMS {
            params.push(name, value)?;
        }
    }
    match fields::lines(headers, VARY_VALUE_FIELD).next() {
        Some(value) => params.push(VARY_VALUE_PARAM, value.as_bytes()),
        None => Ok(()),
    }
}
