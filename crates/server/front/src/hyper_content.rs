//! The content of a request as hyper delivers it, as [`RequestContent`].
//!
//! Everything behind `front` knows only that type. An error says whether the client was too slow, or left.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use telemetry::request_content::{ContentFault, RequestContent};

/// Makes it of hyper's type.
pub fn content(incoming: Incoming) -> RequestContent {
    RequestContent::of(HyperContent(incoming))
}

struct HyperContent(Incoming);

impl Body for HyperContent {
    type Data = Bytes;
    type Error = ContentFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ContentFault>>> {
        let polled = Pin::new(&mut self.get_mut().0).poll_frame(cx);
        polled.map(|frame| frame.map(|frame| frame.map_err(|error| fault(&error))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// The front ends a wait for content by an error of the socket.
fn fault(error: &hyper::Error) -> ContentFault {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        match inner.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::TimedOut => return ContentFault::TimedOut,
            Some(_) => return ContentFault::Broken,
            None => cause = inner.source(),
        }
    }
    ContentFault::Broken
}
