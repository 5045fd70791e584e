//! `docs/operating/limits.md`: each limit with its default, its meaning, and how operators see that it was
//! reached. Limits and their counters are tables of the server; the test of each limit is named here, and its
//! file has to exist.

use super::tables::{MADE, RELOAD, cell};
use config::table::LIMITS;
use control::reload::may_change;
use std::fmt::Write as _;
use telemetry::limit_hits::{Limit, NOT_COUNTED};

/// The test that shows each limit, from the root of the repository. It is not on the page.
#[cfg(test)]
const SHOWN_BY: [(&str, &str); 41] = [
    ("header_bytes", "tests/scenarios/limits/header-too-long.scn"),
    ("headers", "tests/scenarios/limits/header-too-long.scn"),
    ("uri_bytes", "tests/scenarios/limits/uri-too-long.scn"),
    ("body_bytes", "tests/scenarios/limits/content-too-long.scn"),
    ("connections", "crates/testing/acceptance/tests/http/limits.rs"),
    ("connections_per_address", "crates/testing/acceptance/tests/http/limits.rs"),
    ("connection_requests", "crates/testing/acceptance/tests/http/limits.rs"),
    ("header_timeout", "tests/scenarios/limits/slow-header.scn"),
    ("idle_timeout", "tests/scenarios/limits/idle-connection.scn"),
    ("body_timeout", "tests/scenarios/limits/slow-content.scn"),
    ("body_rate", "crates/testing/acceptance/tests/http/limits.rs"),
    ("body_ahead", "crates/testing/acceptance/tests/http/limits.rs"),
    ("body_disk", "crates/testing/acceptance/tests/http/uploads.rs"),
    ("write_timeout", "crates/testing/acceptance/tests/http/bad_requests.rs"),
    ("half_closed_timeout", "tests/scenarios/limits/half-closed.scn"),
    ("write_rate", "crates/testing/acceptance/tests/http/limits.rs"),
    ("client_backlog_bytes", "crates/testing/acceptance/tests/http/send_backlog.rs"),
    ("client_backlog_disk", "crates/testing/acceptance/tests/http/slow_clients.rs"),
    ("origin_connect_timeout", "crates/testing/acceptance/tests/http/limits.rs"),
    ("origin_timeout", "tests/scenarios/faults/origin-hangs.scn"),
    ("origin_connections", "tests/scenarios/faults/origin-busy.scn"),
    ("origin_idle_connections", "crates/testing/acceptance/tests/http/php_responses.rs"),
    ("origin_queue", "tests/scenarios/faults/origin-busy.scn"),
    ("origin_queue_timeout", "tests/scenarios/faults/queue-timeout.scn"),
    ("origin_header_bytes", "tests/scenarios/faults/long-header-section.scn"),
    ("page_bytes", "tests/scenarios/storing"),
    ("followers", "tests/scenarios/collapse"),
    ("coding_queue", "tests/scenarios/codings/queue-full.scn"),
    ("rewarm_pages", "tests/scenarios/rewarm/only-so-many-wait.scn"),
    ("hit_for_miss", "tests/scenarios/collapse/personal-for-a-while.scn"),
    ("drain", "crates/testing/acceptance/tests/operations/stopping.rs"),
    ("snapshot_stop", "crates/testing/acceptance/tests/operations/snapshot.rs"),
    ("handshake_timeout", "crates/testing/acceptance/tests/http/protocols_tls.rs"),
    ("certificate_look", "crates/testing/acceptance/tests/http/protocols_tls.rs"),
    ("upgrades", "crates/testing/acceptance/tests/http/protocols_streams.rs"),
    ("upgrade_idle_timeout", "crates/testing/acceptance/tests/http/protocols_streams.rs"),
    ("http2_streams", "crates/testing/acceptance/tests/http/protocols_http2.rs"),
    ("http2_streams_per_address", "crates/testing/acceptance/tests/http/slow_clients.rs"),
    ("http2_resets", "crates/testing/acceptance/tests/http/protocols_http2.rs"),
    ("password_checks", "crates/testing/acceptance/tests/http/edge_checks.rs"),
    ("rate_limit_entries", "crates/cache/miss-control/src/rate_limits.rs"),
];

/// The text of `docs/operating/limits.md`.
pub fn page() -> String {
    let mut page = format!("{MADE}{BEGIN}");
    for row in LIMITS {
        let mark = if may_change(&format!("limits.{}", row.key)) { RELOAD } else { "" };
        let not = NOT_COUNTED.iter().find(|(key, _)| *key == row.key);
        let seen = not.map_or_else(String::new, |(_, why)| format!(" Visible as: {why}."));
        let _ =
            writeln!(page, "| `{}` | {} | {}{seen}{mark} |", row.key, row.default, cell(row.help));
    }
    let _ = write!(page, "{END}");
    debug_assert!(Limit::ALL.len() + NOT_COUNTED.len() == LIMITS.len());
    page
}

const BEGIN: &str = "\
# Limits

Every input has a bound. Each bound is a key of `[limits]` in the [configuration](options.md):

```toml
[limits]
body_bytes = \"128M\"
```

`pagewell stats` lists the limits that were reached, and how often; so does `/metrics` \
(`pagewell_limits_hit_total{limit=\"…\"}`). Limits marked ↻ can be changed while Pagewell runs ([reload](reload.md)).

| Limit | Default | Meaning |
|---|---|---|
";

const END: &str = "
## Slow clients

A timeout bounds how long a client may send or read nothing, and a minimum rate (`body_rate`, `write_rate`) stops clients that move one byte just before each timeout.

A request occupies a place at the origin only when all of its content has arrived, so no script runs with half a form. A response leaves the origin at the origin's speed: unread content waits in memory, then on disk (`uploads`).

A flood of HTTP/2 frames ends its own connection only.

## Memory

`memory` bounds the cached pages. In addition:

- A connection without a request uses about 3 KB, one with a request up to its header section and a few pieces of content. On [a small machine](../guide/doctor.md#a-small-machine-256-mb), lower `connections`.
- The **send backlog** is response content that clients have not read yet: `client_backlog_bytes` of memory, `client_backlog_disk` of disk.
- Request content uses at most a sixteenth of `memory`, and `body_disk` of disk.

## Fixed bounds

| Part | Bound |
|---|---|
| The control interface | 16 MiB for a call, within 30 seconds. 16 streams of `/v1/live`. 256 connections. |
| A purge request | 10,000 tags; expressions of 2,048 bytes; 64 searches at a time. |
| The tags of a page; `Vary` | 1,000 tags of 1,024 bytes each, 128 KiB together; 16 fields. |
| Header lines | 256, even if `headers` is larger. |
| Interim responses | 16 KiB wait for a client; more are dropped. |
| The standard error of a script | 8 KiB for each request are logged. |
| A page with ESI fragments | `page_bytes`; 100 fragments, three levels deep, four fetched at a time. |
";

#[cfg(test)]
mod tests {
    use super::*;
    use harness::root::repository;

    #[test]
    fn every_limit_is_shown_by_something_that_is_there_and_names_it() {
        for row in LIMITS {
            let (_, path) = SHOWN_BY
                .iter()
                .find(|(key, _)| *key == row.key)
                .unwrap_or_else(|| panic!("nothing is said of {}", row.key));
            let path = repository().join(path);
            let files = if path.is_dir() {
                std::fs::read_dir(&path).expect("listed").flatten().map(|e| e.path()).collect()
            } else {
                vec![path.clone()]
            };
            let named = |file: &std::path::PathBuf| {
                std::fs::read_to_string(file).is_ok_and(|text| text.contains(row.key))
            };
            assert!(files.iter().any(named), "{} does not name {}", path.display(), row.key);
        }
        assert_eq!(SHOWN_BY.len(), LIMITS.len());
    }
}
