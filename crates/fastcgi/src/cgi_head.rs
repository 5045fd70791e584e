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

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
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
        loop {
            let room = self.limits.bytes - self.bytes;
            let Some(end) = chunk.iter().take(room).position(|byte| *byte == b'\n') else {
                if chunk.len() > room {
                    return Err(self.refused(HeadRefusal::TooLarge));
                }
                self.bytes += chunk.len();
                self.pending.extend_from_slice(&chunk);
                return Ok(HeadStep::More(self));
            };
            self.bytes += end + 1;
            let line = chunk.split_to(end);
            chunk.advance(1);
            let outcome = if self.pending.is_empty() {
                self.take_line(&line)
            } else {
                let mut whole = self.pending.split();
                whole.extend_from_slice(&line);
                self.take_line(&whole)
            };
            match outcome {
                Ok(Line::Taken) => self.lines += 1,
                Ok(Line::Blank) => return Ok(HeadStep::Done(Box::new(self.fields.head(chunk)))),
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
        if self.fields.taken == self.limits.fields {
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

/// The fields read so far.
#[derive(Debug, Default)]
struct Fields {
    taken: usize,
    status: Option<StatusCode>,
    content_length: Option<u64>,
    headers: HeaderMap,
}

impl Fields {
    fn line(&mut self, line: &[u8]) -> Result<(), HeadRefusal> {
        self.taken += 1;
        if matches!(line[0], b' ' | b'\t') {
            return Err(HeadRefusal::ContinuationLine);
        }
        let colon = line.iter().position(|byte| *byte == b':').ok_or(HeadRefusal::ColonMissing)?;
        // RFC 3875 §6.3: no whitespace between name and colon. A token has none, so this sees it.
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| HeadRefusal::NameInvalid)?;
        let value = trim(&line[colon + 1..]);
        // RFC 3875 §6.3: "A NULL field value is equivalent to a field not being sent."
        if value.is_empty() {
            return Ok(());
        }
        if name == "status" {
            return self.set_status(status_code(value)?);
        }
        // RFC 3875 §6.3.4, RFC 9110 §7.6.1: fields of the connection are ours to write.
        if is_of_connection(&name) {
            return Ok(());
        }
        let value = HeaderValue::from_bytes(value).map_err(|_| HeadRefusal::ValueInvalid)?;
        self.field(name, value)
    }

    /// RFC 3875 §6.3: "each CGI field MUST NOT appear more than once"; the same value once more
    /// says nothing new, another one leaves nobody knowing which was meant. RFC 9110 §8.6 has the
    /// same rule for `Content-Length`.
    fn field(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), HeadRefusal> {
        if name == header::CONTENT_LENGTH {
            let length = content_length(value.as_bytes())?;
            if self.content_length.is_some_and(|known| known != length) {
                return Err(HeadRefusal::Contradiction);
            }
            self.content_length = Some(length);
            self.headers.insert(name, HeaderValue::from(length));
            return Ok(());
        }
        let single = name == header::LOCATION || name == header::CONTENT_TYPE;
        match self.headers.get(&name).filter(|_| single) {
            Some(known) if *known == value => return Ok(()),
            Some(_) => return Err(HeadRefusal::Contradiction),
            None => {}
        }
        self.headers.try_append(name, value).map_err(|_| HeadRefusal::TooManyFields)?;
        Ok(())
    }

    /// `HTTP/1.1 404 Not Found` in the first line: PHP sends it instead of `Status` when
    /// `cgi.rfc2616_headers` is on, programs for "non-parsed header" CGI (RFC 3875 §5) always do.
    fn status_line(&mut self, line: &[u8]) -> Result<(), HeadRefusal> {
        let space = line.iter().position(|byte| *byte == b' ').ok_or(HeadRefusal::StatusInvalid)?;
        self.set_status(status_code(trim(&line[space..]))?)
    }

    fn set_status(&mut self, status: StatusCode) -> Result<(), HeadRefusal> {
        if self.status.is_some_and(|known| known != status) {
            return Err(HeadRefusal::Contradiction);
        }
        self.status = Some(status);
        Ok(())
    }

    fn head(self, content: Bytes) -> CgiHead {
        let kind = self.kind();
        let status = self.status.unwrap_or(match kind {
            // RFC 3875 §6.2.3: without a status, a client redirect is a 302.
            ResponseKind::ClientRedirect => StatusCode::FOUND,
            // RFC 3875 §6.3.3: without a status, 200 is assumed.
            ResponseKind::Document | ResponseKind::LocalRedirect(_) => StatusCode::OK,
        });
        CgiHead {
            kind,
            status,
            headers: self.headers,
            content_length: self.content_length,
            content,
        }
    }

    /// RFC 3875 §6.2. A local redirect is a path in `Location` with neither a status nor other
    /// fields (§6.2.2: "MUST NOT return any other header fields"; the two that describe content
    /// are forgiven). PHP sends `Status: 302` along, and so never makes one: the path is then a
    /// relative reference for the client (RFC 9110 §10.2.2). A program that sets a cookie besides
    /// wants the client to see it. `//host/` is a host to every browser, so it is no local path.
    fn kind(&self) -> ResponseKind {
        let Some(location) = self.headers.get(header::LOCATION).map(HeaderValue::as_bytes) else {
            return ResponseKind::Document;
        };
        let alone = self.status.is_none()
            && self.headers.keys().all(|name| {
                *name == header::LOCATION
                    || *name == header::CONTENT_TYPE
                    || *name == header::CONTENT_LENGTH
            });
        let local =
            location.starts_with(b"/") && !location.starts_with(b"//") && !location.contains(&b'#');
        match PathAndQuery::try_from(location) {
            Ok(path) if alone && local => ResponseKind::LocalRedirect(path),
            _ => ResponseKind::ClientRedirect,
        }
    }
}

/// RFC 3875 §6.3.3: three digits, then a reason phrase, which is dropped. 600–999 are no statuses
/// of HTTP (RFC 9110 §15) but programs send them, and the client can make of them what it will.
fn status_code(value: &[u8]) -> Result<StatusCode, HeadRefusal> {
    let (code, rest) = value.split_first_chunk::<3>().ok_or(HeadRefusal::StatusInvalid)?;
    if !matches!(rest.first(), None | Some(b' ' | b'\t')) {
        return Err(HeadRefusal::StatusInvalid);
    }
    let status = StatusCode::from_bytes(code).map_err(|_| HeadRefusal::StatusInvalid)?;
    if status.is_informational() { Err(HeadRefusal::StatusInformational) } else { Ok(status) }
}

/// RFC 9110 §8.6: digits and nothing else, no sign, no list.
fn content_length(value: &[u8]) -> Result<u64, HeadRefusal> {
    value
        .iter()
        .try_fold(0u64, |length, byte| match byte {
            b'0'..=b'9' => length.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
            _ => None,
        })
        .ok_or(HeadRefusal::ContentLengthInvalid)
}

fn is_of_connection(name: &HeaderName) -> bool {
    *name == header::CONNECTION
        || *name == header::TRANSFER_ENCODING
        || *name == header::UPGRADE
        || *name == header::TRAILER
        || *name == header::TE
        || name == "keep-alive"
        || name == "proxy-connection"
}

/// Without spaces and tabs around it.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
