//! A client that closes its sending direction while its request is in progress. It may wait for the response
//! (RFC 9112 section 9.6), or it has left: both send the same, a FIN, and over TLS a close_notify before it. So
//! hyper does not learn of this end until `half_closed_timeout` has passed since the socket took a part of the
//! response. A client that has left answers such a part with a reset. A reset, and over TLS an end without a
//! close_notify, is an error of the socket and ends the request at once.
//!
//! | the request | at the end of what the client sends |
//! |---|---|
//! | is in progress, its content complete or absent | waits for the response, as above |
//! | has chunked content that ends with an empty line | the same: it may be complete, only hyper knows |
//! | has content that is not complete | hyper is notified at once, and the request fails |
//! | is answered, all output flushed | the connection ends |

use super::Front;
use crate::deadline::Deadline;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// hyper reads again before it starts the exchange. A client may send a write and close at once, as PHP does if
/// it does not wait: the write must begin.
const AT_LEAST: Duration = Duration::from_millis(1);
/// The end of chunked content: its last chunk and trailers end with an empty line (RFC 9112 section 7.1).
const EMPTY_LINE: [u8; 4] = *b"\r\n\r\n";

/// The state of the client's sending direction, as far as the front knows it.
#[derive(Default)]
pub(super) struct HalfClose {
    /// Whether the client has closed its sending direction while a request was in progress.
    is_seen: bool,
    /// The wait since then, or since the socket took the last part of the response.
    since: Deadline,
    /// The last bytes of chunked content.
    last: [u8; 4],
}

impl HalfClose {
    fn ends_with(&mut self, content: &[u8]) {
        let new = content.len().min(self.last.len());
        self.last.rotate_left(new);
        let kept = self.last.len() - new;
        self.last[kept..].copy_from_slice(&content[content.len() - new..]);
    }
}

impl<IO> Front<IO> {
    /// Records that the socket took a part of a response.
    pub(super) fn half_close_wrote(&mut self) {
        if let Some(half_close) = &mut self.half_close {
            half_close.since.disarm();
        }
    }

    fn half_close(&mut self) -> &mut HalfClose {
        self.half_close.get_or_insert_default()
    }

    fn is_half_closed(&self) -> bool {
        self.half_close.as_ref().is_some_and(|half_close| half_close.is_seen)
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Front<IO> {
    /// While hyper answers: buffers what the client sends, and detects that it has left. Ready with false when
    /// it has.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while !self.is_half_closed() && self.waiting().len() < self.limits.header_bytes {
            if ready!(self.poll_arrive(cx))? == 0 {
                self.half_close().is_seen = true;
            }
        }
        if self.is_half_closed() {
            ready!(self.poll_left(cx));
            return Poll::Ready(Ok(false));
        }
        Poll::Pending
    }

    /// Passes chunked content to hyper. After its end, it detects that the client has left; there is no other
    /// time limit then.
    pub(super) fn poll_through(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_complete = self.half_close().last == EMPTY_LINE;
        let awaits = is_complete && self.in_flight.is_busy(cx.waker());
        if awaits && !self.is_half_closed() {
            self.reading.disarm();
        }
        if !(awaits && self.is_half_closed()) {
            let before = out.filled().len();
            if ready!(self.poll_content(u64::MAX, cx, out))? > 0 || !awaits {
                self.half_close().ends_with(&out.filled()[before..]);
                return Poll::Ready(Ok(()));
            }
            self.half_close().is_seen = true;
        }
        self.poll_left(cx).map(Ok)
    }

    /// Ready when the client, which sends no more, is assumed to have left. While it has output to take,
    /// `write_timeout` decides.
    fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.writing.is_begun() {
            return Poll::Pending;
        }
        let after = self.limits.half_closed_timeout.max(AT_LEAST);
        self.half_close().since.poll(after, cx)
    }

    /// Begins the wait after a part of the response, if the client sends no more.
    pub(super) fn await_half_closed(&mut self, cx: &mut Context<'_>) {
        if self.is_half_closed() && self.in_flight.is_busy(cx.waker()) {
            let _ = self.poll_left(cx);
        }
    }
}
