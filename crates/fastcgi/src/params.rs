//! The params of one request, and the records that open it (FastCGI §5.1, §5.2, §6.2).
//!
//! Invariant: a pair lies whole within one PARAMS record. The specification lets a pair run over
//! a record's end; php-fpm decodes each record by itself and closes the connection on a pair cut
//! in two, and on a record of more than 65,535 bytes with its padding. So records are filled with
//! whole pairs up to 65,528 bytes, and a pair that does not fit in one is refused here.
//!
//! Pairs are kept as they will be sent, one buffer for all, so that opening a request is a copy.
//! A request's start is small and is built whole; the content that follows never is.

use crate::pairs;
use crate::record::{
    ALIGNED_CONTENT_MAX, FLAG_KEEP_CONN, HEADER_LEN, REQUEST_ID, ROLE_RESPONDER, RecordHeader,
    RecordType,
};
use bytes::{BufMut, Bytes, BytesMut};

/// The longest encoded pair any limit allows, in bytes.
pub const PAIR_BYTES_MAX: usize = 65_500;

/// What the responder does with the connection when the request has ended (FastCGI §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRequest {
    /// `FCGI_KEEP_CONN`: it stays open, and the web server closes it.
    KeepOpen,
    /// The responder closes it.
    Close,
}

/// Bounds on the params of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamsLimits {
    /// Most bytes of all encoded pairs together.
    pub total_bytes: usize,
    /// Most bytes of one encoded pair; more than [`PAIR_BYTES_MAX`] counts as that.
    pub pair_bytes: usize,
}

impl Default for ParamsLimits {
    /// 1 MiB in all (a browser's request needs about 2 KiB), and pairs up to the protocol's most.
    fn default() -> ParamsLimits {
        ParamsLimits { total_bytes: 1 << 20, pair_bytes: PAIR_BYTES_MAX }
    }
}

/// Why a pair was not taken. Sizes are answered with 431, the others with 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamsRefused {
    /// The pair, encoded, is longer than one record may carry.
    PairTooLarge {
        /// Its name, at most the first 64 bytes of it.
        name: String,
        /// Its encoded length in bytes.
        bytes: usize,
    },
    /// All pairs together would pass the limit.
    TotalTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The name is empty, or holds `=` or a NUL byte: it could not be an environment variable.
    NameInvalid,
    /// The value holds a NUL byte. Programs read values as C strings, and a path cut short at
    /// the NUL is another path.
    ValueHasNul {
        /// Its name, at most the first 64 bytes of it.
        name: String,
    },
}

impl ParamsRefused {
    /// The reason's name, for logs and metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            ParamsRefused::PairTooLarge { .. } => "param-too-large",
            ParamsRefused::TotalTooLarge { .. } => "params-too-large",
            ParamsRefused::NameInvalid => "param-name-invalid",
            ParamsRefused::ValueHasNul { .. } => "param-value-has-nul",
        }
    }
}

impl std::fmt::Display for ParamsRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParamsRefused::PairTooLarge { name, bytes } => {
                write!(f, "param {name} takes {bytes} bytes, more than one record may carry")
            }
            ParamsRefused::TotalTooLarge { limit } => {
                write!(f, "params take more than {limit} bytes")
            }
            ParamsRefused::NameInvalid => f.write_str("param with an invalid name"),
            ParamsRefused::ValueHasNul { name } => write!(f, "param {name} holds a NUL byte"),
        }
    }
}

impl std::error::Error for ParamsRefused {}

/// The params of one request, in the order in which they were pushed.
///
/// A name pushed twice is sent twice; php-fpm lets the last one count.
#[derive(Clone, Debug)]
pub struct Params {
    limits: ParamsLimits,
    /// All pairs, encoded, one after the other.
    encoded: BytesMut,
    /// Where in `encoded` each full record ends; what follows the last belongs to one more.
    record_ends: Vec<usize>,
}

impl Params {
    /// No params yet, bounded by `limits`.
    pub fn new(limits: ParamsLimits) -> Params {
        Params { limits, encoded: BytesMut::with_capacity(2048), record_ends: Vec::new() }
    }

    /// Adds a pair. On a refusal nothing is added, and the params may still be sent without it.
    ///
    /// # Errors
    /// A bound passed, or bytes that no program could receive: see [`ParamsRefused`].
    pub fn push(
        &mut self,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), ParamsRefused> {
        let (name, value) = (name.as_ref(), value.as_ref());
        if name.is_empty() || name.iter().any(|byte| matches!(byte, b'=' | 0)) {
            return Err(ParamsRefused::NameInvalid);
        }
        if value.contains(&0) {
            return Err(ParamsRefused::ValueHasNul { name: shown(name) });
        }
        let bytes = pairs::encoded_len(name, value);
        if bytes > self.limits.pair_bytes.min(PAIR_BYTES_MAX) {
            return Err(ParamsRefused::PairTooLarge { name: shown(name), bytes });
        }
        if self.encoded.len() + bytes > self.limits.total_bytes {
            return Err(ParamsRefused::TotalTooLarge { limit: self.limits.total_bytes });
        }
        let record_start = self.record_ends.last().copied().unwrap_or(0);
        if self.encoded.len() - record_start + bytes > ALIGNED_CONTENT_MAX {
            self.record_ends.push(self.encoded.len());
        }
        pairs::encode(name, value, &mut self.encoded);
        Ok(())
    }

    /// Bytes of all encoded pairs together, as counted against the limit.
    pub fn total_bytes(&self) -> usize {
        self.encoded.len()
    }

    /// The value last pushed under `name`: the one php-fpm lets count.
    pub fn get(&self, name: &[u8]) -> Option<Bytes> {
        self.to_pairs().into_iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All pairs as pushed, decoded again; for traces and tests, not for the way of a request.
    pub fn to_pairs(&self) -> Vec<pairs::Pair> {
        pairs::decode_all(Bytes::copy_from_slice(&self.encoded))
            .expect("only whole pairs were encoded")
    }

    /// Appends the start of a request: BEGIN_REQUEST for a responder, the PARAMS records, and the
    /// empty one that ends them. STDIN follows (see [`crate::stdin_header`]), if only its end.
    pub fn encode_request_start(&self, after: AfterRequest, out: &mut BytesMut) {
        let records = self.record_ends.len() + 1;
        out.reserve(self.encoded.len() + records * (HEADER_LEN + 7) + 3 * HEADER_LEN);
        out.put_slice(&begin_request(after));
        let mut start = 0;
        for end in self.record_ends.iter().copied().chain([self.encoded.len()]) {
            encode_params_record(&self.encoded[start..end], out);
            start = end;
        }
        out.put_slice(&PARAMS_END);
    }
}

impl Default for Params {
    /// No params yet, with the default limits.
    fn default() -> Params {
        Params::new(ParamsLimits::default())
    }
}

/// The empty PARAMS record (FastCGI §5.2: a stream ends with a record without content).
const PARAMS_END: [u8; HEADER_LEN] = RecordHeader::new(RecordType::Params, REQUEST_ID, 0).encode();

/// BEGIN_REQUEST with its content: role, flags, five reserved bytes (FastCGI §5.1).
fn begin_request(after: AfterRequest) -> [u8; 2 * HEADER_LEN] {
    let flags = match after {
        AfterRequest::KeepOpen => FLAG_KEEP_CONN,
        AfterRequest::Close => 0,
    };
    let [role1, role0] = ROLE_RESPONDER.to_be_bytes();
    let mut record = [0; 2 * HEADER_LEN];
    record[..HEADER_LEN]
        .copy_from_slice(&RecordHeader::new(RecordType::BeginRequest, REQUEST_ID, 8).encode());
    record[HEADER_LEN..HEADER_LEN + 3].copy_from_slice(&[role1, role0, flags]);
    record
}

/// One PARAMS record, padded to 8 bytes: here the bytes are copied anyway, so padding is free.
fn encode_params_record(content: &[u8], out: &mut BytesMut) {
    if content.is_empty() {
        return; // An empty record would end the stream.
    }
    let len = u16::try_from(content.len()).expect("records are filled to 65,528 bytes at most");
    let header = RecordHeader::new(RecordType::Params, REQUEST_ID, len).padded();
    out.put_slice(&header.encode());
    out.put_slice(content);
    out.put_bytes(0, usize::from(header.padding_len));
}

/// The name as a message shows it: its first 64 bytes.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned()
}
