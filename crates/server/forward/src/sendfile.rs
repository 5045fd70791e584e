//! Detects response fields by which an application makes the web server send a file: `X-Sendfile`
//! (Apache, lighttpd), `X-Accel-Redirect` (nginx). Pagewell does not support them. The fields contain
//! local paths, so they are removed (`http_cache::Policy::internal_fields`). The remaining response,
//! usually empty, is not stored.
//!
//! If a web server in front of Pagewell sends the file, `dialects.pass_on` forwards the field.

use config::log::Seldom;
use delivery::site::Site;
use http::HeaderMap;
use http_cache::SENDFILE_FIELDS;
use http_cache::fields::is_there;
use std::time::Duration;

/// The name of the field by which a response requests a file, if it has one.
pub fn field_of(headers: &HeaderMap) -> Option<&'static str> {
    SENDFILE_FIELDS.into_iter().find(|name| is_there(headers, name))
}

/// Counts a response with such a field, and logs it at most once in ten seconds.
pub fn note(site: &Site, headers: &HeaderMap, url: impl FnOnce() -> String) {
    static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(10));
    let Some(field) = field_of(headers) else { return };
    if site.config.policy.internal_fields.iter().all(|internal| internal != field) {
        return; // `dialects.pass_on` names it.
    }
    site.counters.sendfiles_removed.add();
    if LOGGED.is_due(site.clock.monotonic()) {
        tracing::warn!(event = "sendfile-removed", url = url(), field);
    }
}
