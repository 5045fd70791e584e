//! An HTTP/1.1 response as received (RFC 9112).
//!
//! Field lines stay separate and in order, because tests check exactly those. A response can be truncated: then it
//! is not complete.

use crate::wire::{Body, ClientError, HttpConnection, MessageFields, MessageHead, joined};

/// The maximum number of interim responses before a response.
const INTERIM: usize = 10;

/// A response that was received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    /// The status code of the response.
    pub status: u16,
    /// The field lines: names in lower case, values trimmed.
    pub headers: MessageFields,
    /// The content, without chunk framing.
    pub content: Vec<u8>,
    /// Whether the content ended where its framing says. [`crate::Client::send`] returns no other.
    pub complete: bool,
    /// The status codes of the interim responses before it.
    pub interim: Vec<u16>,
    /// Whether the connection ends after it, by its fields or its framing (RFC 9112, 9.3).
    pub ends_connection: bool,
}

impl Response {
    /// A complete response with these fields, names in lower case.
    #[must_use]
    pub fn new(status: u16, fields: &[(&str, &str)], content: &[u8]) -> Response {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        Response {
            status,
            headers: fields.iter().map(own).collect(),
            content: content.to_vec(),
            complete: true,
            interim: Vec::new(),
            ends_connection: false,
        }
    }

    /// The value of the first field with this name, ignoring case; U+FFFD if it is not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let same = |(found, _): &&(String, Vec<u8>)| found.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(text)
    }

    /// The values of all field lines with this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let same = move |(found, _): &&(String, Vec<u8>)| found.eq_ignore_ascii_case(name);
        self.headers.iter().filter(same).map(text)
    }

    /// All lines of a field, joined by `, `; its name is in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Vec<u8>> {
        joined(&self.headers, name)
    }

    /// The content as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    /// Reads a response, and the interim responses before it (RFC 9110, 15.2).
    pub(crate) fn read(from: &mut HttpConnection, is_head: bool) -> Result<Response, ClientError> {
        let mut interim = Vec::new();
        let (status, head) = loop {
            let head = from.read_head()?;
            match status(&head)? {
                // 101 is final for the request.
                status @ (100 | 102..200) if interim.len() < INTERIM => interim.push(status),
                status => break (status, head),
            }
        };
        // RFC 9112, 6.3, rules 1 and 2: no content, whatever the fields announce.
        let without = is_head || status < 200 || matches!(status, 204 | 304);
        let body = if without {
            Body { bytes: Vec::new(), complete: true }
        } else {
            from.read_body(&head, true)?
        };
        let framed = head.field("content-length").is_some()
            || head.lists("transfer-encoding", "chunked")
            || without;
        let ends =
            head.lists("connection", "close") || head.first.starts_with("HTTP/1.0") || !framed;
        Ok(Response {
            status,
            headers: head.fields,
            content: body.bytes,
            complete: body.complete,
            interim,
            ends_connection: ends || !body.complete,
        })
    }
}

fn text((_, value): &(String, Vec<u8>)) -> &str {
    std::str::from_utf8(value).unwrap_or("\u{fffd}")
}

/// The status code of a status line (RFC 9112, 4).
fn status(head: &MessageHead) -> Result<u16, ClientError> {
    let wrong = || ClientError::Malformed(format!("the status line {:?}", head.first));
    let rest = head.first.strip_prefix("HTTP/1.").ok_or_else(wrong)?;
    let code = rest.split(' ').nth(1).filter(|code| code.len() == 3).ok_or_else(wrong)?;
    code.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    fn read(wire: &str) -> Result<Response, ClientError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut sender = TcpStream::connect(address).expect("it listens");
        let (receiver, _) = listener.accept().expect("a connection");
        sender.write_all(wire.as_bytes()).expect("the socket has room");
        drop(sender);
        Response::read(&mut HttpConnection::of(receiver), false)
    }

    #[test]
    fn chunks_are_joined_and_interim_responses_kept() {
        let wire = "HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\
                    \r\n\r\n3;x=y\r\none\r\n2\r\n t\r\n0\r\nAge: 1\r\n\r\n";
        let response = read(wire).expect("well formed");
        assert_eq!((response.text().as_str(), response.ends_connection), ("one t", false));
        assert_eq!(response.interim, [103]);
    }

    #[test]
    fn a_content_that_is_cut_short_is_not_complete() {
        for wire in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\none",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n",
        ] {
            let response = read(wire).expect("a head");
            assert!(!response.complete && response.ends_connection, "{wire}");
        }
        assert_eq!(read("HTTP/1.1 "), Err(ClientError::Closed { after_bytes: 9 }));
        assert!(read("").is_err_and(|error| error.is_end()));
    }

    #[test]
    fn two_lengths_and_no_status_are_malformed() {
        for fields in [
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Content-Length: 1\r\nContent-Length: 2",
        ] {
            let both = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
            assert!(matches!(read(&both), Err(ClientError::Malformed(_))), "{fields}");
        }
        assert!(matches!(read("HTTP/1.1 OK\r\n\r\n"), Err(ClientError::Malformed(_))));
    }

    #[test]
    fn without_a_length_the_end_of_the_connection_is_the_end() {
        let response = read("HTTP/1.0 200 OK\r\n\r\nall of it").expect("well formed");
        assert_eq!(response.text(), "all of it");
        assert!(response.complete && response.ends_connection);
    }
}
