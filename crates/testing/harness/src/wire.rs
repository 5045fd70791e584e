//! HTTP/1.1 messages on a connection (RFC 9112), for the client and the scripted servers of the tests: small,
//! blocking, bounded, and strict, because it checks the messages of others.
//!
//! Fields keep their order and their lines; names are in lower case. Content is read completely. Truncated
//! content is marked, and a malformed chunk or a second length is an error: never an empty page.

use crate::address::{Address, Stream};
use crate::clock::Deadline;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The maximum length of a header section in bytes.
const HEAD_BYTES: usize = 1 << 20;
/// The maximum length of content in bytes.
const CONTENT_BYTES: usize = 256 << 20;

/// Field lines: names in lower case, values as received without surrounding whitespace.
pub type MessageFields = Vec<(String, Vec<u8>)>;

/// The reason why there is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// The connection could not be opened.
    Connect(String),
    /// A read or write timed out.
    TimedOut,
    /// The connection was closed before the message was complete.
    Closed {
        /// The number of bytes received of the incomplete part.
        after_bytes: usize,
    },
    /// The connection was reset before the first byte.
    Reset,
    /// The message exceeds a limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The message is not valid HTTP/1.1.
    Malformed(String),
    /// Another error of the system.
    Io(String),
}

impl ClientError {
    pub(crate) fn from_io(error: &io::Error) -> ClientError {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::TimedOut,
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => ClientError::Reset,
            _ => ClientError::Io(error.to_string()),
        }
    }

    /// Whether the connection ended before the first byte.
    #[must_use]
    pub fn is_end(&self) -> bool {
        matches!(self, ClientError::Closed { after_bytes: 0 } | ClientError::Reset)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect(why) => write!(f, "no connection: {why}"),
            ClientError::TimedOut => write!(f, "nothing came within the bound"),
            ClientError::Closed { after_bytes: 0 } => {
                write!(f, "the connection ended without an answer")
            }
            ClientError::Closed { after_bytes } => {
                write!(f, "closed in the middle, {after_bytes} bytes into an unfinished part")
            }
            ClientError::Reset => write!(f, "connection reset"),
            ClientError::TooLarge { limit } => write!(f, "more than {limit} bytes"),
            ClientError::Malformed(what) => write!(f, "no valid HTTP: {what}"),
            ClientError::Io(why) => write!(f, "{why}"),
        }
    }
}

impl Error for ClientError {}

/// A header section: its first line and its fields.
#[derive(Debug, Clone)]
pub struct MessageHead {
    /// The request or status line.
    pub first: String,
    /// The field lines, in their order.
    pub fields: MessageFields,
}

impl MessageHead {
    /// All lines of a field, joined by `, ` (RFC 9110, 5.3); `None` if there are none.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Vec<u8>> {
        joined(&self.fields, name)
    }

    /// The same as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.field(name).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    /// Whether a list field contains `token`.
    #[must_use]
    pub fn lists(&self, name: &str, token: &str) -> bool {
        let value = self.text(name).unwrap_or_default();
        value.split(',').any(|member| member.trim().eq_ignore_ascii_case(token))
    }

    /// The method and the target of a request.
    #[must_use]
    pub fn method_and_target(&self) -> (&str, &str) {
        let mut words = self.first.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }
}

/// All lines of a field, joined by `, `.
#[must_use]
pub fn joined(fields: &MessageFields, name: &str) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> =
        fields.iter().filter(|(n, _)| n == name).map(|(_, value)| &value[..]).collect();
    (!lines.is_empty()).then(|| lines.join(&b", "[..]))
}

/// Content that was read.
#[derive(Debug, Clone, Default)]
pub struct Body {
    /// The content, without chunk framing.
    pub bytes: Vec<u8>,
    /// Whether it ended where its framing says.
    pub complete: bool,
}

/// A connection, and the bytes that were received but not yet used.
#[derive(Debug)]
pub struct HttpConnection {
    stream: Stream,
    ahead: Vec<u8>,
    until: Option<Deadline>,
}

impl HttpConnection {
    /// Connects. The connect, and later each read and write, may take at most `within`.
    ///
    /// # Errors
    /// `Connect`.
    pub fn open(address: &Address, within: Duration) -> Result<HttpConnection, ClientError> {
        let stream = address.connect(within);
        let stream = stream.map_err(|error| ClientError::Connect(error.to_string()))?;
        Ok(HttpConnection { stream, ahead: Vec::new(), until: None })
    }

    /// A connection over an accepted stream, without timeouts.
    #[must_use]
    pub fn of(stream: TcpStream) -> HttpConnection {
        // Without this option, a second small write may wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        HttpConnection { stream: Stream::Tcp(stream), ahead: Vec::new(), until: None }
    }

    /// Sets the time by which reads and writes must end; `None` keeps the timeouts of each of them.
    pub fn set_deadline(&mut self, until: Option<Deadline>) {
        self.until = until;
    }

    /// A second handle of the socket, with which another thread can shut it down; `None` for a Unix socket.
    #[must_use]
    pub fn handle(&self) -> Option<TcpStream> {
        match &self.stream {
            Stream::Tcp(stream) => stream.try_clone().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// Whether the peer has closed the idle connection.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        let Stream::Tcp(stream) = &self.stream else { return false };
        let _ = stream.set_nonblocking(true);
        let closed = match stream.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        let _ = stream.set_nonblocking(false);
        closed && self.is_idle()
    }

    /// Whether no bytes are left after the last message.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Writes all of these bytes.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(until) = self.until {
            self.stream.set_write_timeout(until.left())?;
        }
        self.stream.write_all(bytes)
    }

    /// Shuts down the connection in both directions.
    pub fn close(&self) {
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Reads once. Returns the number of bytes received, 0 at the end.
    fn read_more(&mut self) -> Result<usize, ClientError> {
        if let Some(until) = self.until {
            let left = until.left().ok_or(ClientError::TimedOut)?;
            let _ = self.stream.set_read_timeout(Some(left));
        }
        let mut chunk = [0; 16 << 10];
        loop {
            return match self.stream.read(&mut chunk) {
                Ok(count) => {
                    self.ahead.extend_from_slice(&chunk[..count]);
                    Ok(count)
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => match ClientError::from_io(&error) {
                    ClientError::Reset if !self.ahead.is_empty() => Ok(0),
                    error => Err(error),
                },
            };
        }
    }

    /// Reads once within content, where a reset is an end like any other.
    fn read_content(&mut self) -> Result<usize, ClientError> {
        match self.read_more() {
            Err(ClientError::Reset) => Ok(0),
            read => read,
        }
    }

    /// Waits until the peer closes the connection.
    ///
    /// # Errors
    /// Other bytes came, or nothing in time.
    pub fn read_end(&mut self) -> Result<(), String> {
        match self.read_content() {
            _ if !self.ahead.is_empty() => {
                let start =
                    String::from_utf8_lossy(&self.ahead).chars().take(100).collect::<String>();
                Err(format!("more bytes: {start:?}"))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// All bytes until the connection is closed.
    ///
    /// # Errors
    /// `TimedOut` if the peer keeps it open; `Reset` if it resets it before the first byte.
    pub fn read_raw(&mut self) -> Result<Vec<u8>, ClientError> {
        while self.read_more()? > 0 {
            bound(self.ahead.len(), CONTENT_BYTES)?;
        }
        Ok(std::mem::take(&mut self.ahead))
    }

    /// Reads a header section.
    ///
    /// # Errors
    /// There is none, or no valid one.
    pub fn read_head(&mut self) -> Result<MessageHead, ClientError> {
        let mut searched = 0;
        loop {
            let found = self.ahead[searched..].windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = found.map(|at| searched + at) {
                let section: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return parse_head(&section[..end]);
            }
            searched = self.ahead.len().saturating_sub(3);
            bound(self.ahead.len(), HEAD_BYTES)?;
            if self.read_more()? == 0 {
                return Err(ClientError::Closed { after_bytes: self.ahead.len() });
            }
        }
    }

    /// Reads exactly `count` bytes of content, or fewer if the connection ends.
    fn read_counted(&mut self, count: usize) -> Result<Body, ClientError> {
        bound(count, CONTENT_BYTES)?;
        while self.ahead.len() < count {
            if self.read_content()? == 0 {
                return Ok(Body { bytes: std::mem::take(&mut self.ahead), complete: false });
            }
        }
        Ok(Body { bytes: self.ahead.drain(..count).collect(), complete: true })
    }

    /// Reads until the end of the connection.
    fn read_all(&mut self) -> Result<Body, ClientError> {
        while self.read_content()? > 0 {
            bound(self.ahead.len(), CONTENT_BYTES)?;
        }
        Ok(Body { bytes: std::mem::take(&mut self.ahead), complete: true })
    }

    /// Reads a line of the chunked coding; `None` at the end of the connection.
    fn read_line(&mut self) -> Result<Option<String>, ClientError> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            bound(self.ahead.len(), HEAD_BYTES)?;
            if self.read_content()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads content in the chunked coding (RFC 9112, 7.1), including its trailer section. Chunk extensions are
    /// ignored.
    fn read_chunked(&mut self) -> Result<Body, ClientError> {
        let mut body = Body::default();
        loop {
            let Some(line) = self.read_line()? else { return Ok(body) };
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| ClientError::Malformed(format!("the chunk size {line:?}")))?;
            if size == 0 {
                break;
            }
            bound(body.bytes.len().saturating_add(size), CONTENT_BYTES)?;
            let chunk = self.read_counted(size)?;
            body.bytes.extend_from_slice(&chunk.bytes);
            if !chunk.complete {
                return Ok(body);
            }
            match self.read_line()? {
                Some(line) if line.is_empty() => {}
                Some(line) => {
                    return Err(ClientError::Malformed(format!("{line:?} behind a chunk")));
                }
                None => return Ok(body),
            }
        }
        loop {
            match self.read_line()? {
                Some(line) if line.is_empty() => break,
                Some(_) => {}
                None => return Ok(body),
            }
        }
        Ok(Body { complete: true, ..body })
    }

    /// Reads the content that belongs to `head` (RFC 9112, 6.3). `until_close`: without a length or chunks the
    /// content ends with the connection, as for responses.
    ///
    /// # Errors
    /// The framing is malformed, or nothing came in time. Truncated content is no error.
    pub fn read_body(
        &mut self,
        head: &MessageHead,
        until_close: bool,
    ) -> Result<Body, ClientError> {
        match (head.text("transfer-encoding"), head.text("content-length")) {
            (Some(_), Some(_)) => Err(ClientError::Malformed("both a coding and a length".into())),
            (Some(coding), None) if coding.to_ascii_lowercase().ends_with("chunked") => {
                self.read_chunked()
            }
            (None, Some(length)) => {
                let wrong = |_| ClientError::Malformed(format!("content-length {length:?}"));
                self.read_counted(length.parse().map_err(wrong)?)
            }
            _ if until_close => self.read_all(),
            _ => Ok(Body { bytes: Vec::new(), complete: true }),
        }
    }

    /// Reads a request with all of its content.
    ///
    /// # Errors
    /// There is none, no valid one, or the client left before its end.
    pub fn read_request(&mut self) -> Result<(MessageHead, Vec<u8>), ClientError> {
        let head = self.read_head()?;
        let body = self.read_body(&head, false)?;
        let after_bytes = body.bytes.len().max(1);
        if body.complete {
            Ok((head, body.bytes))
        } else {
            Err(ClientError::Closed { after_bytes })
        }
    }
}

fn bound(bytes: usize, limit: usize) -> Result<(), ClientError> {
    if bytes > limit { Err(ClientError::TooLarge { limit }) } else { Ok(()) }
}

fn parse_head(section: &[u8]) -> Result<MessageHead, ClientError> {
    let wrong = |why: &str, line: &[u8]| {
        let shown: String = String::from_utf8_lossy(line).chars().take(80).collect();
        ClientError::Malformed(format!("{why}: {shown:?}"))
    };
    let mut lines = section.split(|&b| b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let first = lines.next().unwrap_or_default();
    let first = String::from_utf8(first.to_vec()).map_err(|_| wrong("the first line", first))?;
    let mut fields = MessageFields::new();
    for line in lines {
        let colon = line.iter().position(|&b| b == b':');
        let (name, value) = match colon {
            Some(at) if at > 0 => (&line[..at], &line[at + 1..]),
            _ => return Err(wrong("a header line", line)),
        };
        if name.iter().any(|b| b.is_ascii_whitespace() || b.is_ascii_control()) {
            return Err(wrong("a field name", line));
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        fields.push((name, value.trim_ascii().to_vec()));
    }
    Ok(MessageHead { first, fields })
}

/// The encoded header section.
#[must_use]
pub fn head_bytes(first: &str, fields: &MessageFields) -> Vec<u8> {
    let mut bytes = format!("{first}\r\n").into_bytes();
    for (name, value) in fields {
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Content as one chunk, without the last chunk.
#[must_use]
pub fn chunk(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 16);
    if !content.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
