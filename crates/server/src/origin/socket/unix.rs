//! A Unix socket to a responder, for requests that are written at once and then waited for.
//!
//! Connecting never waits: the other side takes the connection into its queue, or refuses it. What is written
//! nearly always fits into the socket's buffer. So the runtime is asked to watch for what comes, and for
//! nothing else; tokio's own sockets are watched for room as well, and each connection begins with a wait
//! until there is some, which is another turn of the loop, and a moment in which the responder's worker is
//! there already and has nothing to read. Where there is no room, a second descriptor of the same socket is
//! watched for it, from then on.

use crate::watched::watched;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{Interest, ReadBuf};

/// What is read at a time at most.
const READ_BYTES: usize = 16 << 10;

/// A connected Unix socket.
pub struct UnixSocket {
    /// Watched for what comes.
    reading: AsyncFd<UnixStream>,
    /// Watched for room, once there was none.
    writing: Option<AsyncFd<UnixStream>>,
}

impl UnixSocket {
    /// Connects.
    ///
    /// # Errors
    /// As the system says; `WouldBlock` where the queue of the other side is full.
    pub fn connect(path: &Path) -> io::Result<UnixSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let reading = watched(UnixStream::from(socket), Interest::READABLE)?;
        Ok(UnixSocket { reading, writing: None })
    }

    /// Whether the other side has closed, or sent something nobody asked for.
    pub fn is_spent(&self) -> bool {
        let tried = self.reading.try_io(Interest::READABLE, |mut stream| stream.read(&mut [0; 1]));
        !matches!(tried, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// As `AsyncRead` has it.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let room = buffer.remaining().min(READ_BYTES);
        loop {
            let mut ready = ready!(self.reading.poll_read_ready(cx))?;
            match rustix::io::read(self.reading.get_ref(), &mut piece[..room]) {
                Ok((read, _)) => {
                    // There was no more: the next look need not be a system call. An end stays ready.
                    if !read.is_empty() && read.len() < room {
                        ready.clear_ready();
                    }
                    buffer.put_slice(read);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// As `AsyncWrite` has it.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |mut stream| stream.write(bytes))
    }

    /// As `AsyncWrite` has it.
    pub fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_written(cx, |mut stream| stream.write_vectored(pieces))
    }

    /// Says that nothing more will be written.
    ///
    /// # Errors
    /// As the system says.
    pub fn shut_down(&self) -> io::Result<()> {
        self.reading.get_ref().shutdown(Shutdown::Write)
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let Some(writing) = &self.writing else {
                match write(self.reading.get_ref()) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let other = self.reading.get_ref().try_clone()?;
                        self.writing = Some(watched(other, Interest::WRITABLE)?);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    written => return Poll::Ready(written),
                }
                continue;
            };
            let mut ready = ready!(writing.poll_write_ready(cx))?;
            match ready.try_io(|writing| write(writing.get_ref())) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) => return Poll::Ready(written),
                // There is no room any more.
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::os::unix::net::UnixListener;

    /// More than a socket holds.
    const MUCH: usize = 4 << 20;

    async fn read(socket: &mut UnixSocket) -> Vec<u8> {
        let mut into = [0; 64];
        let mut buffer = ReadBuf::new(&mut into);
        poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await.unwrap();
        buffer.filled().to_vec()
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
        let (full, is_full) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            is_full.recv().unwrap();
            let mut all = vec![0; MUCH];
            other.read_exact(&mut all).unwrap();
            other.write_all(b"done").unwrap();
            all
        });
        let much: Vec<u8> = (0..MUCH).map(|at| (at % 251) as u8).collect();
        let mut sent = 0;
        while let Poll::Ready(written) =
            poll_fn(|cx| Poll::Ready(socket.poll_write(cx, &much[sent..]))).await
        {
            sent += written.unwrap();
        }
        full.send(()).unwrap();
        while sent < MUCH {
            sent += poll_fn(|cx| socket.poll_write(cx, &much[sent..])).await.unwrap();
        }
        assert!(socket.writing.is_some());
        assert_eq!(read(&mut socket).await, b"done");
        assert_eq!(read(&mut socket).await, b"");
        assert!(socket.is_spent());
        assert!(reader.join().unwrap() == much);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(UnixSocket::connect(&path).is_err());
    }
}
