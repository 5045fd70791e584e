//! What every reader of hostile input has to keep, whatever it is given: each target is a plain
//! `run(data)` that panics when it is not kept.
//!
//! They are driven by libFuzzer (`fuzz/fuzz_targets`, nightly), by the runner of this crate (stable;
//! see [`mutate`]) and, for a bounded number of steps, by its tests. No target touches a socket or a
//! clock, and the same data is always the same run.

pub mod fastcgi;
pub mod http_cache;
pub mod mutate;
pub mod request_head;
pub mod route;
pub mod target_key;

/// A target: its name, which is its corpus's as well, and what it does.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 5] = [
    ("http_cache", http_cache::run),
    ("fastcgi", fastcgi::run),
    ("request_head", request_head::run),
    ("target_key", target_key::run),
    ("route", route::run),
];
