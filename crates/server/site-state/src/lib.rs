//! The run-time state of a site: its configuration, its pages, its counters and history, and the
//! only way in which its pages are invalidated. All code that answers requests, follows a database
//! or explains a site uses it.
//!
//! Start reading at [`SiteState`], then [`changes`] (the steps of a change) and [`pending_changes`]
//! (when a write may be acknowledged). It answers no request. Higher modules are accessed through
//! traits ([`cluster`], [`successor`]). Not here: clock, counters and clients (`telemetry`), stored
//! pages (`stored-pages`), the recorded past (`history`).
//!
//! | subject | files |
//! |---|---|
//! | the site itself | `state` |
//! | changes | `changes`, `pending_changes`, `propagation`, `journal`, `cluster`, `successor` |
//! | names | `page_name`, `uncovered_tags` |
//! | visitors | `signed_in_marks` |
//! | the memcached port | `memcached_keys`, `memcached_leases` |
//!
//! Counts of work in flight, in this crate and above. Each answers another question:
//!
//! | question | answered by |
//! |---|---|
//! | may another change follow before this process ends? | [`pending_changes`]: one guard for each operation |
//! | if it is killed now, does the journal lack a change? | [`journal`]: the same guard, unless the operation is executed at once; also for the predecessor's operations |
//! | has a change not reached the other nodes? | `Cluster` (crate `cluster`, `peers.rs`): numbers of changes |
//! | does one address use too much? | `telemetry`, `per_address.rs`: connections, HTTP/2 requests |
//! | does an HTTP/1 connection wait for hyper? | `exchange`, `in_flight.rs` |
//! | has an HTTP/2 client taken its responses? | `front`, `http2.rs` (`Activity`) and `http2/streams.rs` |
//! | may another request go to the origin? | `origin`, `places.rs`: permits and the queue |
//! | who renders a page, and how many requests wait for it? | `page-store`, `fill.rs` |
//! | may a connection of the control interface be closed? | `control`, `api/places.rs` |

pub mod changes;
pub mod cluster;
pub mod journal;
pub mod memcached_keys;
pub mod memcached_leases;
pub mod page_name;
pub mod pending_changes;
pub mod propagation;
pub mod signed_in_marks;
mod state;
pub mod successor;
pub mod uncovered_tags;

pub use state::{Lasting, SiteState};
