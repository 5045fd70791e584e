//! The metrics that have a history: the server records the last week of them. A test compares the list of
//! the dashboard (`dashboard/figures.js`) with this one.
//!
//! Each is a row of the metrics table. Not here: the samples (`history`).

/// The names of the recorded metrics, of a site and of the process.
pub const RECORDED: [&str; 39] = [
    "requests",
    "files",
    "hits",
    "stale_hits",
    "private_hits",
    "collapsed",
    "renders",
    "followers",
    "origin_places_taken",
    "origin_queue",
    "origin_failures",
    "origin_errors",
    "stored",
    "not_stored",
    "memory_short",
    "invalidations",
    "dropped",
    "database_lag_us",
    "database_changes",
    "connections",
    "connections_accepted",
    "pages",
    "memory_bytes",
    "memory_budget_bytes",
    "evicted",
    "own_errors",
    "denied",
    "rate_limited",
    "renders_limited",
    "passwords_refused",
    "misses_deferred",
    "misses_deferred_stale",
    "rejected",
    "purges_refused",
    "proxies_refused",
    "handshakes_failed",
    "memcached_refused",
    "process_cpu_us",
    "process_resident_bytes",
];

/// Returns the place of a metric in a sample; `None` if it is not recorded.
#[must_use]
pub fn recorded_place(name: &str) -> Option<usize> {
    RECORDED.iter().position(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recorded_metric_is_in_the_table() {
        let known: Vec<_> = super::super::all().map(|(name, ..)| name).collect();
        for name in RECORDED {
            assert!(known.contains(&name), "{name}");
        }
    }
}
