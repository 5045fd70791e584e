//! The request's content, as STDIN records, and the record that gives a request up.
//!
//! A record's header is handed out apart from the content, so that the caller writes both with one
//! vectored write and copies nothing. STDIN records are not padded: FastCGI §3.3 only recommends
//! 8-byte boundaries, padding would be a third piece of every write, and chunks of
//! [`STDIN_CHUNK_MAX`] bytes keep to the boundary by themselves, but for the last.
//!
//! The length of STDIN and `CONTENT_LENGTH` must agree (FastCGI §6.2): php-fpm reads as many bytes
//! as the param says, none when it is missing. The caller sees to that.

use crate::record::{ALIGNED_CONTENT_MAX, HEADER_LEN, REQUEST_ID, RecordHeader, RecordType};
use bytes::Bytes;
use std::num::NonZeroU16;

/// The most content [`split_stdin`] puts into one record, in bytes.
pub const STDIN_CHUNK_MAX: usize = ALIGNED_CONTENT_MAX;

/// The empty STDIN record: the request's content has ended (FastCGI §5.3). Sent without content
/// too.
pub const STDIN_END: [u8; HEADER_LEN] =
    RecordHeader::new(RecordType::Stdin, REQUEST_ID, 0).encode();

/// ABORT_REQUEST (FastCGI §5.4): the client has gone away. The responder answers with END_REQUEST
/// as soon as it can. php-fpm does not look for it while a script runs, and inside STDIN takes it
/// for a cut; so send it where a responder may honour it, and close the connection all the same.
pub const ABORT_REQUEST: [u8; HEADER_LEN] =
    RecordHeader::new(RecordType::AbortRequest, REQUEST_ID, 0).encode();

/// The header of a STDIN record with `len` bytes of content, which the caller writes next.
///
/// Zero is not a length here, because an empty record would end the content: [`STDIN_END`].
pub const fn stdin_header(len: NonZeroU16) -> [u8; HEADER_LEN] {
    RecordHeader::new(RecordType::Stdin, REQUEST_ID, len.get()).encode()
}

/// Takes the next record off the front of `content`: its header and its bytes (shared, not
/// copied), at most [`STDIN_CHUNK_MAX`]. `None` when nothing is left; that does not end the stream.
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
