//! The transport of a client's connection: TCP or a Unix socket, with TLS or without. One type, so
//! that everything above it is compiled once: the front, hyper's HTTP/1 and h2. A read or write costs
//! one branch more than it would with a type for each transport.

use sockets::accept::Socket;
use sockets::one_of_transports;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use tokio_rustls::server::TlsStream;

/// The connection of a client.
pub enum ClientStream {
    /// A TCP connection without TLS.
    Tcp(Socket<TcpStream>),
    /// A connection to a Unix socket without TLS.
    Unix(Socket<UnixStream>),
    /// TLS over one of the others. Boxed, because the state of TLS is large.
    Tls(Box<TlsStream<ClientStream>>),
}

one_of_transports!(ClientStream: Tcp, Unix, Tls);
