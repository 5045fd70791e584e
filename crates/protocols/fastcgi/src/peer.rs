//! The responder's side of the protocol, for scripted origins and tests: decodes what a web server sends, and
//! encodes what a responder sends. It is complete, but not optimised for speed.
//!
//! It accepts any request id, one request at a time. As FastCGI §5.2 allows, pairs may span PARAMS records.
//! PARAMS and management records are buffered whole, up to a limit; STDIN is returned as it arrives. After the
//! end of STDIN, or an abort, the next BEGIN_REQUEST may follow. Not here: the file stream of the FCGI_FILTER
//! role, and concurrent requests on a connection.

use crate::end_request::EndRequest;
use crate::pairs::{self, Pair};
use crate::params::AfterRequest;
use crate::record::{
    BODY_LEN, CONTENT_MAX, FLAG_KEEP_CONN, HEADER_LEN, MANAGEMENT_ID, RecordHeader, RecordType,
    VERSION,
};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The maximum number of PARAMS bytes that a [`RequestReader`] accepts for one request.
pub const PARAMS_BYTES_MAX: usize = 16 << 20;

/// An event in the bytes of a web server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEvent {
    /// BEGIN_REQUEST (FastCGI §5.1).
    Begin {
        /// The id that every record of the answer must carry.
        request_id: u16,
        /// The requested role; 1 is a responder.
        role: u16,
        /// Whether the responder closes the connection after the request.
        after: AfterRequest,
    },
    /// All params, in order: the empty PARAMS record has arrived.
    Params(Vec<Pair>),
    /// Bytes of the request's content; never empty.
    Stdin(Bytes),
    /// The empty STDIN record has arrived.
    StdinEnd,
    /// ABORT_REQUEST (FastCGI §5.4). The answer is END_REQUEST.
    Abort,
    /// GET_VALUES, a management record (FastCGI §4.1), with the requested names.
    GetValues(Vec<Bytes>),
    /// A management record of an unknown type (FastCGI §4.2). The answer is [`encode_unknown_type`].
    UnknownManagement(u8),
}

/// The reason why the bytes of a web server were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefused {
    /// The first byte of a record is not 1.
    VersionUnsupported,
    /// A record of this type is not allowed at this point.
    OutOfOrder(u8),
    /// The content of BEGIN_REQUEST is not 8 bytes long.
    BeginLengthWrong,
    /// The params exceed [`PARAMS_BYTES_MAX`] bytes.
    ParamsTooLarge,
    /// The name-value pairs end inside a pair.
    PairsCutShort,
}

impl RequestRefused {
    /// The name of the reason.
    pub fn as_str(self) -> &'static str {
        match self {
            RequestRefused::VersionUnsupported => "version-unsupported",
            RequestRefused::OutOfOrder(_) => "record-out-of-order",
            RequestRefused::BeginLengthWrong => "begin-length-wrong",
            RequestRefused::ParamsTooLarge => "params-too-large",
            RequestRefused::PairsCutShort => "pairs-cut-short",
        }
    }
}

impl std::fmt::Display for RequestRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for RequestRefused {}

/// Reads the requests on one connection, one after the other.
#[derive(Debug, Default)]
pub struct RequestReader {
    phase: Phase,
    request_id: u16,
    params: BytesMut,
    /// The bytes of the current STDIN record that have not arrived, and of padding to skip before the next
    /// record.
    stdin_left: usize,
    padding_left: usize,
}

/// The part of a request that is expected next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Idle,
    Params,
    Stdin,
    Refused(RequestRefused),
}

impl RequestReader {
    /// A reader at the start of a connection.
    pub fn new() -> RequestReader {
        RequestReader::default()
    }

    /// Decodes bytes from the front of `input`, up to the next event. `Ok(None)` means that more bytes are
    /// needed.
    ///
    /// # Errors
    /// The bytes are not a valid sequence of requests: see [`RequestRefused`]. Every later call returns the
    /// same error.
    pub fn read(&mut self, input: &mut BytesMut) -> Result<Option<RequestEvent>, RequestRefused> {
        let event = self.step_until_event(input);
        if let Err(refused) = event {
            self.phase = Phase::Refused(refused);
        }
        event
    }

    fn step_until_event(
        &mut self,
        input: &mut BytesMut,
    ) -> Result<Option<RequestEvent>, RequestRefused> {
        if let Phase::Refused(refused) = self.phase {
            return Err(refused);
        }
        loop {
            if self.stdin_left > 0 {
                let chunk = input.split_to(self.stdin_left.min(input.len()));
                self.stdin_left -= chunk.len();
                return Ok((!chunk.is_empty()).then(|| RequestEvent::Stdin(chunk.freeze())));
            }
            let skipped = self.padding_left.min(input.len());
            input.advance(skipped);
            self.padding_left -= skipped;
            let Some(header) = RecordHeader::peek(input) else { return Ok(None) };
            if header.version != VERSION {
                return Err(RequestRefused::VersionUnsupported);
            }
            let content_len = usize::from(header.content_len);
            let kind = RecordType::from_number(header.type_number);
            let event = if kind == Some(RecordType::Stdin) && content_len > 0 {
                self.expect(Phase::Stdin, header)?;
                input.advance(HEADER_LEN);
                self.stdin_left = content_len;
                None
            } else if input.len() < HEADER_LEN + content_len {
                return Ok(None);
            } else {
                input.advance(HEADER_LEN);
                self.whole_record(header, kind, input.split_to(content_len).freeze())?
            };
            self.padding_left = usize::from(header.padding_len);
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Processes a record whose content has arrived completely.
    fn whole_record(
        &mut self,
        header: RecordHeader,
        kind: Option<RecordType>,
        content: Bytes,
    ) -> Result<Option<RequestEvent>, RequestRefused> {
        if header.request_id == MANAGEMENT_ID {
            return Ok(Some(management(header, kind, content)?));
        }
        match kind {
            Some(RecordType::BeginRequest) => self.begin(header, &content).map(Some),
            Some(RecordType::Params) => {
                self.expect(Phase::Params, header)?;
                self.params(content)
            }
            Some(RecordType::Stdin) => {
                self.expect(Phase::Stdin, header)?;
                self.phase = Phase::Idle;
                Ok(Some(RequestEvent::StdinEnd))
            }
            Some(RecordType::AbortRequest) if self.phase == Phase::Idle => Ok(None),
            Some(RecordType::AbortRequest) => {
                self.phase = Phase::Idle;
                Ok(Some(RequestEvent::Abort))
            }
            _ => Err(RequestRefused::OutOfOrder(header.type_number)),
        }
    }

    fn begin(
        &mut self,
        header: RecordHeader,
        content: &[u8],
    ) -> Result<RequestEvent, RequestRefused> {
        if self.phase != Phase::Idle {
            return Err(RequestRefused::OutOfOrder(header.type_number));
        }
        let body = content.first_chunk::<BODY_LEN>().filter(|_| content.len() == BODY_LEN);
        let body = body.ok_or(RequestRefused::BeginLengthWrong)?;
        self.phase = Phase::Params;
        self.request_id = header.request_id;
        self.params.clear();
        Ok(RequestEvent::Begin {
            request_id: header.request_id,
            role: u16::from_be_bytes([body[0], body[1]]),
            after: match body[2] & FLAG_KEEP_CONN {
                0 => AfterRequest::Close,
                _ => AfterRequest::KeepOpen,
            },
        })
    }

    fn params(&mut self, content: Bytes) -> Result<Option<RequestEvent>, RequestRefused> {
        if content.is_empty() {
            self.phase = Phase::Stdin;
            let params = self.params.split().freeze();
            let pairs = pairs::decode_all(params).map_err(|_| RequestRefused::PairsCutShort)?;
            return Ok(Some(RequestEvent::Params(pairs)));
        }
        if self.params.len() + content.len() > PARAMS_BYTES_MAX {
            return Err(RequestRefused::ParamsTooLarge);
        }
        self.params.put_slice(&content);
        Ok(None)
    }

    fn expect(&self, phase: Phase, header: RecordHeader) -> Result<(), RequestRefused> {
        if self.phase == phase && self.request_id == header.request_id {
            Ok(())
        } else {
            Err(RequestRefused::OutOfOrder(header.type_number))
        }
    }
}

fn management(
    header: RecordHeader,
    kind: Option<RecordType>,
    content: Bytes,
) -> Result<RequestEvent, RequestRefused> {
    if kind != Some(RecordType::GetValues) {
        return Ok(RequestEvent::UnknownManagement(header.type_number));
    }
    let pairs = pairs::decode_all(content).map_err(|_| RequestRefused::PairsCutShort)?;
    Ok(RequestEvent::GetValues(pairs.into_iter().map(|(name, _)| name).collect()))
}

/// Appends `content` as STDOUT records; appends nothing if it is empty.
pub fn encode_stdout(request_id: u16, content: &[u8], out: &mut BytesMut) {
    encode_stream(RecordType::Stdout, request_id, content, out);
}

/// Appends `content` as STDERR records; appends nothing if it is empty.
pub fn encode_stderr(request_id: u16, content: &[u8], out: &mut BytesMut) {
    encode_stream(RecordType::Stderr, request_id, content, out);
}

/// Appends the empty STDOUT record, which ends the stream.
pub fn encode_stdout_end(request_id: u16, out: &mut BytesMut) {
    out.put_slice(&RecordHeader::new(RecordType::Stdout, request_id, 0).encode());
}

/// Appends an END_REQUEST record (FastCGI §5.5).
pub fn encode_end(request_id: u16, end: EndRequest, out: &mut BytesMut) {
    out.put_slice(&RecordHeader::new(RecordType::EndRequest, request_id, 8).encode());
    out.put_slice(&end.encode());
}

/// Appends one GET_VALUES_RESULT record with these names and values (FastCGI §4.1). Pairs that do not fit are
/// left out.
pub fn encode_values(values: &[(&str, &str)], out: &mut BytesMut) {
    let mut content = Vec::new();
    for (name, value) in values {
        let len = content.len() + pairs::encoded_len(name.as_bytes(), value.as_bytes());
        if len <= CONTENT_MAX {
            pairs::encode(name.as_bytes(), value.as_bytes(), &mut content);
        }
    }
    encode_record(RecordType::GetValuesResult, MANAGEMENT_ID, &content, out);
}

/// Appends UNKNOWN_TYPE, the answer to a management record of this type (FastCGI §4.2).
pub fn encode_unknown_type(type_number: u8, out: &mut BytesMut) {
    let content = [type_number, 0, 0, 0, 0, 0, 0, 0];
    encode_record(RecordType::UnknownType, MANAGEMENT_ID, &content, out);
}

fn encode_stream(kind: RecordType, request_id: u16, content: &[u8], out: &mut BytesMut) {
    for chunk in content.chunks(CONTENT_MAX) {
        encode_record(kind, request_id, chunk, out);
    }
}

/// Appends one record, padded to 8 bytes. `content` must fit in one record.
fn encode_record(kind: RecordType, request_id: u16, content: &[u8], out: &mut BytesMut) {
    let len = u16::try_from(content.len()).expect("callers cut content to 65,535 bytes");
    let header = RecordHeader::new(kind, request_id, len).padded();
    out.put_slice(&header.encode());
    out.put_slice(content);
    out.put_bytes(0, usize::from(header.padding_len));
}
