//! Decompresses responses of an origin that compresses although the request did not allow it. The
//! content is decompressed while it is received and then treated like any other.
//!
//! Bounds: the output for one input piece (a decompression bomb counts as an invalid response), and the
//! zstd window (RFC 9659: 8 MiB). Content that ends before its compressed stream ends is incomplete,
//! even if the message is complete.

use super::{OriginBody, OriginResponse};
use bytes::Bytes;
use http::HeaderMap;
use http_cache::Failure;
use http_cache::codings::{Coding, ResponseEncoding, encoded};
use stored_pages::content_decoding::{Decoder, PIECE_BYTES};

/// The coding to decode, if the response has a single known one and may be transformed. With
/// `no-transform` or a digest of the content it is forwarded unchanged (RFC 9110 section 7.7, RFC
/// 9530).
pub fn decodable_coding(response: &OriginResponse) -> Option<Coding> {
    let ResponseEncoding::In(coding) = encoded(&response.headers) else { return None };
    if response.status.as_u16() == 206 || is_sealed(&response.headers) {
        return None;
    }
    Some(coding)
}

fn is_sealed(headers: &HeaderMap) -> bool {
    let digest = ["content-digest", "content-md5", "digest"];
    digest.iter().any(|name| headers.contains_key(*name))
        || headers.get_all(http::header::CACHE_CONTROL).iter().any(|line| {
            let line = line.as_bytes().to_ascii_lowercase();
            line.split(|byte| *byte == b',').any(|word| word.trim_ascii() == b"no-transform")
        })
}

/// An origin's content that is decompressed while it is read.
pub struct DecodedBody {
    /// The origin's content, still compressed.
    pub body: OriginBody,
    decoder: Option<Decoder>,
    /// Received bytes that have not been decoded yet.
    left: Bytes,
}

impl DecodedBody {
    /// Decodes `body`, which is in the coding `coding`.
    pub fn new(body: OriginBody, coding: Coding) -> DecodedBody {
        DecodedBody { body, decoder: Decoder::new(coding).ok(), left: Bytes::new() }
    }

    /// The next piece of decoded content. `None` at the end of the message, where the compressed stream
    /// must end, too.
    ///
    /// # Errors
    /// The response was cut off, does not match its `Content-Encoding`, or decompresses to too many
    /// bytes.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            while !self.left.is_empty() {
                let piece = self.left.split_to(self.left.len().min(PIECE_BYTES));
                match self.decoder.as_mut().map(|decoder| decoder.feed(&piece)) {
                    Some(Ok(out)) if out.is_empty() => {}
                    Some(Ok(out)) => return Some(Ok(out.into())),
                    Some(Err(_)) | None => return self.broken(),
                }
            }
            // Boxed, because to the compiler the future of `body` may contain this one.
            match Box::pin(self.body.next()).await {
                Some(Ok(bytes)) => self.left = bytes,
                Some(Err(failure)) => return Some(Err(failure)),
                None => match self.decoder.take().map(Decoder::end) {
                    Some(Ok(out)) if !out.is_empty() => return Some(Ok(out.into())),
                    Some(Err(_)) => return self.broken(),
                    Some(Ok(_)) | None => return None,
                },
            }
        }
    }

    fn broken(&mut self) -> Option<Result<Bytes, Failure>> {
        tracing::error!(event = "origin-invalid", reason = "content-encoding");
        self.decoder = None;
        Some(Err(Failure::InvalidResponse))
    }
}
