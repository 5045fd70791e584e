//! The run-time state of a site: its configuration, its pages, its counters and history, and the
//! only way in which its pages are invalidated. All code that answers requests, follows a database
//! or explains a site uses it.
//!
//! Start reading at [`SiteState`], then [`changes`] (the steps of a change) and [`pending_changes`]
//! (when a write may be acknowledged). It depends only on the configuration and on libraries; it
//! answers no request and accepts no connection. Higher modules are accessed through traits
//! ([`cluster`], [`successor`], [`client`], [`terms`]).
//!
//! | subject | files |
//! |---|---|
//! | the site itself | `state`, `phase` (of the process), `runtime` |
//! | changes | `changes`, `pending_changes`, `propagation`, `journal`, `cluster`, `successor` |
//! | pages | `page`, `page_name`, `content_encoding`, `content_decoding`, `terms`, `uncovered_tags` |
//! | requests | `client`, `request_fields`, `refusal`, `trailers`, `per_address` |
//! | the memcached port | `memcached_keys`, `memcached_leases` |
//! | observation | `clock`, `counters`, `limit_hits` (limits), `why` (history), `traces`, `panics` |
//! | memory | `let_go` returns unused memory to the system |

pub mod changes;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod content_decoding;
pub mod content_encoding;
pub mod counters;
pub mod history;
pub mod journal;
pub mod limit_hits;
pub mod memcached_keys;
pub mod memcached_leases;
pub mod page;
pub mod page_name;
pub mod panics;
pub mod pending_changes;
pub mod per_address;
pub mod phase;
pub mod propagation;
pub mod refusal;
pub mod release_memory;
pub mod request_fields;
pub mod runtime;
mod state;
pub mod successor;
pub mod terms;
pub mod traces;
pub mod trailers;
pub mod uncovered_tags;

pub use state::{Lasting, SiteState};
