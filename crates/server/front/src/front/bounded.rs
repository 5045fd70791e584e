//! How slowly the client of the [front](super) may take its responses: nothing for `write_timeout`, and, once
//! it has been waited for longer than that in all, no less than `write_rate`. What is written at once is not
//! measured. And whether it is among those that are cut off because too much waits for all together (`send_backlog`).

use super::{Front, State};
use exchange::send_backlog::{BacklogEntry, LONG_BYTES};
use origin::pace::Verdict;
use site_state::page::SharedPage;
use site_state::reached::Limit;
use std::io;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

impl<IO: AsyncRead + AsyncWrite + Unpin> Front<IO> {
    /// Closes the connection of a client that takes too little for too long.
    pub(super) fn keeps_pace(&mut self, count: usize) -> io::Result<()> {
        if !self.pace.is_waiting() {
            return Ok(());
        }
        let (leave, rate) = (self.limits.write_timeout, self.limits.write_rate);
        match self.pace.moved(count as u64, leave, rate) {
            Verdict::FastEnough => Ok(()),
            Verdict::TooSlow => {
                self.site.counters.reached.note(Limit::WriteRate);
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// The client has taken so much of what hyper has for it.
    pub(super) fn took(&self, count: usize) {
        if let Some(client) = self.in_flight.backlog_client() {
            client.took(count);
        }
    }

    /// Counts the plain hit that the client does not take at once, and closes its connection where that is
    /// to be.
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

    /// Closes the connection of a client that is among the slowest, where too much waits for all.
    fn is_cut(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let Some(client) = self.in_flight.backlog_client() else { return Ok(()) };
        client.waits();
        match client.poll_cut(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Closes the connection of a client that takes nothing for too long.
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
        self.site.counters.reached.note(Limit::WriteTimeout);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}
