//! `limit` with `count = "origin"`: the last step before a request is sent to the origin.
//!
//! Which limit applies is decided when the request arrives (`exchange::checks`), because its header lines are changed
//! afterwards. Requests of clients and of their pages' fragments are counted, each limit once for a page; refreshes and
//! retries are not.

use delivery::site::Site;
use http_cache::Failure;
use telemetry::client::{ClientExtras, RequestPurpose};

/// Counts a request under its limit, if it has one.
///
/// # Errors
/// The client has reached the limit.
pub fn count(site: &Site, extras: &ClientExtras) -> Result<(), Failure> {
    let (Some(limit), Some(limits)) = (extras.checks.limit, &extras.checks.limits) else {
        return Ok(());
    };
    if !matches!(extras.purpose, RequestPurpose::Client | RequestPurpose::Fragment) {
        return Ok(());
    }
    limits.count(limit, site.clock.now()).map_err(|seconds| {
        site.counters.rate_limited.add();
        Failure::Limited(seconds)
    })
}
