//! Decodes the response of a responder: STDOUT, STDERR, END_REQUEST (FastCGI §3.3, §5). Content is returned as
//! it arrives, split off the caller's buffer without copying. A reader is used for one request.
//!
//! | state    | reads                                   | next state                        |
//! |----------|-----------------------------------------|-----------------------------------|
//! | Header   | 8 bytes                                 | Content, End, Skip, or Refused    |
//! | Content  | the available bytes of STDOUT or STDERR | Content, then Skip                |
//! | Skip     | padding, or a management record         | Header                            |
//! | End      | the 8 bytes of END_REQUEST              | Trailing                          |
//! | Trailing | the padding of END_REQUEST              | Ended; any byte then is Refused   |
//! | Refused  | nothing: the connection cannot be used  | Refused                           |

use crate::end_request::EndRequest;
use crate::record::{
    BODY_LEN, HEADER_LEN, MANAGEMENT_ID, REQUEST_ID, RecordHeader, RecordType, VERSION,
};
use bytes::{Buf, Bytes, BytesMut};

/// The maximum number of bytes of management records, headers included, that are skipped within one request.
pub const IGNORED_BYTES_MAX: usize = 65_536;

/// An event in the bytes of a responder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes of the CGI response; never empty; see [`crate::CgiHeadReader`].
    Stdout(Bytes),
    /// Bytes for the log; never empty; not necessarily whole lines.
    Stderr(Bytes),
    /// The request has ended; nothing follows.
    End(EndRequest),
}

/// The reason why the bytes of a responder were refused. The origin is at fault. A retry uses another
/// connection, and only if the request may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The bytes are not FastCGI, or another version: the first byte of a record is not 1.
    VersionUnsupported {
        /// The byte found.
        version: u8,
    },
    /// A record of a request that was not sent. Its content could be the page of another client.
    RequestIdWrong {
        /// The request id found.
        request_id: u16,
    },
    /// A record of the current request has a type that a responder does not send.
    TypeUnexpected {
        /// The number of the type.
        type_number: u8,
    },
    /// The content of END_REQUEST is not 8 bytes long.
    EndLengthWrong {
        /// The length of its content in bytes.
        content_len: u16,
    },
    /// STDOUT continued after the empty record that ends it (FastCGI §3.3).
    StdoutAfterItsEnd,
    /// The management records exceed [`IGNORED_BYTES_MAX`].
    TooMuchIgnored,
    /// Bytes arrived after END_REQUEST, when no request was in progress.
    BytesAfterEnd,
}

impl ProtocolError {
    /// The name of the reason, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ProtocolError::VersionUnsupported { .. } => "version-unsupported",
            ProtocolError::RequestIdWrong { .. } => "request-id-wrong",
            ProtocolError::TypeUnexpected { .. } => "record-type-unexpected",
            ProtocolError::EndLengthWrong { .. } => "end-length-wrong",
            ProtocolError::StdoutAfterItsEnd => "stdout-after-its-end",
            ProtocolError::TooMuchIgnored => "too-much-ignored",
            ProtocolError::BytesAfterEnd => "bytes-after-end",
        }
    }
}

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProtocolError::VersionUnsupported { version } => {
                write!(f, "not a FastCGI 1.0 record (it begins with byte {version})")
            }
            ProtocolError::RequestIdWrong { request_id } => {
                write!(f, "a record for request id {request_id}, which was never sent")
            }
            ProtocolError::TypeUnexpected { type_number } => {
                write!(f, "a record of type {type_number}, which a responder does not send")
            }
            ProtocolError::EndLengthWrong { content_len } => {
                write!(f, "an END_REQUEST record of {content_len} bytes instead of 8")
            }
            ProtocolError::StdoutAfterItsEnd => f.write_str("STDOUT went on after its end"),
            ProtocolError::TooMuchIgnored => f.write_str("too many management records"),
            ProtocolError::BytesAfterEnd => f.write_str("bytes after END_REQUEST"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// Reads the response to one request.
#[derive(Clone, Debug)]
pub struct ResponseReader {
    state: State,
    stdout_ended: bool,
    /// The bytes of management records so far, headers included.
    ignored_bytes: usize,
    end: Option<EndRequest>,
}

impl ResponseReader {
    /// A reader for the response to the request that was just sent.
    pub fn new() -> ResponseReader {
        ResponseReader { state: State::Header, stdout_ended: false, ignored_bytes: 0, end: None }
    }

    /// Decodes bytes from the front of `input`, up to the next event. `Ok(None)` means that more bytes are
    /// needed. `input` then holds an incomplete record header, or the incomplete content of END_REQUEST: at
    /// most 7 bytes.
    ///
    /// # Errors
    /// The bytes are not a valid response to the request: see [`ProtocolError`]. Every later call returns the
    /// same error.
    pub fn read(&mut self, input: &mut BytesMut) -> Result<Option<Event>, ProtocolError> {
        let event = self.step_until_event(input);
        if let Err(error) = event {
            self.state = State::Refused(error);
        }
        event
    }

    /// The END_REQUEST record, once it has been read.
    pub fn end(&self) -> Option<EndRequest> {
        self.end
    }

    /// Whether the whole response, including its padding, has been read. Another request may then be sent on
    /// the connection if the other conditions hold (see [`crate::Reuse`]).
    pub fn at_end(&self) -> bool {
        matches!(self.state, State::Ended | State::Trailing { left: 0 })
    }

    fn step_until_event(&mut self, input: &mut BytesMut) -> Result<Option<Event>, ProtocolError> {
        loop {
            match self.state {
                State::Header => {
                    let Some(header) = RecordHeader::peek(input) else { return Ok(None) };
                    input.advance(HEADER_LEN);
                    self.state = self.begin_record(header)?;
                }
                State::Content { left: 0, padding, .. } => {
                    self.state = State::Skip { left: padding }
                }
                State::Content { stream, left, padding } => {
                    let Some(chunk) = take(input, left) else { return Ok(None) };
                    self.state = State::Content { stream, left: left - chunk.len(), padding };
                    return Ok(Some(match stream {
                        Stream::Stdout => Event::Stdout(chunk.freeze()),
                        Stream::Stderr => Event::Stderr(chunk.freeze()),
                    }));
                }
                State::End { padding } => {
                    let Some(body) = input.first_chunk::<BODY_LEN>().copied() else {
                        return Ok(None);
                    };
                    input.advance(BODY_LEN);
                    let end = EndRequest::decode(body);
                    self.end = Some(end);
                    let skipped = take(input, padding).map_or(0, |bytes| bytes.len());
                    self.state = State::Trailing { left: padding - skipped };
                    return Ok(Some(Event::End(end)));
                }
                State::Skip { left: 0 } => self.state = State::Header,
                State::Skip { left } => {
                    let Some(skipped) = take(input, left) else { return Ok(None) };
                    self.state = State::Skip { left: left - skipped.len() };
                }
                State::Trailing { left: 0 } => self.state = State::Ended,
                State::Trailing { left } => {
                    let Some(skipped) = take(input, left) else { return Ok(None) };
                    self.state = State::Trailing { left: left - skipped.len() };
                }
                State::Ended if input.is_empty() => return Ok(None),
                State::Ended => return Err(ProtocolError::BytesAfterEnd),
                State::Refused(error) => return Err(error),
            }
        }
    }

    /// The next state after a record's header.
    fn begin_record(&mut self, header: RecordHeader) -> Result<State, ProtocolError> {
        if header.version != VERSION {
            return Err(ProtocolError::VersionUnsupported { version: header.version });
        }
        let (left, padding) = (usize::from(header.content_len), usize::from(header.padding_len));
        match header.request_id {
            REQUEST_ID => {}
            // FastCGI §4: management records answer requests of the web server. Pagewell sends no such
            // requests, so these records are irrelevant, whatever their type.
            MANAGEMENT_ID => return self.ignore(left + padding),
            request_id => return Err(ProtocolError::RequestIdWrong { request_id }),
        }
        match RecordType::from_number(header.type_number) {
            // FastCGI §3.3: a stream ends with an empty record. A responder may also omit it and send
            // END_REQUEST, as php-fpm does.
            Some(RecordType::Stdout) if left == 0 => {
                self.stdout_ended = true;
                Ok(State::Skip { left: padding })
            }
            Some(RecordType::Stdout) if self.stdout_ended => Err(ProtocolError::StdoutAfterItsEnd),
            Some(RecordType::Stdout) => {
                Ok(State::Content { stream: Stream::Stdout, left, padding })
            }
            // STDERR is a separate stream and may end after STDOUT. STDERR that continues after its own end is
            // not an error, because none of it becomes part of a page.
            Some(RecordType::Stderr) => {
                Ok(State::Content { stream: Stream::Stderr, left, padding })
            }
            Some(RecordType::EndRequest) if left == BODY_LEN => Ok(State::End { padding }),
            Some(RecordType::EndRequest) => {
                Err(ProtocolError::EndLengthWrong { content_len: header.content_len })
            }
            // FastCGI §4.2 allows new types only for management records. An unknown record of a request may be
            // part of its response; to skip it could mean to store half a page.
            _ => Err(ProtocolError::TypeUnexpected { type_number: header.type_number }),
        }
    }

    fn ignore(&mut self, bytes: usize) -> Result<State, ProtocolError> {
        self.ignored_bytes += HEADER_LEN + bytes;
        if self.ignored_bytes > IGNORED_BYTES_MAX {
            return Err(ProtocolError::TooMuchIgnored);
        }
        Ok(State::Skip { left: bytes })
    }
}

impl Default for ResponseReader {
    fn default() -> ResponseReader {
        ResponseReader::new()
    }
}

/// The states of the table above. Lengths are in bytes.
#[derive(Clone, Copy, Debug)]
enum State {
    Header,
    Content { stream: Stream, left: usize, padding: usize },
    End { padding: usize },
    Skip { left: usize },
    Trailing { left: usize },
    Ended,
    Refused(ProtocolError),
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Stdout,
    Stderr,
}

/// Removes up to `most` bytes from the front; `None` if there are none.
fn take(input: &mut BytesMut, most: usize) -> Option<BytesMut> {
    let len = input.len().min(most);
    (len > 0).then(|| input.split_to(len))
}
