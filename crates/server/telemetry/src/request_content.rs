//! The content of a request, whatever version of HTTP and library it arrives by.
//!
//! `front` makes it of the library's own type; everything behind `front` knows only this one.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Content as a library delivers it.
type ContentStream = dyn Body<Data = Bytes, Error = ContentFault> + Send + Sync;

/// The content of a request, in pieces, and its trailers.
#[derive(Default)]
pub struct RequestContent(Option<Pin<Box<ContentStream>>>);

impl RequestContent {
    /// The content that `stream` delivers. Nothing is allocated if there is none.
    pub fn of<S>(stream: S) -> RequestContent
    where
        S: Body<Data = Bytes, Error = ContentFault> + Send + Sync + 'static,
    {
        let is_empty = stream.is_end_stream();
        let boxed = || -> Pin<Box<ContentStream>> { Box::pin(stream) };
        RequestContent((!is_empty).then(boxed))
    }
}

impl Body for RequestContent {
    type Data = Bytes;
    type Error = ContentFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ContentFault>>> {
        match &mut self.get_mut().0 {
            Some(stream) => stream.as_mut().poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|stream| stream.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), |stream| stream.size_hint())
    }
}

impl fmt::Debug for RequestContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestContent").field(&self.size_hint()).finish()
    }
}

/// The reason why the rest of the content cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFault {
    /// Nothing arrived within the time limit.
    TimedOut,
    /// It is malformed, or the client has disconnected.
    Broken,
}

impl fmt::Display for ContentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContentFault::TimedOut => "the content took too long",
            ContentFault::Broken => "the content is malformed or incomplete",
        })
    }
}

impl std::error::Error for ContentFault {}
