//! The content of calls. A call with little content is read at once; of longer ones, few at a time: the others are not
//! read until one of those is over. So unfinished calls hold a bounded memory, however many there are.
//!
//! The content is in one allocation, which returns to the system when it is freed; after a long call, the rest of the
//! memory that it used is returned as well. Not here: who may call ([`super::caller`], before the content is read).

use super::ControlError;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use std::pin::pin;
use std::time::Duration;
use telemetry::release_memory;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The longest content of a call in bytes: ten thousand tags of a kilobyte, with some reserve.
pub const CALL_BYTES: usize = 16 << 20;
/// The longest time for a call to arrive.
pub(super) const ARRIVAL: Duration = Duration::from_secs(30);
/// The content that any call may have in memory, in bytes.
const SHORT_BYTES: usize = 64 << 10;
/// The number of calls with more content that are read at a time.
const LONG_CALLS: usize = 2;

/// The calls with long content.
pub(super) struct CallContents {
    long: Semaphore,
}

impl Default for CallContents {
    fn default() -> CallContents {
        CallContents { long: Semaphore::new(LONG_CALLS) }
    }
}

/// The content of a call.
pub(super) struct CallContent<'c> {
    bytes: Vec<u8>,
    long: Option<LongCall<'c>>,
}

/// One of the calls with long content, until it is dropped.
struct LongCall<'c>(
    #[expect(dead_code, reason = "held until the call is over")] SemaphorePermit<'c>,
);

impl CallContents {
    /// Reads the content of a call.
    ///
    /// # Errors
    /// It is too long, takes too long, or breaks off.
    pub(super) async fn read<B: Body<Data = Bytes>>(
        &self,
        body: B,
    ) -> Result<CallContent<'_>, ControlError> {
        let read = tokio::time::timeout(ARRIVAL, self.read_all(body)).await;
        read.unwrap_or(Err(ControlError::TooLarge))
    }

    async fn read_all<B: Body<Data = Bytes>>(
        &self,
        body: B,
    ) -> Result<CallContent<'_>, ControlError> {
        let mut content = CallContent { bytes: Vec::new(), long: None };
        let mut body = pin!(body);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| ControlError::TooLarge)?;
            let Ok(data) = frame.into_data() else { continue };
            if content.bytes.len() + data.len() > CALL_BYTES {
                return Err(ControlError::TooLarge);
            }
            content.bytes.extend_from_slice(&data);
            if content.bytes.len() > SHORT_BYTES && content.long.is_none() {
                drop(data);
                // The semaphore is never closed.
                content.long = self.long.acquire().await.ok().map(LongCall);
            }
        }
        Ok(content)
    }
}

impl CallContent<'_> {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CallContent<'_> {
    fn drop(&mut self) {
        if self.long.is_some() {
            self.bytes = Vec::new();
            // Not awaited: the call is answered meanwhile.
            drop(tokio::task::spawn_blocking(release_memory::heap));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::{Context, Poll};
    use tokio::task::LocalSet;

    /// The content of a call whose client never ends it.
    struct UnfinishedBody {
        left: usize,
        read: Rc<Cell<usize>>,
    }

    const PIECE: usize = 256 << 10;

    impl Body for UnfinishedBody {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left < PIECE {
                return Poll::Pending;
            }
            self.left -= PIECE;
            self.read.set(self.read.get() + PIECE);
            Poll::Ready(Some(Ok(Frame::data(vec![b' '; PIECE].into()))))
        }
    }

    #[tokio::test]
    async fn unfinished_calls_hold_little() {
        let (contents, read) = (Rc::new(CallContents::default()), Rc::new(Cell::new(0)));
        let calls = LocalSet::new();
        for _ in 0..60 {
            let (contents, read) = (contents.clone(), read.clone());
            calls.spawn_local(async move {
                drop(contents.read(UnfinishedBody { left: 15 << 20, read }).await);
            });
        }
        // Each runs until it waits for its client, or for another call.
        let waiting = async {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
        };
        calls.run_until(waiting).await;
        let most = LONG_CALLS * (15 << 20) + 60 * PIECE;
        assert!(read.get() > LONG_CALLS * (14 << 20) && read.get() <= most, "{}", read.get());
        let short = http_body_util::Full::new(Bytes::from_static(b"{}"));
        let content = contents.read(short).await;
        assert_eq!(content.map(|content| content.as_bytes().to_vec()).ok(), Some(b"{}".to_vec()));
        drop(calls);
        assert_eq!(contents.long.available_permits(), LONG_CALLS);
    }

    #[tokio::test]
    async fn content_that_is_too_long_is_refused() {
        let contents = CallContents::default();
        let long = http_body_util::Full::new(Bytes::from(vec![b' '; CALL_BYTES + 1]));
        assert!(matches!(contents.read(long).await, Err(ControlError::TooLarge)));
    }
}
