//! Decompresses MariaDB's events and columns (zlib) and MySQL's transactions (zstd).
//!
//! Every length is known or bounded before memory is allocated; output beyond the announced length is refused.
//! Sources: `binlog_buf_uncompress` and `sql/field_comp.cc` of MariaDB, "Transaction_payload" of MySQL.

use flate2::{Decompress, FlushDecompress, Status};
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::io::Read;

/// Compression windows of up to 128 MiB, the largest that the server's own compressor uses.
const WINDOW_LOG_MAX: u32 = 27;
/// The maximum length of a value in a compressed column, in bytes.
const COLUMN_MAX: u64 = 64 << 20;
/// The compression ratio of zlib is at most about 1032 to 1.
const GAIN_MAX: u64 = 1100;

/// Decompresses the body of a compressed MariaDB event. It consists of a byte with the algorithm and the number
/// of length bytes, the length (big-endian), and a zlib stream.
///
/// # Errors
/// `Truncated`; `UnknownCompression`; `TooLong` if the result exceeds `max_bytes`; `BadCompression`.
pub(crate) fn event(bytes: &[u8], max_bytes: usize) -> Result<Vec<u8>, Refusal> {
    let mut reader = Reader::new(bytes);
    let head = reader.u8()?;
    if head & 0xf0 != 0x80 {
        return Err(Refusal::UnknownCompression);
    }
    let len = reader.uint_big(usize::from(head & 0x07))?;
    if len > max_bytes as u64 {
        return Err(Refusal::TooLong);
    }
    inflate(reader.rest(), len, true)
}

/// Decompresses a value of a compressed MariaDB column. It is empty; or a zero byte and the plain value; or a
/// byte with the algorithm, the kind of stream (raw or not) and the number of length bytes, then the length,
/// then the stream.
///
/// # Errors
/// As for [`event`].
pub(crate) fn column(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut reader = Reader::new(bytes);
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    match reader.u8()? {
        0 => Ok(reader.rest().to_vec()),
        head if head & 0xf0 == 0x80 => {
            let len = reader.uint_big(usize::from(head & 0x07))?;
            if len > COLUMN_MAX {
                return Err(Refusal::TooLong);
            }
            inflate(reader.rest(), len, head & 0x08 == 0)
        }
        _ => Err(Refusal::UnknownCompression),
    }
}

fn inflate(bytes: &[u8], len: u64, with_header: bool) -> Result<Vec<u8>, Refusal> {
    if len > (bytes.len() as u64).saturating_mul(GAIN_MAX) {
        return Err(Refusal::BadCompression);
    }
    // One byte more, so that excess output is detected.
    let len = usize::try_from(len).map_err(|_| Refusal::TooLong)?;
    let mut out = Vec::with_capacity(len + 1);
    let mut inflater = Decompress::new(with_header);
    let status = inflater
        .decompress_vec(bytes, &mut out, FlushDecompress::Finish)
        .map_err(|_| Refusal::BadCompression)?;
    if status == Status::StreamEnd && out.len() == len {
        Ok(out)
    } else {
        Err(Refusal::BadCompression)
    }
}

/// The events of a compressed transaction, decompressed one after the other. It needs memory for one event and
/// for the decompression window.
pub(crate) struct DecompressedEvents<'a> {
    source: Source<'a>,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Zstd(Box<zstd::stream::read::Decoder<'a, &'a [u8]>>),
}

impl<'a> DecompressedEvents<'a> {
    /// Events that are stored uncompressed.
    pub(crate) fn plain(bytes: &'a [u8]) -> DecompressedEvents<'a> {
        DecompressedEvents { source: Source::Plain(bytes) }
    }

    /// Events compressed with zstd.
    ///
    /// # Errors
    /// `BadCompression`.
    pub(crate) fn zstd(bytes: &'a [u8]) -> Result<DecompressedEvents<'a>, Refusal> {
        let decoder = zstd::stream::read::Decoder::with_buffer(bytes);
        let mut decoder = decoder.map_err(|_| Refusal::BadCompression)?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(|_| Refusal::BadCompression)?;
        Ok(DecompressedEvents { source: Source::Zstd(Box::new(decoder)) })
    }

    /// The next `count` bytes; fewer only at the end.
    ///
    /// # Errors
    /// `BadCompression`.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        let limit = count as u64;
        match &mut self.source {
            Source::Plain(bytes) => bytes.take(limit).read_to_end(&mut out),
            Source::Zstd(decoder) => decoder.as_mut().take(limit).read_to_end(&mut out),
        }
        .map_err(|_| Refusal::BadCompression)?;
        Ok(out)
    }

    /// Skips `count` bytes.
    ///
    /// # Errors
    /// `BadCompression`; `Truncated` if there are fewer bytes.
    pub(crate) fn skip(&mut self, mut count: usize) -> Result<(), Refusal> {
        while count > 0 {
            let taken = self.take(count.min(64 << 10))?.len();
            if taken == 0 {
                return Err(Refusal::Truncated);
            }
            count -= taken;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn an_event_is_decompressed_within_its_bound() {
        let text = vec![b'x'; 1000];
        let mut body = vec![0x82, 0x03, 0xe8];
        body.extend_from_slice(&zlib(&text));
        assert_eq!(event(&body, 1000), Ok(text));
        assert_eq!(event(&body, 999), Err(Refusal::TooLong));
        body[2] = 0xe7;
        assert_eq!(event(&body, 1000), Err(Refusal::BadCompression));
        body[0] = 0x92;
        assert_eq!(event(&body, 1000), Err(Refusal::UnknownCompression));
    }

    #[test]
    fn an_announced_length_takes_no_memory_by_itself() {
        let body = [0x84, 0x03, 0xff, 0xff, 0xff, 0x78];
        assert_eq!(event(&body, usize::MAX), Err(Refusal::BadCompression));
    }

    #[test]
    fn columns_may_be_stored_as_they_are() {
        assert_eq!(column(b"").as_deref(), Ok(&b""[..]));
        assert_eq!(column(b"\0abc").as_deref(), Ok(&b"abc"[..]));
        let mut value = vec![0x81, 5];
        value.extend_from_slice(&zlib(b"hello"));
        assert_eq!(column(&value).as_deref(), Ok(&b"hello"[..]));
    }

    #[test]
    fn a_transaction_is_read_in_pieces() {
        let packed = zstd::bulk::compress(&[7; 100_000], 3).expect("memory");
        let mut unpacked = DecompressedEvents::zstd(&packed).expect("a stream");
        assert_eq!(unpacked.take(10), Ok(vec![7; 10]));
        assert_eq!(unpacked.skip(99_980), Ok(()));
        assert_eq!(unpacked.take(100), Ok(vec![7; 10]));
        assert_eq!(unpacked.skip(1), Err(Refusal::Truncated));
        assert_eq!(DecompressedEvents::plain(b"abc").take(2), Ok(b"ab".to_vec()));
    }
}
