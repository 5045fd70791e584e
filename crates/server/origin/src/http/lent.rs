//! Content of a request that is lent to the HTTP library. If the library drops it without having read any, because no
//! connection was established, the content goes back, and another server can get it.
//!
//! Invariant: content never goes back after a part was read.

use crate::upload::{Upload, UploadFailed};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

type Home = Arc<Mutex<Option<Box<Upload>>>>;

/// The content while it is lent.
pub struct LentUpload {
    /// `None` only while it is dropped.
    upload: Option<Box<Upload>>,
    was_read: bool,
    home: Home,
}

/// The owner of lent content, who may get it back.
pub struct UploadOwner(Home);

impl LentUpload {
    /// Lends this content, and returns who gets it back.
    pub fn new(upload: Box<Upload>) -> (LentUpload, UploadOwner) {
        let home = Home::default();
        (
            LentUpload { upload: Some(upload), was_read: false, home: home.clone() },
            UploadOwner(home),
        )
    }
}

impl UploadOwner {
    /// The content, if it was dropped without being read.
    pub fn take_back(self) -> Option<Box<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Body for LentUpload {
    type Data = Bytes;
    type Error = UploadFailed;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadFailed>>> {
        let lent = self.get_mut();
        lent.was_read = true;
        match &mut lent.upload {
            Some(upload) => Pin::new(&mut **upload).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.upload.as_ref().is_none_or(|upload| upload.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.upload.as_ref().map_or_else(SizeHint::default, |upload| upload.size_hint())
    }
}

impl Drop for LentUpload {
    fn drop(&mut self) {
        if !self.was_read {
            *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.upload.take();
        }
    }
}
