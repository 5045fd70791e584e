//! A client's socket: the system's own until something has to be waited for, the runtime's from then on.
//!
//! Who wants one answer has sent its request by the time that it is accepted, as a rule, and the answer fits into
//! the socket's buffer. Nothing is waited for then: the runtime is not told to watch the socket, nor not to watch
//! it any more, which would be a system call each, and a turn of its loop before the first byte is read.
//!
//! Nobody waits for a socket of the system's: the first read or write that finds nothing makes it the runtime's,
//! and waits there. It never goes back.

use crate::unix_socket::UnixSocket;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;

/// What is read at a time at most, of a socket of the system's.
const READ_BYTES: usize = 8 << 10;

/// A socket that does not block.
pub trait Bare: Write + AsFd + Unpin + Sized {
    /// The runtime's of it.
    type Watched: AsyncRead + AsyncWrite + Unpin;

    /// Has the runtime watch it.
    ///
    /// # Errors
    /// As the system says.
    fn watch(self) -> io::Result<Self::Watched>;
}

impl Bare for std::net::TcpStream {
    type Watched = tokio::net::TcpStream;

    fn watch(self) -> io::Result<Self::Watched> {
        tokio::net::TcpStream::from_std(self)
    }
}

impl Bare for std::os::unix::net::UnixStream {
    type Watched = UnixSocket;

    fn watch(self) -> io::Result<Self::Watched> {
        UnixSocket::new(self)
    }
}

/// A client's socket.
pub struct Socket<S: Bare>(Held<S>);

enum Held<S: Bare> {
    /// None while it changes hands, and where that has failed.
    Bare(Option<S>),
    Watched(S::Watched),
}

impl<S: Bare> Socket<S> {
    /// Of one that does not block.
    pub fn new(socket: S) -> Socket<S> {
        Socket(Held::Bare(Some(socket)))
    }

    /// What `act` does with a socket of the system's; `None` where the runtime's is to be waited for. Who never has
    /// to wait gives way to others nevertheless, as with the runtime's.
    fn poll_at_once<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut act: impl FnMut(&mut S) -> io::Result<T>,
    ) -> Poll<Option<io::Result<T>>> {
        let Held::Bare(bare) = &mut self.0 else { return Poll::Ready(None) };
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
            Ok(watched) => self.0 = Held::Watched(watched),
            Err(error) => return Poll::Ready(Some(Err(error))),
        }
        Poll::Ready(None)
    }

    /// The runtime's socket.
    fn watched(&mut self) -> io::Result<Pin<&mut S::Watched>> {
        match &mut self.0 {
            Held::Watched(socket) => Ok(Pin::new(socket)),
            Held::Bare(_) => Err(gone()),
        }
    }
}

/// The runtime could not be had to watch it.
fn gone() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// Reads what has come, as much as there is room for.
fn read(socket: &impl AsFd, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
    let mut piece = [MaybeUninit::<u8>::uninit(); READ_BYTES];
    let room = buffer.remaining().min(READ_BYTES);
    let (read, _) = rustix::io::read(socket, &mut piece[..room])?;
    buffer.put_slice(read);
    Ok(())
}

/// Says that nothing more will be written. Who has left already need not be told, as with the runtime's sockets.
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
        // Nothing is held back here, nor by the runtime's.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Held::Bare(Some(socket)) => Poll::Ready(shut_down(socket)),
            Held::Bare(None) => Poll::Ready(Ok(())),
            Held::Watched(socket) => Pin::new(socket).poll_shutdown(cx),
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
        matches!(socket.0, Held::Watched(_))
    }

    #[tokio::test]
    async fn who_need_not_wait_is_not_watched() {
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
    async fn what_is_not_there_yet_is_waited_for() {
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
    async fn who_never_has_to_wait_gives_way() {
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
