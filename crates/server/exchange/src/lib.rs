//! One request and its response: a page from memory, one that the origin renders, a request that is forwarded, a
//! write that invalidates pages, a purge, a static file.
//!
//! Start reading at [`exchange`] (the match on the verdict), then [`lookup`] (does a stored page answer this request),
//! [`render`] (leases, collapsing, storing) and [`writes`]. It accepts no connection and reads no head: a request
//! comes with its [client](site_state::client::Visitor) from the crate above, and a plain cache hit never comes here.
//!
//! | subject | modules |
//! |---|---|
//! | a request from its arrival to its response | `exchange`, `lookup`, `serve`, `static_files` |
//! | a page that is not cached | `render`, `rewarm` (cache warming), `private` (copies for one client), `esi` (fragments) |
//! | forwarded requests | `forward`, `writes`, `heard` (after the client has disconnected), `switch` (upgrades), `litespeed`, `sendfile` |
//! | purges | `purge`, `purger` (authorisation), `constant_time` |
//! | content on its way to the client | `body`, `codings`, `response_spool`, `send_backlog`, `in_flight`, `access_log` |
//! | the site that a request is for | `site`, `sites` (the choice by host) |

pub mod access_log;
pub mod body;
pub mod codings;
pub mod constant_time;
pub mod esi;
pub mod exchange;
pub mod forward;
pub mod heard;
pub mod in_flight;
pub mod litespeed;
pub mod lookup;
pub mod private;
pub mod purge;
pub mod purger;
pub mod render;
pub mod response_spool;
pub mod rewarm;
pub mod send_backlog;
pub mod sendfile;
pub mod serve;
pub mod site;
pub mod sites;
pub mod static_files;
pub mod switch;
pub mod writes;

pub use exchange::{answer, is_redirected, is_timed, plan};
