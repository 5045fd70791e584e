//! Unix sockets of the runtime, of visitors and of responders, for what is written at once and then waited for.
//!
//! What is written nearly always fits into the socket's buffer. So the runtime is asked to watch for what comes, and
//! for nothing else. Its own sockets are watched for room as well: one that connects begins with a wait until there
//! is some, and, unlike one of TCP, it is told so each time that its other end has read something, which costs both
//! ends. Where there is no room, the same socket is watched for it too, from then on.

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

/// What is read at a time at most.
const READ_BYTES: usize = 16 << 10;

/// A connected Unix socket that does not block.
pub struct UnixSocket {
    /// None once the runtime would not watch it any more.
    watched: Option<AsyncFd<UnixStream>>,
    /// Whether it is watched for room, since once there was none.
    for_room: bool,
    /// Who waits for what comes: he is told when it is watched anew. Not kept for longer than he waits, for a task
    /// is as large as its future.
    reader: Option<Waker>,
}

impl UnixSocket {
    /// Connects: the other side takes a connection into its queue, or refuses it, at once.
    ///
    /// # Errors
    /// As the system says; `WouldBlock` where the queue of the other side is full.
    pub fn connect(path: &Path) -> io::Result<UnixSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        UnixSocket::new(socket.into())
    }

    /// Of one that does not block.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(socket: UnixStream) -> io::Result<UnixSocket> {
        let watched = Some(watched(socket, Interest::READABLE)?);
        Ok(UnixSocket { watched, for_room: false, reader: None })
    }

    /// Whether the other side has closed, or sent something nobody asked for.
    pub fn is_spent(&self) -> bool {
        let tried = self.watched().and_then(|watched| {
            watched.try_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 1]))
        });
        !matches!(tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    fn watched(&self) -> io::Result<&AsyncFd<UnixStream>> {
        self.watched.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Has it watched for room as well.
    fn watch_for_room(&mut self) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        let socket = self.watched.take().map(AsyncFd::into_inner);
        let watched = socket.map(|socket| watched(socket, both)).transpose();
        // What he has asked the runtime for went with what is watched no more.
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
            // Who always finds room gives way to others nevertheless.
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
                // There is no room any more.
                Err(_) => {}
            }
        }
    }

    /// Whoever is waiting now waits for what comes.
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
                    // There was no more: the next look need not be a system call. An end stays ready.
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

    /// Says that nothing more will be written.
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

    /// More than a socket holds.
    const MUCH: usize = 4 << 20;

    /// Fills the socket until there is no room, and says how much it took.
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
