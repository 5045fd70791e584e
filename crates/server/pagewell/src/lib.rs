//! Pagewell: a full-page cache in front of a PHP site. All that touches a socket, a clock or a file
//! is in this crate; the rules of caching, the store and the protocols are libraries without I/O.
//!
//! A hit goes `listen` → `connection` (→ `front`) → `exchange` → `http_cache::decide` → `serve`. A
//! fill adds `render` and one file of `origin`. Start reading at [`exchange`].

pub mod access_log;
pub mod body;
pub mod changes;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod codings;
pub mod connection;
pub mod constant_time;
pub mod control;
pub mod counters;
pub mod database;
pub mod deadline;
pub mod doctor;
pub mod esi;
pub mod exchange;
pub mod explain;
pub mod figures;
pub mod forward;
pub mod front;
pub mod heard;
pub mod hits;
pub mod http2;
pub mod in_flight;
pub mod journal;
pub mod keep_time;
pub mod kernel_counts;
pub mod let_go;
pub mod listen;
pub mod litespeed;
pub mod lookup;
pub mod memcached;
pub mod memcached_keys;
pub mod memcached_leases;
pub mod origin;
pub mod pace;
pub mod page;
pub mod page_name;
pub mod panics;
pub mod pending_changes;
pub mod per_address;
pub mod phase;
pub mod plain_head;
pub mod private;
pub mod privileges;
pub mod propagation;
pub mod proxy_protocol;
pub mod purge;
pub mod purger;
pub mod reached;
pub mod refusal;
pub mod reload;
pub mod render;
pub mod request_fields;
pub mod request_head;
pub mod response_spool;
pub mod rewarm;
pub mod routes;
pub mod runtime;
pub mod send_backlog;
pub mod sendfile;
pub mod serve;
pub mod server;
pub mod service;
pub mod site;
pub mod site_state;
pub mod sites;
pub mod snapshot;
pub mod spool;
pub mod static_files;
pub mod successor;
pub mod switch;
pub mod take_over;
pub mod terms;
pub mod tls;
pub mod top;
pub mod traces;
pub mod trailers;
pub mod uncovered_tags;
mod unix_socket;
pub mod unused;
pub mod upload;
pub mod wake;
mod watched;
pub mod why;
pub mod writes;

pub use ::config;
pub use ::config::{
    access_log_format, log, networks, nginx_config, options, percent_encoding, steering_fields,
    target,
};
