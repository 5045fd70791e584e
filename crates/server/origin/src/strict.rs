//! A connection to an HTTP origin that validates header sections strictly before hyper parses them.
//! hyper accepts some responses that two parsers could interpret differently, and the wrong
//! interpretation might be cached for all clients (response splitting, cache poisoning).
//!
//! | rejected | section of RFC 9112 |
//! |---|---|
//! | a line that ends in LF without CR | 2.2 |
//! | a status that is not in 100 to 599 | 4 (RFC 9110 section 15) |
//! | `Transfer-Encoding` other than `chunked`, or twice, or in HTTP/1.0 | 6.1, 7 |
//! | `Content-Length` together with `Transfer-Encoding` | 6.3 |
//!
//! | state | the next bytes are | next state |
//! |---|---|---|
//! | `Head` | a header section | `Head` after an interim response (1xx), `Over` after 101, else `Content` |
//! | `Content` | content, which hyper parses | `Head`, when the next request is written |
//! | `Over` | another protocol, or the last response of the connection | |
//!
//! A pooled connection carries no request content ([`Reuse::Pooled`]). So bytes that are written during
//! or after content are the next request. If the connection ends before the first byte of its response, the
//! origin may have closed it while it was idle: the error is [`ClosedWhileIdle`].

use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use origin_servers::{Connector, ServerStream};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

/// How many bytes of a line are examined; the values to compare are shorter.
const LINE_BYTES: usize = 64;

/// Whether a connection is used for more than one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// For successive requests, all without content.
    Pooled,
    /// For a single request, which may have content.
    Once,
}

/// A connection that had been used before ended without a byte of the response: the origin may have closed it before
/// the request reached it.
#[derive(Debug)]
pub struct ClosedWhileIdle;

impl fmt::Display for ClosedWhileIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the origin closed a connection that was kept")
    }
}

impl std::error::Error for ClosedWhileIdle {}

/// Whether the cause of an error is [`ClosedWhileIdle`]: a safe request can be sent again (RFC 9112 section 9.3.1).
pub fn is_closed_while_idle(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut causes = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.any(|error| error.get_ref().is_some_and(|inner| inner.is::<ClosedWhileIdle>()))
}

/// Connects to an HTTP origin.
#[derive(Clone)]
pub struct StrictConnector {
    connector: Connector,
    reuse: Reuse,
}

impl StrictConnector {
    /// Validates connections that `connector` establishes.
    pub fn new(connector: Connector, reuse: Reuse) -> StrictConnector {
        StrictConnector { connector, reuse }
    }
}

impl Service<http::Uri> for StrictConnector {
    type Response = TokioIo<StrictStream>;
    type Error = <Connector as Service<http::Uri>>::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.connector.poll_ready(cx)
    }

    fn call(&mut self, uri: http::Uri) -> Self::Future {
        let (connecting, reuse) = (self.connector.call(uri), self.reuse);
        Box::pin(async move {
            let stream = connecting.await?;
            let check = HeadCheck::default();
            let (waiting, is_deaf) = (Waiting::No, false);
            Ok(TokioIo::new(StrictStream { stream, reuse, check, waiting, is_deaf }))
        })
    }
}

/// A connection whose header sections are validated as they are read.
pub struct StrictStream {
    stream: ServerStream,
    reuse: Reuse,
    check: HeadCheck,
    waiting: Waiting,
    /// Whether the origin takes no more content of the request.
    is_deaf: bool,
}

/// Whether a request other than the first of its connection waits for the first byte of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    No,
    Yes,
}

impl StrictStream {
    fn is_written(&mut self) {
        if self.check.state == State::Content && self.reuse == Reuse::Pooled {
            self.check = HeadCheck::default();
            self.waiting = Waiting::Yes;
        }
    }

    /// The result of a write. An origin may answer before it has read the whole content, and close the connection
    /// (RFC 9112 section 9.6), for example with a 413. Its response can still be read. So the failed write does
    /// not end the request: reading does, by the response or by the end of the connection.
    fn written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        match written {
            Poll::Ready(Err(error))
                if self.reuse == Reuse::Once
                    && matches!(error.kind(), BrokenPipe | ConnectionReset) =>
            {
                self.is_deaf = true;
                Poll::Pending
            }
            written => written.map_err(|error| self.ended(error)),
        }
    }

    /// The error for a connection that has ended with this one.
    fn ended(&self, error: io::Error) -> io::Error {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        let is_closed = matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof);
        if is_closed && self.waiting == Waiting::Yes {
            return io::Error::other(ClosedWhileIdle);
        }
        error
    }
}

impl Connection for StrictStream {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl AsyncRead for StrictStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let strict = self.get_mut();
        let before = out.filled().len();
        ready!(Pin::new(&mut strict.stream).poll_read(cx, out))
            .map_err(|error| strict.ended(error))?;
        if out.filled().len() == before && strict.waiting == Waiting::Yes {
            return Poll::Ready(Err(strict.ended(io::ErrorKind::UnexpectedEof.into())));
        }
        strict.waiting = Waiting::No;
        let checked = strict.check.read(&out.filled()[before..]);
        Poll::Ready(checked.map_err(|flaw| io::Error::new(io::ErrorKind::InvalidData, flaw)))
    }
}

impl AsyncWrite for StrictStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let strict = self.get_mut();
        if strict.is_deaf {
            return Poll::Pending;
        }
        strict.is_written();
        let written = Pin::new(&mut strict.stream).poll_write(cx, bytes);
        strict.written(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let strict = self.get_mut();
        if strict.is_deaf {
            return Poll::Pending;
        }
        strict.is_written();
        let written = Pin::new(&mut strict.stream).poll_write_vectored(cx, pieces);
        strict.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Content,
    Over,
}

/// The state of a header section that is being read.
#[derive(Default)]
struct HeadCheck {
    state: State,
    /// The beginning of the current line, at most [`LINE_BYTES`].
    line: Vec<u8>,
    /// Whether the current line is longer than that.
    is_cut: bool,
    last: u8,
    /// The status; 0 before the status line.
    status: u16,
    is_http_1_0: bool,
    has_length: bool,
    has_coding: bool,
}

impl HeadCheck {
    /// Validates the bytes that have been read.
    ///
    /// # Errors
    /// The reason why the response is unusable.
    fn read(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        for byte in bytes {
            if self.state != State::Head {
                return Ok(());
            }
            if *byte == b'\n' {
                if self.last != b'\r' {
                    return Err("a line of the header section ends in LF without CR");
                }
                self.end_line()?;
            } else if self.line.len() < LINE_BYTES {
                self.line.push(*byte);
            } else {
                self.is_cut |= *byte != b'\r';
            }
            self.last = *byte;
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), &'static str> {
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let is_cut = std::mem::take(&mut self.is_cut);
        let done = match (self.status, line.is_empty()) {
            (0, _) => self.status_line(&line),
            (status, true) => {
                self.end_head(status);
                Ok(())
            }
            (_, false) => self.field(&line, is_cut),
        };
        line.clear();
        self.line = line;
        done
    }

    fn status_line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let (version, status) = match line {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', a, b, c, rest @ ..]
                if rest.first().is_none_or(|byte| *byte == b' ') =>
            {
                (*minor, [*a, *b, *c])
            }
            _ => return Err("no status line"),
        };
        if !(b'1'..=b'5').contains(&status[0]) || !status.iter().all(u8::is_ascii_digit) {
            return Err("the status is not in 100 to 599");
        }
        self.status = status.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        self.is_http_1_0 = version == b'0';
        Ok(())
    }

    fn field(&mut self, line: &[u8], is_cut: bool) -> Result<(), &'static str> {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default().trim_ascii();
        self.has_length |= name.eq_ignore_ascii_case(b"content-length");
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let is_chunked = value.eq_ignore_ascii_case(b"chunked") && !is_cut;
            if !is_chunked || self.has_coding || self.is_http_1_0 {
                return Err("a transfer coding other than chunked");
            }
            self.has_coding = true;
        }
        if self.has_length && self.has_coding {
            Err("Content-Length beside Transfer-Encoding")
        } else {
            Ok(())
        }
    }

    fn end_head(&mut self, status: u16) {
        let state = match status {
            101 => State::Over,
            100..=199 => State::Head,
            _ => State::Content,
        };
        *self = HeadCheck { state, ..HeadCheck::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state after a response. Checks that it does not depend on how the response is split.
    fn check(response: &str) -> Result<State, &'static str> {
        let read = |size: usize| {
            let mut check = HeadCheck::default();
            for piece in response.as_bytes().chunks(size) {
                check.read(piece)?;
            }
            Ok(check.state)
        };
        let whole = read(usize::MAX);
        for size in [1, 2, 7] {
            assert_eq!(read(size), whole, "{response:?} in pieces of {size}");
        }
        whole
    }

    #[test]
    fn responses_of_the_usual_form() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\nab\ncd", "x".repeat(200));
        for response in [
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na\n",
            "HTTP/1.1 200\r\n\r\n",
            "HTTP/1.0 404 Not Found\r\n\r\n\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding:  Chunked \r\n\r\n2\na",
            "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 599 x\r\nx-content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            &long,
        ] {
            assert_eq!(check(response), Ok(State::Content), "{response:?}");
        }
        assert_eq!(check("HTTP/1.1 101 x\r\n\r\n\n\n"), Ok(State::Over));
        assert_eq!(check("HTTP/1.1 100 Continue\r\n\r\n"), Ok(State::Head));
    }

    #[test]
    fn responses_that_can_be_read_in_two_ways() {
        for response in [
            "HTTP/1.1 200 OK\n\n",
            "HTTP/1.1 200 OK\r\nx: y\n\r\n",
            "HTTP/1.1 200 OK\r\nx: y\r\n\n",
            "\r\nHTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 600 x\r\n",
            "HTTP/1.1 099 x\r\n",
            "HTTP/1.1 2000 x\r\n",
            "HTTP/2.0 200 x\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH: 1\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n",
        ] {
            assert!(check(response).is_err(), "{response:?}");
        }
        let hidden = format!("HTTP/1.1 200 OK\r\ntransfer-encoding:{}gzip\r\n", " ".repeat(80));
        assert!(check(&hidden).is_err());
    }
}
