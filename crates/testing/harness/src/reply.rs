//! An HTTP/1.1 response as received, and its parser (RFC 9112).
//!
//! Head, content and time are limited. The parser is strict where tests need to notice: truncated content, a
//! malformed chunk and a second length are errors, never an empty page. Field lines stay separate and in order,
//! because tests check exactly those.

use crate::client::ClientError;
use std::io::{ErrorKind, Read};

/// The maximum length in bytes of a head: status line and fields.
const HEAD_BYTES: usize = 256 * 1024;
/// The maximum length of the content in bytes.
const CONTENT_BYTES: usize = 256 * 1024 * 1024;

/// A response that was received completely.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code of the response.
    pub status: u16,
    /// The field lines: names as received, values trimmed.
    pub headers: Vec<(String, String)>,
    /// The content, without chunk framing.
    pub content: Vec<u8>,
    /// The field lines of the trailer section.
    pub trailers: Vec<(String, String)>,
    /// The status codes of the interim responses before it.
    pub interim: Vec<u16>,
}

impl Response {
    /// The value of the first field with this name, ignoring case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let same = |(found, _): &&(String, String)| found.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|(_, value)| value.as_str())
    }

    /// The values of all field lines with this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = move |(found, _): &&(String, String)| found.eq_ignore_ascii_case(name);
        self.headers.iter().filter(same).map(|(_, value)| value.as_str())
    }

    /// The content as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    /// Whether the server keeps the connection open for another request (RFC 9112, 9.3).
    pub(crate) fn keeps_open(&self, framing: Framing) -> bool {
        let close = |value: &str| value.split(',').any(|t| t.trim().eq_ignore_ascii_case("close"));
        framing != Framing::UntilClose && !self.all("connection").any(close)
    }
}

/// How the end of a response's content is determined (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// There is no content: HEAD, 1xx, 204, 304.
    Empty,
    /// By Content-Length, in bytes.
    Length(usize),
    /// By the chunked transfer coding.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// Bytes that were received and not yet parsed.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    used: usize,
}

impl Incoming {
    /// Reads a complete response. Its framing determines whether the connection can be reused.
    pub(crate) fn response(
        &mut self,
        from: &mut impl Read,
        is_head: bool,
    ) -> Result<(Response, Framing), ClientError> {
        let mut interim = Vec::new();
        let mut response = self.head(from)?;
        // RFC 9110, 15.2: any number of interim responses; 101 is final for this connection.
        while (100..200).contains(&response.status) && response.status != 101 {
            interim.push(response.status);
            response = self.head(from)?;
        }
        response.interim = interim;
        let framing = framing(&response, is_head)?;
        match framing {
            Framing::Empty => {}
            Framing::Length(length) => response.content = self.exactly(from, length)?,
            Framing::Chunked => self.chunks(from, &mut response)?,
            Framing::UntilClose => response.content = self.until_end(from)?,
        }
        Ok((response, framing))
    }

    /// All bytes until the connection is closed, including those received before.
    pub(crate) fn until_end(&mut self, from: &mut impl Read) -> Result<Vec<u8>, ClientError> {
        loop {
            match self.fill(from) {
                Ok(()) => bound(self.bytes.len() - self.used, CONTENT_BYTES)?,
                Err(ClientError::Closed { .. }) => {
                    return Ok(self.take(self.bytes.len() - self.used));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether no bytes are left after the last response.
    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.bytes.len()
    }

    fn head(&mut self, from: &mut impl Read) -> Result<Response, ClientError> {
        let status_line = self.line(from)?;
        let mut words = status_line.splitn(3, ' ');
        let version = words.next().unwrap_or_default();
        let status = words.next().and_then(|word| word.parse().ok());
        let (Some(status), true) = (status, version.starts_with("HTTP/1.")) else {
            return Err(ClientError::Malformed(format!("status line {status_line:?}")));
        };
        let headers = self.fields(from)?;
        Ok(Response { status, headers, ..Response::default() })
    }

    fn fields(&mut self, from: &mut impl Read) -> Result<Vec<(String, String)>, ClientError> {
        let mut fields = Vec::new();
        let mut bytes = 0;
        loop {
            let line = self.line(from)?;
            if line.is_empty() {
                return Ok(fields);
            }
            bytes += line.len();
            bound(bytes, HEAD_BYTES)?;
            let Some((name, value)) = line.split_once(':') else {
                return Err(ClientError::Malformed(format!("field line {line:?}")));
            };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// Reads chunked content (RFC 9112, 7.1). Chunk extensions are ignored, trailers are kept.
    fn chunks(&mut self, from: &mut impl Read, into: &mut Response) -> Result<(), ClientError> {
        loop {
            let line = self.line(from)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let Ok(size) = usize::from_str_radix(size, 16) else {
                return Err(ClientError::Malformed(format!("chunk size {line:?}")));
            };
            if size == 0 {
                into.trailers = self.fields(from)?;
                return Ok(());
            }
            bound(into.content.len().saturating_add(size), CONTENT_BYTES)?;
            into.content.extend(self.exactly(from, size)?);
            if !self.line(from)?.is_empty() {
                return Err(ClientError::Malformed("a chunk that is longer than it says".into()));
            }
        }
    }

    fn line(&mut self, from: &mut impl Read) -> Result<String, ClientError> {
        let mut searched = 0;
        loop {
            let unused = &self.bytes[self.used..];
            if let Some(found) = unused[searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.take(searched + found + 1);
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end_matches('\n');
                return Ok(line.strip_suffix('\r').unwrap_or(line).to_owned());
            }
            searched = unused.len();
            bound(searched, HEAD_BYTES)?;
            self.fill(from)?;
        }
    }

    fn exactly(&mut self, from: &mut impl Read, length: usize) -> Result<Vec<u8>, ClientError> {
        bound(length, CONTENT_BYTES)?;
        while self.bytes.len() - self.used < length {
            self.fill(from)?;
        }
        Ok(self.take(length))
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let taken = self.bytes[self.used..self.used + length].to_vec();
        self.used += length;
        if self.is_empty() {
            self.bytes.clear();
            self.used = 0;
        }
        taken
    }

    fn fill(&mut self, from: &mut impl Read) -> Result<(), ClientError> {
        let mut buffer = [0; 16 * 1024];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => {
                    return Err(ClientError::Closed { after_bytes: self.bytes.len() - self.used });
                }
                Ok(length) => {
                    self.bytes.extend_from_slice(&buffer[..length]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Err(ClientError::Reset);
                }
                Err(error) => return Err(ClientError::from_io(&error)),
            }
        }
    }
}

fn framing(response: &Response, is_head: bool) -> Result<Framing, ClientError> {
    if is_head || matches!(response.status, 101 | 204 | 304) {
        return Ok(Framing::Empty);
    }
    let coding = response.all("transfer-encoding").last();
    let lengths: Vec<&str> = response.all("content-length").collect();
    match (coding, lengths.as_slice()) {
        (Some(_), [_, ..]) => Err(ClientError::Malformed("both chunked and a length".into())),
        (Some(coding), []) if coding.to_ascii_lowercase().ends_with("chunked") => {
            Ok(Framing::Chunked)
        }
        (_, []) => Ok(Framing::UntilClose),
        (None, [length]) => length
            .parse()
            .map(Framing::Length)
            .map_err(|_| ClientError::Malformed(format!("content-length {length:?}"))),
        (None, _) => Err(ClientError::Malformed("several lengths".into())),
    }
}

fn bound(bytes: usize, limit: usize) -> Result<(), ClientError> {
    if bytes > limit { Err(ClientError::TooLarge { limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(wire: &str) -> Result<(Response, Framing), ClientError> {
        Incoming::default().response(&mut wire.as_bytes(), false)
    }

    #[test]
    fn chunks_are_joined_and_trailers_kept() {
        let wire = "HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\
                    \r\n\r\n3;x=y\r\none\r\n2\r\n t\r\n0\r\nAge: 1\r\n\r\n";
        let (response, framing) = read(wire).expect("well formed");
        assert_eq!((response.text().as_str(), framing), ("one t", Framing::Chunked));
        assert_eq!(response.interim, [103]);
        assert_eq!(response.trailers, [("Age".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn a_content_that_is_cut_short_is_an_error() {
        let wire = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\none";
        assert_eq!(read(wire), Err(ClientError::Closed { after_bytes: 3 }));
        let wire = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
        assert!(matches!(read(wire), Err(ClientError::Closed { .. })));
    }

    #[test]
    fn two_lengths_and_no_status_are_malformed() {
        let both = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(matches!(read(both), Err(ClientError::Malformed(_))));
        assert!(matches!(read("HTTP/1.1 OK\r\n\r\n"), Err(ClientError::Malformed(_))));
    }

    #[test]
    fn without_a_length_the_end_of_the_connection_is_the_end() {
        let (response, framing) = read("HTTP/1.0 200 OK\r\n\r\nall of it").expect("well formed");
        assert_eq!(response.text(), "all of it");
        assert!(!response.keeps_open(framing));
    }
}
