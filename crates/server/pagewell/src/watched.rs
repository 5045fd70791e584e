//! Descriptors that the runtime watches for us, for what we ask it to and nothing else: its own sockets are
//! watched for bytes and for room at once, from the moment they are there.
//!
//! What is watched has one descriptor for life, as the sockets of std and of socket2 have.

use std::io;
use std::os::fd::AsRawFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Has the runtime watch `socket`, which does not block, until it is dropped.
///
/// # Errors
/// As the system says.
#[expect(
    deprecated,
    reason = "what is unsound is a type whose descriptor changes: those here have one for life"
)]
pub fn watched<S: AsRawFd>(socket: S, interest: Interest) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, interest)
}
