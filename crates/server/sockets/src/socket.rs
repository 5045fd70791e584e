//! A connection to a FastCGI responder, over TCP or a Unix socket, as one type. It can detect whether
//! the responder has closed the connection while it was idle. That is checked before a kept-alive
//! connection is reused.
//!
//! All I/O is non-blocking.

use crate::UnixSocket;
use config::Address;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connected socket to a FastCGI responder.
pub enum Socket {
    /// A TCP socket, with TCP_NODELAY.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixSocket),
}

impl Socket {
    /// Connects to a responder.
    ///
    /// # Errors
    /// The error from the system.
    pub async fn connect(address: &Address) -> io::Result<Socket> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Address::Unix(path) => UnixSocket::connect(path).map(Socket::Unix),
        }
    }

    /// Whether the peer has closed the connection, or sent data without a request.
    pub fn is_spent(&self) -> bool {
        match self {
            Socket::Tcp(stream) => {
                let tried = stream.try_read(&mut [0u8; 1]);
                !matches!(tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
            }
            Socket::Unix(socket) => socket.is_spent(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Unix(socket) => Pin::new(socket).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Unix(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, pieces),
            Socket::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
