//! Decodes replies (RESP2) as their bytes arrive. An incomplete reply is not parsed again from its beginning:
//! the part that was read is kept.
//!
//! Invariants: no byte is read twice except those of the incomplete value at the end. A reply takes at most
//! `bytes_max` bytes, where each value counts [`VALUE_BYTES`] more than its length. At most [`DEPTH_MAX`] lists
//! are nested. A string that is too long is skipped and read as null: `XINFO STREAM` includes the first and the
//! last entry, even if only the position is needed.

use std::fmt;

/// The maximum depth of nested lists. The reply to `XREAD` has five.
pub const DEPTH_MAX: usize = 8;
/// The memory that a value takes in addition to its bytes.
pub const VALUE_BYTES: usize = 64;
/// The maximum length in bytes of the first line of a value: a number, or the text of an error.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A reply, or an element of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A simple string.
    Status(String),
    /// An error: its code and its message.
    Error(String),
    /// An integer.
    Integer(i64),
    /// A bulk string.
    Bytes(Vec<u8>),
    /// An array.
    List(Vec<Reply>),
    /// A null: a null bulk string or a null array.
    Null,
}

/// The reason why bytes are not a valid reply. The connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// The type byte is unknown.
    Kind(u8),
    /// A number is invalid, or a line or a string does not end where it must.
    Malformed,
    /// The reply is longer than `bytes_max`.
    TooLong,
    /// More than [`DEPTH_MAX`] lists are nested.
    TooDeep,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyError::Kind(byte) => {
                write!(f, "no reply begins with the byte {byte:#04x}: is this Valkey or Redis?")
            }
            ReplyError::Malformed => f.write_str("the reply is malformed"),
            ReplyError::TooLong => f.write_str("the reply is longer than is read"),
            ReplyError::TooDeep => f.write_str("the reply has too many lists in one another"),
        }
    }
}

impl std::error::Error for ReplyError {}

/// A list whose elements have not all arrived.
#[derive(Debug)]
struct OpenList {
    so_far: Vec<Reply>,
    missing: usize,
}

/// Decodes replies from bytes.
#[derive(Debug)]
pub struct Replies {
    buffer: Vec<u8>,
    /// The number of bytes of `buffer` that have been read.
    at: usize,
    open: Vec<OpenList>,
    /// The number of bytes still to skip of a string that is too long.
    left_out: Option<usize>,
    /// The number of bytes of the current reply.
    bytes: usize,
    bytes_max: usize,
}

impl Replies {
    /// A decoder for replies of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Replies {
        Replies { buffer: Vec::new(), at: 0, open: Vec::new(), left_out: None, bytes: 0, bytes_max }
    }

    /// Appends bytes that have been received.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete reply; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not a valid reply. Nothing more can be read from this connection.
    pub fn read(&mut self) -> Result<Option<Reply>, ReplyError> {
        while let Some((piece, length)) = self.piece()? {
            self.at += length;
            self.bytes += length + VALUE_BYTES;
            let mut value = match piece {
                Piece::Value(value) => value,
                Piece::Skipped => {
                    self.left_out = None;
                    // A skipped string is not held in memory.
                    self.bytes -= length;
                    Reply::Null
                }
                Piece::LeftOut(count) => {
                    self.left_out = Some(count);
                    continue;
                }
                Piece::List(missing) => {
                    if self.open.len() == DEPTH_MAX {
                        return Err(ReplyError::TooDeep);
                    }
                    self.open.push(OpenList { so_far: Vec::new(), missing });
                    continue;
                }
            };
            loop {
                let Some(list) = self.open.last_mut() else {
                    self.bytes = 0;
                    return Ok(Some(value));
                };
                list.so_far.push(value);
                list.missing -= 1;
                if list.missing > 0 {
                    break;
                }
                value = Reply::List(std::mem::take(&mut list.so_far));
                self.open.pop();
            }
        }
        Ok(None)
    }

    /// The next value that is not a list, or the beginning of a list, and its length in bytes. `None` if it is
    /// incomplete.
    fn piece(&mut self) -> Result<Option<(Piece, usize)>, ReplyError> {
        if let Some(left) = &mut self.left_out {
            let some = self.buffer.len() - self.at;
            if *left > some {
                *left -= some;
                self.at = self.buffer.len();
                return Ok(None);
            }
            return Ok(Some((Piece::Skipped, *left)));
        }
        let rest = &self.buffer[self.at..];
        let Some(kind) = rest.first() else { return Ok(None) };
        if !b"+-:$*".contains(kind) {
            return Err(ReplyError::Kind(*kind));
        }
        let room = self.bytes_max.saturating_sub(self.bytes);
        let Some(line) = line(&rest[1..], room.min(LINE_BYTES_MAX))? else { return Ok(None) };
        let head = 1 + line.len() + 2;
        let text = || String::from_utf8_lossy(line).into_owned();
        let piece = match kind {
            b'+' => Piece::Value(Reply::Status(text())),
            b'-' => Piece::Value(Reply::Error(text())),
            b':' => Piece::Value(Reply::Integer(number(line)?)),
            _ if line == b"-1" => Piece::Value(Reply::Null),
            b'*' if line == b"0" => Piece::Value(Reply::List(Vec::new())),
            kind => {
                let count = usize::try_from(number(line)?).map_err(|_| ReplyError::Malformed)?;
                match kind {
                    b'*' if count > room => return Err(ReplyError::TooLong),
                    b'*' => return Ok(Some((Piece::List(count), head))),
                    _ if count > room => {
                        let all = count.checked_add(2).ok_or(ReplyError::Malformed)?;
                        return Ok(Some((Piece::LeftOut(all), head)));
                    }
                    _ => {}
                }
                let Some(bytes) = rest[head..].get(..count + 2) else { return Ok(None) };
                let (bytes, end) = bytes.split_at(count);
                if end != b"\r\n" {
                    return Err(ReplyError::Malformed);
                }
                return Ok(Some((Piece::Value(Reply::Bytes(bytes.to_vec())), head + count + 2)));
            }
        };
        Ok(Some((piece, head)))
    }
}

enum Piece {
    Value(Reply),
    /// The beginning of a list of so many elements, at least one.
    List(usize),
    /// A string that is too long to be held: so many bytes are skipped.
    LeftOut(usize),
    /// The last bytes of a skipped string have arrived.
    Skipped,
}

/// The first line, without its line end. `None` if the line is incomplete.
fn line(bytes: &[u8], max: usize) -> Result<Option<&[u8]>, ReplyError> {
    match bytes.iter().take(max.saturating_add(1)).position(|byte| *byte == b'\r') {
        Some(end) => match bytes.get(end + 1) {
            Some(b'\n') => Ok(Some(&bytes[..end])),
            Some(_) => Err(ReplyError::Malformed),
            None => Ok(None),
        },
        None if bytes.len() > max => Err(ReplyError::TooLong),
        None => Ok(None),
    }
}

fn number(line: &[u8]) -> Result<i64, ReplyError> {
    let text = str::from_utf8(line).map_err(|_| ReplyError::Malformed)?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_err(|_| ReplyError::Malformed)
    } else {
        Err(ReplyError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], step: usize) -> Result<Vec<Reply>, ReplyError> {
        let (mut replies, mut found) = (Replies::new(1_000), Vec::new());
        for some in bytes.chunks(step.max(1)) {
            replies.push(some);
            while let Some(reply) = replies.read()? {
                found.push(reply);
            }
        }
        Ok(found)
    }

    #[test]
    fn each_kind() {
        let bytes = b"+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n*1\r\n$0\r\n\r\n:7\r\n";
        let found = all(bytes, bytes.len()).expect("replies");
        let list = vec![Reply::List(vec![Reply::Bytes(Vec::new())]), Reply::Integer(7)];
        assert_eq!(
            found,
            [
                Reply::Status("OK".into()),
                Reply::Error("ERR no".into()),
                Reply::Integer(-12),
                Reply::Bytes(b"a\r\n".to_vec()),
                Reply::Null,
                Reply::Null,
                Reply::List(Vec::new()),
                Reply::List(list),
            ]
        );
    }

    #[test]
    fn oversized_values_are_skipped() {
        let long = [&b"*2\r\n$2000\r\n"[..], &[b'x'; 2_000], b"\r\n:1\r\n+OK\r\n"].concat();
        for step in [1, 7, 999, 4_000] {
            let list = Reply::List(vec![Reply::Null, Reply::Integer(1)]);
            assert_eq!(all(&long, step), Ok(vec![list, Reply::Status("OK".into())]));
        }
        let endless = b"$9223372036854775807\r\nxxxxxxxx";
        assert_eq!(all(endless, 5), Ok(Vec::new()));
    }

    #[test]
    fn invalid_replies_are_refused() {
        for (bytes, why) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], ReplyError::Kind(b'H')),
            (b"$3\r\nabcd\r\n", ReplyError::Malformed),
            (b":+1\r\n", ReplyError::Malformed),
            (b"$-2\r\n", ReplyError::Malformed),
            (b"+a\rb", ReplyError::Malformed),
            (b"*1001\r\n", ReplyError::TooLong),
            (b"*99999999999999999999\r\n", ReplyError::Malformed),
            (&b"*1\r\n".repeat(DEPTH_MAX + 1)[..], ReplyError::TooDeep),
            (
                &b"*999\r\n".iter().chain(&b":1\r\n".repeat(400)).copied().collect::<Vec<_>>()[..],
                ReplyError::TooLong,
            ),
            (&[b'+'; 1_003][..], ReplyError::TooLong),
        ] {
            assert_eq!(all(bytes, 7), Err(why), "{}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_it_comes(bytes in "[-+:$*0-9a\r\n]{0,60}", step in 1usize..8) {
            prop_assert_eq!(all(bytes.as_bytes(), step), all(bytes.as_bytes(), 1));
        }
    }
}
