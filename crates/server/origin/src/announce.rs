//! Announces a compatible cache to the origin, as LiteSpeed's server does, so that LiteSpeed's plugins work.
//!
//! Over HTTP by request fields, to a FastCGI script by params. Reading what the plugins answer is
//! `litespeed`'s in the crate above. See docs/guide/litespeed.md.

use crate::OriginRequest;
use fastcgi::{Params, ParamsRefused};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_cache::fields;
use http_cache::litespeed::VARY_VALUE_FIELD;
use telemetry::client::FragmentSharing;

/// The features that are announced to LiteSpeed's plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteSpeedFeatures {
    /// Nothing.
    Nothing,
    /// A cache.
    Cache,
    /// A cache that processes LiteSpeed's ESI.
    CacheWithEsi,
}

impl LiteSpeedFeatures {
    /// The value of `X-LSCACHE`; `None` if no cache is announced.
    fn value(self) -> Option<&'static str> {
        match self {
            LiteSpeedFeatures::Nothing => None,
            LiteSpeedFeatures::Cache => Some("on,crawler"),
            LiteSpeedFeatures::CacheWithEsi => Some("on,crawler,esi,combine"),
        }
    }
}

/// The params of a fragment's request: the page that it is for, and the media type of the page.
const FRAGMENT_PAGE_PARAM: &str = "ESI_REFERER";
const FRAGMENT_TYPE_PARAM: &str = "ESI_CONTENT_TYPE";

/// The param that contains the vary value for the client's device, in addition to its field.
const VARY_VALUE_PARAM: &str = "LSCACHE_VARY_VALUE";

/// Adds the fields that announce a compatible cache, unless the site ignores LiteSpeed's headers.
pub fn announce(features: LiteSpeedFeatures, headers: &mut HeaderMap) {
    let Some(value) = features.value() else { return };
    for (name, value) in [("x-lscache", value), ("x-litemage", "on")] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// Adds the same announcement, the vary value for the client's device, and the page of a fragment to the
/// params of a FastCGI script. The announcement is a field and a separate param, as LiteSpeed's servers pass
/// it to scripts.
///
/// # Errors
/// The params exceed their maximum size.
pub fn announce_to_script(
    request: &OriginRequest,
    params: &mut Params,
) -> Result<(), ParamsRefused> {
    if let Some(value) = request.litespeed.value() {
        for name in ["HTTP_X_LSCACHE", "X-LSCACHE"] {
            params.push(name, value)?;
        }
        for name in ["HTTP_X_LITEMAGE", "X-LITEMAGE"] {
            params.push(name, "on")?;
        }
    }
    // A fragment that several visitors may share must not depend on the page of the first of them.
    let fragment = request.extras.fragment.as_deref();
    if let Some(fragment) = fragment.filter(|one| one.sharing == FragmentSharing::OneVisitor) {
        params.push(FRAGMENT_PAGE_PARAM, fragment.page.as_bytes())?;
        if let Some(media_type) = &fragment.content_type {
            params.push(FRAGMENT_TYPE_PARAM, media_type.as_bytes())?;
        }
    }
    match fields::lines(&request.headers, VARY_VALUE_FIELD).next() {
        Some(value) => params.push(VARY_VALUE_PARAM, value.as_bytes()),
        None => Ok(()),
    }
}
