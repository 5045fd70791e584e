//! The layer between a client's socket and hyper's HTTP/2. It answers plain hits in frames of its own,
//! which it inserts between hyper's frames; hyper does not know of them.
//!
//! To hyper, this layer is the socket. When hyper reads, the front first reads what has arrived
//! (`reader`), and hyper gets the rest. When hyper writes, the front tracks the ends of frames (`sent`)
//! and inserts its own there. At [`WAITING_BYTES_MAX`] of unsent responses it stops reading until the
//! client has taken all of them. So a client that does not read cannot send more requests. hyper then
//! runs before further requests are read, so that its ping responses and other streams are not delayed.

use super::Activity;
use super::answers::Answers;
use super::frame::{ErrorCode, kind, write_goaway, write_number};
use super::output_position::OutputPosition;
use super::reader::{LeftRequest, Reader, Step};
use super::windows::Windows;
use delivery::send_backlog::HeldBytes;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum size of the responses that wait for the client, in bytes; above it, nothing more is read.
const WAITING_BYTES_MAX: usize = 64 << 10;
/// Maximum buffer capacity that is retained for the next responses, in bytes.
const KEPT_BYTES: usize = 16 << 10;
/// Maximum size of one read, in bytes.
const READ_BYTES: usize = 8 << 10;

/// A client's connection, as hyper uses it.
pub struct Front<IO> {
    io: IO,
    reader: Reader,
    sent: OutputPosition,
    windows: Windows,
    /// Answers plain hits; `None` if hyper has to answer every request.
    answers: Option<Answers>,
    /// Frames that wait to be written, and how many bytes of them have been.
    waiting: Vec<u8>,
    written: usize,
    /// Whether written bytes may still have to be flushed.
    unflushed: bool,
    /// The error with which the connection ends, after the waiting frames.
    given_up: Option<ErrorCode>,
    activity: Arc<Activity>,
    /// The waiting frames' share of the send backlog.
    held: Option<HeldBytes>,
    /// Streams that hyper has been asked to drop, and that are to be reset for the client.
    resets: Vec<u32>,
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Front<IO> {
    /// A front for the connection `io`. `reader` parses what is read from it.
    pub fn new(
        io: IO,
        reader: Reader,
        answers: Option<Answers>,
        activity: Arc<Activity>,
    ) -> Front<IO> {
        Front {
            io,
            reader,
            sent: OutputPosition::default(),
            windows: Windows::default(),
            answers,
            waiting: Vec::new(),
            written: 0,
            unflushed: false,
            given_up: None,
            activity,
            held: None,
            resets: Vec::new(),
        }
    }

    /// Processes the next frame that has arrived.
    fn step(&mut self) -> Result<Step, ErrorCode> {
        let Front { reader, windows, waiting, activity, .. } = self;
        // Nothing may be sent before the server's settings. After GOAWAY, hyper decides about each
        // request.
        let is_ending = self.sent.goes || activity.goes.load(Ordering::Relaxed);
        let may_answer = self.sent.greeted && !is_ending && !self.sent.is_in_head();
        reader.acknowledged(self.sent.acknowledged);
        let answers = self.answers.as_mut().filter(|_| may_answer);
        reader.step(windows, |request| {
            let answers = answers.ok_or(LeftRequest::default())?;
            let sent = answers.answer(&request, waiting)?;
            activity.answered();
            Ok(sent)
        })
    }

    fn give_up(&mut self, error: ErrorCode) {
        if error == ErrorCode::EnhanceYourCalm {
            self.activity.calmed.store(true, Ordering::Relaxed);
        }
        // GOAWAY must not increase the last stream identifier (RFC 9113 section 6.8).
        if !self.sent.goes {
            write_goaway(self.reader.last(), error, &mut self.waiting);
        }
        self.given_up = Some(error);
    }

    /// Writes the waiting frames, if hyper is between two frames. Otherwise hyper has more to write,
    /// and waits for the socket itself.
    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.poll_write_waiting(cx);
        let waits = !self.waiting.is_empty();
        if waits || self.held.is_some() {
            self.count_waiting(waits);
        }
        polled
    }

    /// Updates the waiting frames' share of the send backlog.
    #[cold]
    fn count_waiting(&mut self, waits: bool) {
        if waits {
            let client = &self.activity.client;
            self.held.get_or_insert_with(|| HeldBytes::of(client)).set(self.waiting.len());
        } else {
            self.held = None;
        }
        self.activity.front_waits(waits);
    }

    /// Passes resets of slow streams to hyper, unless that would interrupt a frame.
    #[cold]
    fn take_resets(&mut self) {
        if self.reader.is_between() {
            for stream in self.reader.streams().take_resets() {
                self.reader.reset(stream);
                self.resets.push(stream);
            }
        }
    }

    /// Sends the resets to the client. hyper has written all frames of these streams by now.
    #[cold]
    fn send_resets(&mut self) {
        for stream in std::mem::take(&mut self.resets) {
            let cancel = ErrorCode::Cancel as u32;
            write_number(kind::RST_STREAM, stream, cancel, &mut self.waiting);
        }
    }

    fn poll_write_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            if !self.sent.is_between() {
                return Poll::Pending;
            }
            let left = &self.waiting[self.written..];
            let count = ready!(Pin::new(&mut self.io).poll_write(cx, left))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.count(count);
            self.unflushed = true;
            self.written += count;
            if self.written == self.waiting.len() {
                self.waiting.clear();
                self.waiting.shrink_to(KEPT_BYTES);
                self.written = 0;
            }
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Tracks `bytes`, which hyper has just written.
    fn wrote(&mut self, cx: &Context<'_>, bytes: &[u8]) {
        let payload = self.sent.wrote(bytes, &mut self.windows, self.reader.streams());
        self.count(payload);
        // hyper gets a larger window at its next read.
        if self.windows.is_low() {
            cx.waker().wake_by_ref();
        }
    }

    /// Records that the client has taken `payload` bytes of content.
    fn count(&self, payload: usize) {
        self.activity.client.took(payload);
    }

    /// Reads from the socket. Returns the number of bytes; 0 if the client has closed its side.
    fn poll_arrive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut piece = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let mut buffer = ReadBuf::uninit(&mut piece);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        self.reader.arrive(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// How many bytes hyper may write now: all, or only the rest of the current frame if frames of the
    /// front wait.
    fn may_write(&self) -> usize {
        if self.waiting.is_empty() { usize::MAX } else { self.sent.rest() }
    }

    fn poll_before_writing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.waiting.is_empty() && self.sent.is_between() {
            self.poll_waiting(cx)
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for Front<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        if front.reader.streams().has_resets() {
            front.take_resets();
        }
        loop {
            if front.reader.hand_on(out.remaining(), |bytes| out.put_slice(bytes)) > 0 {
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = front.given_up {
                ready!(front.poll_waiting(cx))?;
                // Errors do not matter: the client may be gone.
                let _ = ready!(Pin::new(&mut front.io).poll_shutdown(cx));
                let said = format!("the client was given up: {error:?}");
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, said)));
            }
            if front.waiting.len() >= WAITING_BYTES_MAX {
                ready!(front.poll_waiting(cx))?;
                // hyper writes when there is nothing to read, and then polls this again.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if front.reader.lend(&mut front.windows) {
                continue;
            }
            match front.step() {
                Ok(Step::On) => continue,
                Ok(Step::Starved) => {}
                Err(error) => {
                    front.give_up(error);
                    continue;
                }
            }
            match front.poll_arrive(cx) {
                Poll::Ready(Ok(0)) => {
                    ready!(front.poll_waiting(cx))?;
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if let Poll::Ready(Err(error)) = front.poll_waiting(cx) {
                        return Poll::Ready(Err(error));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Front<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let front = self.get_mut();
        ready!(front.poll_before_writing(cx))?;
        let bytes = &bytes[..bytes.len().min(front.may_write())];
        let count = ready!(Pin::new(&mut front.io).poll_write(cx, bytes))?;
        front.wrote(cx, &bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let front = self.get_mut();
        ready!(front.poll_before_writing(cx))?;
        if !front.waiting.is_empty() {
            let first = pieces.iter().find(|piece| !piece.is_empty());
            return Pin::new(front).poll_write(cx, first.map_or(&[], |piece| piece));
        }
        let count = ready!(Pin::new(&mut front.io).poll_write_vectored(cx, pieces))?;
        let mut left = count;
        for piece in pieces {
            let bytes = &piece[..piece.len().min(left)];
            left -= bytes.len();
            front.wrote(cx, bytes);
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        if !front.resets.is_empty() && front.reader.has_handed_all() {
            front.send_resets();
        }
        ready!(front.poll_before_writing(cx))?;
        Pin::new(&mut front.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        ready!(front.poll_before_writing(cx))?;
        Pin::new(&mut front.io).poll_shutdown(cx)
    }
}
