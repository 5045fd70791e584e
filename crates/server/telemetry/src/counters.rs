//! The counters since the start. The table has one row per counter: its name and its description.
//! The control interface and the manual use the same table. Counting is a relaxed atomic addition,
//! so the counters are consistent with each other only when no operation is in progress.

use crate::limit_hits::LimitHits;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The type of a counter: `shared` if a task that outlives a configuration counts with it.
macro_rules! counter {
    () => { Counter };
    (shared) => { Arc<Counter> };
}

macro_rules! counters {
    ($($name:ident: $($kind:ident)? $help:literal,)*) => {
        /// The counters. Each only grows, except those whose description says "now".
        #[derive(Default)]
        pub struct Counters {
            $(#[doc = $help] pub $name: counter!($($kind)?),)*
            /// How often each limit was reached.
            pub limit_hits: LimitHits,
            /// The times from the place at the origin until its header section arrived: the queue is not the origin's.
            pub origin_times: Times,
            /// The status of the last response that `origin_errors` counts.
            pub origin_error_status: Counter,
            /// The times from the query of a database's committed position until all of it was
            /// applied.
            pub lag_times: LagTimes,
        }

        impl Counters {
            /// Returns every counter: name, description, current value.
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), $help, self.$name.get()),)*]
            }
        }
    };
}

counters! {
    requests: "Requests answered.",
    hits: "Requests answered from the cache, fresh.",
    stale_hits: "Requests answered from the cache, stale.",
    private_hits: "Requests answered from the cache with the visitor's own private copy.",
    private_stored: "Private copies stored.",
    renders: "Requests sent to the origin to render a page.",
    forwards: "Requests forwarded to the origin whose response no other request shares.",
    bypasses: "Requests for pages that bypassed the cache because of a rule or a session.",
    collapsed: "Requests answered by a render that another request had started.",
    followers: "Requests that wait for another request's render now.",
    joins_refused: "Requests that could not share a render because its data changed after its start.",
    stored: "Pages stored.",
    stored_with_dependencies: "Stored pages that depend on declared tags, or on rows (automatic dependencies).",
    superseded: "Pages removed because a later response of the origin was not stored.",
    audit_compared: "Cache hits compared with a render, with a verdict (`audit`).",
    audit_unjudged: "Comparisons without a verdict: the page changed, or no place or budget was left.",
    audit_suspected: "Pages that a comparison found wrong: they are watched for a minute, and purged at a second one.",
    audit_watched: "Pages found wrong that are watched now, at most 64.",
    audit_broken_promises: "Comparisons that found a page out of date although it has dependencies.",
    audit_leaks: "Comparisons that found a page made for its first visitor.",
    audit_leaks_or_aged: "Comparisons that found a young page to be either of `audit_leaks` or of `audit_aged`.",
    audit_aged: "Comparisons that found a page out of date within its lifetime.",
    audit_late: "Comparisons that found a page which was purged within a minute.",
    audit_by_the_clock: "Comparisons that found a page whose text follows the clock.",
    audit_random: "Comparisons that found a page whose text is drawn at each render.",
    audit_old_application: "Comparisons in which the application had older data than the page.",
    audit_purged: "Pages purged because comparisons found them wrong.",
    audit_renders: "Requests sent to the origin for comparisons.",
    audit_origin_us: "The origin's time for comparisons, in microseconds.",
    audit_compare_us: "The time of comparing itself, in microseconds, without renders.",
    trial_answers: "Answers of the origin that a trial has compared, or could not compare.",
    not_stored: "Responses to GET that were not stored.",
    memory_short: "Responses not stored because those being collected used half of `limits.client_backlog_bytes`.",
    store_refused: "Pages not stored because their data changed during the render.",
    rewarmed: "Pages refreshed in the background after a change.",
    wakes: "Scheduled requests (`[[wake]]`).",
    wakes_failed: "Scheduled requests (`[[wake]]`) whose response was an error or incomplete.",
    unused_rounds: "Searches for unused pages: eight in each `cache.inactive`.",
    refreshes_put_off: "Stale pages not refreshed in the background because no place at the origin was free.",
    coded: "Pages and files compressed.",
    codings_skipped: "Compressions of pages and files skipped because too many were waiting.",
    validated: "Pages that the origin confirmed unchanged (304).",
    invalidations: "Invalidations applied.",
    purges: "Purge requests carried out (`PURGE`, `BAN` and similar methods).",
    purges_refused: "Purge requests rejected because the client may not purge.",
    fragments: "ESI fragments requested to assemble pages. Each also counts as a request.",
    fragments_failed: "ESI fragments that failed.",
    files: "Requests answered with a file.",
    own_errors: "Requests answered with an error page of Pagewell's own.",
    denied: "Requests refused by a rule (`deny`).",
    rate_limited: "Requests over a limit for one client (`limit`, wrong passwords of `auth_file`).",
    renders_limited: "Requests over the `renders` of a rule: they got an expired page, or a 429.",
    passwords_refused: "Requests without a right password (`auth_file`).",
    internal_files: "Files that the application named (`site.internal_files`).",
    redirected: "Requests redirected by a rule, file or `site.canonical_redirect`.",
    rewritten: "Requests rewritten by a rule (`rewrite`).",
    scripts_refused: "Scripts refused by `php = false` or `site.entry_points`.",
    error_pages: "Errors with a page of `[error_pages]`.",
    memcached_hits: "Items found over the memcached port.",
    memcached_misses: "Items requested over the memcached port that were not stored.",
    memcached_stored: "Items stored over the memcached port.",
    memcached_refused: "Items not stored over the memcached port.",
    sendfiles_removed: "Responses from which `X-Sendfile`, `X-Accel-Redirect` or the like was removed.",
    origin_failures: "Requests that the origin failed to answer.",
    origin_errors: "Responses of the origin that are server errors (5xx).",
    misses_deferred_stale: "Expired pages for requests that were deferred, or over the `renders` of a rule.",
    tickets_issued: "Deferred clients that got a ticket, which keeps their place in the queue.",
    rejected: "Requests rejected before they were parsed completely.",
    connections_rested: "Times that an idle HTTP/1.1 connection released its request memory.",
    access_log_dropped: shared "Access log lines dropped.",
    spans_exported: shared "Trace spans that the collector accepted.",
    spans_dropped: shared "Trace spans dropped.",
    http2_connections: "Connections that used HTTP/2.",
    upgrades: "Connections that switched to another protocol, such as WebSocket.",
    handshakes_failed: "Connections that ended in the TLS handshake.",
    proxies_refused: "Connections closed because of a wrong or missing PROXY header.",
    database_events: "Events read from the database's change stream.",
    database_transactions: "Transactions read from the database's change stream.",
    database_changes: "Transactions with rows that pages may depend on.",
    database_apply_us: "Microseconds from the arrival of the last such transaction until its pages were purged.",
    database_lag_us: "Lag in microseconds, measured once a second and for each write; while an answer is overdue, the age of the last proof that everything is applied.",
    database_lag_max_us: "The longest lag since the start, in microseconds.",
    database_gaps: "Times that every page was purged because database changes may have been missed.",
    database_late: "Writes answered before their database changes were known to be applied.",
    reads_known: "Renders whose statements became dependencies of the page.",
    reads_refused: "Renders with unknown statements, or with a row that changed.",
    reads_lookups: "Queries for the rows that a changed row is joined with.",
    reads_neighbours: "Queries for the rows next to a changed row, which limited the purge.",
    reads_neighbours_unknown: "The same queries without a usable result.",
    cluster_published: "Invalidations published to the other nodes through the stream.",
    cluster_received: "Invalidations received through the stream.",
    cluster_late: "Writes answered before every node had applied their changes.",
    snapshots_written: "Snapshots written.",
    snapshots_failed: "Snapshots not written; the previous one stays.",
    snapshots_refused: "Snapshots found at the start that could not be used.",
    snapshot_pages: "Pages loaded from a snapshot at the start.",
    connections: "Connections open now.",
    connections_accepted: "Connections accepted.",
}

/// A counter that several threads may change.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one to the counter.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds `count` to the counter.
    pub fn add_many(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Subtracts one, for counters of a current number.
    pub fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// Raises the value to at least `value`, for maximums.
    pub fn raise(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }

    /// Sets the value, for measurements.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds one until the returned guard is dropped.
    pub fn during(&self) -> During<'_> {
        self.add();
        During(self)
    }
}

/// A guard that adds one to a counter as long as it exists.
pub struct During<'a>(&'a Counter);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.sub();
    }
}

/// The upper bounds of the histogram buckets, in milliseconds. The last bucket has no bound.
const BOUNDS_MS: [u64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];

/// Finer bounds for short times, in microseconds.
const FINE_BOUNDS_US: [u64; 16] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 7_500_000, 10_000_000,
];

/// A histogram of durations.
pub struct Times {
    bounds: Vec<Duration>,
    counts: Vec<AtomicU64>,
    sum_us: AtomicU64,
}

impl Default for Times {
    fn default() -> Times {
        Times::between(BOUNDS_MS.map(Duration::from_millis).to_vec())
    }
}

/// A histogram for durations that are mostly short.
pub struct LagTimes(pub Times);

impl Default for LagTimes {
    fn default() -> LagTimes {
        LagTimes(Times::between(FINE_BOUNDS_US.map(Duration::from_micros).to_vec()))
    }
}

/// A copy of a histogram at one moment.
pub struct TimesNow {
    /// The number of durations in each bucket, with its upper bound; the last bucket has none.
    pub buckets: Vec<(Option<Duration>, u64)>,
    /// The sum of all durations.
    pub sum: Duration,
}

impl Times {
    fn between(bounds: Vec<Duration>) -> Times {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Times { bounds, counts, sum_us: AtomicU64::new(0) }
    }

    /// Adds a duration to its bucket and to the sum.
    pub fn add(&self, took: Duration) {
        let at = self.bounds.partition_point(|bound| *bound < took);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.sum_us.fetch_add(took.as_micros() as u64, Ordering::Relaxed);
    }

    /// Returns a copy of the current counts.
    pub fn snapshot(&self) -> TimesNow {
        let bounds = self.bounds.iter().copied().map(Some);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        TimesNow {
            buckets: bounds.chain([None]).zip(counts).collect(),
            sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_between_their_bounds() {
        let times = Times::default();
        for took in [0, 5, 6, 10_000, 10_001] {
            times.add(Duration::from_millis(took));
        }
        let now = times.snapshot();
        let counts: Vec<_> = now.buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(now.sum, Duration::from_millis(20_012));
        let LagTimes(times) = LagTimes::default();
        [250, 251].map(Duration::from_micros).iter().for_each(|took| times.add(*took));
        let counts: Vec<_> = times.snapshot().buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!((counts[0], counts[1], counts.len()), (1, 1, FINE_BOUNDS_US.len() + 1));
    }
}
