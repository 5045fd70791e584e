//! A client's socket. It is a plain non-blocking socket until an operation has to wait, and is
//! registered with the runtime from then on.
//!
//! A client that sends a single request has usually sent it before the connection is accepted, and the
//! response fits into the socket's buffer. Then no operation waits. This saves the system calls for
//! registering and deregistering, and an iteration of the runtime's loop before the first read.
//!
//! Nothing waits on an unregistered socket: the first read or write that would block registers it. It
//! stays registered.

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;

/// Maximum size of one read from an unregistered socket, in bytes.
const READ_BYTES: usize = 8 << 10;

/// A non-blocking socket that is not registered with the runtime.
pub trait Bare: Write + AsFd + Unpin + Sized {
    /// The runtime's type for this socket.
    type Watched: AsyncRead + AsyncWrite + Unpin;

    /// Registers the socket with the runtime.
    ///
    /// # Errors
    /// The error from the registration.
    fn watch(self) -> io::Result<Self::Watched>;
}

impl Bare for std::net::TcpStream {
    type Watched = tokio::net::TcpStream;

    fn watch(self) -> io::Result<Self::Watched> {
        tokio::net::TcpStream::from_std(self)
    }
}

impl Bare for std::os::unix::net::UnixStream {
    type Watched = tokio::net::UnixStream;

    fn watch(self) -> io::Result<Self::Watched> {
        tokio::net::UnixStream::from_std(self)
    }
}

/// A client's socket, registered with the runtime only if needed.
pub struct Socket<S: Bare>(Registration<S>);

enum Registration<S: Bare> {
    /// Not registered. `None` during the registration, and after it has failed.
    Bare(Option<S>),
    Watched(S::Watched),
}

impl<S: Bare> Socket<S> {
    /// Wraps a socket, which must be non-blocking.
    pub fn new(socket: S) -> Socket<S> {
        Socket(Registration::Bare(Some(socket)))
    }

    /// Performs `act` on the unregistered socket. `None` if the runtime's socket has to be used,
    /// because it is or now becomes registered. Uses the task's tokio budget like the runtime's own
    /// sockets.
    fn poll_at_once<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut act: impl FnMut(&mut S) -> io::Result<T>,
    ) -> Poll<Option<io::Result<T>>> {
        let Registration::Bare(bare) = &mut self.0 else { return Poll::Ready(None) };
        let turn = ready!(coop::poll_proceed(cx));
        let Some(socket) = bare else { return Poll::Ready(Some(Err(gone()))) };
        let done = loop {
            match act(socket) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done,
            }
        };
        if !matches!(&done, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            turn.made_progress();
            return Poll::Ready(Some(done));
        }
        match bare.take().ok_or_else(gone).and_then(S::watch) {
            Ok(watched) => self.0 = Registration::Watched(watched),
            Err(error) => return Poll::Ready(Some(Err(error))),
        }
        Poll::Ready(None)
    }

    /// The runtime's socket; an error if the registration failed.
    fn watched(&mut self) -> io::Result<Pin<&mut S::Watched>> {
        match &mut self.0 {
            Registration::Watched(socket) => Ok(Pin::new(socket)),
            Registration::Bare(_) => Err(gone()),
        }
    }
}

/// The error after the registration has failed.
fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// Reads the available bytes, at most as many as `buffer` and [`READ_BYTES`] allow.
fn read(socket: &impl AsFd, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
    let mut piece = [MaybeUninit::<u8>::uninit(); READ_BYTES];
    let room = buffer.remaining().min(READ_BYTES);
    let (read, _) = rustix::io::read(socket, &mut piece[..room])?;
    buffer.put_slice(read);
    Ok(())
}

/// Shuts down the write direction. As with the runtime's sockets, it is no error if the peer has
/// disconnected.
fn shut_down(socket: &impl AsFd) -> io::Result<()> {
    match shutdown(socket, Shutdown::Write) {
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl<S: Bare> AsyncRead for Socket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        match ready!(socket.poll_at_once(cx, |bare| read(bare, buffer))) {
            Some(done) => Poll::Ready(done),
            None => socket.watched()?.poll_read(cx, buffer),
        }
    }
}

impl<S: Bare> AsyncWrite for Socket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        match ready!(socket.poll_at_once(cx, |bare| bare.write(bytes))) {
            Some(done) => Poll::Ready(done),
            None => socket.watched()?.poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = self.get_mut();
        match ready!(socket.poll_at_once(cx, |bare| bare.write_vectored(pieces))) {
            Some(done) => Poll::Ready(done),
            None => socket.watched()?.poll_write_vectored(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Neither state buffers written data.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Registration::Bare(Some(socket)) => Poll::Ready(shut_down(socket)),
            Registration::Bare(None) => Poll::Ready(Ok(())),
            Registration::Watched(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn pair() -> (Socket<UnixStream>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("two sockets");
        ours.set_nonblocking(true).expect("can be set");
        (Socket::new(ours), theirs)
    }

    fn is_watched(socket: &Socket<UnixStream>) -> bool {
        matches!(socket.0, Registration::Watched(_))
    }

    #[tokio::test]
    async fn a_socket_that_is_ready_is_not_registered() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(b"asked").expect("written");
        let mut came = [0; 5];
        ours.read_exact(&mut came).await.expect("read");
        let pieces = [IoSlice::new(b"an"), IoSlice::new(b"swer")];
        assert_eq!(ours.write_vectored(&pieces).await.expect("written"), 6);
        ours.write_all(b"ed").await.expect("written");
        ours.shutdown().await.expect("shut down");
        assert!(!is_watched(&ours));
        let mut answer = String::new();
        theirs.read_to_string(&mut answer).expect("the end");
        assert_eq!((&came, &*answer), (b"asked", "answered"));
        drop(theirs);
        assert_eq!(ours.read(&mut came).await.expect("the end"), 0);
    }

    #[tokio::test]
    async fn a_read_waits_for_bytes_that_have_not_arrived() {
        let (mut ours, theirs) = pair();
        let mut theirs = {
            theirs.set_nonblocking(true).expect("can be set");
            tokio::net::UnixStream::from_std(theirs).expect("within a runtime")
        };
        let asks = async {
            tokio::task::yield_now().await;
            theirs.write_all(b"asked").await.expect("written");
            theirs
        };
        let mut came = [0; 5];
        let (read, theirs) = tokio::join!(ours.read_exact(&mut came), asks);
        assert_eq!((read.expect("read"), &came), (5, b"asked"));
        assert!(is_watched(&ours));
        drop(theirs);
        assert_eq!(ours.read(&mut came).await.expect("the end"), 0);
    }

    #[tokio::test]
    async fn more_than_the_socket_takes_goes_on_when_there_is_room() {
        let (mut ours, mut theirs) = pair();
        let long = vec![b'x'; 4 << 20];
        let reads = std::thread::spawn(move || {
            let mut came = Vec::new();
            theirs.read_to_end(&mut came).map(|_| came.len())
        });
        ours.write_all(&long).await.expect("written");
        ours.shutdown().await.expect("shut down");
        assert_eq!(reads.join().expect("it read").expect("the end"), long.len());
    }

    #[tokio::test]
    async fn a_socket_that_is_always_ready_yields() {
        let (mut ours, mut theirs) = pair();
        theirs.write_all(&[b'x'; 4096]).expect("written");
        let mut turns = 0;
        let others = async {
            loop {
                turns += 1;
                tokio::task::yield_now().await;
            }
        };
        let reads = async {
            let mut byte = [0];
            for _ in 0..4096 {
                ours.read_exact(&mut byte).await.expect("read");
            }
        };
        tokio::select! {
            biased;
            () = reads => {}
            () = others => {}
        }
        assert!(turns > 1, "{turns} turns");
        assert!(!is_watched(&ours));
    }
}
