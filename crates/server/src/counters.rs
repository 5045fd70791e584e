//! What has been counted since the start. One row a counter: its name, and what it counts; the
//! control interface and the manual read the same table. Counting is a relaxed addition: the figures
//! agree with each other only when nothing is under way.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($name:ident: $help:literal,)*) => {
        /// The counters; each only grows, but for those that say "now".
        #[derive(Default)]
        pub struct Counters {
            $(#[doc = $help] pub $name: Counter,)*
        }

        impl Counters {
            /// Every counter: its name, what it counts, its value now.
            pub fn rows(&self) -> Vec<(&'static str, &'static str, u64)> {
                vec![$((stringify!($name), $help, self.$name.get()),)*]
            }
        }
    };
}

counters! {
    requests: "Requests that were answered.",
    hits: "Requests answered from memory, fresh.",
    stale_hits: "Requests answered from memory, stale: while a page was rendered anew, or because the origin failed.",
    private_hits: "Requests answered from memory with a private copy of their visitor's.",
    private_stored: "Private copies stored.",
    renders: "Requests that were sent to the origin to render a page.",
    forwards: "Requests that were passed on to the origin without being held for anybody else.",
    bypasses: "Requests for pages that were passed on by a rule, or for a session's sake.",
    collapsed: "Requests answered by a render that another request had started.",
    followers: "Requests that wait for another's render now.",
    joins_refused: "Requests that could not share a render because of a change since it began.",
    stored: "Pages stored.",
    not_stored: "Responses to GET that were not stored.",
    store_refused: "Pages that were not stored because of a change since their render began.",
    rewarmed: "Pages rendered anew in the background after a change.",
    refreshes_put_off: "Stale pages that were not rendered anew in the background, because no place at the origin was free.",
    coded: "Pages and files of which codings were made.",
    codings_skipped: "Pages and files whose codings were not made, because too many waited for theirs.",
    validated: "Pages that the origin found unchanged (304).",
    invalidations: "Changes taken in: from responses, from requests to purge, and from the control interface.",
    purges: "Requests to purge that were carried out (`PURGE`, `BAN` and the like).",
    purges_refused: "Requests to purge from somebody who may not.",
    files: "Requests answered with a file.",
    memcached_hits: "Items asked for over the memcached port that were there.",
    memcached_misses: "Items asked for over the memcached port that were not there.",
    memcached_stored: "Items stored over the memcached port.",
    memcached_refused: "Items that were not stored over the memcached port: because of a change, for want of a lease, or because they could not be read.",
    origin_failures: "Requests that the origin failed to answer.",
    refused: "Requests refused before they were looked at.",
    http2_connections: "Connections that spoke HTTP/2.",
    upgrades: "Connections that changed to another protocol, such as WebSocket.",
    handshakes_failed: "Connections that ended in the TLS handshake.",
    proxies_refused: "Connections that were ended because of their PROXY header, or for want of it.",
    database_events: "Events read from the database's change stream.",
    database_transactions: "Transactions read from the database's change stream.",
    database_changes: "Transactions that touched something: changes taken in from the database.",
    database_lag_us: "Microseconds from the arrival of the last such transaction to its pages being dropped.",
    database_gaps: "Times that changes of the database may have been missed, so that every page was dropped.",
    database_late: "Writes that were answered before it was known that their changes are applied.",
    connections: "Connections open now.",
    connections_accepted: "Connections accepted.",
}

/// One counter.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One less, for what is counted as it is now.
    pub fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    /// From now on this many, for what is measured.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// So many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one until the guard is dropped.
    pub fn during(&self) -> During<'_> {
        self.add();
        During(self)
    }
}

/// Counts one as long as it lives.
pub struct During<'a>(&'a Counter);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.sub();
    }
}
