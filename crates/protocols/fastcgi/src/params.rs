//! The params of one request, and the records that open it (FastCGI §5.1, §5.2, §6.2).
//!
//! Invariant: a pair is completely within one PARAMS record. The specification allows a pair to span records,
//! but php-fpm decodes each record separately. It closes the connection if a pair is split, or if a record has
//! more than 65,535 bytes including padding. Records are therefore filled with whole pairs up to 65,528 bytes,
//! and a pair that does not fit in one record is refused here.
//!
//! Pairs are written directly to the buffer that is sent. The buffer holds the whole start of a request, which
//! is small; the content that follows is never buffered.

use crate::pairs;
use crate::record::{
    ALIGNED_CONTENT_MAX, FLAG_KEEP_CONN, HEADER_LEN, REQUEST_ID, ROLE_RESPONDER, RecordHeader,
    RecordType,
};
use bytes::Bytes;

/// The maximum length of an encoded pair in bytes, whatever the configured limit.
pub const PAIR_BYTES_MAX: usize = 65_500;

/// Which side closes the connection after the request (FastCGI §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRequest {
    /// `FCGI_KEEP_CONN`: the connection stays open, and the web server closes it.
    KeepOpen,
    /// The responder closes the connection.
    Close,
}

/// Limits for the params of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamsLimits {
    /// The maximum length of all encoded pairs together, in bytes.
    pub total_bytes: usize,
    /// The maximum length of one encoded pair, in bytes. Values above [`PAIR_BYTES_MAX`] count as that.
    pub pair_bytes: usize,
}

impl Default for ParamsLimits {
    /// 1 MiB in total (a browser's request needs about 2 KiB), and pairs up to the maximum of the protocol.
    fn default() -> ParamsLimits {
        ParamsLimits { total_bytes: 1 << 20, pair_bytes: PAIR_BYTES_MAX }
    }
}

/// The reason why a pair was refused. Pairs that are too large are answered with status 431, the others with
/// 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamsRefused {
    /// The encoded pair is longer than one record allows.
    PairTooLarge {
        /// The first 64 bytes of the name of the pair.
        name: String,
        /// The encoded length of the pair, in bytes.
        bytes: usize,
    },
    /// All pairs together would exceed the limit.
    TotalTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The name is empty, or contains `=` or a NUL byte, so it is not a valid environment variable.
    NameInvalid,
    /// The value contains a NUL byte. Programs read values as C strings, and a path cut at the NUL is another
    /// path.
    ValueHasNul {
        /// The first 64 bytes of the name of the pair.
        name: String,
    },
}

impl ParamsRefused {
    /// The name of the reason, for logs and metrics.
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

/// The params of one request, in the order in which they were added.
///
/// A name that is added twice is sent twice; php-fpm uses the last one.
#[derive(Clone, Debug)]
pub struct Params {
    limits: ParamsLimits,
    /// The start of the request as it is sent: BEGIN_REQUEST and the PARAMS records so far. The last record is
    /// open: its header is not written yet.
    start: Vec<u8>,
    /// The index at which the open record begins.
    record: usize,
    /// The length of all encoded pairs together, in bytes.
    pairs_bytes: usize,
}

/// The first record of a request whose connection stays open. It may be sent before the rest of
/// [`Params::into_request_start`], which begins with it.
pub const BEGIN_KEPT_OPEN: [u8; BEGIN_REQUEST.len()] = {
    let mut record = BEGIN_REQUEST;
    record[FLAGS_AT] = FLAG_KEEP_CONN;
    record
};

/// The usual length of the start of a request, in bytes.
const START_USUAL: usize = 2048;

impl Params {
    /// Empty params, limited by `limits`.
    pub fn new(limits: ParamsLimits) -> Params {
        let mut start = Vec::with_capacity(START_USUAL);
        start.extend_from_slice(&BEGIN_REQUEST);
        let mut params = Params { limits, start, record: 0, pairs_bytes: 0 };
        params.open_record();
        params
    }

    /// Adds a pair. If it is refused nothing is added, and the params may still be sent without it.
    ///
    /// # Errors
    /// The pair exceeds a limit, or has bytes that no program could receive: see [`ParamsRefused`].
    pub fn push(
        &mut self,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<(), ParamsRefused> {
        let name = name.as_ref();
        if name.is_empty() || name.iter().any(|byte| matches!(byte, b'=' | 0)) {
            return Err(ParamsRefused::NameInvalid);
        }
        self.put_pair(name, value.as_ref())
    }

    /// Adds a pair whose name is known to be a valid variable name.
    pub(crate) fn put(
        &mut self,
        name: &'static str,
        value: impl AsRef<[u8]>,
    ) -> Result<(), ParamsRefused> {
        self.put_pair(name.as_bytes(), value.as_ref())
    }

    fn put_pair(&mut self, name: &[u8], value: &[u8]) -> Result<(), ParamsRefused> {
        self.make_room(name.len(), value, || shown(name))?;
        pairs::encode(name, value, &mut self.start);
        Ok(())
    }

    /// Adds a request field: `HTTP_`, its name in upper case with `_` for `-`, and its value. The name must
    /// consist of letters, digits and `-`.
    pub(crate) fn put_field(&mut self, name: &str, value: &[u8]) -> Result<(), ParamsRefused> {
        let upper = |byte: u8| if byte == b'-' { b'_' } else { byte.to_ascii_uppercase() };
        let name_len = FIELD_PREFIX.len() + name.len();
        self.make_room(name_len, value, || {
            let mut variable = FIELD_PREFIX.to_vec();
            variable.extend(name.bytes().map(upper));
            shown(&variable)
        })?;
        pairs::encode_lengths(name_len, value.len(), &mut self.start);
        self.start.extend_from_slice(FIELD_PREFIX);
        self.start.extend(name.bytes().map(upper));
        self.start.extend_from_slice(value);
        Ok(())
    }

    /// Checks a pair, and ensures that the open record has room for it.
    fn make_room(
        &mut self,
        name_len: usize,
        value: &[u8],
        shown: impl Fn() -> String,
    ) -> Result<(), ParamsRefused> {
        if value.contains(&0) {
            return Err(ParamsRefused::ValueHasNul { name: shown() });
        }
        let bytes = pairs::len_encoded(name_len, value.len());
        if bytes > self.limits.pair_bytes.min(PAIR_BYTES_MAX) {
            return Err(ParamsRefused::PairTooLarge { name: shown(), bytes });
        }
        if self.pairs_bytes + bytes > self.limits.total_bytes {
            return Err(ParamsRefused::TotalTooLarge { limit: self.limits.total_bytes });
        }
        if self.open_bytes() + bytes > ALIGNED_CONTENT_MAX {
            self.close_record();
            self.open_record();
        }
        self.pairs_bytes += bytes;
        self.start.reserve(bytes);
        Ok(())
    }

    /// The length of all encoded pairs together in bytes, as counted against the limit.
    pub fn total_bytes(&self) -> usize {
        self.pairs_bytes
    }

    /// The value last added under `name`, which is the one that php-fpm uses.
    pub fn get(&self, name: &[u8]) -> Option<Bytes> {
        self.to_pairs().into_iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Decodes all pairs, in the order in which they were added. For traces and tests; not used when a request
    /// is sent.
    pub fn to_pairs(&self) -> Vec<pairs::Pair> {
        let start = Bytes::from(self.clone().into_request_start(AfterRequest::Close));
        let (mut at, mut all) = (BEGIN_REQUEST.len(), Vec::new());
        while let Some(header) = RecordHeader::peek(&start[at..]) {
            let content = at + HEADER_LEN..at + HEADER_LEN + usize::from(header.content_len);
            at = content.end + usize::from(header.padding_len);
            let pairs = pairs::decode_all(start.slice(content));
            all.extend(pairs.expect("only whole pairs were encoded"));
        }
        all
    }

    /// The start of a request: BEGIN_REQUEST for a responder, the PARAMS records, and the empty record that
    /// ends them. STDIN follows (see [`crate::stdin_header`]), at least its end.
    pub fn into_request_start(mut self, after: AfterRequest) -> Vec<u8> {
        match self.open_bytes() {
            // An empty record would end the stream.
            0 => self.start.truncate(self.record),
            _ => self.close_record(),
        }
        if after == AfterRequest::KeepOpen {
            self.start[FLAGS_AT] = FLAG_KEEP_CONN;
        }
        self.start.extend_from_slice(&PARAMS_END);
        self.start
    }

    /// The number of bytes of pairs in the open record.
    fn open_bytes(&self) -> usize {
        self.start.len() - self.record - HEADER_LEN
    }

    fn open_record(&mut self) {
        self.record = self.start.len();
        self.start.extend_from_slice(&PARAMS_END);
    }

    /// Writes the header of the open record, and pads the record to 8 bytes.
    fn close_record(&mut self) {
        let len = u16::try_from(self.open_bytes()).expect("records are filled to 65,528 bytes");
        let header = RecordHeader::new(RecordType::Params, REQUEST_ID, len).padded();
        self.start[self.record..self.record + HEADER_LEN].copy_from_slice(&header.encode());
        self.start.extend_from_slice(&[0; 7][..usize::from(header.padding_len)]);
    }
}

impl Default for Params {
    /// Empty params, with the default limits.
    fn default() -> Params {
        Params::new(ParamsLimits::default())
    }
}

/// The prefix of the variables for request fields (RFC 3875 §4.1.18).
const FIELD_PREFIX: &[u8] = b"HTTP_";

/// The empty PARAMS record (FastCGI §5.2: a stream ends with a record without content).
const PARAMS_END: [u8; HEADER_LEN] = RecordHeader::new(RecordType::Params, REQUEST_ID, 0).encode();

/// The index of the flags in BEGIN_REQUEST: after its header and the role.
const FLAGS_AT: usize = HEADER_LEN + 2;

/// BEGIN_REQUEST with its content: role, flags (none), five reserved bytes (FastCGI §5.1).
const BEGIN_REQUEST: [u8; 2 * HEADER_LEN] = {
    let header = RecordHeader::new(RecordType::BeginRequest, REQUEST_ID, 8).encode();
    let [role1, role0] = ROLE_RESPONDER.to_be_bytes();
    let mut record = [0; 2 * HEADER_LEN];
    let mut at = 0;
    while at < HEADER_LEN {
        record[at] = header[at];
        at += 1;
    }
    record[HEADER_LEN] = role1;
    record[HEADER_LEN + 1] = role0;
    record
};

/// The name as error messages show it: its first 64 bytes.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned()
}
