//! One request and its response. The request may be for a cached page, for a page that the origin
//! renders, or for a static file. It may also be forwarded, be a write that invalidates pages, or a
//! purge.
//!
//! Start reading at [`exchange`] (the match on the verdict), then [`lookup`] (whether a stored page
//! answers this request), [`render`] (leases, collapsing, storing) and [`writes`]. It accepts no
//! connection and parses no header section. The crate above passes the request with its
//! [client](site_state::client::Client); a plain cache hit never comes here.
//!
//! | subject | modules |
//! |---|---|
//! | a request from its arrival to its response | `exchange`, `plan`, `lookup`, `stored_answer`, `serve` |
//! | a page that is not cached | `render`, `waiter` (its followers), `rewarm` (cache warming), `private` and `owner_copies` (copies for one client), `signed_in` (pages that signed-in visitors share), `esi` and `assembly` (templates and fragments) |
//! | forwarded requests | `forward`, `send` (one request to the origin), `writes`, `client_gone` (after the client has disconnected), `upgrade` (upgrades), `litespeed`, `sendfile` |
//! | files | `static_files`, `file_cache` |
//! | purges | `purge`, `purger` (authorisation), `searches`, `constant_time` |
//! | content on its way to the client | `body`, `codings`, `coding_queue`, `response_spool`, `send_backlog`, `in_flight`, `access_log`, `log_entry` |
//! | the site that a request is for | `site` (with the choice by host) |

pub mod assembly;
pub mod body;
pub mod client_gone;
pub mod coding_queue;
pub mod codings;
pub mod constant_time;
pub mod esi;
pub mod exchange;
pub mod file_cache;
pub mod forward;
pub mod in_flight;
pub mod litespeed;
pub mod log_entry;
pub mod lookup;
pub mod owner_copies;
pub mod plan;
pub mod private;
pub mod purge;
pub mod purger;
pub mod render;
pub mod response_spool;
pub mod rewarm;
pub mod searches;
pub mod send;
pub mod sendfile;
pub mod serve;
pub mod signed_in;
pub mod site;
pub mod static_files;
pub mod stored_answer;
pub mod upgrade;
pub mod waiter;
pub mod writes;

pub use exchange::{answer, is_redirected, is_timed};
pub use plan::plan;
pub use site_state::access_log;
pub use sockets::send_backlog;
