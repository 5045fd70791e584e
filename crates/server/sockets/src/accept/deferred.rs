//! Defers accepting a TCP connection until its client has sent data (TCP_DEFER_ACCEPT, tcp(7)).
//!
//! None of our dependencies offers this option, so this module makes the system call in an `unsafe`
//! block, and contains nothing else.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// After how many seconds without data a connection is accepted anyway. The minimum, in which the
/// kernel repeats its part of the handshake once.
const SILENCE_SECONDS: libc::c_int = 1;

/// Sets the option for a socket that listens or will listen.
///
/// # Errors
/// The error from `setsockopt`; a Unix socket does not support the option.
#[allow(unsafe_code)]
pub fn defer(socket: &impl AsFd) -> io::Result<()> {
    let seconds = SILENCE_SECONDS;
    let length = size_of_val(&seconds) as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open for as long as it is borrowed. The kernel reads `length` bytes of
    // an integer that lives until the call returns.
    let set = unsafe {
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
        libc::setsockopt(socket, level, option, (&raw const seconds).cast(), length)
    };
    match set {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    /// Whether a client that sends data is accepted before one that connected earlier and is silent.
    fn speaker_is_first(listener: &TcpListener) -> bool {
        let address = listener.local_addr().expect("bound");
        let silent = TcpStream::connect(address).expect("connected");
        let mut speaks = TcpStream::connect(address).expect("connected");
        speaks.write_all(b"x").expect("written");
        let [first, second] = [(); 2].map(|()| listener.accept().expect("somebody").1);
        let [silent, speaks] = [silent, speaks].map(|s| s.local_addr().expect("its end"));
        let is_first = first == speaks && second == silent;
        assert!(is_first || (first == silent && second == speaks), "both are let in");
        is_first
    }

    #[test]
    fn a_silent_connection_is_accepted_after_one_with_data() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        assert!((0..20).any(|_| !speaker_is_first(&listener)), "in their order at first");
        defer(&listener).expect("Linux has it");
        // Repeated, because on a machine that pauses for a second the silent client is accepted, too.
        assert!((0..5).any(|_| speaker_is_first(&listener)));
    }

    #[test]
    fn a_unix_socket_is_refused() {
        let (socket, _) = UnixStream::pair().expect("two sockets");
        assert!(defer(&socket).is_err());
    }
}
