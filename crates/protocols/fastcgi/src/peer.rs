//! The responder's side of the protocol, for scripted origins and tests: reads what a web server
//! sends, writes what a responder sends. Complete, but not made for speed.
//!
//! It takes any request id, one request at a time; pairs may run over the ends of PARAMS records,
//! as FastCGI §5.2 allows. PARAMS and management records are held whole, within a bound; STDIN is
//! handed out as it arrives. After the end of STDIN, or an abort, the next BEGIN_REQUEST may come.
//! Not here: the FCGI_FILTER role's file stream, several requests at once.

use crate::end_request::EndRequest;
use crate::pairs::{self, Pair};
use crate::params::AfterRequest;
use crate::record::{
    BODY_LEN, CONTENT_MAX, FLAG_KEEP_CONN, HEADER_LEN, MANAGEMENT_ID, RecordHeader, RecordType,
    VERSION,
};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Most bytes of PARAMS that a [`RequestReader`] takes for one request.
pub const PARAMS_BYTES_MAX: usize = 16 << 20;

/// What a web server has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEvent {
    /// BEGIN_REQUEST (FastCGI §5.1).
    Begin {
        /// The id that every record of the answer has to carry.
        request_id: u16,
        /// The role asked for; 1 is a responder.
        role: u16,
        /// What is to become of the connection.
        after: AfterRequest,
    },
    /// All params, in order: the empty PARAMS record has come.
    Params(Vec<Pair>),
    /// Bytes of the request's content, never empty.
    Stdin(Bytes),
    /// The empty STDIN record has come.
    StdinEnd,
    /// ABORT_REQUEST (FastCGI §5.4); answer with END_REQUEST.
    Abort,
    /// GET_VALUES, a management record (FastCGI §4.1): the names asked for.
    GetValues(Vec<Bytes>),
    /// A management record of a type not known here (FastCGI §4.2), to be answered with
    /// [`encode_unknown_type`].
    UnknownManagement(u8),
}

/// Why a web server's bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRefused {
    /// The first byte of a record was not 1.
    VersionUnsupported,
    /// A record that may not come here, by its type's number.
    OutOfOrder(u8),
    /// BEGIN_REQUEST whose content is not 8 bytes.
    BeginLengthWrong,
    /// More than [`PARAMS_BYTES_MAX`] bytes of params.
    ParamsTooLarge,
    /// Name-value pairs that end in the middle of a pair.
    PairsCutShort,
}

impl RequestRefused {
    /// The reason's name.
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
    /// Bytes of the present STDIN record still to come, and of padding to skip first.
    stdin_left: usize,
    padding_left: usize,
}

/// What of a request has come so far.
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

    /// Takes what can be taken from the front of `input`, up to the next event; `Ok(None)` means
    /// that more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not requests in sequence: see [`RequestRefused`]. The same error is then
    /// returned for good.
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

    /// A record that is here with all its content.
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

/// Appends `content` as STDOUT records; nothing when it is empty.
pub fn encode_stdout(request_id: u16, content: &[u8], out: &mut BytesMut) {
    encode_stream(RecordType::Stdout, request_id, content, out);
}

/// Appends `content` as STDERR records; nothing when it is empty.
pub fn encode_stderr(request_id: u16, content: &[u8], out: &mut BytesMut) {
    encode_stream(RecordType::Stderr, request_id, content, out);
}

/// Appends the empty STDOUT record.
pub fn encode_stdout_end(request_id: u16, out: &mut BytesMut) {
    out.put_slice(&RecordHeader::new(RecordType::Stdout, request_id, 0).encode());
}

/// Appends END_REQUEST (FastCGI §5.5).
pub fn encode_end(request_id: u16, end: EndRequest, out: &mut BytesMut) {
    out.put_slice(&RecordHeader::new(RecordType::EndRequest, request_id, 8).encode());
    out.put_slice(&end.encode());
}

/// Appends GET_VALUES_RESULT with these names and values (FastCGI §4.1), at most one record: pairs
/// that do not fit are left out.
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

/// Appends UNKNOWN_TYPE in answer to a management record of this type (FastCGI §4.2).
pub fn encode_unknown_type(type_number: u8, out: &mut BytesMut) {
    let content = [type_number, 0, 0, 0, 0, 0, 0, 0];
    encode_record(RecordType::UnknownType, MANAGEMENT_ID, &content, out);
}

fn encode_stream(kind: RecordType, request_id: u16, content: &[u8], out: &mut BytesMut) {
    for chunk in content.chunks(CONTENT_MAX) {
        encode_record(kind, request_id, chunk, out);
    }
}

/// One record, padded to 8 bytes; `content` must fit in one.
fn encode_record(kind: RecordType, request_id: u16, content: &[u8], out: &mut BytesMut) {
    let len = u16::try_from(content.len()).expect("callers cut content to 65,535 bytes");
    let header = RecordHeader::new(kind, request_id, len).padded();
    out.put_slice(&header.encode());
    out.put_slice(content);
    out.put_bytes(0, usize::from(header.padding_len));
}
