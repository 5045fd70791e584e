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
//! | a request from its arrival to its response | `exchange`, `lookup`, `serve`, `static_files` |
//! | a page that is not cached | `render`, `rewarm` (cache warming), `private` (copies for one client), `esi` (fragments) |
//! | forwarded requests | `forward`, `writes`, `client_gone` (after the client has disconnected), `upgrade` (upgrades), `litespeed`, `sendfile` |
//! | purges | `purge`, `purger` (authorisation), `constant_time` |
//! | content on its way to the client | `body`, `codings`, `response_spool`, `send_backlog`, `in_flight`, `access_log` |
//! | the site that a request is for | `site`, `sites` (the choice by host) |

pub mod access_log;
pub mod body;
pub mod client_gone;
pub mod codings;
pub mod constant_time;
pub mod esi;
pub mod exchange;
pub mod forward;
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
pub mod upgrade;
pub mod writes;

pub use exchange::{answer, is_redirected, is_timed, plan};
