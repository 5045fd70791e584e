//! A request's content on its way to the origin: bounded, and remembering what was wrong with it,
//! so that the client's fault is not taken for the origin's: it is answered with 400, 408 or 413 and
//! not with 502.
//!
//! Over HTTP/2 a request whose content is not read is reset (NO_ERROR) behind its answer (RFC 9113
//! section 8.1). Some clients that are still sending then (curl 7.88) take both for a failure, and the
//! answer is lost; so what still comes is taken for a moment, as the front does over HTTP/1.1.

use crate::request_head::Refusal;
use crate::trailers::permitted;
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep, timeout};

/// What is taken and thrown away of content that was refused.
const LINGER_BYTES: usize = 256 << 10;
/// For how long.
const LINGER: Duration = Duration::from_secs(1);

/// Takes what still comes of content that nobody wants, within bounds.
pub async fn let_run_out(mut incoming: Incoming) {
    let all = async {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = incoming.frame().await {
            let length = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(length) {
                Some(less) => left = less,
                // It gets no more leave to send, and time to read the answer.
                None => return std::future::pending().await,
            }
        }
    };
    let _ = timeout(LINGER, all).await;
}

/// What was wrong with a request's content, once something was.
#[derive(Default)]
pub struct Flaw {
    refusal: OnceLock<Refusal>,
    noticed: Notify,
}

impl Flaw {
    /// What was wrong, if anything was.
    pub fn get(&self) -> Option<Refusal> {
        self.refusal.get().copied()
    }

    /// Waits until something is wrong.
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

/// Content that comes from a client.
pub struct Upload {
    /// None once it has been refused.
    incoming: Option<Incoming>,
    version: Version,
    left: u64,
    /// How long nothing may come.
    wait: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    flaw: Arc<Flaw>,
}

impl Upload {
    /// The content, at most `most` bytes of it, and never nothing for longer than `wait`.
    pub fn new(incoming: Incoming, version: Version, most: u64, wait: Duration) -> Upload {
        let incoming = Some(incoming);
        Upload { incoming, version, left: most, wait, waiting: None, flaw: Arc::default() }
    }

    /// What was wrong with it can be asked here, also when it is gone.
    pub fn flaw(&self) -> Arc<Flaw> {
        self.flaw.clone()
    }

    /// Its length, where the client said so.
    pub fn length(&self) -> Option<u64> {
        self.size_hint().exact()
    }

    /// There is too much of it.
    fn refuse(&mut self) {
        self.flaw.is(Refusal::ContentTooLarge);
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
        let Some(incoming) = &mut upload.incoming else {
            return Poll::Ready(Some(Err(UploadFailed)));
        };
        let polled = match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(polled) => polled,
            Poll::Pending => {
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
            Some(Err(error)) => {
                let timed_out = source_is_timeout(&error);
                upload.flaw.is(match timed_out {
                    true => Refusal::ContentTimeout,
                    false => Refusal::ContentMalformed,
                });
                return Poll::Ready(Some(Err(UploadFailed)));
            }
            Some(Ok(frame)) => frame,
        };
        let frame = match frame.into_trailers() {
            Ok(all) => return Poll::Ready(Some(Ok(Frame::trailers(permitted(all, &[]))))),
            Err(frame) => frame,
        };
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match upload.left.checked_sub(length) {
            Some(left) => upload.left = left,
            None => {
                upload.refuse();
                return Poll::Ready(Some(Err(UploadFailed)));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_some_and(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}

fn source_is_timeout(error: &hyper::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::TimedOut;
        }
        cause = inner.source();
    }
    false
}

/// The content cannot be passed on; [`Flaw`] says why.
#[derive(Debug)]
pub struct UploadFailed;

impl std::fmt::Display for UploadFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the request's content cannot be passed on")
    }
}

impl std::error::Error for UploadFailed {}
