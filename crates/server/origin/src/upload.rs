//! A request's content on its way to the origin. It is limited, and errors of the client are recorded.
//! So the response to such an error is 400, 408 or 413 instead of 502.
//!
//! The content is [collected](Upload::collect) before the request occupies the origin
//! (docs/decisions/uploads-and-slow-clients.md).
//!
//! Over HTTP/2, a request whose content is not read is reset (NO_ERROR) after its response (RFC 9113
//! section 8.1). Some clients that are still sending (curl 7.88) treat that as an error and lose the
//! response. So the remaining content is read and discarded for a short time, as the front does over
//! HTTP/1.1.

mod whole;

pub use whole::Room;

use crate::pace::{Pace, Verdict};
use crate::spool::{Spool, SpoolFile};
use bytes::Bytes;
use config::Limits;
use http::{HeaderMap, Version};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use reasons::refusal::Refusal;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use telemetry::request_content::{ContentFault, RequestContent};
use telemetry::trailers::{Trailers, permitted_of_client};
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep, timeout};
use whole::{MemoryReservation, Whole};

/// Maximum number of bytes of refused content that are read and discarded.
const LINGER_BYTES: usize = 256 << 10;
/// Time limit for discarding refused content.
const LINGER: Duration = Duration::from_secs(1);

/// Reads and discards refused content, within these limits.
pub async fn let_run_out(mut incoming: RequestContent) {
    let all = async {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = incoming.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(less) => left = less,
                // The client's flow-control window is not increased, so it stops sending and can read
                // the response.
                None => return std::future::pending().await,
            }
        }
    };
    let _ = timeout(LINGER, all).await;
}

/// The error in a request's content, if one has occurred.
#[derive(Default)]
pub struct Flaw {
    refusal: OnceLock<Refusal>,
    noticed: Notify,
}

impl Flaw {
    /// The error, if one has occurred.
    pub fn get(&self) -> Option<Refusal> {
        self.refusal.get().copied()
    }

    /// Waits until an error occurs.
    pub async fn happened(&self) {
        let noticed = self.noticed.notified();
        if self.get().is_none() {
            noticed.await;
        }
    }

    fn is(&self, refusal: Refusal) {
        if self.refusal.set(refusal).is_ok() {
            self.noticed.notify_waiters();
        }
    }
}

/// A request's content from a client.
pub struct Upload {
    /// `None` after the content was refused.
    incoming: Option<RequestContent>,
    version: Version,
    left: u64,
    /// Maximum time for which no data may arrive.
    wait: Duration,
    /// Minimum rate, in bytes per second.
    rate: u64,
    pace: Pace,
    waiting: Option<Pin<Box<Sleep>>>,
    flaw: Arc<Flaw>,
    /// The part of the collected content that is in memory.
    ahead: Bytes,
    /// The memory reserved for `ahead`.
    taken: Option<MemoryReservation>,
    /// Collected content on the disk, instead of in memory.
    spooled: Option<SpoolFile>,
    /// The collected trailers, if the origin accepts trailers.
    trailers: Option<HeaderMap>,
    /// Whether the content has been received completely.
    ended: bool,
}

impl Upload {
    /// The content of a request, with the configured limits for size, time and rate.
    pub fn new(incoming: RequestContent, version: Version, limits: &Limits) -> Upload {
        Upload {
            incoming: Some(incoming),
            version,
            left: limits.body_bytes,
            wait: limits.body_timeout,
            rate: limits.body_rate,
            pace: Pace::default(),
            waiting: None,
            flaw: Arc::default(),
            ahead: Bytes::new(),
            taken: None,
            spooled: None,
            trailers: None,
            ended: false,
        }
    }

    /// Content that Pagewell has written itself: complete, and in memory.
    pub fn of_bytes(content: Bytes) -> Upload {
        Upload {
            incoming: None,
            version: Version::HTTP_11,
            left: 0,
            wait: Duration::ZERO,
            rate: 0,
            pace: Pace::default(),
            waiting: None,
            flaw: Arc::default(),
            ahead: content,
            taken: None,
            spooled: None,
            trailers: None,
            ended: true,
        }
    }

    /// Waits for all of the content: in memory if there is room, else on the disk. Afterwards its
    /// length is known, unless there are `trailers` to forward.
    ///
    /// # Errors
    /// The content is invalid or too slow, or there is no room for it.
    pub async fn collect(
        &mut self,
        room: &Arc<Room>,
        spool: &Spool,
        trailers: Trailers,
    ) -> Result<(), Refusal> {
        if self.ended {
            return Ok(());
        }
        let mut whole = Whole::nothing(room);
        while let Some(frame) = poll_fn(|cx| self.poll_next(cx)).await {
            let Ok(frame) = frame else {
                return Err(self.flaw.get().unwrap_or(Refusal::ContentMalformed));
            };
            let piece = match frame.into_data() {
                Ok(piece) => piece,
                Err(frame) => {
                    let wanted = trailers == Trailers::Wanted;
                    self.trailers = frame.into_trailers().ok().filter(|_| wanted);
                    continue;
                }
            };
            let is_last = self.incoming.as_ref().is_some_and(RequestContent::is_end_stream);
            whole.take(piece, is_last, spool).await.inspect_err(|refusal| self.refuse(*refusal))?;
        }
        whole.end().await.inspect_err(|refusal| self.refuse(*refusal))?;
        let Whole { gathered, taken, file } = whole;
        self.ahead = gathered.into();
        (self.taken, self.spooled, self.ended) = (Some(taken), file, true);
        Ok(())
    }

    /// The size of the collected content that was not read yet, in bytes.
    fn here_bytes(&self) -> u64 {
        self.ahead.len() as u64 + self.spooled.as_ref().map_or(0, SpoolFile::left)
    }

    /// The shared record of errors, which remains valid after the content was dropped.
    pub fn flaw(&self) -> Arc<Flaw> {
        self.flaw.clone()
    }

    /// The length in bytes, if known.
    pub fn length(&self) -> Option<u64> {
        self.size_hint().exact()
    }

    /// The next piece from the client.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadFailed>>> {
        let upload = self;
        let Some(incoming) = &mut upload.incoming else {
            return Poll::Ready(Some(Err(UploadFailed)));
        };
        let polled = match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(polled) => polled,
            Poll::Pending => {
                upload.pace.waits();
                let wait = upload.wait;
                let waiting = upload.waiting.get_or_insert_with(|| Box::pin(sleep(wait)));
                ready!(waiting.as_mut().poll(cx));
                upload.flaw.is(Refusal::ContentTimeout);
                return Poll::Ready(Some(Err(UploadFailed)));
            }
        };
        upload.waiting = None;
        let frame = match polled {
            None => return Poll::Ready(None),
            Some(Err(fault)) => {
                upload.flaw.is(match fault {
                    ContentFault::TimedOut => Refusal::ContentTimeout,
                    ContentFault::Broken => Refusal::ContentMalformed,
                });
                return Poll::Ready(Some(Err(UploadFailed)));
            }
            Some(Ok(frame)) => frame,
        };
        let frame = match frame.into_trailers() {
            Ok(all) => return Poll::Ready(Some(Ok(Frame::trailers(permitted_of_client(all))))),
            Err(frame) => frame,
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        if upload.pace.moved(length, upload.wait, upload.rate) == Verdict::TooSlow {
            upload.flaw.is(Refusal::ContentTooSlow);
            return Poll::Ready(Some(Err(UploadFailed)));
        }
        match upload.left.checked_sub(length) {
            Some(left) => upload.left = left,
            None => {
                upload.refuse(Refusal::ContentTooLarge);
                return Poll::Ready(Some(Err(UploadFailed)));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    /// Records the refusal, and discards the rest of the content.
    fn refuse(&mut self, refusal: Refusal) {
        self.flaw.is(refusal);
        if let Some(incoming) = self.incoming.take()
            && self.version == Version::HTTP_2
        {
            tokio::spawn(let_run_out(incoming));
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadFailed;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadFailed>>> {
        let upload = self.get_mut();
        if !upload.ahead.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut upload.ahead)))));
        }
        upload.taken = None;
        if let Some(file) = &mut upload.spooled {
            match ready!(file.poll_next(cx)) {
                Some(Ok(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Some(Err(refusal)) => {
                    upload.flaw.is(refusal);
                    return Poll::Ready(Some(Err(UploadFailed)));
                }
                None => upload.spooled = None,
            }
        }
        if !upload.ended {
            return upload.poll_next(cx);
        }
        Poll::Ready(upload.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        let ended =
            || self.ended || self.incoming.as_ref().is_some_and(RequestContent::is_end_stream);
        self.ahead.is_empty() && self.spooled.is_none() && self.trailers.is_none() && ended()
    }

    fn size_hint(&self) -> SizeHint {
        // With a known length, trailers could not be sent.
        if self.trailers.is_some() {
            return SizeHint::default();
        }
        let here = self.here_bytes();
        let behind = match (&self.incoming, self.ended) {
            (_, true) => SizeHint::with_exact(0),
            (Some(incoming), false) => incoming.size_hint(),
            (None, false) => SizeHint::default(),
        };
        let mut all = SizeHint::default();
        all.set_lower(behind.lower() + here);
        if let Some(upper) = behind.upper() {
            all.set_upper(upper + here);
        }
        all
    }
}

/// Error: the content cannot be forwarded; [`Flaw`] has the reason.
#[derive(Debug)]
pub struct UploadFailed;

impl std::fmt::Display for UploadFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the request's content cannot be passed on")
    }
}

impl std::error::Error for UploadFailed {}
