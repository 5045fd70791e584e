//! Compresses content while it is sent, with gzip. Each piece is flushed, so that a response that the
//! origin sends in pieces reaches the client in pieces. Which responses are compressed is decided in
//! `codings`.

use super::Content;
use crate::response_spool::Piece;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Content that is compressed while it is sent.
pub struct StreamingEncoder {
    /// The content before compression.
    pub(super) source: Content,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl StreamingEncoder {
    /// An encoder of `source`.
    pub(crate) fn new(source: Content) -> StreamingEncoder {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        StreamingEncoder { source, encoder: Some(encoder) }
    }

    /// Compresses all of `bytes` at once.
    pub(crate) fn all_of(mut self, bytes: &[u8]) -> Bytes {
        let fed = self.encoder.as_mut().map(|encoder| encoder.write_all(bytes));
        debug_assert!(fed.is_some_and(|fed| fed.is_ok()), "writing to a Vec cannot fail");
        self.end().and_then(Result::ok).unwrap_or_default()
    }

    /// Compresses `piece`, and returns the bytes to send; `None` if there are none yet.
    pub fn feed(&mut self, piece: &[u8]) -> Option<Piece> {
        let encoder = self.encoder.as_mut()?;
        encoder.write_all(piece).and_then(|()| encoder.flush()).map_or_else(failed, |()| {
            let coded = std::mem::take(encoder.get_mut());
            (!coded.is_empty()).then(|| Ok(coded.into()))
        })
    }

    /// Returns the last bytes to send; `None` after the first call.
    pub fn end(&mut self) -> Option<Piece> {
        self.encoder.take()?.finish().map_or_else(failed, |coded| Some(Ok(coded.into())))
    }
}

/// Writing to a `Vec` returns no error; without memory the process aborts.
fn failed(_: io::Error) -> Option<Piece> {
    Some(Err(http_cache::Failure::InvalidResponse))
}
