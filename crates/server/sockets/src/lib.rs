//! TCP and Unix sockets: listening ([`accept`]), and connections as one type: to a FastCGI responder, to a
//! database, from a client.
//!
//! All I/O is non-blocking. Nothing here knows a protocol, or the purpose of a connection.

#[macro_use]
mod transport;

pub mod accept;
mod socket;
mod unread;
mod watched;

pub use accept::{AcceptedConnection, Accepting, Listener, accept_each};
pub use socket::Socket;
pub use watched::watched;
