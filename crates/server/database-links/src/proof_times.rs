//! How often a source must prove that its changes are applied, and how old a proof may be, by the
//! configured `lag_max`.
//!
//! Not here: what a proof is, and what happens without one (`gate`).

use config::{Database, OnLag};
use std::time::Duration;

/// How often a followed source is queried for its position; more often where `lag_max` is short.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The shortest `lag_max` for a source that is followed: a proof takes a query.
pub const LAG_LEAST: Duration = Duration::from_secs(1);

/// Returns how often the position of this source is queried, and how often a node of a cluster
/// reports its own.
#[must_use]
pub fn ask_every(config: &Database) -> Duration {
    match config.on_lag {
        OnLag::BypassAfter(lag_max) => (lag_max.max(LAG_LEAST) / 4).min(ASK_EVERY),
        OnLag::Serve => ASK_EVERY,
    }
}

/// Returns how long pages are served after the last proof while the source is followed; `None`:
/// without a limit.
#[must_use]
pub fn proof_max(config: &Database) -> Option<Duration> {
    match config.on_lag {
        OnLag::BypassAfter(lag_max) => Some(lag_max.max(LAG_LEAST)),
        OnLag::Serve => None,
    }
}
