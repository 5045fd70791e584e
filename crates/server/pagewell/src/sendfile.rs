//! Fields by which an application has the web server send a file in place of its answer: `X-Sendfile`
//! (Apache, lighttpd), `X-Accel-Redirect` (nginx). Pagewell sends no such files. The fields name paths of the
//! machine, so clients do not get them (`http_cache::Policy::internal_fields`), and what is left, most often
//! an empty answer, is not stored.
//!
//! Where a web server in front of Pagewell sends the file, `dialects.pass_on` lets the field through.

use crate::log::Seldom;
use crate::site::Site;
use http::HeaderMap;
use http_cache::SENDFILE_FIELDS;
use http_cache::fields::is_there;
use std::time::Duration;

/// Why a response that names a file is not stored.
pub const REASON: &str = "sendfile";

/// The field by which a response names a file to be sent in its place, if it does.
pub fn field_of(headers: &HeaderMap) -> Option<&'static str> {
    SENDFILE_FIELDS.into_iter().find(|name| is_there(headers, name))
}

/// Counts a response that names a file, and logs it: once in ten seconds at most.
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
