//! The address of a server, a TCP address or a Unix socket, as text and as a connection.
//!
//! Addresses are numeric; no name is ever resolved. Every connect, read and write has a timeout.

use crate::Deadline;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The address on which a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A TCP address: `127.0.0.1:8080`.
    Tcp(SocketAddr),
    /// A Unix socket: `unix:/path`.
    Unix(PathBuf),
}

impl Address {
    /// Connects. The connect, and later each read and write, may take at most `within`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn connect(&self, within: Duration) -> io::Result<Stream> {
        match self {
            Address::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, within)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(within))?;
                stream.set_write_timeout(Some(within))?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(within))?;
                stream.set_write_timeout(Some(within))?;
                Ok(Stream::Unix(stream))
            }
        }
    }

    /// Whether a connection to this address is accepted now.
    #[must_use]
    pub fn accepts(&self) -> bool {
        self.connect(Duration::from_secs(1)).is_ok()
    }

    /// Whether a listener that was closed is gone within a minute. Between fork and exec, a process that
    /// another thread starts holds a copy of every descriptor, which keeps the listener open.
    #[must_use]
    pub fn closes(&self) -> bool {
        let closed = || (!self.accepts()).then_some(());
        Deadline::after(Duration::from_secs(60)).poll(Duration::from_millis(5), closed).is_some()
    }

    /// The TCP port; `None` for a Unix socket.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Address::Tcp(address) => Some(address.port()),
            Address::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// Parses `host:port`, `http://host:port`, `unix:/path` and `http+unix:/path`.
    fn from_str(text: &str) -> Result<Address, String> {
        let text = text.trim();
        let bare = ["http://", "http+"].iter().find_map(|start| text.strip_prefix(start));
        let bare = bare.unwrap_or(text).trim_end_matches('/');
        if let Some(path) = bare.strip_prefix("unix:") {
            return Ok(Address::Unix(PathBuf::from(path)));
        }
        bare.parse().map(Address::Tcp).map_err(|error| format!("{text}: {error}"))
    }
}

/// A connection to an [`Address`].
#[derive(Debug)]
pub enum Stream {
    /// A TCP connection, with Nagle's algorithm off.
    Tcp(TcpStream),
    /// A Unix socket connection.
    Unix(UnixStream),
}

impl Stream {
    /// Sets the timeout of each read.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn set_read_timeout(&self, within: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(within),
            Stream::Unix(stream) => stream.set_read_timeout(within),
        }
    }

    /// Sets the timeout of each write.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn set_write_timeout(&self, within: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(within),
            Stream::Unix(stream) => stream.set_write_timeout(within),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_servers_print_them() {
        let tcp: Address = "http://127.0.0.1:8080/".parse().expect("an address");
        assert_eq!(tcp.port(), Some(8080));
        assert_eq!(tcp, "127.0.0.1:8080".parse().expect("an address"));
        let unix: Address = "unix:/tmp/a.sock".parse().expect("an address");
        assert_eq!(unix.to_string(), "unix:/tmp/a.sock");
        assert!("localhost".parse::<Address>().is_err());
    }
}
