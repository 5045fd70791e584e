//! Finds the end of a response in the bytes received, with as little work as possible.
//!
//! Only the properties that determine the end are parsed (RFC 9112, 6.3): the status, `Content-Length`,
//! `chunked`, `Connection: close`. Interim responses and HEAD are not expected, because the load generator
//! requests neither. The head is buffered until it is complete; the content is only counted.

/// The maximum length of a head in bytes.
const HEAD_BYTES: usize = 64 * 1024;

/// The result of scanning a piece of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanResult {
    /// The response is incomplete.
    More,
    /// The response is complete.
    End {
        /// The status code.
        status: u16,
        /// Whether the connection may be reused.
        reusable: bool,
    },
    /// The bytes are not a valid response, or follow one.
    Nonsense,
}

/// The state of the scan.
#[derive(Debug, Default)]
pub(super) struct Scan {
    head: Vec<u8>,
    status: u16,
    closes: bool,
    content: Content,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// The head is incomplete.
    #[default]
    NotYet,
    /// This number of bytes is still to come.
    Length(usize),
    /// The content ends with the connection.
    UntilClose,
    /// In a chunk: this number of bytes is still to come, including its line end.
    Chunk(usize),
    /// In the line with a chunk's size: the part that has been parsed.
    Size { size: usize, digits_done: bool },
    /// In the trailer after the last chunk: the number of bytes in the current line.
    Trailer { line_bytes: usize },
}

impl Scan {
    /// Scans the next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> ScanResult {
        if self.content != Content::NotYet {
            return self.content(bytes);
        }
        self.head.extend_from_slice(bytes);
        let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if self.head.len() > HEAD_BYTES {
                ScanResult::Nonsense
            } else {
                ScanResult::More
            };
        };
        let head = std::mem::take(&mut self.head);
        if self.begin(&head[..end]).is_none() {
            return ScanResult::Nonsense;
        }
        self.content(&head[end + 4..])
    }

    /// The connection was closed. Returns the status if this completes the response.
    pub(super) fn closed(&self) -> Option<u16> {
        (self.content == Content::UntilClose).then_some(self.status)
    }

    fn begin(&mut self, head: &[u8]) -> Option<()> {
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.split("\r\n");
        let status_line = lines.next()?;
        self.status = status_line.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
        self.content = Content::UntilClose;
        for line in lines {
            let (name, value) = line.split_once(':')?;
            match name.len() {
                10 if name.eq_ignore_ascii_case("connection") => {
                    self.closes = value.trim().eq_ignore_ascii_case("close");
                }
                14 if name.eq_ignore_ascii_case("content-length") => {
                    self.content = Content::Length(value.trim().parse().ok()?);
                }
                17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                    self.content = Content::Size { size: 0, digits_done: false };
                }
                _ => {}
            }
        }
        if matches!(self.status, 204 | 304) {
            self.content = Content::Length(0);
        }
        Some(())
    }

    fn content(&mut self, mut bytes: &[u8]) -> ScanResult {
        loop {
            match self.content {
                Content::NotYet | Content::UntilClose => return ScanResult::More,
                Content::Length(left) if bytes.len() > left => return ScanResult::Nonsense,
                Content::Length(left) => {
                    self.content = Content::Length(left - bytes.len());
                    return if left == bytes.len() { self.end() } else { ScanResult::More };
                }
                Content::Chunk(left) => {
                    let here = left.min(bytes.len());
                    bytes = &bytes[here..];
                    self.content = match left - here {
                        0 => Content::Size { size: 0, digits_done: false },
                        left => Content::Chunk(left),
                    };
                }
                Content::Size { .. } | Content::Trailer { .. } => {}
            }
            let Some((first, rest)) = bytes.split_first() else { return ScanResult::More };
            match self.content {
                Content::Size { size, digits_done } => {
                    let Some(next) = size_byte(size, digits_done, *first) else {
                        return ScanResult::Nonsense;
                    };
                    self.content = next;
                    bytes = rest;
                }
                Content::Trailer { line_bytes } => {
                    bytes = rest;
                    match first {
                        b'\n' if line_bytes == 0 && bytes.is_empty() => return self.end(),
                        b'\n' if line_bytes == 0 => return ScanResult::Nonsense,
                        b'\n' => self.content = Content::Trailer { line_bytes: 0 },
                        b'\r' => {}
                        _ => self.content = Content::Trailer { line_bytes: line_bytes + 1 },
                    }
                }
                _ => {}
            }
        }
    }

    fn end(&self) -> ScanResult {
        ScanResult::End { status: self.status, reusable: !self.closes }
    }
}

/// Parses one byte of a chunk's size line: hexadecimal digits, optional extensions, the line end.
fn size_byte(size: usize, digits_done: bool, byte: u8) -> Option<Content> {
    match byte {
        b'\n' if size == 0 => Some(Content::Trailer { line_bytes: 0 }),
        b'\n' => Some(Content::Chunk(size.checked_add(2)?)),
        _ if digits_done => Some(Content::Size { size, digits_done }),
        b'\r' | b';' | b' ' => Some(Content::Size { size, digits_done: true }),
        _ => {
            let digit = char::from(byte).to_digit(16)? as usize;
            let size = size.checked_mul(16)?.checked_add(digit)?;
            Some(Content::Size { size, digits_done })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result must be the same however the bytes are split.
    fn scan(wire: &[u8]) -> ScanResult {
        let whole = Scan::default().take(wire);
        for cut in 1..wire.len() {
            let mut scan = Scan::default();
            let found = match scan.take(&wire[..cut]) {
                ScanResult::More => scan.take(&wire[cut..]),
                early => early,
            };
            assert_eq!(found, whole, "cut after {cut} bytes");
        }
        whole
    }

    #[test]
    fn ends_by_length_and_by_chunks() {
        let end = ScanResult::End { status: 200, reusable: true };
        assert_eq!(scan(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"), end);
        assert_eq!(
            scan(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nA;x=1\r\n0123456789\r\n0\r\nT: 1\r\n\r\n"),
            end
        );
        let closing = ScanResult::End { status: 404, reusable: false };
        assert_eq!(
            scan(b"HTTP/1.1 404 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
            closing
        );
    }

    #[test]
    fn the_end_of_the_connection_counts_only_without_a_length() {
        let mut scan = Scan::default();
        assert_eq!(scan.take(b"HTTP/1.1 200 OK\r\n\r\nsome"), ScanResult::More);
        assert_eq!(scan.closed(), Some(200));
        let mut scan = Scan::default();
        assert_eq!(
            scan.take(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"),
            ScanResult::More
        );
        assert_eq!(scan.closed(), None);
    }

    #[test]
    fn nonsense_is_seen() {
        assert_eq!(Scan::default().take(b"hello\r\n\r\n"), ScanResult::Nonsense);
        let long = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nones";
        assert_eq!(Scan::default().take(long), ScanResult::Nonsense);
    }
}
