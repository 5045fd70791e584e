//! The transport of a client's connection: TCP or a Unix socket, with TLS or without. One type, so
//! that everything above it is compiled once: the front, hyper's HTTP/1 and h2. A read or write costs
//! one branch more than it would with a type for each transport.

use sockets::accept::Socket;
use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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

/// Calls a method of the transport, whichever it is.
macro_rules! transport {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            ClientStream::Tcp($inner) => $call,
            ClientStream::Unix($inner) => $call,
            ClientStream::Tls($inner) => $call,
        }
    };
}

impl AsyncRead for ClientStream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        transport!(self.get_mut(), io => Pin::new(io).poll_read(cx, buffer))
    }
}

impl AsyncWrite for ClientStream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        transport!(self.get_mut(), io => Pin::new(io).poll_write(cx, bytes))
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        transport!(self.get_mut(), io => Pin::new(io).poll_write_vectored(cx, pieces))
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        transport!(self, io => io.is_write_vectored())
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        transport!(self.get_mut(), io => Pin::new(io).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        transport!(self.get_mut(), io => Pin::new(io).poll_shutdown(cx))
    }
}
