//! Decompresses responses of an origin that compresses although the request did not allow it. The
//! content is decompressed while it is received and then treated like any other.
//!
//! Bounds: the output for one input piece (a decompression bomb counts as an invalid response), and the
//! zstd window (RFC 9659: 8 MiB). Content that ends before its compressed stream ends is incomplete,
//! even if the message is complete.

use crate::origin::{OriginBody, OriginResponse};
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use http::HeaderMap;
use http_cache::Failure;
use http_cache::codings::{Coding, Encoded, encoded};
use std::io::{self, Write};
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};

/// How many bytes are passed to a decoder at a time.
const PIECE_BYTES: usize = 4 << 10;
/// Maximum output for one such piece, in bytes: 1,024 times the input, about gzip's maximum ratio.
const GROWN_BYTES: usize = PIECE_BYTES * 1_024;
/// The largest window of a zstd frame that is accepted, as a power of two (RFC 9659 section 3).
const ZSTD_WINDOW_BITS: u32 = 23;

/// The coding to decode, if the response has a single known one and may be transformed. With
/// `no-transform` or a digest of the content it is forwarded unchanged (RFC 9110 section 7.7, RFC
/// 9530).
pub fn may_be_understood(response: &OriginResponse) -> Option<Coding> {
    let Encoded::In(coding) = encoded(&response.headers) else { return None };
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
pub struct Understanding {
    /// The origin's content, still compressed.
    pub body: OriginBody,
    decoder: Option<Decoder>,
    /// Received bytes that have not been decoded yet.
    left: Bytes,
}

impl Understanding {
    /// Decodes `body`, which is in the coding `coding`.
    pub fn new(body: OriginBody, coding: Coding) -> Understanding {
        Understanding { body, decoder: Decoder::new(coding).ok(), left: Bytes::new() }
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

/// Collects a decoder's output, up to a maximum size.
#[derive(Default)]
struct Sink(Vec<u8>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > GROWN_BYTES {
            return Err(io::Error::other("grows too much"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Decoder {
    Gzip(Box<MultiGzDecoder<Sink>>),
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
    Zstd { decoder: raw::Decoder<'static>, begun: Begun },
}

/// Whether a zstd frame is incomplete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begun {
    Nothing,
    Frame,
}

impl Decoder {
    fn new(coding: Coding) -> io::Result<Decoder> {
        Ok(match coding {
            Coding::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(Sink::default()))),
            Coding::Brotli => {
                let decoder = brotli::DecompressorWriter::new(Sink::default(), PIECE_BYTES);
                Decoder::Brotli(Box::new(decoder))
            }
            Coding::Zstd => {
                let mut decoder = raw::Decoder::new()?;
                let most = zstd::zstd_safe::DParameter::WindowLogMax(ZSTD_WINDOW_BITS);
                decoder.set_parameter(most)?;
                Decoder::Zstd { decoder, begun: Begun::Nothing }
            }
        })
    }

    /// Decodes the next bytes, and returns the output.
    fn feed(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Decoder::Gzip(decoder) => {
                decoder.write_all(piece)?;
                decoder.flush()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Decoder::Brotli(decoder) => {
                decoder.write_all(piece)?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Decoder::Zstd { decoder, begun } => {
                let (mut sink, mut room) = (Sink::default(), vec![0; 32 << 10]);
                let mut input = InBuffer::around(piece);
                loop {
                    let mut output = OutBuffer::around(&mut room[..]);
                    let hint = decoder.run(&mut input, &mut output)?;
                    let filled = output.pos() == output.capacity();
                    sink.write_all(output.as_slice())?;
                    *begun = if hint == 0 { Begun::Nothing } else { Begun::Frame };
                    if input.pos() == piece.len() && !filled {
                        return Ok(sink.0);
                    }
                }
            }
        }
    }

    /// Finishes decoding, and returns the remaining output.
    fn end(self) -> io::Result<Vec<u8>> {
        match self {
            Decoder::Gzip(mut decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Decoder::Brotli(mut decoder) => {
                decoder.close()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Decoder::Zstd { begun: Begun::Frame, .. } => Err(io::ErrorKind::UnexpectedEof.into()),
            Decoder::Zstd { .. } => Ok(Vec::new()),
        }
    }
}

/// Decodes `coded` completely, to at most `most` bytes.
///
/// # Errors
/// The content is not in this coding, ends too early, or is longer than `most`.
pub fn whole(coding: Coding, coded: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let mut decoder = Decoder::new(coding)?;
    let mut all = Vec::with_capacity(most);
    for piece in coded.chunks(PIECE_BYTES) {
        all.extend(decoder.feed(piece)?);
        if all.len() > most {
            return Err(io::Error::other("longer than was said"));
        }
    }
    all.extend(decoder.end()?);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::make;
    use super::*;

    #[test]
    fn content_that_ends_too_early_or_is_not_what_it_says_is_refused() {
        let text = b"a page ".repeat(9_000);
        for (coding, content) in make(&text, &Coding::ALL) {
            assert_eq!(whole(coding, &content, text.len()).unwrap(), text);
            for cut in 0..content.len() {
                assert!(
                    whole(coding, &content[..cut], text.len()).is_err() || cut == 0,
                    "{coding:?} {cut}"
                );
            }
            assert!(whole(coding, b"<html>not at all</html>", 100).is_err(), "{coding:?}");
            assert!(whole(coding, &content, 100).is_err(), "{coding:?}");
        }
    }

    #[test]
    fn a_bomb_does_not_go_off() {
        let zeros = vec![0; 64 << 20];
        for (coding, bomb) in make(&zeros, &[Coding::Brotli, Coding::Zstd]) {
            let mut decoder = Decoder::new(coding).unwrap();
            let fed = bomb.chunks(PIECE_BYTES).map(|piece| decoder.feed(piece));
            let refused = fed.take_while(|out| out.as_ref().is_ok_and(|o| o.len() <= GROWN_BYTES));
            assert!(refused.count() < bomb.chunks(PIECE_BYTES).count(), "{coding:?}");
        }
    }
}
