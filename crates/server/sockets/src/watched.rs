//! Registers file descriptors with the runtime for selected events. The runtime's own socket types are
//! always registered for reading and writing from the start.
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
