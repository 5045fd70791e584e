//! Pagewell: a full-page cache in front of a PHP site. All code that uses a socket, a clock or a
//! file is in this crate. The caching rules, the store and the protocols are libraries without I/O.
//! A cache hit takes this path: `listen` → `connection` (→ `front`) → `exchange` →
//! `http_cache::decide` → `serve`. A miss adds `render` and one file of `origin`. Start reading at
//! [`exchange`].

pub mod access_log;
pub mod body;
pub mod codings;
pub mod connection;
pub mod constant_time;
pub mod control;
pub mod deadline;
pub mod doctor;
pub mod esi;
pub mod exchange;
pub mod explain;
pub mod figures;
pub mod forward;
pub mod front;
pub mod heard;
pub mod hit;
pub mod http2;
pub mod in_flight;
pub mod keep_time;
pub mod kernel_counts;
pub mod listen;
pub mod litespeed;
pub mod lookup;
pub mod memcached;
pub mod private;
pub mod privileges;
pub mod proxy_protocol;
pub mod purge;
pub mod purger;
pub mod reload;
pub mod render;
pub mod request_head;
pub mod response_spool;
pub mod rewarm;
pub mod send_backlog;
pub mod sendfile;
pub mod serve;
pub mod server;
pub mod service;
pub mod site;
pub mod sites;
pub mod snapshot;
pub mod static_files;
pub mod switch;
pub mod take_over;
pub mod tls;
pub mod top;
pub mod unused;
pub mod wake;
pub mod writes;

pub use ::change_sources as database;
pub use ::config;
pub use ::config::{
    access_log_format, log, networks, nginx_config, options, percent_encoding, steering_fields,
    target,
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
