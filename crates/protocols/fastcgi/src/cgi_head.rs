//! The head of a CGI response: the lines before the first blank one on STDOUT (RFC 3875 §6).
//!
//! Read as it arrives, line by line, ended by CRLF or LF; what follows the blank line is handed
//! back as the beginning of the content. A line is copied only when it came in pieces. Bytes and
//! fields are bounded, and a refusal names its reason and line.
//!
//! Strict where a guess could change a page or smuggle a field (names, values, continuation
//! lines, two different lengths); lenient where programs in use differ from RFC 3875 harmlessly
//! (LF, an `HTTP/1.1 200 OK` line, no CGI field at all). docs/decisions/0006-fastcgi.md argues each.
//! Not here: following a local redirect, or removing fields for the cache's sake.

mod fields;

use bytes::{Buf, Bytes, BytesMut};
use fields::Fields;
use http::StatusCode;
use http::header::HeaderMap;
use http::uri::PathAndQuery;

/// Bounds on the head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Most bytes, line ends and the blank line included.
    pub bytes: usize,
    /// Most fields, the dropped ones included.
    pub fields: usize,
}

impl Default for HeadLimits {
    /// 64 KiB and 256 fields: twice and more what browsers and other servers take.
    fn default() -> HeadLimits {
        HeadLimits { bytes: 65_536, fields: 256 }
    }
}

/// What kind of response a head begins (RFC 3875 §6.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseKind {
    /// A document response (§6.2.1).
    Document,
    /// A local redirect (§6.2.2): the server is to answer as if this had been requested, by GET;
    /// status and content of this response count for nothing.
    LocalRedirect(PathAndQuery),
    /// A client redirect (§6.2.3, §6.2.4): `Location` goes to the client.
    ClientRedirect,
}

/// The head of a CGI response.
#[derive(Clone, Debug)]
pub struct CgiHead {
    /// What is to be done with the response.
    pub kind: ResponseKind,
    /// Its status, 200–999: from `Status`, else 302 for a client redirect, else 200.
    pub status: StatusCode,
    /// The fields to pass on, in the order sent, repeated ones kept apart. `Status`, fields
    /// without a value (§6.3) and those of the connection (§6.3.4) are left out.
    pub headers: HeaderMap,
    /// The value of `Content-Length`, in bytes.
    pub content_length: Option<u64>,
    /// Content that arrived together with the head.
    pub content: Bytes,
}

/// What became of the bytes given to [`CgiHeadReader::read`].
#[derive(Debug)]
pub enum HeadStep {
    /// The head goes on.
    More(CgiHeadReader),
    /// The head is whole. Everything after it on STDOUT is content.
    Done(Box<CgiHead>),
}

/// Why a head was refused. The blame is the origin's; the same request would fare no better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadRefusal {
    /// STDOUT ended without a single byte.
    NothingSent,
    /// STDOUT ended before the blank line.
    BlankLineMissing,
    /// More bytes than [`HeadLimits::bytes`].
    TooLarge,
    /// More fields than [`HeadLimits::fields`].
    TooManyFields,
    /// A line without a colon: often the program's content, or an error message in its place.
    ColonMissing,
    /// The name is not a token (RFC 9110 §5.1), or whitespace stands before the colon.
    NameInvalid,
    /// A line that begins with whitespace; RFC 3875 §6.3 has no continuation lines.
    ContinuationLine,
    /// The value holds a control character (RFC 9110 §5.5): a bare CR, say, or NUL.
    ValueInvalid,
    /// `Status` does not begin with three digits, 200 or more.
    StatusInvalid,
    /// `Status` 100–199: a CGI response is a final one.
    StatusInformational,
    /// `Content-Length` is not a number of bytes.
    ContentLengthInvalid,
    /// `Status` (or the status line), `Location`, `Content-Type` or `Content-Length` twice, with
    /// different values (RFC 3875 §6.3, RFC 9110 §8.6).
    Contradiction,
}

impl HeadRefusal {
    /// The reason's name, for logs and metrics.
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

/// A refusal and where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRefused {
    /// Why.
    pub reason: HeadRefusal,
    /// In which line, counted from 1.
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
    /// The beginning of a line whose end has not come yet.
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

    /// Takes the next bytes of STDOUT.
    ///
    /// # Errors
    /// The head is not one of CGI, or passes a bound.
    pub fn read(mut self, mut chunk: Bytes) -> Result<HeadStep, HeadRefused> {
        // Where in the chunk the line begins that is read.
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
                Ok(Line::Taken) => self.lines += 1,
                Ok(Line::Blank) => {
                    chunk.advance(from);
                    return Ok(HeadStep::Done(Box::new(self.fields.head(chunk))));
                }
                Err(reason) => return Err(self.refused(reason)),
            }
        }
    }

    /// What the head lacked when STDOUT ended before it was whole.
    pub fn cut_short(&self) -> HeadRefused {
        self.refused(match self.bytes {
            0 => HeadRefusal::NothingSent,
            _ => HeadRefusal::BlankLineMissing,
        })
    }

    /// `line` without its LF.
    fn take_line(&mut self, line: &[u8]) -> Result<Line, HeadRefusal> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return Ok(Line::Blank);
        }
        if self.lines == 0 && line.starts_with(b"HTTP/") {
            self.fields.status_line(line)?;
            return Ok(Line::Taken);
        }
        if self.fields.taken() == self.limits.fields {
            return Err(HeadRefusal::TooManyFields);
        }
        self.fields.line(line)?;
        Ok(Line::Taken)
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

/// What a line was.
enum Line {
    Taken,
    Blank,
}
