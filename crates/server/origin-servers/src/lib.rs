//! The servers of an HTTP origin: which of them gets a request, and connections to them.
//!
//! | file | contents |
//! |---|---|
//! | `choice` | the choice: the fewest requests in flight; servers that are left out; backups |
//! | `connect` | connections by TCP, and by TLS with a verified certificate |
//! | `check` | the requests by which servers are checked (`site.origin_check`) |
//!
//! Start reading at [`Servers`]. Invariants: a request with effects is never sent to a second server after the first
//! may have got it (the caller's part); a certificate is always verified.
//!
//! Not here: requests and responses (`origin`), and how many requests may be in flight (`origin::places`).

mod check;
mod choice;
mod connect;

pub use check::{CheckRequest, watch};
pub use choice::{ServerUse, Servers, TriedServers};
pub use connect::{Connector, ServerStream};
