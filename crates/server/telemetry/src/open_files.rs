//! The limit of open files of this process (RLIMIT_NOFILE, getrlimit(2)). Each connection is an open file. The usual
//! soft limit of 1024 only protects programs that call select(2). Pagewell never calls it, so it raises its soft
//! limit to the hard limit when it starts: only the hard limit has to be configured.
//!
//! PHP may call select(2), and a program that PHP starts may close every descriptor up to the soft limit. So php-fpm
//! starts with the soft limit from before ([`earlier_limit`]). A successor (zero-downtime restart) inherits the
//! raised one, and gets the earlier one in [`EARLIER_SOFT_LIMIT`]. Pagewell starts no other program while it serves.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// The environment variable with the earlier soft limit, for a successor.
pub const EARLIER_SOFT_LIMIT: &str = "PAGEWELL_SOFT_LIMIT";

static EARLIER: OnceLock<Rlimit> = OnceLock::new();

/// Raises the soft limit of this process to its hard limit. If the system refuses, the limit stays as it is, and the
/// log has a line.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if limit != raised
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        let (soft, hard) = (limit.current, limit.maximum);
        tracing::warn!(event = "open-files-not-raised", soft, hard, %error);
        return;
    }
    let inherited = std::env::var(EARLIER_SOFT_LIMIT).ok().and_then(|text| text.parse().ok());
    // The first call has seen the limit from before.
    let _ = EARLIER.set(Rlimit { current: inherited.or(limit.current), ..limit });
}

/// The limit from before [`raise`]; nothing if this process has not raised it.
pub fn earlier_limit() -> Option<Rlimit> {
    EARLIER.get().copied()
}
