//! A port of 127.0.0.1 that stays reserved while no process listens on it.
//!
//! A server that is killed and restarted needs its previous port again. In between, the system
//! might assign the port to another process. It might also use it as the local port of a connection
//! attempt to it, which would then be connected to itself. A socket that is bound to the port and
//! never listens prevents both. It does not affect a server that sets `SO_REUSEADDR` (as all do
//! here).

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname};
use rustix::net::{socket_with, sockopt};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A port that is kept until this is dropped.
#[derive(Debug)]
pub struct Port {
    _socket: OwnedFd,
    address: SocketAddr,
}

impl Port {
    /// Takes a free one.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take() -> io::Result<Port> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Port { _socket: socket, address })
    }

    /// The address of the reserved port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A TCP port of 127.0.0.1 on which no process listens, reserved for a server of this process or its children until
/// this process ends.
///
/// # Errors
/// Errors of the system.
pub fn free_port() -> io::Result<u16> {
    let port = Port::take()?;
    let number = port.address().port();
    // Where a server is started and stopped again is not known here.
    std::mem::forget(port);
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn can_be_listened_on_again_and_again_and_refuses_between() {
        let port = Port::take().expect("a port");
        for _ in 0..3 {
            // A connection whose own port is drawn to be the same one connects to itself, without a listener.
            assert!(Address::from(port.address()).closes());
            let listener = TcpListener::bind(port.address()).expect("nobody else has it");
            let client = TcpStream::connect(port.address()).expect("somebody listens");
            let (served, _) = listener.accept().expect("somebody has called");
            drop((listener, served, client));
        }
    }

    #[test]
    fn a_free_port_accepts_nothing_and_is_given_once() {
        let ports: Vec<u16> = (0..50).map(|_| free_port().expect("a port")).collect();
        for port in &ports {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            assert!(!Address::from(address).accepts());
            assert_eq!(ports.iter().filter(|other| *other == port).count(), 1);
        }
    }
}
