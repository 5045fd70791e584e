//! Ends a connection whose request was refused. The error is written within a time limit. Then
//! further bytes of the client are discarded, bounded in size and time, so that the client can read
//! the error (RFC 9112 section 9.6). These are the states `Refusing` and `Lingering` of the
//! [front](super).

use super::{Front, LINGER, LINGER_BYTES, State};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

impl<IO: AsyncRead + AsyncWrite + Unpin> Front<IO> {
    pub(super) fn poll_refusing(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let State::Refusing { answer, written } = &mut self.state {
            while *written < answer.len() {
                let count = match Pin::new(&mut self.io).poll_write(cx, &answer[*written..]) {
                    Poll::Ready(count) => count?,
                    Poll::Pending => {
                        ready!(self.writing.poll(self.limits.write_timeout, cx));
                        return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                    }
                };
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.writing.disarm();
                *written += count;
            }
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            self.arrived.clear();
            self.handed = 0;
            self.reading.disarm();
            self.state = State::Lingering { left: LINGER_BYTES };
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_lingering(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let State::Lingering { left } = self.state {
            let count = match self.poll_arrive(cx) {
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(_)) => 0,
                Poll::Pending => {
                    ready!(self.reading.poll(LINGER, cx));
                    0
                }
            };
            self.arrived.clear();
            self.state = match left.checked_sub(count) {
                Some(left) if count > 0 => State::Lingering { left },
                _ => State::Ended,
            };
        }
        Poll::Ready(())
    }
}
