//! The fields in the head of a CGI response, and the kind of response that they determine (RFC 3875 §6.2,
//! §6.3).
//!
//! Each line is checked as it arrives. The three CGI fields and `Content-Length` have at most one value. Other
//! fields are kept as sent, repeated ones separately and in order. Not here: splitting the head into lines,
//! limits ([`super::CgiHeadReader`]).

use super::{CgiHead, HeadRefusal, ResponseKind};
use bytes::Bytes;
use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;

/// The fields read so far.
#[derive(Debug, Default)]
pub(super) struct Fields {
    taken: usize,
    status: Option<StatusCode>,
    content_length: Option<u64>,
    headers: HeaderMap,
}

impl Fields {
    /// The number of lines that counted as fields, including the dropped ones.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Parses a line without its end. It is neither empty nor the status line.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<(), HeadRefusal> {
        self.taken += 1;
        if matches!(line[0], b' ' | b'\t') {
            return Err(HeadRefusal::ContinuationLine);
        }
        let colon = memchr::memchr(b':', line).ok_or(HeadRefusal::ColonMissing)?;
        // RFC 3875 §6.3: no whitespace between name and colon. A token cannot contain whitespace, so this check
        // covers it.
        let name = HeaderName::from_bytes(&line[..colon]).map_err(|_| HeadRefusal::NameInvalid)?;
        let value = trim(&line[colon + 1..]);
        // RFC 3875 §6.3: "A NULL field value is equivalent to a field not being sent."
        if value.is_empty() {
            return Ok(());
        }
        if name == "status" {
            return self.set_status(status_code(value)?);
        }
        // RFC 3875 §6.3.4, RFC 9110 §7.6.1: the server writes its own connection fields.
        if is_of_connection(&name) {
            return Ok(());
        }
        let value = HeaderValue::from_bytes(value).map_err(|_| HeadRefusal::ValueInvalid)?;
        self.field(name, value)
    }

    /// RFC 3875 §6.3: "each CGI field MUST NOT appear more than once". A repetition with the same value is
    /// harmless; with another value the intention is unknown. RFC 9110 §8.6 has the same rule for
    /// `Content-Length`.
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

    /// Parses `HTTP/1.1 404 Not Found` in the first line. PHP sends it instead of `Status` if
    /// `cgi.rfc2616_headers` is on. Programs for "non-parsed header" CGI (RFC 3875 §5) always send it.
    pub(super) fn status_line(&mut self, line: &[u8]) -> Result<(), HeadRefusal> {
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

    /// The head that these fields form, with the content that arrived in the same bytes.
    pub(super) fn head(self, content: Bytes) -> CgiHead {
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

    /// The kind of the response (RFC 3875 §6.2). A local redirect has a path in `Location`, and neither a
    /// status nor other fields (§6.2.2: "MUST NOT return any other header fields"; the two fields that describe
    /// content are tolerated). PHP also sends `Status: 302` and therefore never sends a local redirect: the
    /// path is then a relative reference for the client (RFC 9110 §10.2.2). A program that also sets a cookie
    /// intends the response for the client. Browsers read `//host/` as a host, so it is not a local path.
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

/// Parses a status (RFC 3875 §6.3.3): three digits, then a reason phrase, which is dropped. HTTP does not
/// define 600–999 (RFC 9110 §15), but programs send them, and they are forwarded to the client.
fn status_code(value: &[u8]) -> Result<StatusCode, HeadRefusal> {
    let (code, rest) = value.split_first_chunk::<3>().ok_or(HeadRefusal::StatusInvalid)?;
    if !matches!(rest.first(), None | Some(b' ' | b'\t')) {
        return Err(HeadRefusal::StatusInvalid);
    }
    let status = StatusCode::from_bytes(code).map_err(|_| HeadRefusal::StatusInvalid)?;
    if status.is_informational() { Err(HeadRefusal::StatusInformational) } else { Ok(status) }
}

/// Parses a length (RFC 9110 §8.6): only digits, no sign, no list.
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
    matches!(
        name.as_str(),
        "connection"
            | "transfer-encoding"
            | "upgrade"
            | "trailer"
            | "te"
            | "keep-alive"
            | "proxy-connection"
    )
}

/// The value without leading and trailing spaces and tabs.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
