//! Encodes the request's content as STDIN records, and the record that aborts a request.
//!
//! The header of a record is returned separately from its content. The caller can therefore write both with one
//! vectored write and without copying. STDIN records are not padded: FastCGI §3.3 only recommends 8-byte
//! boundaries, and padding would be a third piece of every write. Chunks of [`STDIN_CHUNK_MAX`] bytes keep the
//! boundary without padding, except for the last one.
//!
//! The length of STDIN and `CONTENT_LENGTH` must agree (FastCGI §6.2): php-fpm reads as many bytes as the param
//! says, and none if it is missing. The caller must ensure this.

use crate::record::{ALIGNED_CONTENT_MAX, HEADER_LEN, REQUEST_ID, RecordHeader, RecordType};
use bytes::Bytes;
use std::num::NonZeroU16;

/// The maximum content that [`split_stdin`] puts into one record, in bytes.
pub const STDIN_CHUNK_MAX: usize = ALIGNED_CONTENT_MAX;

/// The empty STDIN record, which ends the request's content (FastCGI §5.3). It is also sent if the request has
/// no content.
pub const STDIN_END: [u8; HEADER_LEN] =
    RecordHeader::new(RecordType::Stdin, REQUEST_ID, 0).encode();

/// The ABORT_REQUEST record (FastCGI §5.4): the client has disconnected. The responder should answer with
/// END_REQUEST as soon as possible. php-fpm does not read it while a script runs, and treats it as a protocol
/// error inside STDIN. Send it to responders that may support it, and close the connection in any case.
pub const ABORT_REQUEST: [u8; HEADER_LEN] =
    RecordHeader::new(RecordType::AbortRequest, REQUEST_ID, 0).encode();

/// The header of a STDIN record with `len` bytes of content, which the caller writes next.
///
/// The length cannot be zero, because an empty record would end the content: see [`STDIN_END`].
pub const fn stdin_header(len: NonZeroU16) -> [u8; HEADER_LEN] {
    RecordHeader::new(RecordType::Stdin, REQUEST_ID, len.get()).encode()
}

/// Removes the content of the next record from the front of `content`. Returns its header and its bytes
/// (shared, not copied), at most [`STDIN_CHUNK_MAX`]. Returns `None` if `content` is empty; that does not end
/// the stream.
pub fn split_stdin(content: &mut Bytes) -> Option<([u8; HEADER_LEN], Bytes)> {
    let len = content.len().min(STDIN_CHUNK_MAX);
    let record_len = NonZeroU16::new(u16::try_from(len).expect("at most 65,528 bytes"))?;
    Some((stdin_header(record_len), content.split_to(len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_cut_into_records_on_eight_byte_boundaries() {
        let mut content = Bytes::from(vec![7; 2 * STDIN_CHUNK_MAX + 5]);
        let mut lens = Vec::new();
        while let Some((header, chunk)) = split_stdin(&mut content) {
            assert_eq!(usize::from(RecordHeader::decode(header).content_len), chunk.len());
            lens.push(chunk.len());
        }
        assert_eq!(lens, [65_528, 65_528, 5]);
    }

    #[test]
    fn fixed_records_are_as_specified() {
        assert_eq!(STDIN_END, [1, 5, 0, 1, 0, 0, 0, 0]);
        assert_eq!(ABORT_REQUEST, [1, 2, 0, 1, 0, 0, 0, 0]);
        assert_eq!(stdin_header(NonZeroU16::MAX), [1, 5, 0, 1, 0xff, 0xff, 0, 0]);
    }
}
