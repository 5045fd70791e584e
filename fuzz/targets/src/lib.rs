//! Properties that every parser of hostile input must keep: each target is a plain `run(data)` that panics if a
//! property is violated.
//!
//! The targets are driven by libFuzzer (`fuzz/fuzz_targets`, nightly), by the runner of this crate (stable; see
//! [`mutate`]) and, for a bounded number of steps, by its tests. No target uses a socket or a clock, and the
//! same data always gives the same run.

pub mod authority_answers;
pub mod authorization;
pub mod change_stream;
pub mod changed_rows;
pub mod client_address;
pub mod dialects;
pub mod dns_query;
pub mod esi;
pub mod fastcgi;
pub mod footprint;
pub mod http2_frames;
pub mod http_cache;
pub mod import_rules;
pub mod logical_replication;
pub mod memcache;
pub mod mutate;
pub mod proxy_protocol;
pub mod purge;
pub mod redirect_lines;
pub mod request_head;
pub mod route;
pub mod rules;
pub mod snapshot;
pub mod target_key;
pub mod valkey;

/// A target: its name, which is also that of its corpus, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, in the order in which the tests run them.
pub const TARGETS: [Target; 24] = [
    ("http_cache", http_cache::run),
    ("authority_answers", authority_answers::run),
    ("authorization", authorization::run),
    ("change_stream", change_stream::run),
    ("changed_rows", changed_rows::run),
    ("client_address", client_address::run),
    ("dialects", dialects::run),
    ("dns_query", dns_query::run),
    ("esi", esi::run),
    ("fastcgi", fastcgi::run),
    ("footprint", footprint::run),
    ("http2_frames", http2_frames::run),
    ("import_rules", import_rules::run),
    ("logical_replication", logical_replication::run),
    ("memcache", memcache::run),
    ("proxy_protocol", proxy_protocol::run),
    ("redirect_lines", redirect_lines::run),
    ("request_head", request_head::run),
    ("target_key", target_key::run),
    ("route", route::run),
    ("rules", rules::run),
    ("purge", purge::run),
    ("snapshot", snapshot::run),
    ("valkey", valkey::run),
];
