//! One request and its response: a purge, a page, a copy for one client, a template with its fragments, or a
//! request that is forwarded.
//!
//! Start reading at [`steps`] (the table of what happens to a request) and [`dispatch`] (the match on the verdict). Whether a stored page answers a request is decided in
//! `delivery::lookup`; a page that is not stored is rendered by the crate `render`, and other requests are sent by
//! `forward`. This crate accepts no connection and parses no header section. The crate above passes the request
//! with its [client](telemetry::client::Client); a plain cache hit never comes here.
//!
//! | subject | modules |
//! |---|---|
//! | a request from its arrival to its response | `exchange`, `steps` (in `plain`, redirects before hyper), `dispatch` |
//! | pages for some clients | `private` (copies for one client), `signed_in` (pages that signed-in visitors share) |
//! | a visitor during a trial | `trial` |
//! | templates and fragments | `assembly` |
//! | rules for access and response fields | `edge`; `checks` (passwords, rate limits) |
//! | files that the application names | `internal_files` |
//! | purges | `purge`, `purger` (authorisation) |

pub mod assembly;
mod challenge;
mod checks;
mod dispatch;
mod edge;
pub mod exchange;
mod internal_files;
pub mod private;
pub mod purge;
pub mod purger;
pub mod signed_in;
pub mod steps;
mod trial;

pub use checks::{check_limit, is_remembered, refresh_passwords};
pub use edge::write_private_lines;
pub use exchange::{answer, is_timed};
pub use steps::{PlainAsked, PlainRedirect, PlainStep, is_redirected};
