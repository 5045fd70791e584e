//! What a site is while it runs: its configuration, its pages, what it counts and remembers, and the one way in which
//! its pages change. Everything that answers requests, follows a database or explains a site works on it.
//!
//! Start reading at [`SiteState`], then [`changes`] (what a change does, in which order) and [`pending_changes`] (when
//! a write may be acknowledged). It depends on the configuration and on libraries only: no request is answered and
//! no connection is accepted here. What a lower module needs of a higher one is a trait here ([`cluster`],
//! [`successor`], [`client`], [`terms`]).
//!
//! | what | files |
//! |---|---|
//! | the site itself | `state`, `phase` (of the process), `runtime` |
//! | changes | `changes`, `pending_changes`, `propagation`, `journal`, `cluster`, `successor` |
//! | pages | `page`, `page_name`, `content_encoding`, `content_decoding`, `terms`, `uncovered_tags` |
//! | requests | `client`, `request_fields`, `refusal`, `trailers`, `per_address` |
//! | the memcached port | `memcached_keys`, `memcached_leases` |
//! | observation | `clock`, `counters`, `reached` (limits), `why` (history), `traces`, `panics` |
//! | memory | `let_go` returns unused memory to the system |

pub mod changes;
pub mod client;
pub mod clock;
pub mod cluster;
pub mod content_decoding;
pub mod content_encoding;
pub mod counters;
pub mod journal;
pub mod let_go;
pub mod memcached_keys;
pub mod memcached_leases;
pub mod page;
pub mod page_name;
pub mod panics;
pub mod pending_changes;
pub mod per_address;
pub mod phase;
pub mod propagation;
pub mod reached;
pub mod refusal;
pub mod request_fields;
pub mod runtime;
mod state;
pub mod successor;
pub mod terms;
pub mod traces;
pub mod trailers;
pub mod uncovered_tags;
pub mod why;

pub use state::{Lasting, SiteState};
