//! HTTP/1.1 messages on a socket (RFC 9112), for the client, the origin and the control API: small, blocking,
//! bounded, and strict, because it checks the messages of others.
//!
//! Fields keep their order and their lines; names are in lower case. Content is read completely.

use crate::deadline::Deadline;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// The maximum length of a header section in bytes.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// The maximum length of content in bytes.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Header lines: name in lower case, value as received without surrounding whitespace.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// The reason why nothing more could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection ended, cleanly or not, before the first byte.
    Ended,
    /// The connection ended within a header section.
    EndedInHead,
    /// Nothing arrived before the deadline.
    TimedOut,
    /// The bytes are not valid HTTP/1.1, or exceed a limit.
    NotHttp(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Ended => f.write_str("the connection ended without an answer"),
            Trouble::EndedInHead => f.write_str("the connection ended within the header section"),
            Trouble::TimedOut => f.write_str("nothing came within the bound"),
            Trouble::NotHttp(why) => write!(f, "no HTTP: {why}"),
        }
    }
}

/// A header section: its first line and its fields.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    /// The request or status line.
    pub(crate) first: String,
    /// The header lines.
    pub(crate) fields: Fields,
}

impl Head {
    /// All lines of a field, joined by `, ` (RFC 9110 section 5.3); `None` if there are none.
    pub(crate) fn field(&self, name: &str) -> Option<Vec<u8>> {
        joined(&self.fields, name)
    }

    /// Whether a list field contains `token`.
    pub(crate) fn lists(&self, name: &str, token: &str) -> bool {
        let value = self.field(name).unwrap_or_default();
        String::from_utf8_lossy(&value).split(',').any(|m| m.trim().eq_ignore_ascii_case(token))
    }
}

/// All lines of a field, joined by `, `.
pub(crate) fn joined(fields: &Fields, name: &str) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> =
        fields.iter().filter(|(n, _)| n == name).map(|(_, value)| &value[..]).collect();
    (!lines.is_empty()).then(|| lines.join(&b", "[..]))
}

/// Content that was read, and whether it is complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) complete: bool,
}

/// A connection, and the bytes that were received but not yet used.
pub(crate) struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
    deadline: Option<Deadline>,
}

impl Connection {
    /// Connects, until `deadline`.
    pub(crate) fn open(address: SocketAddr, deadline: Deadline) -> std::io::Result<Connection> {
        let left = deadline.left().unwrap_or(std::time::Duration::from_millis(1));
        Ok(Connection::of(TcpStream::connect_timeout(&address, left)?))
    }

    /// A connection over an open stream.
    pub(crate) fn of(stream: TcpStream) -> Connection {
        // Without this option, a second small write may wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        Connection { stream, ahead: Vec::new(), deadline: None }
    }

    /// Sets the deadline for reads and writes; `None` disables it.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Deadline>) {
        self.deadline = deadline;
    }

    /// A second handle of the socket, with which another thread can shut it down.
    pub(crate) fn handle(&self) -> std::io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// Whether the peer has closed the idle connection.
    pub(crate) fn was_closed(&self) -> bool {
        let _ = self.stream.set_nonblocking(true);
        let mut byte = [0];
        let closed = match self.stream.peek(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        let _ = self.stream.set_nonblocking(false);
        closed && self.ahead.is_empty()
    }

    /// Writes everything.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.set_write_timeout(self.deadline.and_then(Deadline::left))?;
        self.stream.write_all(bytes)
    }

    /// Shuts down the connection in both directions.
    pub(crate) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Reads once. Returns the number of bytes received, 0 at the end; an error of the socket counts as an end.
    fn read_more(&mut self) -> Result<usize, Trouble> {
        if let Some(deadline) = self.deadline {
            let left = deadline.left().ok_or(Trouble::TimedOut)?;
            let _ = self.stream.set_read_timeout(Some(left));
        }
        let mut chunk = [0; 16 << 10];
        loop {
            return match self.stream.read(&mut chunk) {
                Ok(count) => {
                    self.ahead.extend_from_slice(&chunk[..count]);
                    Ok(count)
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    Err(Trouble::TimedOut)
                }
                Err(_) => Ok(0),
            };
        }
    }

    /// Waits until the peer closes the connection. Any other bytes are an error.
    pub(crate) fn read_end(&mut self) -> Result<(), String> {
        match self.read_more() {
            _ if !self.ahead.is_empty() => {
                Err(format!("more bytes: {}", crate::transcript::shorten(&self.ahead, 100)))
            }
            Ok(_) => Ok(()),
            Err(trouble) => Err(trouble.to_string()),
        }
    }

    /// Reads a header section.
    pub(crate) fn read_head(&mut self) -> Result<Head, Trouble> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                let section: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return parse_head(&section[..end]);
            }
            if self.ahead.len() > HEAD_BYTES_MAX {
                return Err(Trouble::NotHttp("a header section without end".into()));
            }
            if self.read_more()? == 0 {
                let empty = self.ahead.is_empty();
                return Err(if empty { Trouble::Ended } else { Trouble::EndedInHead });
            }
        }
    }

    /// Reads exactly `count` bytes of content, or fewer if the connection ends.
    fn read_counted(&mut self, count: usize) -> Result<Body, Trouble> {
        if count > BODY_BYTES_MAX {
            return Err(Trouble::NotHttp(format!("content of {count} bytes")));
        }
        while self.ahead.len() < count {
            if self.read_more()? == 0 {
                return Ok(Body { bytes: std::mem::take(&mut self.ahead), complete: false });
            }
        }
        Ok(Body { bytes: self.ahead.drain(..count).collect(), complete: true })
    }

    /// Reads until the end of the connection.
    fn read_all(&mut self) -> Result<Body, Trouble> {
        while self.read_more()? > 0 {
            if self.ahead.len() > BODY_BYTES_MAX {
                return Err(Trouble::NotHttp("content without end".into()));
            }
        }
        Ok(Body { bytes: std::mem::take(&mut self.ahead), complete: true })
    }

    /// Reads a line of the chunked coding; `None` at the end of the connection.
    fn read_line(&mut self) -> Result<Option<String>, Trouble> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..end]).into_owned()));
            }
            if self.ahead.len() > HEAD_BYTES_MAX {
                return Err(Trouble::NotHttp("a chunk line without end".into()));
            }
            if self.read_more()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads content in the chunked coding (RFC 9112 section 7.1), including its trailer section.
    fn read_chunked(&mut self) -> Result<Body, Trouble> {
        let mut body = Body::default();
        loop {
            let Some(line) = self.read_line()? else { return Ok(body) };
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| Trouble::NotHttp(format!("the chunk size {line:?}")))?;
            if size == 0 {
                break;
            }
            if body.bytes.len().saturating_add(size) > BODY_BYTES_MAX {
                return Err(Trouble::NotHttp("content without end".into()));
            }
            let chunk = self.read_counted(size)?;
            body.bytes.extend_from_slice(&chunk.bytes);
            if !chunk.complete {
                return Ok(body);
            }
            match self.read_line()? {
                Some(line) if line.is_empty() => {}
                Some(line) => return Err(Trouble::NotHttp(format!("{line:?} behind a chunk"))),
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

    /// Reads the content that belongs to `head` (RFC 9112 section 6.3). `until_close`: without a length or
    /// chunks the content ends with the connection, as for responses.
    pub(crate) fn read_body(&mut self, head: &Head, until_close: bool) -> Result<Body, Trouble> {
        if head.lists("transfer-encoding", "chunked") {
            return self.read_chunked();
        }
        match head.field("content-length") {
            Some(length) => {
                let text = String::from_utf8_lossy(&length).into_owned();
                let count =
                    text.parse().map_err(|_| Trouble::NotHttp(format!("content-length {text}")))?;
                self.read_counted(count)
            }
            None if until_close => self.read_all(),
            None => Ok(Body { bytes: Vec::new(), complete: true }),
        }
    }
}

fn parse_head(section: &[u8]) -> Result<Head, Trouble> {
    let not_http = |why: &str, line: &[u8]| {
        Trouble::NotHttp(format!("{why}: {}", crate::transcript::shorten(line, 80)))
    };
    let mut lines = section.split(|&b| b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
    let first = lines.next().unwrap_or_default();
    let first = String::from_utf8(first.to_vec()).map_err(|_| not_http("the first line", first))?;
    let mut fields = Fields::new();
    for line in lines {
        let colon = line.iter().position(|&b| b == b':');
        let (name, value) = match colon {
            Some(at) if at > 0 => (&line[..at], &line[at + 1..]),
            _ => return Err(not_http("a header line", line)),
        };
        if name.iter().any(|b| b.is_ascii_whitespace() || b.is_ascii_control()) {
            return Err(not_http("a field name", line));
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        fields.push((name, value.trim_ascii().to_vec()));
    }
    Ok(Head { first, fields })
}

/// The encoded header section.
pub(crate) fn head_bytes(first: &str, fields: &Fields) -> Vec<u8> {
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
pub(crate) fn chunk(content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len() + 16);
    if !content.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", content.len()).as_bytes());
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
