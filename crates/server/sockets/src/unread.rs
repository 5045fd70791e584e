//! Whether the peer of a Unix socket has read what was written to it (SIOCOUTQ, unix(7)).
//!
//! None of our dependencies offers this call, so this module makes it in an `unsafe` block, and contains nothing
//! else. For a TCP socket the number has another meaning: the bytes that the peer's kernel has not acknowledged.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The count of the kernel at the moment when it reports that the peer has read everything.
const NOTHING: libc::c_int = 1;

/// Whether the peer has read everything.
///
/// # Errors
/// The error from `ioctl`.
#[allow(unsafe_code)]
pub fn is_all_read(socket: &impl AsFd) -> io::Result<bool> {
    let mut unread: libc::c_int = 0;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open for as long as it is borrowed. The kernel writes one integer, which lives
    // until the call returns.
    let done = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut unread) };
    match done {
        0 => Ok(unread <= NOTHING),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn unread_bytes_count_until_the_last_one_is_read() {
        let (mut one, mut other) = UnixStream::pair().expect("two sockets");
        assert!(is_all_read(&one).expect("a number"));
        one.write_all(b"sixteen bytes...").expect("written");
        assert!(!is_all_read(&one).expect("a number"));
        other.read_exact(&mut [0; 8]).expect("read");
        assert!(!is_all_read(&one).expect("a number"));
        other.read_exact(&mut [0; 8]).expect("read");
        assert!(is_all_read(&one).expect("a number"));
    }
}
