//! The declarations of an application about a stored response: whether it is the same for everybody, and whether
//! it has a lifetime of its own.
//!
//! Not here: the lifetime itself (`http_cache`), and what a site does without a declaration (`plan`,
//! `revise`).

use http::header::COOKIE;
use http_cache::{LifetimeSource, StoredFacts};

/// Whether the response is selected by all cookies. Cookies named one by one (`X-LiteSpeed-Vary`) say nothing
/// about the others.
fn varies_by_cookies(stored: &StoredFacts) -> bool {
    stored.nominated().names().any(|name| *name == COOKIE)
}

/// Whether the application marks the response as the same for everybody, or as selected by all cookies. A page
/// that it marks so can be rendered for everybody, without what only one client has sent.
pub fn is_marked_as_shared(stored: &StoredFacts) -> bool {
    let directives = stored.directives;
    let source = stored.lifetime_source;
    directives.public()
        || directives.has_s_maxage()
        || matches!(
            source,
            LifetimeSource::Targeted
                | LifetimeSource::LiteSpeed
                | LifetimeSource::SurrogateControl
                | LifetimeSource::XAccelExpires
        )
        || stored.tags().iter().next().is_some()
        || varies_by_cookies(stored)
}

/// Whether the application declares a lifetime, marks the response as shared, or varies by all cookies.
pub(crate) fn is_declared(stored: &StoredFacts) -> bool {
    !matches!(
        stored.lifetime_source,
        LifetimeSource::Rule | LifetimeSource::Reads | LifetimeSource::Heuristic
    ) || is_marked_as_shared(stored)
}
