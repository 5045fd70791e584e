//! Pagewell: a full-page cache in front of a PHP site. All that touches a socket, a clock or a file
//! is in this crate; the rules of caching, the store and the protocols are libraries without I/O.
//!
//! A hit goes `listen` → `connection` (→ `front`) → `exchange` → `http_cache::decide` → `serve`. A
//! fill adds `render` and one file of `origin`. Start reading at [`exchange`].

pub mod keep_time;
pub mod memcached;
pub mod privileges;
pub mod server;
pub mod service;
pub mod snapshot;
pub mod take_over;
pub mod unused;
pub mod wake;

pub use ::change_sources as database;
pub use ::config;
pub use ::config::{
    access_log_format, log, networks, nginx_config, options, percent_encoding, steering_fields,
    target,
};
pub use ::control::{control, doctor, explain, figures, kernel_counts, reload, top};
pub use ::exchange::{
    access_log, body, codings, constant_time, esi, exchange, forward, heard, in_flight, litespeed,
    lookup, private, purge, purger, render, response_spool, rewarm, send_backlog, sendfile, serve,
    site, sites, static_files, switch, writes,
};
pub use ::front::{
    connection, deadline, front, hit, http2, listen, proxy_protocol, request_head, tls,
};
pub use ::origin;
pub use ::origin::{pace, routes, spool, upload};
pub use ::site_state;
pub use ::site_state::{
    changes, client, clock, cluster, content_decoding, content_encoding, counters, journal, let_go,
    memcached_keys, memcached_leases, page, page_name, panics, pending_changes, per_address, phase,
    propagation, reached, refusal, request_fields, runtime, successor, terms, traces, trailers,
    uncovered_tags, why,
};
