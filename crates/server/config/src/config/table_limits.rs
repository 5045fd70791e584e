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

/// A number of threads.
fn threads(text: &str) -> Result<usize, String> {
    within(text, 256)
}

/// A number of entries of a table.
fn entries(text: &str) -> Result<usize, String> {
    within(text, 1 << 24)
}

fn within(text: &str, max: usize) -> Result<usize, String> {
    match count(text)? {
        number if (1..=max).contains(&number) => Ok(number),
        number => Err(format!("{number} is not from 1 to {max}")),
    }
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
        "A request's header section, with its request line; beyond: 431."
    ),
    limit!(headers, "100", count, "Header lines of a request; beyond: 431."),
    limit!(uri_bytes, "8K", bytes, "The length of a request target; beyond: 414."),
    limit!(body_bytes, "64M", parse_bytes, "A request's content; beyond: 413."),
    limit!(
        connections,
        "16384",
        count,
        "Concurrent connections; further ones wait in the kernel's queue."
    ),
    limit!(
        connections_per_address,
        "512",
        count,
        "Concurrent connections of one address (IPv6: of one /64); further ones are closed. Loopback, `trusted_proxies` and `connections_exempt` are not counted. With the PROXY protocol, the address in the header counts."
    ),
    limit!(connection_requests, "1000000", count, "Requests on one connection; then it is closed."),
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
        "Between two requests on a connection; then it is closed."
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
        "The least of a request's content that must arrive per second, over each `body_timeout` of waiting; below: 408."
    ),
    limit!(
        body_ahead,
        "64K",
        bytes,
        "How much of a request's content waits in memory until it is complete; more waits on disk. All requests together use at most a sixteenth of `memory`."
    ),
    limit!(
        body_disk,
        "512M",
        parse_bytes,
        "Disk space (in `uploads`) for request content that is not complete, for all sites together. A file counts for at least 64K. Beyond: 503."
    ),
    limit!(
        write_timeout,
        "60s",
        parse_duration,
        "How long a client may read nothing of its response; then the connection is closed, over HTTP/2 the stream."
    ),
    limit!(
        half_closed_timeout,
        "10s",
        parse_duration,
        "How long a request over HTTP/1 continues after its client has closed its sending direction, from the last part of the response that was sent."
    ),
    limit!(
        write_rate,
        "1K",
        parse_bytes,
        "The least of its response that a client must read per second, over each `write_timeout` of waiting. HTTP/2 streams that wait at the same time share the rate. Below: as for `write_timeout`."
    ),
    limit!(
        client_backlog_bytes,
        "0",
        bytes,
        "Memory for response content that clients have not read yet, for all clients together. 0 means a quarter of `memory`, and at least four times `page_bytes`; a set value is at least twice `page_bytes`. When half of it is used, responses wait on disk. Beyond: the connections of the slowest clients are closed."
    ),
    limit!(
        client_backlog_disk,
        "1G",
        parse_bytes,
        "Disk space (in `uploads`) for responses that wait for their clients, for all sites together. A file counts for at least 256K; one response uses at most an eighth. A response without space keeps its place at the origin, until another request has waited one second for it. Beyond: the connections of the slowest clients are closed."
    ),
    limit!(
        origin_connect_timeout,
        "5s",
        parse_duration,
        "The time to connect to the origin; beyond: 504."
    ),
    limit!(
        origin_timeout,
        "60s",
        parse_duration,
        "From the end of the request to the origin's header section, and between two pieces of the response; beyond: 504."
    ),
    limit!(
        origin_connections,
        "64",
        count,
        "Concurrent origin requests; with the private php-fpm at most its number of children."
    ),
    limit!(
        origin_idle_connections,
        "0",
        count,
        "Idle connections kept open to a running FastCGI server. Each occupies one of its workers."
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
    limit!(page_bytes, "8M", bytes, "A page's content; a longer one is forwarded and not stored."),
    limit!(
        followers,
        "10000",
        count,
        "Requests that wait for one render; each further request causes its own origin request."
    ),
    limit!(
        coding_queue,
        "4096",
        count,
        "Pages and files that wait for compression; further ones are sent uncompressed until there is space."
    ),
    limit!(
        rewarm_pages,
        "10000",
        count,
        "Pages that wait for a refresh in the background, if `rewarm` is on. Beyond: the least used are refreshed at their next request. Each takes half a kilobyte of `memory`, all at most a thirty-second of it."
    ),
    limit!(
        hit_for_miss,
        "10s",
        parse_duration,
        "How long requests for a page that could not be stored do not wait for each other."
    ),
    limit!(
        drain,
        "10s",
        parse_duration,
        "From the start of a stop until the remaining connections are closed."
    ),
    limit!(
        snapshot_stop,
        "60s",
        parse_duration,
        "How long the last snapshot may take when Pagewell stops; beyond: the previous one stays. Give a service manager more time than this and `drain`."
    ),
    limit!(
        handshake_timeout,
        "10s",
        parse_duration,
        "From the start of a connection to the end of its TLS handshake; then it is closed."
    ),
    limit!(
        certificate_look,
        "5s",
        parse_duration,
        "How often Pagewell checks certificates, redirect files and error pages for changes."
    ),
    limit!(
        upgrades,
        "1024",
        count,
        "Concurrent connections that have switched to another protocol, such as WebSocket; beyond: 503."
    ),
    limit!(
        upgrade_idle_timeout,
        "1h",
        parse_duration,
        "How long a connection that has switched to another protocol may be silent; then it is closed."
    ),
    limit!(
        http2_streams,
        "128",
        count,
        "Concurrent requests on an HTTP/2 connection; further ones are refused in a way that lets the client retry."
    ),
    limit!(
        http2_streams_per_address,
        "1024",
        count,
        "Concurrent requests of one address (IPv6: of one /64) over all its HTTP/2 connections, without plain cache hits; beyond: 503. It counts the same addresses as `connections_per_address`."
    ),
    limit!(
        http2_resets,
        "64",
        count,
        "Requests that an HTTP/2 client cancels before they are processed; beyond: the connection is closed."
    ),
    limit!(
        password_checks,
        "2",
        threads,
        "Passwords (`auth_file`) whose hash is computed at once; 64 more wait; beyond: 503."
    ),
    limit!(
        rate_limit_entries,
        "65536",
        entries,
        "Clients whose rate is known (`limit` in rules), 16 bytes each; beyond: the one whose limit ends first is forgotten."
    ),
];
