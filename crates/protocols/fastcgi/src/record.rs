//! The 8-byte header of every record, and the constants of the protocol.
//!
//! FastCGI §3.3: version, type, request id, content length, padding length, one reserved byte; all numbers are
//! big-endian. The content has 0–65,535 bytes, followed by 0–255 bytes of padding to skip. Types 1–8 belong to
//! a request, 9–11 to the connection (request id 0). Not here: the meaning and the order of records.

/// The only protocol version (FastCGI §3.3, `FCGI_VERSION_1`).
pub const VERSION: u8 = 1;

/// The length of a record's header in bytes (`FCGI_HEADER_LEN`).
pub const HEADER_LEN: usize = 8;

/// The maximum content of one record in bytes: the length is a 16-bit number.
pub const CONTENT_MAX: usize = 65_535;

/// The largest content in bytes that keeps the next record on an 8-byte boundary without padding (FastCGI §3.3
/// recommends the boundary). php-fpm closes the connection if a BEGIN_REQUEST or PARAMS record has more than
/// 65,535 bytes *including* padding. Up to this size no padding can cause that.
pub const ALIGNED_CONTENT_MAX: usize = 65_528;

/// The request id of every request that Pagewell sends. Requests on one connection are sequential.
pub const REQUEST_ID: u16 = 1;

/// The request id of management records (FastCGI §3.3, `FCGI_NULL_REQUEST_ID`).
pub const MANAGEMENT_ID: u16 = 0;

/// `FCGI_KEEP_CONN`: the responder leaves the connection open after END_REQUEST (FastCGI §5.1).
pub const FLAG_KEEP_CONN: u8 = 1;

/// The role of a responder: `FCGI_RESPONDER` (FastCGI §6.2).
pub const ROLE_RESPONDER: u16 = 1;

/// The length of the content of BEGIN_REQUEST and of END_REQUEST in bytes (FastCGI §5.1, §5.5).
pub const BODY_LEN: usize = 8;

/// The type of a record (FastCGI §8, `FCGI_BEGIN_REQUEST` … `FCGI_UNKNOWN_TYPE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordType {
    /// Web server → responder: a request begins (§5.1).
    BeginRequest = 1,
    /// Web server → responder: abort this request (§5.4).
    AbortRequest = 2,
    /// Responder → web server: a request has ended (§5.5).
    EndRequest = 3,
    /// Web server → responder: name-value pairs (§5.2).
    Params = 4,
    /// Web server → responder: the request's content (§5.3).
    Stdin = 5,
    /// Responder → web server: the CGI response (§5.3).
    Stdout = 6,
    /// Responder → web server: messages for the log (§5.3).
    Stderr = 7,
    /// Web server → responder, filter role only (§5.3).
    FilterFile = 8,
    /// Web server → responder, management: request configuration values (§4.1).
    GetValues = 9,
    /// Responder → web server, management: the requested values (§4.1).
    GetValuesResult = 10,
    /// Responder → web server, management: the type is unknown to the responder (§4.2).
    UnknownType = 11,
}

impl RecordType {
    /// The type with this number, or `None` if the specification does not define it.
    pub fn from_number(number: u8) -> Option<RecordType> {
        Some(match number {
            1 => RecordType::BeginRequest,
            2 => RecordType::AbortRequest,
            3 => RecordType::EndRequest,
            4 => RecordType::Params,
            5 => RecordType::Stdin,
            6 => RecordType::Stdout,
            7 => RecordType::Stderr,
            8 => RecordType::FilterFile,
            9 => RecordType::GetValues,
            10 => RecordType::GetValuesResult,
            11 => RecordType::UnknownType,
            _ => return None,
        })
    }
}

/// A decoded record header. Any eight bytes decode; the caller checks the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The protocol version; the caller must refuse any other than [`VERSION`].
    pub version: u8,
    /// The number of the type; see [`RecordType::from_number`].
    pub type_number: u8,
    /// The request that the record belongs to; 0 for management records.
    pub request_id: u16,
    /// The length of the content that follows, in bytes.
    pub content_len: u16,
    /// The length of the padding after the content, in bytes.
    pub padding_len: u8,
}

impl RecordHeader {
    /// A header of the current version without padding, for `content_len` bytes of content.
    pub const fn new(kind: RecordType, request_id: u16, content_len: u16) -> RecordHeader {
        RecordHeader {
            version: VERSION,
            type_number: kind as u8,
            request_id,
            content_len,
            padding_len: 0,
        }
    }

    /// This header with the padding that puts the next record on an 8-byte boundary.
    pub const fn padded(mut self) -> RecordHeader {
        self.padding_len = (self.content_len.wrapping_neg() & 7) as u8;
        self
    }

    /// The eight bytes to send (FastCGI §3.3); the reserved byte is zero.
    pub const fn encode(self) -> [u8; HEADER_LEN] {
        let [id1, id0] = self.request_id.to_be_bytes();
        let [len1, len0] = self.content_len.to_be_bytes();
        [self.version, self.type_number, id1, id0, len1, len0, self.padding_len, 0]
    }

    /// Decodes the eight bytes; the reserved byte is ignored.
    pub const fn decode(bytes: [u8; HEADER_LEN]) -> RecordHeader {
        RecordHeader {
            version: bytes[0],
            type_number: bytes[1],
            request_id: u16::from_be_bytes([bytes[2], bytes[3]]),
            content_len: u16::from_be_bytes([bytes[4], bytes[5]]),
            padding_len: bytes[6],
        }
    }

    /// Decodes a header from the front of `bytes` without removing it; `None` if there are fewer than eight
    /// bytes.
    pub fn peek(bytes: &[u8]) -> Option<RecordHeader> {
        bytes.first_chunk::<HEADER_LEN>().map(|header| RecordHeader::decode(*header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_bytes_are_those_of_the_specification() {
        let header = RecordHeader::new(RecordType::Stdin, 0x0102, 0x0304);
        assert_eq!(header.encode(), [1, 5, 1, 2, 3, 4, 0, 0]);
        assert_eq!(RecordHeader::decode(header.encode()), header);
        assert_eq!(RecordHeader::peek(&header.encode()[..7]), None);
    }

    #[test]
    fn padding_reaches_the_next_multiple_of_eight() {
        for len in [0u16, 1, 7, 8, 9, 65_528, 65_535] {
            let padded = RecordHeader::new(RecordType::Params, 1, len).padded();
            assert_eq!((u32::from(len) + u32::from(padded.padding_len)) % 8, 0);
            assert!(padded.padding_len < 8);
        }
    }

    #[test]
    fn every_number_from_one_to_eleven_is_a_type() {
        for number in 0..=255u8 {
            match RecordType::from_number(number) {
                Some(kind) => assert_eq!(kind as u8, number),
                None => assert!(number == 0 || number > 11),
            }
        }
    }
}
