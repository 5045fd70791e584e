//! The default limits, each taken from its row of `table::LIMITS`. So a default is in only one
//! place, which the manual uses, too. A test of that table compares the fields with the rows. The
//! limits are documented there, and not here.

use super::Limits;
use super::table::LIMITS;

impl Default for Limits {
    fn default() -> Limits {
        let zero = std::time::Duration::ZERO;
        let mut limits = Limits {
            header_bytes: 0,
            headers: 0,
            uri_bytes: 0,
            body_bytes: 0,
            connections: 0,
            connections_per_address: 0,
            connection_requests: 0,
            header_timeout: zero,
            idle_timeout: zero,
            body_timeout: zero,
            write_timeout: zero,
            half_closed_timeout: zero,
            body_rate: 0,
            body_ahead: 0,
            body_disk: 0,
            write_rate: 0,
            client_backlog_bytes: 0,
            client_backlog_disk: 0,
            origin_connect_timeout: zero,
            origin_timeout: zero,
            origin_connections: 0,
            origin_idle_connections: 0,
            origin_queue: 0,
            origin_queue_timeout: zero,
            origin_header_bytes: 0,
            page_bytes: 0,
            followers: 0,
            coding_queue: 0,
            hit_for_miss: zero,
            drain: zero,
            snapshot_stop: zero,
            handshake_timeout: zero,
            certificate_look: zero,
            rewarm_pages: 0,
            upgrades: 0,
            upgrade_idle_timeout: zero,
            http2_streams: 0,
            http2_streams_per_address: 0,
            http2_resets: 0,
            password_checks: 0,
            rate_limit_entries: 0,
        };
        for row in LIMITS {
            (row.set)(&mut limits, row.default).expect("the table's defaults are tested");
        }
        limits
    }
}
