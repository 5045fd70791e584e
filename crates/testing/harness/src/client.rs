//! A small blocking HTTP/1.1 client: one persistent connection, with timeouts and a size limit.
//!
//! It sends exactly what the test specifies and adds only `Host` and `Content-Length`. It follows no redirects,
//! stores nothing and decodes nothing, so that tests see the bytes of the connection. If the server closed the
//! connection while it was idle, the client opens another one, but only for safe methods (RFC 9112, 9.3.1).

use crate::address::Address;
use crate::clock::Deadline;
use crate::reply::Response;
use crate::wire::{ClientError, HttpConnection};
use std::net::TcpStream;
use std::time::Duration;

/// The default timeout of each connect, read and write.
const WITHIN: Duration = Duration::from_secs(60);

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
    connection: Option<HttpConnection>,
    /// Whether the last request was HEAD, so that its response has no content.
    last_was_head: bool,
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
        Client { address, host, within: WITHIN, connection: None, last_was_head: false }
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
        let used_before = self.connection.is_some();
        match self.exchange(request) {
            Err(error) if error.is_end() && used_before && request.is_safe() => {
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
        let mut connection = HttpConnection::open(&self.address, self.within)?;
        connection.write(bytes).map_err(|error| ClientError::from_io(&error))?;
        connection.read_raw()
    }

    /// Sends an encoded request without waiting for its response. A connection that the server closed while it
    /// was idle is opened again; a request that has been written is never repeated.
    ///
    /// # Errors
    /// There is no connection.
    pub fn write(
        &mut self,
        bytes: &[u8],
        is_head: bool,
        until: Deadline,
    ) -> Result<(), ClientError> {
        if self.connection.as_ref().is_some_and(HttpConnection::was_closed) {
            self.connection = None;
        }
        let within = until.left().unwrap_or(Duration::from_millis(1));
        let connection = self.connected(within)?;
        connection.set_deadline(Some(until));
        // A server may refuse and close before it has read everything. Its answer can still be read.
        let _ = connection.write(bytes);
        self.last_was_head = is_head;
        Ok(())
    }

    /// Reads the next response, which may be truncated.
    ///
    /// # Errors
    /// No response was received. The connection is then closed.
    pub fn receive(&mut self, until: Deadline) -> Result<Response, ClientError> {
        let is_head = self.last_was_head;
        let connection = self.connection.as_mut();
        let connection = connection.ok_or(ClientError::Closed { after_bytes: 0 })?;
        connection.set_deadline(Some(until));
        let read = Response::read(connection, is_head);
        if read.is_err() {
            self.connection = None;
        }
        read
    }

    /// Waits until the server has closed the connection.
    ///
    /// # Errors
    /// It sent other bytes, or did not close the connection in time.
    pub fn await_close(&mut self, until: Deadline) -> Result<(), String> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        connection.set_deadline(Some(until));
        connection.read_end()
    }

    /// A handle with which another thread can end the connection.
    #[must_use]
    pub fn handle(&self) -> Option<TcpStream> {
        self.connection.as_ref().and_then(HttpConnection::handle)
    }

    /// Closes the connection; the next request opens another one.
    pub fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }

    fn exchange(&mut self, request: &Request) -> Result<Response, ClientError> {
        let bytes = request.to_bytes(&self.host);
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => HttpConnection::open(&self.address, self.within)?,
        };
        let sent = connection.write(&bytes);
        let read = Response::read(&mut connection, request.method == "HEAD");
        let response = match (sent, read) {
            // A server may respond (413, 400) before it has read the whole request. The response counts.
            (_, Ok(response)) => response,
            (Err(error), Err(_)) => return Err(ClientError::from_io(&error)),
            (Ok(()), Err(error)) => return Err(error),
        };
        if !response.complete {
            return Err(ClientError::Closed { after_bytes: response.content.len().max(1) });
        }
        if !response.ends_connection && connection.is_idle() {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    fn connected(&mut self, within: Duration) -> Result<&mut HttpConnection, ClientError> {
        match self.connection.take() {
            Some(connection) => Ok(self.connection.insert(connection)),
            None => Ok(self.connection.insert(HttpConnection::open(&self.address, within)?)),
        }
    }
}
