//! A small blocking HTTP/1.1 client: one persistent connection, with timeouts and a size limit.
//!
//! It sends exactly what the test specifies and adds only `Host` and `Content-Length`. It follows no redirects,
//! stores nothing and decodes nothing, so that tests see the bytes of the connection. If the server closed the
//! connection while it was idle, the client opens another one, but only for safe methods (RFC 9112, 9.3.1).

use crate::address::{Address, Stream};
use crate::reply::{Incoming, Response};
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// The default timeout of each connect, read and write.
const WITHIN: Duration = Duration::from_secs(20);

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientError {
    /// The connection could not be opened.
    Connect(String),
    /// A read or write timed out.
    TimedOut,
    /// The connection was closed before the response was complete.
    Closed {
        /// The number of bytes received of the incomplete part.
        after_bytes: usize,
    },
    /// The connection was reset.
    Reset,
    /// The response exceeds the client's limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The response is not valid HTTP/1.1.
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
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connect(why) => write!(f, "no connection: {why}"),
            ClientError::TimedOut => write!(f, "no answer within {} s", WITHIN.as_secs()),
            ClientError::Closed { after_bytes } => {
                write!(f, "closed in the middle, {after_bytes} bytes into an unfinished part")
            }
            ClientError::Reset => write!(f, "connection reset"),
            ClientError::TooLarge { limit } => write!(f, "more than {limit} bytes"),
            ClientError::Malformed(what) => write!(f, "malformed response: {what}"),
            ClientError::Io(why) => write!(f, "{why}"),
        }
    }
}

impl Error for ClientError {}

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    content: Option<Vec<u8>>,
}

impl Request {
    /// A request without content.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Request {
        Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: Vec::new(),
            content: None,
        }
    }

    /// A GET of a path.
    #[must_use]
    pub fn get(target: &str) -> Request {
        Request::new("GET", target)
    }

    /// A POST of form fields that are already encoded: `name=A&text=B`.
    #[must_use]
    pub fn form(target: &str, fields: &str) -> Request {
        Request::new("POST", target)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .content(fields.as_bytes())
    }

    /// Adds a field line. A `Host` field replaces the client's.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the content, which is sent with its `Content-Length`.
    #[must_use]
    pub fn content(mut self, content: &[u8]) -> Request {
        self.content = Some(content.to_vec());
        self
    }

    /// The encoded request for a server with this host name.
    #[must_use]
    pub fn to_bytes(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(content) = &self.content {
            head.push_str(&format!("Content-Length: {}\r\n", content.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.content.as_deref().unwrap_or_default());
        bytes
    }

    fn is_safe(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }
}

/// A client with one connection.
#[derive(Debug)]
pub struct Client {
    address: Address,
    host: String,
    within: Duration,
    connection: Option<Connection>,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    incoming: Incoming,
    requests: u64,
}

impl Client {
    /// A client for this server. It connects with the first request.
    #[must_use]
    pub fn new(address: impl Into<Address>) -> Client {
        let address = address.into();
        let host = match &address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => "localhost".to_owned(),
        };
        Client { address, host, within: WITHIN, connection: None }
    }

    /// Sets the value of `Host`.
    #[must_use]
    pub fn host(mut self, host: &str) -> Client {
        host.clone_into(&mut self.host);
        self
    }

    /// Sets the timeout of each connect, read and write.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Client {
        self.within = within;
        self
    }

    /// Sends a GET request.
    ///
    /// # Errors
    /// No complete response was received.
    pub fn get(&mut self, target: &str) -> Result<Response, ClientError> {
        self.send(&Request::get(target))
    }

    /// Sends a HEAD request.
    ///
    /// # Errors
    /// No complete response was received.
    pub fn head(&mut self, target: &str) -> Result<Response, ClientError> {
        self.send(&Request::new("HEAD", target))
    }

    /// Sends a POST request with encoded form fields.
    ///
    /// # Errors
    /// No complete response was received.
    pub fn post(&mut self, target: &str, fields: &str) -> Result<Response, ClientError> {
        self.send(&Request::form(target, fields))
    }

    /// Sends any request and reads its response.
    ///
    /// # Errors
    /// No complete response was received. The connection is then closed.
    pub fn send(&mut self, request: &Request) -> Result<Response, ClientError> {
        let used_before = self.connection.as_ref().is_some_and(|held| held.requests > 0);
        match self.exchange(request) {
            Err(ClientError::Closed { after_bytes: 0 } | ClientError::Reset)
                if used_before && request.is_safe() =>
            {
                self.exchange(request)
            }
            outcome => outcome,
        }
    }

    /// Sends bytes unchanged on a new connection, and returns all bytes until the server closes it.
    ///
    /// # Errors
    /// `TimedOut` if the server keeps the connection open; `Reset` if it resets the connection.
    pub fn raw(&self, bytes: &[u8]) -> Result<Vec<u8>, ClientError> {
        let mut stream = self.open()?;
        stream.write_all(bytes).map_err(|error| ClientError::from_io(&error))?;
        Incoming::default().until_end(&mut stream)
    }

    /// Closes the connection; the next request opens another one.
    pub fn close(&mut self) {
        self.connection = None;
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, ClientError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection { stream: self.open()?, incoming: Incoming::default(), requests: 0 },
        };
        let sent = connection.stream.write_all(&request.to_bytes(&self.host));
        let is_head = request.method == "HEAD";
        let read = connection.incoming.response(&mut connection.stream, is_head);
        let (response, framing) = match (sent, read) {
            // A server may respond (413, 400) before it has read the whole request. The response counts.
            (_, Ok(whole)) => whole,
            (Err(error), Err(_)) => return Err(ClientError::from_io(&error)),
            (Ok(()), Err(error)) => return Err(error),
        };
        connection.requests += 1;
        if response.keeps_open(framing) && connection.incoming.is_empty() {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    fn open(&self) -> Result<Stream, ClientError> {
        self.address.connect(self.within).map_err(|error| ClientError::Connect(error.to_string()))
    }
}
