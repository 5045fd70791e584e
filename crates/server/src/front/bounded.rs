//! How long the client of the [front](super) may take what it is owed: nothing for `write_timeout`, and, once
//! it has been waited for longer than that in all, no less than `write_rate`. What is written at once is not
//! measured.

use super::Front;
use crate::pace::Verdict;
use crate::reached::Limit;
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
        ready!(self.writing.poll(self.limits.write_timeout, cx));
        self.site.counters.reached.note(Limit::WriteTimeout);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}
