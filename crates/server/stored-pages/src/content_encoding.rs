//! Compresses content for the cache: once, and at better levels than while sending. The output is
//! deterministic, so a strong entity tag is the same on every node. A compressed form is kept only if
//! it is small enough. The window size, and with it the memory used, is bounded.

use bytes::Bytes;
use config::Codings;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_cache::codings::Coding;
use std::io::{self, Write};
use std::path::Path;

/// Compression level for gzip: zlib's default.
const GZIP_LEVEL: u32 = 6;
/// Brotli quality: above it, time grows faster than the savings.
const BROTLI_QUALITY: i32 = 5;
/// zstd level: about the same time as the other two.
const ZSTD_LEVEL: i32 = 8;

/// Compresses `content` with each of `codings`. Returns the results that are at least a tenth smaller.
pub fn make(content: &[u8], codings: &[Coding]) -> Vec<(Coding, Bytes)> {
    let most = content.len() - content.len() / 10;
    let coded = codings.iter().filter_map(|coding| {
        let coded = compressed(content, *coding).ok()?;
        (coded.len() <= most).then(|| (*coding, Bytes::from(coded.into_boxed_slice())))
    });
    coded.collect()
}

/// The compressed forms of a file: precompressed files next to it (`app.js.br`) if the site uses them,
/// the others made here.
pub fn make_for_file(chosen: &Codings, path: &Path, content: &[u8]) -> Vec<(Coding, Bytes)> {
    let mut found = Vec::new();
    if chosen.files_beside {
        let beside = |coding: &Coding| Some((*coding, beside(path, *coding, content.len())?));
        found.extend(chosen.make.iter().filter_map(beside));
    }
    let missing: Vec<Coding> = chosen
        .make
        .iter()
        .filter(|coding| !found.iter().any(|(there, _)| there == *coding))
        .copied()
        .collect();
    found.extend(make(content, &missing));
    found
}

/// Reads a precompressed file, for example `app.js.br` for `app.js`. It must be a regular file (a link
/// could lead anywhere), not older than the original, and smaller. That its content is the same is not
/// checked.
fn beside(path: &Path, coding: Coding, bytes: usize) -> Option<Bytes> {
    let extension = match coding {
        Coding::Gzip => ".gz",
        Coding::Brotli => ".br",
        Coding::Zstd => ".zst",
    };
    let mut name = path.as_os_str().to_owned();
    name.push(extension);
    let found = std::fs::symlink_metadata(&name).ok().filter(|found| found.is_file())?;
    let original = std::fs::metadata(path).ok()?;
    let newer = found.modified().ok()? >= original.modified().ok()?;
    let smaller = found.len() < bytes as u64;
    if newer && smaller { std::fs::read(&name).ok().map(Bytes::from) } else { None }
}

fn compressed(content: &[u8], coding: Coding) -> io::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(content.len() / 3 + 64);
    match coding {
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(&mut out, Compression::new(GZIP_LEVEL));
            encoder.write_all(content)?;
            encoder.finish()?;
        }
        Coding::Brotli => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: BROTLI_QUALITY,
                lgwin: window_bits(content.len()),
                size_hint: content.len(),
                ..Default::default()
            };
            brotli::BrotliCompress(&mut &content[..], &mut out, &params)?;
        }
        Coding::Zstd => out = zstd::bulk::compress(content, ZSTD_LEVEL)?,
    }
    Ok(out)
}

/// Brotli's window: the smallest that holds all of the content, from 128 KiB to 4 MiB. The window
/// bounds the memory of the encoder and of the client's decoder. Below 128 KiB the encoder has no
/// matching table and uses one of 32 MiB. Touching that memory makes it ten times slower, for the same
/// output size.
fn window_bits(bytes: usize) -> i32 {
    let bits = usize::BITS - bytes.saturating_add(16).leading_zeros();
    bits.clamp(17, 22) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content_decoding::whole;

    fn text() -> Vec<u8> {
        (0..2_000).flat_map(|n| format!("<p>line {n} of a page</p>\n").into_bytes()).collect()
    }

    #[test]
    fn compression_is_lossless_and_deterministic() {
        let text = text();
        let made = make(&text, &Coding::ALL);
        assert_eq!(made.len(), 3);
        for (coding, content) in &made {
            assert!(content.len() * 4 < text.len(), "{coding:?}: {}", content.len());
            assert_eq!(whole(*coding, content, text.len()).unwrap(), text, "{coding:?}");
        }
        assert!(made == make(&text, &Coding::ALL));
    }

    /// The encoder's memory depends on its table, which the window selects: see `window_bits`.
    #[test]
    fn no_window_is_one_that_the_encoder_has_no_table_for() {
        for (bytes, bits) in [(0, 17), (2_042, 17), (131_055, 17), (131_056, 18), (1 << 30, 22)] {
            assert_eq!(window_bits(bytes), bits, "{bytes}");
        }
    }

    #[test]
    fn compressed_content_that_is_no_smaller_is_discarded() {
        // Bytes without a pattern.
        let mut state = 1u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        })
        .take(10_000)
        .collect();
        assert!(make(&noise, &Coding::ALL).is_empty());
        assert!(make(b"", &Coding::ALL).is_empty());
    }
}
