//! Enforces how fast the client of the [front](super) must read its responses. It may stop reading
//! for at most `write_timeout`. After waiting for that time in total, it must read at `write_rate`
//! or faster. Output that is written at once is not measured. Clients are also cut off if the send
//! backlog of all clients is too large (`send_backlog`).

use super::{Front, State};
use delivery::send_backlog::{BacklogEntry, LONG_BYTES};
use origin::pace::Verdict;
use std::io;
use std::task::{Context, Poll, ready};
use stored_pages::page::SharedPage;
use telemetry::limit_hits::Limit;
use tokio::io::{AsyncRead, AsyncWrite};

impl<IO: AsyncRead + AsyncWrite + Unpin> Front<IO> {
    /// Closes the connection of a client that reads more slowly than `write_rate`.
    pub(super) fn keeps_pace(&mut self, count: usize) -> io::Result<()> {
        if !self.pace.is_waiting() {
            return Ok(());
        }
        let (leave, rate) = (self.limits.write_timeout, self.limits.write_rate);
        match self.pace.moved(count as u64, leave, rate) {
            Verdict::FastEnough => Ok(()),
            Verdict::TooSlow => {
                self.site.counters.limit_hits.note(Limit::WriteRate);
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Records that the client has read `count` bytes of hyper's output.
    pub(super) fn took(&self, count: usize) {
        if let Some(client) = self.in_flight.backlog_client() {
            client.took(count);
        }
    }

    /// Counts the plain hit that the client does not read at once, and closes its connection if the
    /// backlog requires it.
    #[cold]
    pub(super) fn counts_waiting_hit(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let State::Hit(hit) = &self.state else { return Ok(()) };
        let is_long = |page: &&SharedPage| page.heap_bytes() >= LONG_BYTES;
        let Some(page) = hit.page().filter(is_long) else { return Ok(()) };
        let client = self.in_flight.client(&self.site);
        client.has_taken(hit.content_written());
        if self.waiting_hit.is_none() {
            self.waiting_hit = Some(BacklogEntry::of_page(client, page.clone()));
        }
        self.is_cut(cx)
    }

    /// Closes the connection of a client that is among the slowest, if the backlog is too large.
    fn is_cut(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let Some(client) = self.in_flight.backlog_client() else { return Ok(()) };
        client.waits();
        match client.poll_cut(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Counts what was written of a response, and bounds how long the client may take for it.
    #[inline]
    pub(super) fn after_writing(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.count_written(&written);
        if let Poll::Ready(Ok(count)) = &written {
            self.half_close_wrote();
            self.took(*count);
            self.keeps_pace(*count)?;
        }
        self.bound_writing(written, cx)
    }

    /// Closes the connection of a client that reads nothing for `write_timeout`.
    pub(super) fn bound_writing<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing.disarm();
            return written;
        }
        self.pace.waits();
        self.is_cut(cx)?;
        ready!(self.writing.poll(self.limits.write_timeout, cx));
        self.site.counters.limit_hits.note(Limit::WriteTimeout);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}
