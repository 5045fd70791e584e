//! A connection on which a test writes arbitrary bytes, and reads the answer as it arrives.
//!
//! Reads have a timeout. A reset counts as the end of the connection, because a server that closes while bytes
//! are in flight cannot prevent it.

use super::BOUND;
use harness::{Address, Pagewell};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// A connection for raw bytes.
pub struct Raw {
    stream: TcpStream,
    /// Bytes that have been received and not used.
    seen: Vec<u8>,
}

/// A response as received.
#[derive(Debug)]
pub struct Answer {
    /// The status code of the response.
    pub status: u16,
    /// The head, including its line ends.
    pub head: String,
    /// The content, without chunk framing.
    pub content: String,
}

impl Answer {
    /// The value of the first field with this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Raw {
    /// Connects to the public address.
    pub fn connect(pagewell: &Pagewell) -> Raw {
        Raw::to(pagewell.address())
    }

    /// Connects to an address.
    pub fn to(address: &Address) -> Raw {
        let Address::Tcp(address) = address else { panic!("not TCP") };
        let stream = TcpStream::connect(address).expect("it accepts connections");
        stream.set_read_timeout(Some(BOUND)).expect("can be set");
        stream.set_write_timeout(Some(BOUND)).expect("can be set");
        stream.set_nodelay(true).expect("can be set");
        Raw { stream, seen: Vec::new() }
    }

    /// Connects and sends bytes.
    pub fn with(pagewell: &Pagewell, bytes: impl AsRef<[u8]>) -> Raw {
        let mut raw = Raw::connect(pagewell);
        raw.send(bytes);
        raw
    }

    /// Sends bytes. It is not an error if the server has answered and closed before it read all of them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let sent = self.stream.write_all(bytes.as_ref());
        let closed = |kind| matches!(kind, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        if let Err(error) = sent {
            assert!(closed(error.kind()), "cannot send: {error}");
        }
    }

    /// The TCP connection to the server.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Closes the sending direction only.
    pub fn finish_sending(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes the connection by a reset, which a server cannot take for a client that only sends no more.
    pub fn reset(self) {
        let socket = socket2::SockRef::from(&self.stream);
        socket.set_linger(Some(std::time::Duration::ZERO)).expect("can be set");
    }

    /// Reads until `text` has arrived, and returns everything up to its end.
    pub fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = find(&self.seen, text.as_bytes()) {
                let used: Vec<u8> = self.seen.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&used).into_owned();
            }
            let before = String::from_utf8_lossy(&self.seen).into_owned();
            assert!(self.more(), "closed before {text:?} came: {before:?}");
        }
    }

    /// The bytes that have been received already, at most `most`.
    pub fn kept(&mut self, most: usize) -> Vec<u8> {
        let count = most.min(self.seen.len());
        self.seen.drain(..count).collect()
    }

    /// Reads one response. Responses to HEAD, and those that end with the connection, are not supported.
    pub fn answer(&mut self) -> Answer {
        let head = self.until("\r\n\r\n");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {head:?}"));
        let mut answer = Answer { status, head, content: String::new() };
        let chunked = answer.header("transfer-encoding") == Some("chunked");
        let length: usize =
            answer.header("content-length").map_or(0, |text| text.parse().expect("a length"));
        answer.content = if chunked { self.chunks() } else { self.exactly(length) };
        answer
    }

    /// Everything until the server closes the connection.
    pub fn rest(&mut self) -> String {
        while self.more() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.seen)).into_owned()
    }

    fn chunks(&mut self) -> String {
        let mut content = String::new();
        loop {
            let line = self.until("\r\n");
            let size = usize::from_str_radix(line.trim(), 16).expect("the size of a chunk");
            content.push_str(&self.exactly(size));
            self.until("\r\n");
            if size == 0 {
                return content;
            }
        }
    }

    fn exactly(&mut self, length: usize) -> String {
        while self.seen.len() < length {
            assert!(self.more(), "closed after {} bytes of {length}", self.seen.len());
        }
        let used: Vec<u8> = self.seen.drain(..length).collect();
        String::from_utf8_lossy(&used).into_owned()
    }

    /// Reads the available bytes; `false` at the end.
    fn more(&mut self) -> bool {
        let mut piece = [0; 64 << 10];
        match self.stream.read(&mut piece) {
            Ok(0) => false,
            Ok(count) => {
                self.seen.extend_from_slice(&piece[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came, and it was not closed: {error}"),
        }
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|window| window == text)
}
