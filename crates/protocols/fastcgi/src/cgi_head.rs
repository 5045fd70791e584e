//! Parses the head of a CGI response: the lines before the first blank line on STDOUT (RFC 3875 §6).
//!
//! The head is parsed line by line as it arrives; lines end with CRLF or LF. The bytes after the blank line are
//! returned as the beginning of the content. A line is copied only if it arrives in pieces. Bytes and fields
//! are bounded, and a refusal contains its reason and line number.
//!
//! The parser is strict where a guess could change a page or smuggle a field (names, values, continuation
//! lines, contradictory lengths). It is lenient where common programs differ harmlessly from RFC 3875 (LF, an
//! `HTTP/1.1 200 OK` line, no CGI field at all). docs/decisions/fastcgi.md gives the reasons. Not here:
//! following a local redirect, or removing fields for the cache.

mod fields;

use bytes::{Buf, Bytes, BytesMut};
use fields::Fields;
use http::StatusCode;
use http::header::HeaderMap;
use http::uri::PathAndQuery;

/// Limits for the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The maximum number of bytes, including line ends and the blank line.
    pub bytes: usize,
    /// The maximum number of fields, including those that are dropped.
    pub fields: usize,
}

impl Default for HeadLimits {
    /// 64 KiB and 256 fields: at least twice the limits of browsers and other servers.
    fn default() -> HeadLimits {
        HeadLimits { bytes: 65_536, fields: 256 }
    }
}

/// The kind of a response, according to its head (RFC 3875 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// A document response (§6.2.1).
    Document,
    /// A local redirect (§6.2.2): the server answers as if this path had been requested with GET. Status and
    /// content of this response are ignored.
    LocalRedirect(PathAndQuery),
    /// A client redirect (§6.2.3, §6.2.4): `Location` is sent to the client.
    ClientRedirect,
}

/// The head of a CGI response.
#[derive(Clone, Debug)]
pub struct CgiHead {
    /// The kind of the response.
    pub kind: ResponseKind,
    /// The status, 200–999: from `Status`; without it 302 for a client redirect, otherwise 200.
    pub status: StatusCode,
    /// The fields to forward, in their order; repeated fields stay separate. `Status`, fields without a value
    /// (§6.3) and connection fields (§6.3.4) are left out.
    pub headers: HeaderMap,
    /// The value of `Content-Length`, in bytes.
    pub content_length: Option<u64>,
    /// Content that arrived together with the head.
    pub content: Bytes,
}

/// The result of [`CgiHeadReader::read`].
#[derive(Debug)]
pub enum HeadStep {
    /// The head is incomplete; the reader for the next bytes.
    More(CgiHeadReader),
    /// The head is complete. Everything after it on STDOUT is content.
    Done(Box<CgiHead>),
}

/// The reason why a head was refused. The origin is at fault, and a repeated request would fail as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadRefusal {
    /// STDOUT ended without a single byte.
    NothingSent,
    /// STDOUT ended before the blank line.
    BlankLineMissing,
    /// The head has more bytes than [`HeadLimits::bytes`].
    TooLarge,
    /// The head has more fields than [`HeadLimits::fields`].
    TooManyFields,
    /// A line has no colon: often it is the program's content, or an error message in place of the head.
    ColonMissing,
    /// A name is not a token (RFC 9110 §5.1), or is followed by whitespace before the colon.
    NameInvalid,
    /// A line begins with whitespace; RFC 3875 §6.3 has no continuation lines.
    ContinuationLine,
    /// A value contains a control character (RFC 9110 §5.5), for example a bare CR or NUL.
    ValueInvalid,
    /// `Status` does not begin with a three-digit number of at least 200.
    StatusInvalid,
    /// `Status` is 100–199, but a CGI response must be a final response.
    StatusInformational,
    /// `Content-Length` is not a number of bytes.
    ContentLengthInvalid,
    /// `Status` (or the status line), `Location`, `Content-Type` or `Content-Length` occurs twice with
    /// different values (RFC 3875 §6.3, RFC 9110 §8.6).
    Contradiction,
}

impl HeadRefusal {
    /// The name of the reason, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            HeadRefusal::NothingSent => "nothing-sent",
            HeadRefusal::BlankLineMissing => "blank-line-missing",
            HeadRefusal::TooLarge => "head-too-large",
            HeadRefusal::TooManyFields => "too-many-fields",
            HeadRefusal::ColonMissing => "colon-missing",
            HeadRefusal::NameInvalid => "field-name-invalid",
            HeadRefusal::ContinuationLine => "continuation-line",
            HeadRefusal::ValueInvalid => "field-value-invalid",
            HeadRefusal::StatusInvalid => "status-invalid",
            HeadRefusal::StatusInformational => "status-informational",
            HeadRefusal::ContentLengthInvalid => "content-length-invalid",
            HeadRefusal::Contradiction => "fields-contradict",
        }
    }
}

/// A refusal, with the line that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRefused {
    /// The reason for the refusal.
    pub reason: HeadRefusal,
    /// The line number, counted from 1.
    pub line: u32,
}

impl std::fmt::Display for HeadRefused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in line {} of the response's head", self.reason.as_str(), self.line)
    }
}

impl std::error::Error for HeadRefused {}

/// Reads the head of one response from STDOUT.
#[derive(Debug)]
pub struct CgiHeadReader {
    limits: HeadLimits,
    /// The beginning of a line whose end has not arrived.
    pending: BytesMut,
    bytes: usize,
    lines: u32,
    fields: Fields,
}

impl CgiHeadReader {
    /// A reader for the head of one response.
    pub fn new(limits: HeadLimits) -> CgiHeadReader {
        CgiHeadReader {
            limits,
            pending: BytesMut::new(),
            bytes: 0,
            lines: 0,
            fields: Fields::default(),
        }
    }

    /// Parses the next bytes of STDOUT.
    ///
    /// # Errors
    /// The head is not a valid CGI head, or exceeds a limit.
    pub fn read(mut self, mut chunk: Bytes) -> Result<HeadStep, HeadRefused> {
        // The index in the chunk at which the current line begins.
        let mut from = 0;
        loop {
            let rest = &chunk[from..];
            let room = self.limits.bytes - self.bytes;
            let Some(end) = memchr::memchr(b'\n', &rest[..room.min(rest.len())]) else {
                if rest.len() > room {
                    return Err(self.refused(HeadRefusal::TooLarge));
                }
                self.bytes += rest.len();
                self.pending.extend_from_slice(rest);
                return Ok(HeadStep::More(self));
            };
            self.bytes += end + 1;
            from += end + 1;
            let outcome = if self.pending.is_empty() {
                self.take_line(&rest[..end])
            } else {
                let mut whole = self.pending.split();
                whole.extend_from_slice(&rest[..end]);
                self.take_line(&whole)
            };
            match outcome {
                Ok(false) => self.lines += 1,
                Ok(true) => {
                    chunk.advance(from);
                    return Ok(HeadStep::Done(Box::new(self.fields.head(chunk))));
                }
                Err(reason) => return Err(self.refused(reason)),
            }
        }
    }

    /// The refusal for a STDOUT that ended before the head was complete.
    pub fn cut_short(&self) -> HeadRefused {
        self.refused(match self.bytes {
            0 => HeadRefusal::NothingSent,
            _ => HeadRefusal::BlankLineMissing,
        })
    }

    /// Processes `line`, which has no LF. Returns whether it is the blank line after the last field.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, HeadRefusal> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(true);
        }
        if self.lines == 0 && line.starts_with(b"HTTP/") {
            self.fields.status_line(line)?;
            return Ok(false);
        }
        if self.fields.taken() == self.limits.fields {
            return Err(HeadRefusal::TooManyFields);
        }
        self.fields.line(line)?;
        Ok(false)
    }

    fn refused(&self, reason: HeadRefusal) -> HeadRefused {
        HeadRefused { reason, line: self.lines + 1 }
    }
}

impl Default for CgiHeadReader {
    /// A reader with the default limits.
    fn default() -> CgiHeadReader {
        CgiHeadReader::new(HeadLimits::default())
    }
}
