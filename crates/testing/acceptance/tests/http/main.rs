//! What a client sees over HTTP: protocols, limits, caching, files, PHP, and what hostile or slow clients
//! achieve. Each test starts a Pagewell of its own.
//!
//! One program for many tests: a change of the server relinks a few programs, not one for each file.

mod access_log;
mod bad_requests;
mod codings;
mod connections;
mod esi;
mod faults;
mod leaks;
mod limits;
mod many_sites;
mod php;
mod php_responses;
mod protocols_http2;
mod protocols_messages;
mod protocols_proxy;
mod protocols_streams;
mod protocols_tls;
mod purge;
mod resident;
mod send_backlog;
mod slow_clients;
mod static_files;
mod uploads;
