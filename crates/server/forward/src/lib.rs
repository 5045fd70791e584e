//! One request to the origin: sent, followed through local redirects, and answered by what comes back. The
//! invalidations that a response announces are applied before the client gets it.
//!
//! Start reading at [`pass`] (a request that is forwarded) and [`send`] (every request to the origin). Nothing
//! here stores a page: that is the crate `render`.
//!
//! | subject | modules |
//! |---|---|
//! | a request to the origin | `send`, `rate_limit`, `client_gone` (after the client has disconnected) |
//! | a forwarded request | `forward`, `writes` (unsafe methods), `upgrade` |
//! | what rules say about files and scripts | `request_route`, `file_rules`, `scripts`, `rewrites` |
//! | what a response announces | `litespeed`, `owner_copies` (private copies), `sendfile` |

pub mod client_gone;
mod file_rules;
mod forward;
pub mod litespeed;
pub mod owner_copies;
mod rate_limit;
mod request_route;
pub mod rewrites;
mod scripts;
pub mod send;
pub mod sendfile;
pub mod upgrade;
pub mod writes;

pub use self::forward::*;
pub use request_route::{route_of, script_refusal};
