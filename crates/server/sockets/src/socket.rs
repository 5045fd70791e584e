//! A connection to a FastCGI responder, over TCP or a Unix socket, as one type. It can detect whether
//! the responder has closed the connection while it was idle. That is checked before a kept-alive
//! connection is reused.
//!
//! All I/O is non-blocking.

use crate::unread::is_all_read;
use config::Address;
use std::io;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// A connected socket to a FastCGI responder.
pub enum Socket {
    /// A TCP socket, with TCP_NODELAY.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
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
            Address::Unix(path) => UnixStream::connect(path).await.map(Socket::Unix),
        }
    }

    /// Whether the peer has closed the connection, or sent data without a request.
    pub fn is_spent(&self) -> bool {
        let tried = match self {
            Socket::Tcp(stream) => stream.try_read(&mut [0; 1]),
            Socket::Unix(stream) => stream.try_read(&mut [0; 1]),
        };
        !matches!(tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Writes a few bytes, if that is possible at once. Returns false if not all were written.
    pub fn write_now(&self, bytes: &[u8]) -> bool {
        let written = match self {
            Socket::Tcp(stream) => stream.try_write(bytes),
            Socket::Unix(stream) => stream.try_write(bytes),
        };
        matches!(written, Ok(count) if count == bytes.len())
    }

    /// Whether the peer can be seen to read: not over TCP, where its kernel acknowledges for it.
    pub fn shows_reading(&self) -> bool {
        matches!(self, Socket::Unix(_))
    }

    /// Whether the peer has read everything, or closed the connection.
    pub fn is_all_read(&self) -> bool {
        match self {
            Socket::Tcp(_) => true,
            // An error belongs to the socket, and is found when it is used.
            Socket::Unix(stream) => is_all_read(stream).unwrap_or(true),
        }
    }

    /// Waits until the peer has read everything, or closed the connection.
    pub async fn all_read(&self) {
        let Socket::Unix(stream) = self else { return };
        let look =
            || if self.is_all_read() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) };
        // The kernel reports a socket as writable whenever its peer has read.
        let _ = stream.async_io(Interest::WRITABLE, look).await;
    }
}

one_of_transports!(Socket: Tcp, Unix);

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

    /// More than a socket's buffer holds.
    const MUCH: usize = 4 << 20;

    /// Writes until the buffer is full. Returns how many bytes were written.
    async fn fill(socket: &mut (impl AsyncWrite + Unpin), much: &[u8]) -> usize {
        let mut sent = 0;
        let mut once = |cx: &mut Context<'_>| {
            while let Poll::Ready(written) = Pin::new(&mut *socket).poll_write(cx, &much[sent..]) {
                sent += written.expect("written");
            }
            Poll::Ready(())
        };
        poll_fn(&mut once).await;
        sent
    }

    #[tokio::test]
    async fn a_write_waits_for_room_and_an_end_is_noticed() {
        let dir = std::env::temp_dir().join(format!("pagewell-unix-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let address = Address::Unix(path);
        let mut socket = Socket::connect(&address).await.unwrap();
        let (mut other, _) = listener.accept().unwrap();
        assert!(!socket.is_spent());
        let much: Vec<u8> = (0..MUCH).map(|at| (at % 251) as u8).collect();
        let sent = fill(&mut socket, &much).await;
        assert!(sent < MUCH);
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; MUCH];
            other.read_exact(&mut all).unwrap();
            other.write_all(b"done").unwrap();
            all
        });
        socket.write_all(&much[sent..]).await.unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "done");
        assert!(socket.is_spent());
        assert!(reader.join().unwrap() == much);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(Socket::connect(&address).await.is_err());
    }

    #[tokio::test]
    async fn a_reader_is_woken_while_a_writer_waits_for_room() {
        let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let socket = Socket::Unix(UnixStream::from_std(ours).unwrap());
        let (mut reading, mut writing) = tokio::io::split(socket);
        let read = tokio::spawn(async move {
            let mut came = [0; 4];
            reading.read_exact(&mut came).await.map(|_| came)
        });
        tokio::task::yield_now().await;
        assert!(fill(&mut writing, &vec![b'x'; MUCH]).await < MUCH);
        theirs.write_all(b"said").unwrap();
        assert_eq!(&read.await.unwrap().unwrap(), b"said");
    }
}
