//! Content codings: encodes the content of the scripted origin, and decodes the content of the subject. The
//! decoders are strict: truncated content is an error, and so are bytes after its end (except for Brotli, whose
//! decoder consumes them).

use std::io::{Read, Write};

/// The maximum length of decoded content in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// Encodes `content` with the coding of this name; without a name it is returned unchanged.
pub(crate) fn encode(name: &[u8], content: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let written = match name {
        b"" | b"identity" => out.write_all(content),
        b"gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast());
            encoder.write_all(content).and_then(|()| encoder.finish().map(drop))
        }
        b"br" => brotli::BrotliCompress(&mut &content[..], &mut out, &Default::default()).map(drop),
        b"zstd" => zstd::encode_all(content, 1).map(|coded| out = coded),
        _ => return Err(unknown(name)),
    };
    written.map(|()| out).map_err(|error| error.to_string())
}

/// Decodes content with the coding of this name.
pub(crate) fn decode(name: &[u8], coded: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = coded;
    let read = match name {
        b"" | b"identity" => return Ok(coded.to_vec()),
        b"gzip" => flate2::bufread::GzDecoder::new(&mut rest).take(BYTES_MAX).read_to_end(&mut out),
        b"br" => brotli::Decompressor::new(&mut rest, 4096).take(BYTES_MAX).read_to_end(&mut out),
        b"zstd" => zstd::Decoder::with_buffer(&mut rest)
            .map(zstd::Decoder::single_frame)
            .and_then(|decoder| decoder.take(BYTES_MAX).read_to_end(&mut out)),
        _ => return Err(unknown(name)),
    };
    match read {
        Ok(_) if rest.is_empty() => Ok(out),
        Ok(_) => Err(format!("{} bytes behind the end of the coding", rest.len())),
        Err(error) => Err(error.to_string()),
    }
}

fn unknown(name: &[u8]) -> String {
    format!("{:?} is no coding that is known here", String::from_utf8_lossy(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for name in [&b""[..], b"gzip", b"br", b"zstd"] {
            let coded = encode(name, b"one two one two").unwrap();
            assert_eq!(decode(name, &coded).unwrap(), b"one two one two");
            if !name.is_empty() {
                assert_ne!(coded, b"one two one two");
                assert!(decode(name, &coded[..coded.len() - 1]).is_err());
            }
        }
        assert!(encode(b"lzma", b"").is_err());
        assert!(decode(b"gzip", b"plain").is_err());
        let twice = [encode(b"gzip", b"a").unwrap(), b"x".to_vec()].concat();
        assert!(decode(b"gzip", &twice).is_err());
    }
}
