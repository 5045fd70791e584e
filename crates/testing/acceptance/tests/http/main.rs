//! Behaviour as HTTP clients see it: protocols, limits, caching, files, PHP, and the effects of hostile or slow
//! clients. Each test starts its own Pagewell.
//!
//! One program contains many tests, so that a change of the server relinks a few programs instead of one per
//! file.

mod access_log;
mod audit;
mod audit_budget;
mod bad_requests;
mod codings;
mod connections;
mod edge_checks;
mod edge_order;
mod edge_redirects;
mod edge_rewrites;
mod edge_rules;
mod esi;
mod faults;
mod half_closed;
mod leaks;
mod limits;
mod litespeed_esi;
mod many_sites;
mod origin_failover;
mod php;
mod php_responses;
mod privacy;
mod protocols_h2spec;
mod protocols_http2;
mod protocols_messages;
mod protocols_proxy;
mod protocols_streams;
mod protocols_tls;
mod purge;
mod resident;
mod send_backlog;
mod several_origins;
mod slow_clients;
mod static_files;
mod trial;
mod trial_faults;
mod trial_remedies;
mod trial_report;
mod trial_serve;
mod trial_writes;
mod uploads;
