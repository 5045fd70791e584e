//! Counts how often each limit was reached: one counter per key of `[limits]` that a client or origin
//! can reach. Published as `pagewell_limits_hit_total{limit="…"}`, and as `limits_hit` in `/v1/stats`.
//! The number of series is fixed.
//!
//! Counting is one relaxed addition when something is refused, cut off or delayed, and costs nothing
//! otherwise. Limits without a counter are listed in [`NOT_COUNTED`], with the alternative indication.

use crate::counters::Counter;
use reasons::refusal::Refusal;

macro_rules! limits {
    ($($name:ident $key:literal,)*) => {
        /// A limit that can be reached.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Limit {
            $(#[doc = concat!("`limits.", $key, "`.")] $name,)*
        }

        impl Limit {
            /// All limits, in the order of the manual.
            pub const ALL: &[Limit] = &[$(Limit::$name,)*];

            /// The key in `[limits]`, which is also the metric's label.
            pub fn key(self) -> &'static str {
                match self {
                    $(Limit::$name => concat!($key),)*
                }
            }
        }
    };
}

limits! {
    HeaderBytes "header_bytes",
    Headers "headers",
    UriBytes "uri_bytes",
    BodyBytes "body_bytes",
    Connections "connections",
    ConnectionsPerAddress "connections_per_address",
    ConnectionRequests "connection_requests",
    HeaderTimeout "header_timeout",
    IdleTimeout "idle_timeout",
    BodyTimeout "body_timeout",
    BodyRate "body_rate",
    BodyDisk "body_disk",
    WriteTimeout "write_timeout",
    WriteRate "write_rate",
    ClientBacklogBytes "client_backlog_bytes",
    ClientBacklogDisk "client_backlog_disk",
    OriginConnectTimeout "origin_connect_timeout",
    OriginTimeout "origin_timeout",
    OriginConnections "origin_connections",
    OriginQueue "origin_queue",
    OriginQueueTimeout "origin_queue_timeout",
    PageBytes "page_bytes",
    Followers "followers",
    CodingQueue "coding_queue",
    HandshakeTimeout "handshake_timeout",
    Upgrades "upgrades",
    UpgradeIdleTimeout "upgrade_idle_timeout",
    Http2StreamsPerAddress "http2_streams_per_address",
    Http2Resets "http2_resets",
    PasswordChecks "password_checks",
}

/// The limits without a counter, each with the alternative indication.
pub const NOT_COUNTED: &[(&str, &str)] = &[
    ("body_ahead", "no error"),
    ("half_closed_timeout", "`client-left` in the access log"),
    ("origin_idle_connections", "no error: further connections are closed"),
    ("origin_header_bytes", "`origin-invalid` in the log"),
    ("rewarm_pages", "`to_rewarm`"),
    ("hit_for_miss", "no error"),
    ("drain", "`drain-ended` in the log"),
    ("snapshot_stop", "`snapshot-not-written` in the log"),
    ("certificate_look", "an interval, not a bound"),
    ("http2_streams", "an HTTP/2 error"),
    ("rate_limit_entries", "`rate_limits_replaced`"),
];

/// The counters of all limits.
pub struct LimitHits([Counter; Limit::ALL.len()]);

impl Default for LimitHits {
    fn default() -> LimitHits {
        LimitHits(std::array::from_fn(|_| Counter::default()))
    }
}

impl LimitHits {
    /// Counts that `limit` was reached once.
    pub fn note(&self, limit: Limit) {
        self.0[limit as usize].add();
    }

    /// Counts the limit that caused `refusal`, if one did.
    pub fn refused(&self, refusal: Refusal) {
        let limit = match refusal {
            Refusal::TargetTooLong => Limit::UriBytes,
            Refusal::HeadTooLarge => Limit::HeaderBytes,
            Refusal::TooManyHeaders => Limit::Headers,
            Refusal::ContentTooLarge => Limit::BodyBytes,
            Refusal::HeadTimeout => Limit::HeaderTimeout,
            Refusal::ContentTimeout => Limit::BodyTimeout,
            Refusal::ContentTooSlow => Limit::BodyRate,
            Refusal::ContentNoRoom => Limit::BodyDisk,
            Refusal::TooManyStreams => Limit::Http2StreamsPerAddress,
            _ => return,
        };
        self.note(limit);
    }

    /// How often this limit was reached.
    pub fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize].get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::table::LIMITS;
    use std::collections::BTreeSet;

    #[test]
    fn every_limit_is_counted_or_says_why_not() {
        let rows: BTreeSet<_> = LIMITS.iter().map(|row| row.key).collect();
        let counted = Limit::ALL.iter().map(|limit| limit.key());
        let named: Vec<_> = counted.chain(NOT_COUNTED.iter().map(|(key, _)| *key)).collect();
        assert_eq!(named.iter().copied().collect::<BTreeSet<_>>(), rows);
        assert_eq!(named.len(), rows.len(), "one is there twice");
    }
}
