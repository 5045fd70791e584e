//! Decoding of compressed content: gzip, Brotli and zstd, piece by piece or as a whole, with bounds on the result.
//!
//! Pure: bytes in, bytes out. Which responses are decoded is decided elsewhere (`origin::decoded_body`).
//! Sources: RFC 9110 section 8.4.1 (content codings), RFC 7932 (Brotli), RFC 8878 (zstd).

use flate2::write::MultiGzDecoder;
use http_cache::codings::Coding;
use std::io::{self, Write};
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};

/// How many bytes are passed to a decoder at a time.
pub const PIECE_BYTES: usize = 4 << 10;
/// Maximum output for one such piece, in bytes: 1,024 times the input, about gzip's maximum ratio.
const GROWN_BYTES: usize = PIECE_BYTES * 1_024;
/// The largest window of a zstd frame that is accepted, as a power of two (RFC 9659 section 3).
const ZSTD_WINDOW_BITS: u32 = 23;

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

/// Decodes content piece by piece.
pub struct Decoder(Inner);

enum Inner {
    Gzip(Box<MultiGzDecoder<Sink>>),
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
    Zstd { decoder: raw::Decoder<'static>, is_in_frame: bool },
}

impl Decoder {
    /// A decoder for this coding.
    ///
    /// # Errors
    /// The library refuses its settings.
    pub fn new(coding: Coding) -> io::Result<Decoder> {
        Ok(Decoder(match coding {
            Coding::Gzip => Inner::Gzip(Box::new(MultiGzDecoder::new(Sink::default()))),
            Coding::Brotli => {
                let decoder = brotli::DecompressorWriter::new(Sink::default(), PIECE_BYTES);
                Inner::Brotli(Box::new(decoder))
            }
            Coding::Zstd => {
                let mut decoder = raw::Decoder::new()?;
                let most = zstd::zstd_safe::DParameter::WindowLogMax(ZSTD_WINDOW_BITS);
                decoder.set_parameter(most)?;
                Inner::Zstd { decoder, is_in_frame: false }
            }
        }))
    }

    /// Decodes the next bytes, and returns the output.
    ///
    /// # Errors
    /// The content is not in this coding, or the output grows beyond 1,024 times the input.
    pub fn feed(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        match &mut self.0 {
            Inner::Gzip(decoder) => {
                decoder.write_all(piece)?;
                decoder.flush()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Brotli(decoder) => {
                decoder.write_all(piece)?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Zstd { decoder, is_in_frame } => {
                let (mut sink, mut room) = (Sink::default(), vec![0; 32 << 10]);
                let mut input = InBuffer::around(piece);
                loop {
                    let mut output = OutBuffer::around(&mut room[..]);
                    let hint = decoder.run(&mut input, &mut output)?;
                    let filled = output.pos() == output.capacity();
                    sink.write_all(output.as_slice())?;
                    *is_in_frame = hint != 0;
                    if input.pos() == piece.len() && !filled {
                        return Ok(sink.0);
                    }
                }
            }
        }
    }

    /// Finishes decoding, and returns the remaining output.
    ///
    /// # Errors
    /// The content ends too early.
    pub fn end(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Inner::Gzip(mut decoder) => {
                decoder.try_finish()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Brotli(mut decoder) => {
                decoder.close()?;
                Ok(std::mem::take(&mut decoder.get_mut().0))
            }
            Inner::Zstd { is_in_frame: true, .. } => Err(io::ErrorKind::UnexpectedEof.into()),
            Inner::Zstd { .. } => Ok(Vec::new()),
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
    use super::*;
    use crate::content_encoding::make;

    #[test]
    fn truncated_and_mislabelled_content_is_refused() {
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
