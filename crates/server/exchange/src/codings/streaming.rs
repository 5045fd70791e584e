//! Compresses responses while they are sent: responses that are not stored, and a page for the client
//! that waited for its fetch.
//!
//! It uses gzip at the fastest level, because every client that accepts compression accepts gzip. Each
//! piece is flushed, so that a response that the origin sends in pieces reaches the client in pieces.
//! The bytes differ from those of the form that will be cached, so the entity tag becomes weak (RFC
//! 9110 section 8.8.1). A weak tag is valid for any coding, and the origin recognises it in a later
//! conditional request.

use crate::body::{Content, Piece, ResponseBody};
use crate::esi;
use crate::site::Site;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, Response, header};
use http_cache::RequestFacts;
use http_cache::codings::{Coding, choose, vary_on_accept_encoding, weaken};
use std::io::{self, Write};

/// Content up to this length, in bytes, is compressed at once, so that `Content-Length` is known.
const AT_ONCE_BYTES: usize = 256 << 10;

/// Compresses `response` while it is sent, if it is compressible and the client accepts gzip.
pub fn encode_response(
    site: &Site,
    facts: &RequestFacts<'_>,
    mut response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let codings = &site.config.codings;
    if esi::is_template(&response) {
        // Its ESI fragments are processed first.
        return response;
    }
    if !codings.on_the_way || !codings.make.contains(&Coding::Gzip) {
        return response;
    }
    let length = response.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
    let (status, headers) = (response.status(), response.headers_mut());
    // A trailer may describe the uncompressed bytes.
    let trailed = headers.contains_key(header::TRAILER);
    if trailed || codings.codable.check(status, headers, length).is_err() {
        return response;
    }
    vary_on_accept_encoding(headers);
    let accepted = facts.accept_encoding.get().and_then(|lines| choose(lines, &[Coding::Gzip]));
    // A range request that gets the complete content refers to the uncompressed form.
    if accepted.is_none() || facts.range.is_some() {
        return response;
    }
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.as_str()));
    weaken(headers);
    headers.remove(header::CONTENT_LENGTH);
    let (mut head, body) = response.into_parts();
    let body = body.map(|content| match content {
        Content::Whole(bytes) if bytes.len() <= AT_ONCE_BYTES => {
            let coded = StreamingEncoder::new().all_of(&bytes);
            head.headers.insert(header::CONTENT_LENGTH, coded.len().into());
            Content::Whole(coded)
        }
        Content::Empty => Content::Empty,
        content => Content::OnTheWay(Box::new(StreamingEncoder {
            source: content,
            ..StreamingEncoder::new()
        })),
    });
    Response::from_parts(head, body)
}

/// Content that is compressed while it is sent.
pub struct StreamingEncoder {
    /// The content before compression.
    pub source: Content,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl StreamingEncoder {
    fn new() -> StreamingEncoder {
        let encoder = GzEncoder::new(Vec::new(), Compression::fast());
        StreamingEncoder { source: Content::Empty, encoder: Some(encoder) }
    }

    fn all_of(mut self, bytes: &[u8]) -> Bytes {
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
