//! A request's content on its way to the origin: bounded, and remembering what was wrong with it,
//! so that the client's fault is not taken for the origin's: it is answered with 400, 408 or 413 and
//! not with 502.

use crate::request_head::Refusal;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Sleep, sleep};

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
    incoming: Incoming,
    left: u64,
    /// How long nothing may come.
    wait: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    flaw: Arc<Flaw>,
}

impl Upload {
    /// The content, at most `most` bytes of it, and never nothing for longer than `wait`.
    pub fn new(incoming: Incoming, most: u64, wait: Duration) -> Upload {
        Upload { incoming, left: most, wait, waiting: None, flaw: Arc::default() }
    }

    /// What was wrong with it can be asked here, also when it is gone.
    pub fn flaw(&self) -> Arc<Flaw> {
        self.flaw.clone()
    }

    /// Its length, where the client said so.
    pub fn length(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
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
        let polled = match Pin::new(&mut upload.incoming).poll_frame(cx) {
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
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        match upload.left.checked_sub(length) {
            Some(left) => upload.left = left,
            None => {
                upload.flaw.is(Refusal::ContentTooLarge);
                return Poll::Ready(Some(Err(UploadFailed)));
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
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
