//! `docs/operating/limits.md`: each limit with its default, what it bounds, how operators see that it was
//! reached, and which test shows it. Limits and their counters are tables of the `pagewell` crate; which
//! test shows which is said here, and held to be there.

use super::tables::{MADE, RELOAD, cell};
use config::table::LIMITS;
use control::reload::may_change;
use site_state::limit_hits::{Limit, NOT_COUNTED};
use std::fmt::Write as _;

/// The test that shows each limit, from the root of the repository.
const SHOWN_BY: [(&str, &str); 38] = [
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
];

/// The text of `docs/operating/limits.md`.
pub fn page() -> String {
    let mut page = format!("{MADE}{BEGIN}");
    for row in LIMITS {
        let mark = if may_change(&format!("limits.{}", row.key)) { RELOAD } else { "" };
        let not = NOT_COUNTED.iter().find(|(key, _)| *key == row.key);
        let told = not.map_or_else(|| format!("`limit=\"{}\"`", row.key), |(_, why)| (*why).into());
        let shown = SHOWN_BY.iter().find(|(key, _)| *key == row.key);
        let shown = shown.map_or_else(String::new, |(_, path)| format!("`{path}`"));
        let _ = writeln!(
            page,
            "| `{}` | {} | {}{mark} | {told} | {shown} |",
            row.key,
            row.default,
            cell(row.help)
        );
    }
    let _ = write!(page, "{END}");
    debug_assert!(Limit::ALL.len() + NOT_COUNTED.len() == LIMITS.len());
    page
}

const BEGIN: &str = "\
# Limits

Everything that comes in is bounded, and every bound has a name: a key of `[limits]` in the \
[configuration](options.md), the same name as the label of `pagewell_limits_hit_total{limit=\"…\"}` in \
[`/metrics`](control.md#metrics), and in `limits_hit` of `/v1/stats`. What the client hears is in \
[Errors and reasons](errors.md). What is marked ↻ can change while Pagewell runs ([reload](reload.md)).

A limit that is reached now and then is doing its work. One that is reached all the time is too low for \
the site, or somebody is at it: `pagewell stats` shows those that were reached.

| limit | default | | counted as | shown by |
|---|---|---|---|---|
";

const END: &str = "
## Slow clients

The timeouts bound how long a client sends or takes nothing. A client could move one byte just before each timeout, so there is also a rate: `body_rate` and `write_rate`. A client that was waited for longer than the timeout, in all, must have kept the rate. Then it is measured again from the start.

Over HTTP/2 each stream is measured by the payload that the client takes of it. PINGs and other streams do not count. A stream that is too slow is reset, and the connection is closed where it has no other. Streams that wait for the client at the same time share `write_rate`.

The content of a request takes a place at the origin only when all of it has come. So slow uploads hold connections and no place, and no script runs with half of a form ([why](../decisions/0079-uploads-to-http-origins.md)). Content longer than `body_ahead` waits on the disk, in files without a name in the directory `uploads`, within `body_disk` together.

A response leaves the origin at the origin's speed, whatever its client does ([why](../decisions/0078-responses-leave-the-origin-at-its-speed.md)). Content that the client has not taken waits in memory, then on the disk. A response that finds no room there waits for its client at the origin. It is broken off when another request has waited for a place for a second.

## Who is counted

`connections_per_address` counts by the address of the socket, and of IPv6 by its network of 64 bits. Not counted are loopback, `connections_exempt` and `trusted_proxies`: a connection of a proxy's carries many visitors. Who names his clients by the [PROXY protocol](../guide/load-balancer.md) has them counted.

## HTTP/2

Floods of frames are bounded, and end that connection alone: header sections over `header_bytes` in however many CONTINUATION frames, streams that are reset before they were looked at (`http2_resets`), more requests at once than one address may have (`http2_streams_per_address`), SETTINGS and PING without end, windows that never open, answers that are asked for and never taken. A reset of what was in the store comes too late: it was answered before, and costs what asking again does.

## Memory

`memory` bounds the stored pages. Numbers bound the rest:

- A connection without a request takes about 3 KB. One with a request takes up to its header section and a few pieces of content.
- The **send backlog** is the content that clients have asked for and have not taken yet. It takes at most `client_backlog_bytes` of memory and `client_backlog_disk` of disk, for all clients together. Beyond either bound the connections of the slowest clients are closed ([why](../decisions/0078-responses-leave-the-origin-at-its-speed.md)).
- Content of requests takes at most a sixteenth of `memory`, and `body_disk` of disk.

On a small machine lower `connections` ([a small machine](../guide/small-machine.md)).

## What is bounded and cannot be set

| | |
|---|---|
| The control interface | 16 MiB a call, within 30 seconds; 16 streams of `/v1/live`; 256 connections, of which the one that has been idle longest gives way to a new one. |
| A request to purge | 10,000 tags; expressions of 2,048 bytes; 64 searches at a time. |
| A page's tags | 1,000, of 1,024 bytes each, 128 KiB together; 16 fields in `Vary`. |
| Header lines | 256, whatever `headers` says. |
| The PROXY header | 107 bytes in version 1, 4,112 in version 2. |
| After a refusal | 256 KiB, or a second, are taken of what the client still sends, so that he can read the answer. |
| Interim responses | 16 KiB wait for a client; more are dropped. |
| A script's standard error | 8 KiB a request are logged. |
| Redirects within the site | 5 for a request. |
| A page put together of fragments | `page_bytes`; 100 fragments, three levels deep, four asked for at a time. |
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
