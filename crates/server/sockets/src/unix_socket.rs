//! Unix sockets for clients and FastCGI responders, registered with the runtime for reading only.
//!
//! A write nearly always fits into the socket's buffer. The runtime's own sockets are registered for
//! writing as well. Then connecting begins with a wait for writability. Also, unlike for TCP, each read
//! by the peer causes a writability event, which costs time on both sides. If a write does not fit, the
//! socket is registered for writing, too, from then on.

use crate::watched::watched;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::task::coop;

/// Maximum size of one read, in bytes.
const READ_BYTES: usize = 16 << 10;

/// A connected, non-blocking Unix socket.
pub struct UnixSocket {
    /// `None` after the registration has failed.
    watched: Option<AsyncFd<UnixStream>>,
    /// Whether the socket is registered for writing, because a write did not fit once.
    for_room: bool,
    /// The task that waits for data, to be woken when the socket is registered again. Cleared when the
    /// wait ends, because the waker keeps the task in memory.
    reader: Option<Waker>,
}

impl UnixSocket {
    /// Connects to a listening socket. Completes at once: the connection is queued or refused.
    ///
    /// # Errors
    /// The error from the system; `WouldBlock` if the peer's queue is full.
    pub fn connect(path: &Path) -> io::Result<UnixSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        UnixSocket::new(socket.into())
    }

    /// Registers a socket, which must be non-blocking.
    ///
    /// # Errors
    /// The error from the registration.
    pub fn new(socket: UnixStream) -> io::Result<UnixSocket> {
        let watched = Some(watched(socket, Interest::READABLE)?);
        Ok(UnixSocket { watched, for_room: false, reader: None })
    }

    /// Whether the peer has closed the connection, or sent data without a request.
    pub fn is_spent(&self) -> bool {
        let tried = self.watched().and_then(|watched| {
            watched.try_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 1]))
        });
        !matches!(tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn watched(&self) -> io::Result<&AsyncFd<UnixStream>> {
        self.watched.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Registers the socket for writing as well.
    fn watch_for_room(&mut self) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let socket = self.watched.take().map(AsyncFd::into_inner);
        let watched = socket.map(|socket| watched(socket, both)).transpose();
        // The reader's registration was lost, so it has to poll again.
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
        self.watched = watched?;
        self.for_room = true;
        Ok(())
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while !self.for_room {
            // Uses the task's tokio budget, although the socket does not wait.
            let turn = ready!(coop::poll_proceed(cx));
            match write(self.watched()?.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.watch_for_room()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => {
                    turn.made_progress();
                    return Poll::Ready(written);
                }
            }
        }
        let watched = self.watched()?;
        loop {
            let mut ready = ready!(watched.poll_write_ready(cx))?;
            match ready.try_io(|watched| write(watched.get_ref())) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) => return Poll::Ready(written),
                // The buffer is full.
                Err(_) => {}
            }
        }
    }

    /// Remembers the current task as the one that waits for data.
    fn remember(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }
}

impl AsyncRead for UnixSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut piece = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let room = buffer.remaining().min(READ_BYTES);
        loop {
            let watched = this.watched()?;
            let Poll::Ready(ready) = watched.poll_read_ready(cx) else {
                this.remember(cx);
                return Poll::Pending;
            };
            let mut ready = ready?;
            match rustix::io::read(watched.get_ref(), &mut piece[..room]) {
                Ok((read, _)) => {
                    // All available data was read, so the next read can skip the system call. The end
                    // of the stream stays ready.
                    if !read.is_empty() && read.len() < room {
                        ready.clear_ready();
                    }
                    buffer.put_slice(read);
                    this.reader = None;
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl AsyncWrite for UnixSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_written(cx, |mut stream| stream.write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_written(cx, |mut stream| stream.write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Shuts down the write direction.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.watched()?.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::os::unix::net::UnixListener;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    async fn what_has_no_room_waits_for_it_and_an_end_is_seen() {
        let dir = std::env::temp_dir().join(format!("pagewell-unix-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let mut socket = UnixSocket::connect(&path).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        assert!(!socket.is_spent());
        let much: Vec<u8> = (0..MUCH).map(|at| (at % 251) as u8).collect();
        let sent = fill(&mut socket, &much).await;
        assert!(socket.for_room && sent < MUCH);
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
        assert!(UnixSocket::connect(&path).is_err());
    }

    #[tokio::test]
    async fn who_waits_for_bytes_hears_of_them_while_another_waits_for_room() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (mut reading, mut writing) = tokio::io::split(UnixSocket::new(ours).unwrap());
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
