//! The socket by which a new process finds the running one. Its name is derived from the address of
//! the control interface, which only one process can have. It is an abstract socket (unix(7)), so
//! no file is left behind. Any process on the machine can connect to such a name, or bind it. So
//! each side checks the peer (`permission`).

use config::Address;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recv, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use tokio::time::Instant;

/// The longest line before the frames begin, in bytes.
const LINE_BYTES: usize = 64 << 10;
/// The byte that accompanies each descriptor.
const WITH_SOCKET: u8 = b'S';

/// The abstract socket that belongs to a control interface.
pub struct Socket(SocketAddr);

impl Socket {
    /// Returns the socket for a control interface at this address; `None` if its port is chosen by
    /// the system.
    pub fn of(admin: &Address) -> Option<Socket> {
        if matches!(admin, Address::Tcp(address) if address.port() == 0) {
            return None;
        }
        // The name is hashed because its length is limited (unix(7)), and a path may be as long as
        // the limit.
        let hash = xxhash_rust::xxh3::xxh3_128(admin.to_string().as_bytes());
        SocketAddr::from_abstract_name(format!("pagewell/take-over/{hash:032x}")).ok().map(Socket)
    }

    /// Listens for a process that wants to take over.
    ///
    /// # Errors
    /// Another process has the name.
    pub fn listen(&self) -> io::Result<UnixListener> {
        let listener = UnixListener::bind_addr(&self.0)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    /// Connects to the running process; `None` if there is none.
    ///
    /// # Errors
    /// The I/O error of the system.
    pub fn connect(&self) -> io::Result<Option<UnixStream>> {
        match UnixStream::connect_addr(&self.0) {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The process at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The process ID of the peer.
    pub pid: i32,
    /// The user ID of the peer.
    pub uid: u32,
}

/// Checks the user at the other end: this process's user, root, or `also`. A process that runs as root and will
/// switch to another user accepts that user too.
///
/// # Errors
/// The peer belongs to another user.
pub fn check(stream: &UnixStream, also: Option<u32>) -> io::Result<Peer> {
    let found = socket_peercred(stream)?;
    let peer = Peer { pid: found.pid.as_raw_nonzero().get(), uid: found.uid.as_raw() };
    peer.checked(rustix::process::geteuid().as_raw(), also)
}

impl Peer {
    fn checked(self, own: u32, also: Option<u32>) -> io::Result<Peer> {
        let Peer { pid, uid } = self;
        if uid == own || uid == 0 || also == Some(uid) {
            return Ok(self);
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("it is the process {pid} of the user {uid}, and this one is of the user {own}"),
        ))
    }
}

/// Sends a line.
///
/// # Errors
/// The I/O error of the system.
pub fn say(mut stream: &UnixStream, line: &str) -> io::Result<()> {
    stream.write_all(format!("{line}\n").as_bytes())
}

/// Lets the next read wait until this time at most.
fn wait_until(stream: &UnixStream, by: Instant) -> io::Result<()> {
    let left = by.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))
}

/// Reads a line, and no byte after it. All of it must arrive until `by`.
///
/// # Errors
/// The I/O error of the system, or the line is longer than [`LINE_BYTES`].
pub fn hear(mut stream: &UnixStream, by: Instant) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        wait_until(stream, by)?;
        // Byte by byte, because a descriptor arrives with the byte that it was sent with.
        stream.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => break,
            _ if line.len() >= LINE_BYTES => return Err(io::ErrorKind::InvalidData.into()),
            [byte] => line.push(byte),
        }
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Reads a line and compares it with `line`.
///
/// # Errors
/// Another line arrived, or none.
pub fn expect(stream: &UnixStream, line: &str, by: Instant) -> io::Result<()> {
    match hear(stream, by)? {
        heard if heard == line => Ok(()),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it says {other:?}, and not {line:?}: another version?"),
        )),
    }
}

/// Returns whether the other side still has the connection open.
#[must_use]
pub fn is_there(stream: &UnixStream) -> bool {
    let mut byte = [0; 1];
    match recv(stream, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((_, count)) => count > 0,
        Err(error) => error == rustix::io::Errno::AGAIN,
    }
}

/// Sends a descriptor (`SCM_RIGHTS`).
///
/// # Errors
/// The I/O error of the system.
pub fn send(stream: &UnixStream, socket: &OwnedFd) -> io::Result<()> {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&sockets));
    let with = [WITH_SOCKET];
    sendmsg(stream, &[IoSlice::new(&with)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a descriptor, with `CLOEXEC` set.
///
/// # Errors
/// The I/O error of the system, or no descriptor arrived.
pub fn receive(stream: &UnixStream, by: Instant) -> io::Result<OwnedFd> {
    wait_until(stream, by)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut with = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(stream, &mut [IoSliceMut::new(&mut with)], &mut control, flags)?;
    let mut found = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    match (with, found.take()) {
        ([WITH_SOCKET], Some(socket)) => Ok(socket),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Option<Socket> {
        Socket::of(&Address::Tcp(address.parse().expect("an address")))
    }

    #[test]
    fn a_socket_and_a_line_go_from_one_end_to_the_other() {
        let (one, other) = UnixStream::pair().expect("two ends");
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = port.local_addr().expect("bound");
        say(&one, "a line").expect("said");
        send(&one, &port.into()).expect("sent");
        say(&one, "another").expect("said");
        let by = Instant::now() + std::time::Duration::from_secs(60);
        assert_eq!(hear(&other, by).expect("heard"), "a line");
        let received = std::net::TcpListener::from(receive(&other, by).expect("received"));
        assert_eq!(received.local_addr().expect("bound"), address);
        assert!(expect(&other, "something else", by).is_err());
        assert_eq!(check(&other, None).expect("our own").pid as u32, std::process::id());
        assert!(is_there(&one));
        drop(other);
        assert!(!is_there(&one));
    }

    #[test]
    fn a_line_that_trickles_has_one_deadline() {
        let (mut one, other) = UnixStream::pair().expect("two ends");
        let trickles = std::thread::spawn(move || {
            while one.write_all(b"x").is_ok() {
                std::thread::park_timeout(std::time::Duration::from_millis(1));
            }
        });
        let by = Instant::now() + std::time::Duration::from_millis(50);
        assert!(hear(&other, by).is_err());
        drop(other);
        trickles.join().expect("it ran");
    }

    #[test]
    fn only_the_own_user_root_and_the_next_user_are_peers() {
        let checked = |uid, own, also| Peer { pid: 1, uid }.checked(own, also).is_ok();
        assert!(checked(7, 7, None) && checked(0, 7, None) && checked(7, 0, Some(7)));
        assert!(!checked(8, 7, None) && !checked(8, 0, Some(7)) && !checked(8, 0, None));
    }

    #[test]
    fn a_missing_socket_is_none_and_a_name_has_one_owner() {
        // No server of another test is there.
        let name = format!("127.77.77.77:{}", 1 + std::process::id() % 65_000);
        let socket = at(&name).expect("a name");
        assert!(socket.connect().expect("nobody").is_none());
        let _listening = socket.listen().expect("it is free");
        assert!(socket.listen().is_err());
        assert!(socket.connect().expect("somebody").is_some());
        assert!(at("127.0.0.1:0").is_none());
    }
}
