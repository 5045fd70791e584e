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
    renders: "Requests that were sent to the origin to render a page.",
    forwards: "Requests that were passed on to the origin without being held for anybody else.",
    bypasses: "Requests for pages that were passed on by a rule, or for a session's sake.",
    collapsed: "Requests answered by a render that another request had started.",
    followers: "Requests that wait for another's render now.",
    joins_refused: "Requests that could not share a render because of a change since it began.",
    stored: "Pages stored.",
    not_stored: "Responses to GET that were not stored.",
    store_refused: "Pages that were not stored because of a change since their render began.",
    coded: "Pages and files of which codings were made.",
    codings_skipped: "Pages and files whose codings were not made, because too many waited for theirs.",
    validated: "Pages that the origin found unchanged (304).",
    invalidations: "Changes taken in: from responses and from the control interface.",
    files: "Requests answered with a file.",
    origin_failures: "Requests that the origin failed to answer.",
    refused: "Requests refused before they were looked at.",
    http2_connections: "Connections that spoke HTTP/2.",
    upgrades: "Connections that changed to another protocol, such as WebSocket.",
    handshakes_failed: "Connections that ended in the TLS handshake.",
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
