//! Registers listening sockets with the runtime. The runtime's own listeners register each connection
//! that they accept, but a connection has to stay unregistered until an operation on it has to wait
//! (docs/decisions/http-front.md). tokio offers no other safe way to accept so.
//!
//! A registered socket must keep its descriptor until it is dropped, as the socket types of std and
//! socket2 do.

use std::io;
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `socket`, which must be non-blocking, until the result is dropped.
///
/// # Errors
/// The error from the system.
#[expect(
    deprecated,
    reason = "what is unsound is a type whose descriptor changes: those here have one for life"
)]
pub fn watched<S: AsRawFd>(socket: S, interest: Interest) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, interest)
}
