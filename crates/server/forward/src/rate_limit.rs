//! `limit` with `count = "origin"`: the last step before a request is sent to the origin.
//!
//! Which limit applies is decided when the request arrives (`exchange::checks`), because its header lines are changed
//! afterwards. Counted are requests that a client has sent, each once: not their fragments, refreshes, retries.

use delivery::site::Site;
use http_cache::Failure;
use telemetry::client::{ClientExtras, RequestPurpose};

/// Counts a request under its limit, if it has one.
///
/// # Errors
/// The client has reached the limit.
pub fn count(site: &Site, extras: &ClientExtras) -> Result<(), Failure> {
    let limit = extras.checks.limit.as_ref().filter(|_| extras.purpose == RequestPurpose::Client);
    limit.map_or(Ok(()), |limit| limit.count(site.clock.now())).map_err(|seconds| {
        site.counters.rate_limited.add();
        Failure::Limited(seconds)
    })
}
