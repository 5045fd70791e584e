//! The layer between a client's socket and hyper. It parses each header section strictly (see
//! `request_head`), enforces the time limits, and gives hyper one well-formed request at a time.
//!
//! | state | next byte from the client | next state |
//! |---|---|---|
//! | `Head` | belongs to a header section | `Pass` when it is complete, `Hit` for a plain hit, `Refusing` if it is invalid |
//! | `Hit` | is not read; the page is written | `Head`; `Ended` if the client requested that |
//! | `Pass` | belongs to a checked header section, for hyper | `Head`, `Content` or `Through` |
//! | `Content` | belongs to content of a known length | `Head` at its end |
//! | `Through` | belongs to chunked content, bounded by a timeout | the connection ends with it |
//! | `Offered` | is buffered: another protocol if the origin accepts it, else a header section | `Head` |
//! | `Refusing` | is not read; the error is written | `Lingering` |
//! | `Lingering` | is discarded, so that the client can read the error | `Ended` |
//!
//! A header section is parsed only when hyper has no request in progress and has flushed its
//! output; until then bytes are buffered (bounded). hyper writes its output before it reads again,
//! and calls `poll_flush` when all is written. So a plain hit, which bypasses hyper, never
//! overtakes a response, and interim responses go between two messages (see `in_flight`). hyper
//! exists only while it has something to answer (`connection`). Once a client has been idle for
//! [`REST_AFTER`], buffers are freed and `in_flight` tells the connection to drop hyper.

mod bounded;
mod half_closed;
pub mod logged;
mod refusing;

use crate::deadline::Deadline;
use crate::hit::{Hit, HitFinder};
use crate::request_head::{Framing, Inspection, Upgrade, inspect, take_upgrade};
use config::Limits;
use delivery::in_flight::InFlight;
use delivery::send_backlog::BacklogEntry;
use delivery::site::Site;
use forward::upgrade::Slot;
use half_closed::HalfClose;
use logged::Lines;
use origin::Origin;
use origin::pace::Pace;
use reasons::refusal::Refusal;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use telemetry::client::ClientConnection;
use telemetry::limit_hits::Limit;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of bytes discarded after an error was written.
const LINGER_BYTES: usize = 256 << 10;
/// Maximum time for discarding them.
const LINGER: Duration = Duration::from_secs(1);
/// After this idle time, memory that only the next request needs is freed. It is long enough for a
/// page's files, which are requested one after the other.
const REST_AFTER: Duration = Duration::from_secs(1);

/// The event at which hyper is needed or the connection ends.
pub enum Next {
    /// A request for hyper: its header section is read next.
    Request,
    /// The connection has ended.
    Ended,
}

enum State {
    Head,
    Hit(Hit),
    Pass { left: usize, then: Framing, offered: bool },
    Content { left: u64 },
    Through,
    Offered,
    Refusing { answer: Vec<u8>, written: usize },
    Lingering { left: usize },
    Ended,
}

/// Removes one empty line before the request line (RFC 9112 section 2.2).
fn skip_empty_line(arrived: &mut Vec<u8>) {
    if arrived.starts_with(b"\r\n") {
        arrived.drain(..2);
    }
}

/// A client's connection as hyper sees it.
pub struct Front<IO> {
    io: IO,
    state: State,
    /// Received bytes; at most a header section and one read.
    arrived: Vec<u8>,
    /// The number of bytes in `arrived`, from its start, that have been consumed.
    handed: usize,
    in_flight: Arc<InFlight>,
    /// The state of a protocol upgrade.
    slot: Slot,
    limits: Arc<Limits>,
    site: Arc<Site>,
    reading: Deadline,
    writing: Deadline,
    /// Finds plain hits; `None` if hyper answers all requests.
    hits: Option<HitFinder>,
    /// A reusable buffer for a hit's header lines.
    tail: Vec<u8>,
    /// Interim responses that are being written, and the number of bytes written.
    early: (Vec<u8>, usize),
    /// Whether hyper has written since it last flushed.
    unflushed: bool,
    /// Whether a header section waits until hyper has flushed.
    held_up: bool,
    /// The end of what the client sends, while a request is in progress; `None` until hyper has content with an
    /// unknown length or the client has sent its end.
    half_close: Option<Box<HalfClose>>,
    /// Whether the client is idle and the buffers have been freed.
    rested: bool,
    /// The rate at which the client reads pending output.
    pace: Pace,
    /// The backlog entry of a plain hit that the client does not read at once.
    waiting_hit: Option<BacklogEntry>,
    /// The number of requests received.
    requests: usize,
    /// Writes the access log, if there is one.
    lines: Option<Box<Lines>>,
    /// The connection, whose hits are evidence about its client.
    credited: Option<Arc<ClientConnection>>,
}

impl<IO> Front<IO> {
    /// Creates a front for `io`, from which the bytes in `arrived` were read already.
    pub fn new(
        io: IO,
        mut arrived: Vec<u8>,
        site: Arc<Site>,
        in_flight: Arc<InFlight>,
        slot: Slot,
        hits: Option<HitFinder>,
    ) -> Front<IO> {
        let limits = site.limits.clone();
        skip_empty_line(&mut arrived);
        Front {
            io,
            state: State::Head,
            arrived,
            handed: 0,
            in_flight,
            slot,
            limits,
            site,
            reading: Deadline::default(),
            writing: Deadline::default(),
            hits,
            tail: Vec::new(),
            early: (Vec::new(), 0),
            unflushed: false,
            held_up: false,
            half_close: None,
            rested: false,
            pace: Pace::default(),
            waiting_hit: None,
            requests: 0,
            lines: None,
            credited: None,
        }
    }

    /// Returns the connection, and the received bytes that have not been consumed.
    pub fn into_parts(mut self) -> (IO, Vec<u8>) {
        self.arrived.drain(..self.handed);
        (self.io, self.arrived)
    }

    fn waiting(&self) -> &[u8] {
        &self.arrived[self.handed..]
    }

    /// Copies at most `most` received bytes to hyper; returns their number.
    fn hand_on(&mut self, most: usize, out: &mut ReadBuf<'_>) -> usize {
        let count = most.min(self.waiting().len()).min(out.remaining());
        out.put_slice(&self.arrived[self.handed..self.handed + count]);
        self.handed += count;
        if self.handed == self.arrived.len() {
            self.arrived.clear();
            self.handed = 0;
            if self.arrived.capacity() > 64 << 10 {
                self.arrived = Vec::new();
            }
        }
        count
    }

    fn refuse(&mut self, refusal: Refusal) {
        tracing::debug!(event = "request-refused", reason = refusal.as_str());
        self.site.counters.rejected.add();
        self.site.counters.limit_hits.refused(refusal);
        let answer = refusal.answer();
        let head = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        self.log_refusal(refusal, answer.len() - head);
        self.state = State::Refusing { answer, written: 0 };
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Front<IO> {
    /// The number of requests received.
    pub fn requests(&self) -> usize {
        self.requests
    }

    /// Answers plain hits and refuses invalid requests until there is a request for hyper. Call it
    /// only while hyper has no request in progress and no output to flush.
    ///
    /// # Errors
    /// Errors of the socket; a timeout if the client reads nothing for too long.
    pub fn poll_request(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Next>> {
        loop {
            match self.state {
                State::Head => {
                    if !ready!(self.poll_head(cx))? {
                        return Poll::Ready(Ok(Next::Ended));
                    }
                }
                State::Hit(_) => ready!(self.poll_hit(cx))?,
                State::Refusing { .. } => ready!(self.poll_refusing(cx))?,
                State::Lingering { .. } => ready!(self.poll_lingering(cx)),
                State::Ended => return Poll::Ready(Ok(Next::Ended)),
                State::Pass { .. } | State::Content { .. } | State::Through | State::Offered => {
                    return Poll::Ready(Ok(Next::Request));
                }
            }
        }
    }

    /// Reads from the socket into `arrived`; returns 0 when the client has closed its side.
    fn poll_arrive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut piece = [std::mem::MaybeUninit::<u8>::uninit(); 8 << 10];
        let mut buffer = ReadBuf::uninit(&mut piece);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        if self.handed > 0 {
            self.arrived.drain(..self.handed);
            self.handed = 0;
        }
        self.arrived.extend_from_slice(buffer.filled());
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// One step in `Head`: `Ready(true)` when the state has changed, `Ready(false)` at the end.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.in_flight.is_busy(cx.waker()) || self.unflushed {
            self.held_up = self.unflushed;
            return self.poll_gone(cx);
        }
        loop {
            if !self.waiting().is_empty() && self.inspect() {
                return Poll::Ready(Ok(true));
            }
            let idle = self.waiting().is_empty();
            match self.poll_arrive(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(false)),
                Poll::Ready(Ok(_)) if idle => {
                    skip_empty_line(&mut self.arrived);
                    // The first bytes of a request end the idle time; an empty line is none.
                    if !self.waiting().is_empty() {
                        self.reading.disarm();
                        self.rested = false;
                    }
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_head_deadline(cx),
            }
        }
    }

    /// Parses the received header section; returns true if the state has changed.
    fn inspect(&mut self) -> bool {
        // The last response of a connection has `Connection: close`, which a plain hit does not
        // have.
        let is_last = self.requests + 1 >= self.limits.connection_requests;
        let mut unredirected = 0;
        if let (Some(hits), false) = (&mut self.hits, is_last) {
            match hits.find(&self.arrived[self.handed..], std::mem::take(&mut self.tail)) {
                Ok((hit, head_bytes)) => {
                    self.handed += head_bytes;
                    if hit.is_redirect() {
                        self.in_flight.note_redirect();
                    }
                    self.state = State::Hit(hit);
                    self.requests += 1;
                    self.note_hit(head_bytes);
                    self.reading.disarm();
                    return true;
                }
                Err(unanswered) => {
                    self.tail = unanswered.buffer;
                    unredirected = unanswered.unredirected;
                }
            }
        }
        match inspect(self.waiting(), &self.limits) {
            Inspection::Incomplete => return false,
            Inspection::Complete { head_bytes, framing, upgrade } => {
                let (left, offered) = self.take_offer(head_bytes, upgrade);
                self.requests += 1;
                self.in_flight.note_received(self.requests);
                self.in_flight.note_unredirected(unredirected);
                if is_last {
                    self.site.counters.limit_hits.note(Limit::ConnectionRequests);
                    self.in_flight.end();
                }
                self.state = State::Pass { left, then: framing, offered };
            }
            Inspection::Refused(refusal) => self.refuse(refusal),
        }
        self.reading.disarm();
        true
    }

    /// Removes the Upgrade lines, and stores the offered protocols in the slot if a site may use
    /// them. Returns the remaining length in bytes, and whether an offer was stored. hyper sees an
    /// ordinary request, because it would abandon an upgradable connection before the last response
    /// is written.
    fn take_offer(&mut self, head_bytes: usize, upgrade: Upgrade) -> (usize, bool) {
        if upgrade == Upgrade::None {
            return (head_bytes, false);
        }
        let head = self.handed..self.handed + head_bytes;
        let (kept, protocols) = take_upgrade(&self.arrived[head.clone()]);
        let left = kept.len();
        self.arrived.splice(head, kept);
        let switchable = || self.site.all_sites().any(|s| matches!(*s.origin, Origin::Http(_)));
        let offered = upgrade == Upgrade::Possible && !protocols.is_empty() && switchable();
        if offered {
            self.slot.offer(protocols);
        }
        (left, offered)
    }

    /// Writes a plain hit to the client.
    fn poll_hit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_hit(cx).map_err(|error| self.hit_failed(error))
    }

    fn poll_write_hit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let at_once = !self.writing.is_begun();
        while let State::Hit(hit) = &mut self.state {
            match hit.poll_write(&mut self.io, cx) {
                Poll::Ready(Ok(None)) => {
                    self.writing.disarm();
                    if let State::Hit(hit) = std::mem::replace(&mut self.state, State::Head) {
                        // If the hit was written at once, the client has been idle since the
                        // decision.
                        if at_once {
                            self.reading.begin(hit.instant().into());
                        } else {
                            self.waiting_hit = None;
                        }
                        if hit.ends_connection() {
                            self.state = State::Ended;
                        }
                        self.log_hit(&hit, true);
                        self.tail = hit.into_buffer();
                    }
                    break;
                }
                Poll::Ready(Ok(Some(0))) => {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(Some(count))) => {
                    hit.wrote(count);
                    self.keeps_pace(count)?;
                    self.writing.disarm();
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.pace.waits();
                    self.counts_waiting_hit(cx)?;
                    ready!(self.writing.poll(self.limits.write_timeout, cx));
                    self.site.counters.limit_hits.note(Limit::WriteTimeout);
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the buffered interim responses, unless hyper is in the middle of a message.
    fn poll_early(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.early.0.is_empty() {
            if !self.in_flight.has_early() {
                return Poll::Ready(Ok(()));
            }
            self.early = (self.in_flight.take_early(), 0);
        }
        while self.early.1 < self.early.0.len() {
            let left = &self.early.0[self.early.1..];
            let written = Pin::new(&mut self.io).poll_write(cx, left);
            match ready!(self.bound_writing(written, cx))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.early.1 += count,
            }
        }
        self.early = (Vec::new(), 0);
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.bound_writing(flushed, cx)
    }

    /// Writes buffered interim responses before hyper's output. They are dropped if hyper is in the
    /// middle of a 100 (Continue), because the final response may follow it directly.
    fn poll_before_writing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unflushed || !self.early.0.is_empty() {
            ready!(self.poll_early(cx))?;
        } else if self.in_flight.has_early() {
            drop(self.in_flight.take_early());
        }
        self.unflushed = true;
        Poll::Ready(Ok(()))
    }

    /// Waits until the origin has accepted or refused the upgrade.
    fn poll_offered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if self.in_flight.is_busy(cx.waker()) || self.unflushed {
            self.held_up = self.unflushed;
            return self.poll_gone(cx);
        }
        if self.slot.is_agreed() {
            // The buffered bytes belong to the new protocol; hyper only has to end.
            return Poll::Pending;
        }
        self.state = State::Head;
        Poll::Ready(Ok(true))
    }

    fn poll_head_deadline(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let idle = self.waiting().is_empty();
        if idle && !self.rested {
            ready!(self.reading.poll(REST_AFTER.min(self.limits.idle_timeout), cx));
            self.rest();
        }
        let after = if idle { self.limits.idle_timeout } else { self.limits.header_timeout };
        ready!(self.reading.poll(after, cx));
        self.reading.disarm();
        if idle {
            self.site.counters.limit_hits.note(Limit::IdleTimeout);
            return Poll::Ready(Ok(false));
        }
        self.refuse(Refusal::HeadTimeout);
        Poll::Ready(Ok(true))
    }

    /// Frees the buffers that only the next request needs.
    fn rest(&mut self) {
        self.rested = true;
        (self.arrived, self.handed) = (Vec::new(), 0);
        self.tail = Vec::new();
        if let Some(hits) = &mut self.hits {
            hits.rest();
        }
        self.in_flight.rest();
        if let Some(evidence) = self.credited.as_ref().and_then(|client| client.evidence.as_ref()) {
            // The client's next request may come by another connection.
            self.in_flight.note_received(self.requests);
            evidence.add_hits(self.in_flight.plain_hits(0));
        }
        self.site.counters.connections_rested.add();
    }

    fn poll_content(
        &mut self,
        most: u64,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<u64>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if !self.waiting().is_empty() {
            return Poll::Ready(Ok(self.hand_on(most, out) as u64));
        }
        let most = most.min(out.remaining()).min(64 << 10);
        let mut piece = ReadBuf::new(out.initialize_unfilled_to(most));
        match Pin::new(&mut self.io).poll_read(cx, &mut piece) {
            Poll::Ready(Ok(())) => {
                let count = piece.filled().len();
                out.advance(count);
                self.reading.disarm();
                Poll::Ready(Ok(count as u64))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                ready!(self.reading.poll(self.limits.body_timeout, cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
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
        loop {
            match front.state {
                State::Head => {
                    if !ready!(front.poll_head(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                State::Hit(_) => ready!(front.poll_hit(cx))?,
                State::Offered => {
                    if !ready!(front.poll_offered(cx))? {
                        return Poll::Ready(Ok(()));
                    }
                }
                State::Pass { left, then, offered } => {
                    let left = left - front.hand_on(left, out);
                    front.state = match (left, then) {
                        (0, Framing::Empty) if offered => State::Offered,
                        (0, Framing::Empty) => State::Head,
                        (0, Framing::Length(length)) => State::Content { left: length },
                        (0, Framing::Chunked) => State::Through,
                        _ => State::Pass { left, then, offered },
                    };
                    return Poll::Ready(Ok(()));
                }
                State::Content { left: 0 } => front.state = State::Head,
                State::Content { left } => {
                    let count = ready!(front.poll_content(left, cx, out))?;
                    front.state = State::Content { left: left - count };
                    return Poll::Ready(Ok(()));
                }
                State::Through => return front.poll_through(cx, out),
                State::Refusing { .. } => ready!(front.poll_refusing(cx))?,
                State::Lingering { .. } => ready!(front.poll_lingering(cx)),
                State::Ended => return Poll::Ready(Ok(())),
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
        let written = Pin::new(&mut front.io).poll_write(cx, bytes);
        front.after_writing(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let front = self.get_mut();
        ready!(front.poll_before_writing(cx))?;
        let written = Pin::new(&mut front.io).poll_write_vectored(cx, pieces);
        front.after_writing(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        ready!(Pin::new(&mut front.io).poll_flush(cx))?;
        front.unflushed = false;
        front.log_flushed();
        ready!(front.poll_early(cx))?;
        front.await_half_closed(cx);
        if std::mem::take(&mut front.held_up) {
            cx.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let front = self.get_mut();
        // A hit that has begun is written to its end.
        ready!(front.poll_hit(cx))?;
        // hyper sees an end of data, but the new protocol begins here.
        if front.slot.is_agreed() {
            Pin::new(&mut front.io).poll_flush(cx)
        } else {
            Pin::new(&mut front.io).poll_shutdown(cx)
        }
    }
}
