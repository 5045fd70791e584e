//! A client of a scenario: one persistent connection, requests on it, and answers that are read completely and
//! checked later.
//!
//! If the server closed the connection between two requests, the client opens another one, like any client. A
//! request that has been written is never repeated, so that no failure is hidden.

use crate::deadline::Deadline;
use crate::wire::{Body, Connection, Fields, Head, Trouble, chunk, head_bytes, joined};
use std::net::{SocketAddr, TcpStream};

/// A request with its placeholders replaced.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The bytes to send.
    pub(crate) bytes: Vec<u8>,
    /// Whether the method is HEAD, so that the answer has no content.
    pub(crate) is_head: bool,
}

impl Request {
    /// A normal request. Content gets a `Content-Length`, or one chunk if `fields` contains `Transfer-Encoding:
    /// chunked`. Lengths given by the scenario are not changed.
    pub(crate) fn http(
        method: &str,
        target: &[u8],
        mut fields: Fields,
        body: Option<Vec<u8>>,
    ) -> Request {
        let has = |fields: &Fields, name: &str| fields.iter().any(|(n, _)| n == name);
        let chunked = has(&fields, "transfer-encoding");
        if let Some(body) = &body
            && !chunked
            && !has(&fields, "content-length")
        {
            fields.push(("content-length".into(), body.len().to_string().into_bytes()));
        }
        let first = format!("{method} {} HTTP/1.1", String::from_utf8_lossy(target));
        let mut bytes = head_bytes(&first, &fields);
        match body {
            Some(body) if chunked => {
                bytes.extend(chunk(&body));
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
            Some(body) => bytes.extend(body),
            None => {}
        }
        Request { bytes, is_head: method == "HEAD" }
    }

    /// A request of literal bytes.
    pub(crate) fn raw(bytes: Vec<u8>) -> Request {
        let is_head = bytes.starts_with(b"HEAD ");
        Request { bytes, is_head }
    }
}

/// An answer as received.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) fields: Fields,
    pub(crate) body: Body,
    /// The statuses of the interim responses before it.
    pub(crate) interim: Vec<u16>,
    /// Whether the connection ends after this answer, by its fields or its framing.
    pub(crate) ends_connection: bool,
}

impl Response {
    /// All lines of a field, joined.
    pub(crate) fn field(&self, name: &str) -> Option<Vec<u8>> {
        joined(&self.fields, name)
    }
}

/// A client: the server's address, and the persistent connection.
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
    last_was_head: bool,
}

impl Client {
    /// A client for `address`, not connected yet.
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { address, connection: None, last_was_head: false }
    }

    /// Sends a request, on the existing connection if it is still open.
    pub(crate) fn send(&mut self, request: &Request, deadline: Deadline) -> Result<(), String> {
        if self.connection.as_ref().is_some_and(Connection::was_closed) {
            self.connection = None;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let opened = Connection::open(self.address, deadline);
                let opened = opened.map_err(|e| format!("no connection: {e}"))?;
                self.connection.insert(opened)
            }
        };
        connection.set_deadline(Some(deadline));
        self.last_was_head = request.is_head;
        // A server may refuse and close before it has read everything. Its answer can still be read.
        let _ = connection.write(&request.bytes);
        Ok(())
    }

    /// A handle with which another thread can end the connection.
    pub(crate) fn handle(&self) -> Option<TcpStream> {
        self.connection.as_ref().and_then(|connection| connection.handle().ok())
    }

    /// Reads the next answer.
    pub(crate) fn receive(&mut self, deadline: Deadline) -> Result<Response, Trouble> {
        let is_head = self.last_was_head;
        let connection = self.connection.as_mut().ok_or(Trouble::Ended)?;
        connection.set_deadline(Some(deadline));
        let read = receive(connection, is_head);
        if read.is_err() {
            self.connection = None;
        }
        read
    }

    /// Waits until the server has closed the connection.
    pub(crate) fn await_close(&mut self, deadline: Deadline) -> Result<(), String> {
        let Some(mut connection) = self.connection.take() else { return Ok(()) };
        connection.set_deadline(Some(deadline));
        connection.read_end()
    }

    /// Closes the connection.
    pub(crate) fn leave(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close();
        }
    }

    /// Drops a connection that ended with its last answer.
    pub(crate) fn forget(&mut self) {
        self.connection = None;
    }
}

fn receive(connection: &mut Connection, is_head: bool) -> Result<Response, Trouble> {
    let mut interim = Vec::new();
    let (status, head) = loop {
        let head = connection.read_head()?;
        let status = status(&head)?;
        match status {
            // Interim responses (RFC 9110 section 15.2); 101 is final for the request.
            100 | 102..200 if interim.len() < 10 => interim.push(status),
            _ => break (status, head),
        }
    };
    // RFC 9112 section 6.3, rules 1 and 2: no content, whatever the fields announce.
    let without = is_head || status < 200 || matches!(status, 204 | 304);
    let body = if without {
        Body { bytes: Vec::new(), complete: true }
    } else {
        connection.read_body(&head, true)?
    };
    let framed = head.field("content-length").is_some()
        || head.lists("transfer-encoding", "chunked")
        || without;
    let ends = head.lists("connection", "close") || head.first.starts_with("HTTP/1.0") || !framed;
    let ends_connection = ends || !body.complete;
    Ok(Response { status, fields: head.fields, body, interim, ends_connection })
}

/// The status code of a status line (RFC 9112 section 4).
fn status(head: &Head) -> Result<u16, Trouble> {
    let wrong = || Trouble::NotHttp(format!("the status line {:?}", head.first));
    let rest = head.first.strip_prefix("HTTP/1.").ok_or_else(wrong)?;
    let code = rest.split(' ').nth(1).filter(|code| code.len() == 3).ok_or_else(wrong)?;
    code.parse().map_err(|_| wrong())
}
