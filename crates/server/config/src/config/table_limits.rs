//! Every key of `[limits]`, as data: name, default, parser, description. The manual is generated
//! from these tables (see `table`). A row also contains the function that sets the limit: a new
//! limit is one row here and one field in [`Limits`].

use super::Limits;
use super::units::{parse_bytes, parse_duration};

/// A key of `[limits]`.
pub struct LimitRow {
    /// The key in `[limits]`.
    pub key: &'static str,
    /// The default as written in the file.
    pub default: &'static str,
    /// The limited quantity, and the effect of reaching the limit.
    pub help: &'static str,
    /// Parses a value and sets the limit.
    pub set: fn(&mut Limits, &str) -> Result<(), String>,
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn bytes(text: &str) -> Result<usize, String> {
    parse_bytes(text).and_then(|n| usize::try_from(n).map_err(|e| e.to_string()))
}

macro_rules! limit {
    ($field:ident, $default:literal, $read:ident, $help:literal) => {
        LimitRow {
            key: stringify!($field),
            default: $default,
            help: $help,
            set: |limits, text| {
                limits.$field = $read(text)?;
                Ok(())
            },
        }
    };
}

/// Every key of `[limits]`.
pub const LIMITS: &[LimitRow] = &[
    limit!(
        header_bytes,
        "32K",
        bytes,
        "A request's header section with its request line; beyond: 431."
    ),
    limit!(headers, "100", count, "Header lines of a request; beyond: 431."),
    limit!(uri_bytes, "8K", bytes, "A request target; beyond: 414."),
    limit!(body_bytes, "64M", parse_bytes, "A request's content; beyond: 413."),
    limit!(
        connections,
        "16384",
        count,
        "Connections at once; further ones wait in the kernel's queue."
    ),
    limit!(
        connections_per_address,
        "512",
        count,
        "Connections at once of one address (of IPv6, of one /64); further ones are closed. Loopback, `trusted_proxies` and `connections_exempt` are not counted; who comes by the PROXY protocol is, by the address that it names."
    ),
    limit!(
        connection_requests,
        "1000000",
        count,
        "Requests over one connection; then it is closed behind its answer, and the client opens another."
    ),
    limit!(
        header_timeout,
        "10s",
        parse_duration,
        "From a request's first byte to the end of its header section; beyond: 408."
    ),
    limit!(
        idle_timeout,
        "60s",
        parse_duration,
        "Between two requests of a connection; then it is closed."
    ),
    limit!(
        body_timeout,
        "30s",
        parse_duration,
        "Between two pieces of a request's content; beyond: 408."
    ),
    limit!(
        body_rate,
        "1K",
        parse_bytes,
        "How much of a request's content has to come in a second, whenever it has been waited for longer than `body_timeout` in all since it was last looked at; below: 408."
    ),
    limit!(
        body_ahead,
        "64K",
        bytes,
        "How much of a request's content is kept in memory until all of it has come and a place at the origin is taken; of all requests together a sixteenth of `memory`. Longer content waits on the disk."
    ),
    limit!(
        body_disk,
        "512M",
        parse_bytes,
        "How much content of all requests together waits on the disk (`uploads`) for its end, of all sites; a file counts for 64K at least. Beyond: 503."
    ),
    limit!(
        write_timeout,
        "60s",
        parse_duration,
        "How long a client may take nothing of its response. Then the connection is closed; over HTTP/2 the stream is reset, or the connection closed where it has no other stream."
    ),
    limit!(
        write_rate,
        "1K",
        parse_bytes,
        "How much of its response a client has to take in a second, measured whenever it was waited for longer than `write_timeout` in all. Streams of HTTP/2 that wait at the same time share the rate. Below: the connection is closed; over HTTP/2 the stream is reset, or the connection closed where it has no other stream."
    ),
    limit!(
        client_backlog_bytes,
        "0",
        bytes,
        "Memory for content that clients have asked for and have not taken yet, of all clients together: responses on their way, and pages that are not in the store. 0: a quarter of `memory`, and four times `page_bytes` at least; if set, twice `page_bytes` at least. When half of it is used, responses wait on the disk. Beyond: the connections of the slowest clients are closed."
    ),
    limit!(
        client_backlog_disk,
        "1G",
        parse_bytes,
        "Disk (in `uploads`) for responses that wait for their clients, of all sites together. A file counts for 256K at least; one response takes an eighth at most. A response that finds no room waits for its client at the origin, and is broken off when another request has waited a second for a place. Beyond: the connections of the slowest clients are closed."
    ),
    limit!(origin_connect_timeout, "5s", parse_duration, "To reach the origin; beyond: 504."),
    limit!(
        origin_timeout,
        "60s",
        parse_duration,
        "From the end of the request to the origin's header section, and between two pieces after it; beyond: 504."
    ),
    limit!(
        origin_connections,
        "64",
        count,
        "Requests at the origin at once; never more than php-fpm's children when it is our own."
    ),
    limit!(
        origin_idle_connections,
        "0",
        count,
        "Connections kept to a running FastCGI responder without work: each holds one of its workers. Our own php-fpm keeps all."
    ),
    limit!(
        origin_queue,
        "1024",
        count,
        "Requests that wait for a place at the origin; beyond: 503."
    ),
    limit!(
        origin_queue_timeout,
        "10s",
        parse_duration,
        "How long a request waits for a place at the origin; beyond: 503."
    ),
    limit!(
        origin_header_bytes,
        "256K",
        bytes,
        "The header section of the origin's response; beyond: 502."
    ),
    limit!(page_bytes, "8M", bytes, "A page's content; a longer one is passed on and not stored."),
    limit!(
        followers,
        "10000",
        count,
        "Requests that wait for one render; further ones are rendered by themselves."
    ),
    limit!(
        coding_queue,
        "4096",
        count,
        "Pages and files that wait for their codings to be made; further ones are sent as they are until there is room."
    ),
    limit!(
        rewarm_pages,
        "10000",
        count,
        "Pages that wait to be rendered anew in the background, where `rewarm` is on; the least used are left to their visitors. Half a kilobyte of `memory` is set aside for each, a thirty-second of it at most."
    ),
    limit!(
        hit_for_miss,
        "10s",
        parse_duration,
        "How long requests for a page that could not be stored are not made to wait for each other."
    ),
    limit!(
        drain,
        "10s",
        parse_duration,
        "From the order to stop until the connections that are left are cut."
    ),
    limit!(
        snapshot_stop,
        "60s",
        parse_duration,
        "How long the last snapshot may take when Pagewell stops; then the one before stays. Give a service manager more than this and `drain` together."
    ),
    limit!(
        handshake_timeout,
        "10s",
        parse_duration,
        "From a connection to the end of its TLS handshake; then it is closed."
    ),
    limit!(
        certificate_look,
        "5s",
        parse_duration,
        "How often it is looked whether the files of a certificate have changed."
    ),
    limit!(
        upgrades,
        "1024",
        count,
        "Connections at once that have changed to another protocol, such as WebSocket; beyond: 503."
    ),
    limit!(
        upgrade_idle_timeout,
        "1h",
        parse_duration,
        "How long nothing may be said on a connection that has changed to another protocol; then it is closed."
    ),
    limit!(
        http2_streams,
        "128",
        count,
        "Requests at once on a connection of HTTP/2; further ones are refused to be asked again."
    ),
    limit!(
        http2_streams_per_address,
        "1024",
        count,
        "Requests at once of one address (of IPv6, of one /64) over all its HTTP/2 connections, without plain cache hits; beyond: 503. It counts the addresses that `connections_per_address` counts."
    ),
    limit!(
        http2_resets,
        "64",
        count,
        "Requests that a client of HTTP/2 takes back before they were looked at; beyond: the connection is closed."
    ),
];
