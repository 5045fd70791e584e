//! Decodes requests from bytes as they arrive.
//!
//! | state | waits for | next state |
//! |---|---|---|
//! | `Line` | a newline | a request, or `Value`, or `Swallow` |
//! | `Value` | the value and its end of line | the request with its value |
//! | `Swallow` | the rest of a value that is too large | `Line` |
//!
//! The caller owns the buffer; decoded bytes are removed from its front. Bounded: a line longer than memcached
//! allows ends the connection, and a value over the limit is discarded as it arrives. The buffer therefore
//! never holds more than a line or an allowed value, and what one read call added.

use crate::classic;
use crate::line::{self, Tokens};
use crate::request::{Command, Refusal, Request};
use bytes::{Buf, Bytes, BytesMut};

/// The maximum length in bytes of a `get` or `gets` line: a thousand keys of 250 bytes. It also bounds the
/// length of an answer.
pub const LINE_BYTES_MAX: usize = 256 << 10;
/// The maximum length in bytes of any other line, as in memcached.
const OTHER_LINE_BYTES_MAX: usize = 2_048;
/// The first byte of a connection that uses the binary protocol.
const BINARY: u8 = 0x80;
/// The maximum number of spaces before a long `get`, as in memcached.
const BLANKS_MAX: usize = 100;

/// The limits for requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum size of an item in bytes as memcached counts it: value, key, and about 60 bytes of overhead.
    /// memcached's default is one megabyte.
    pub item_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { item_bytes_max: 1 << 20 }
    }
}

impl Limits {
    /// The overhead that memcached adds to key and value: its header with `cas`, and two line ends.
    const AROUND: usize = 48 + 8 + 1 + 2;

    pub(crate) fn allow(self, key_bytes: usize, flags: u32, value_bytes: usize) -> bool {
        let flag_bytes = if flags == 0 { 0 } else { 4 };
        key_bytes + value_bytes + flag_bytes + Self::AROUND <= self.item_bytes_max
    }
}

/// The result of decoding the bytes received so far.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// The request is incomplete: at least so many more bytes are needed.
    More(usize),
    /// A complete request.
    Request(Request),
    /// The connection must be closed without an answer.
    Close(ConnectionRefusal),
}

/// The reason why a connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionRefusal {
    /// A line is longer than allowed.
    TooLong,
    /// The connection uses memcached's binary protocol.
    Binary,
    /// A meta command. The value after an `ms` line must not be parsed as commands.
    Meta,
    /// An HTTP request. The bytes after it must not be parsed as commands: an attacker who can make a server
    /// send a request to a chosen URL could otherwise write to the cache. memcached closes the connection as
    /// well.
    Http,
}

impl ConnectionRefusal {
    /// The name of the reason, for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            ConnectionRefusal::TooLong => "line-too-long",
            ConnectionRefusal::Binary => "binary-protocol",
            ConnectionRefusal::Meta => "meta-commands",
            ConnectionRefusal::Http => "http",
        }
    }
}

/// Decodes requests from a stream of bytes.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    state: State,
    /// Whether no byte has been received yet.
    is_new: bool,
}

#[derive(Debug)]
enum State {
    Line,
    /// Waits for the value of the request.
    Value(PendingRequest),
    Swallow(usize),
}

/// A request whose value has not arrived yet, and the length of the value in bytes without its line end.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) request: Request,
    pub(crate) value_bytes: usize,
}

/// The result of parsing a line.
pub(crate) enum Line {
    /// A complete request.
    Whole(Request),
    /// A request whose value follows.
    Begun(PendingRequest),
    /// A rejected request whose value follows and must be skipped: so many bytes.
    Spoiled(Request, usize),
    /// Another protocol, or a line that is too long: the connection is closed.
    Foreign(ConnectionRefusal),
}

impl Line {
    pub(crate) fn of(command: Command) -> Line {
        Line::Whole(Request { command, quiet: false })
    }

    pub(crate) fn refused(refusal: Refusal) -> Line {
        Line::of(Command::Refused(refusal))
    }

    /// The same request, with or without an answer (`noreply`).
    pub(crate) fn quiet(self, quiet: bool) -> Line {
        match self {
            Line::Whole(request) => Line::Whole(Request { quiet, ..request }),
            Line::Begun(PendingRequest { request, value_bytes }) => {
                Line::Begun(PendingRequest { request: Request { quiet, ..request }, value_bytes })
            }
            Line::Spoiled(request, bytes) => Line::Spoiled(Request { quiet, ..request }, bytes),
            Line::Foreign(what) => Line::Foreign(what),
        }
    }

    /// The result for a line that is not a known command.
    pub(crate) fn unknown(tokens: &Tokens<'_>) -> Line {
        if tokens.last().starts_with(b"HTTP/") {
            Line::Foreign(ConnectionRefusal::Http)
        } else {
            Line::refused(Refusal::Unknown)
        }
    }
}

impl Decoder {
    /// A decoder for a new connection.
    pub fn new(limits: Limits) -> Decoder {
        Decoder { limits, state: State::Line, is_new: true }
    }

    /// Removes the next request from the front of `input`.
    pub fn next(&mut self, input: &mut BytesMut) -> Step {
        if let State::Swallow(left) = &mut self.state {
            let gone = (*left).min(input.len());
            input.advance(gone);
            *left -= gone;
            if *left > 0 {
                return Step::More(1);
            }
            self.state = State::Line;
        }
        if let State::Value(_) = self.state {
            return self.value(input);
        }
        if let (true, Some(first)) = (self.is_new, input.first()) {
            if *first == BINARY {
                return Step::Close(ConnectionRefusal::Binary);
            }
            self.is_new = false;
        }
        let line = match cut_line(input) {
            Ok(Some(line)) => line,
            Ok(None) => return Step::More(1),
            Err(why) => return Step::Close(why),
        };
        match self.understand(&line) {
            Line::Whole(request) => Step::Request(request),
            Line::Spoiled(request, bytes) => {
                self.state = State::Swallow(bytes);
                Step::Request(request)
            }
            Line::Begun(pending) => {
                self.state = State::Value(pending);
                self.value(input)
            }
            Line::Foreign(what) => Step::Close(what),
        }
    }

    fn value(&mut self, input: &mut BytesMut) -> Step {
        let State::Value(pending) = &self.state else { return Step::More(1) };
        let value_bytes = pending.value_bytes;
        if input.len() < value_bytes + 2 {
            return Step::More(value_bytes + 2 - input.len());
        }
        let State::Value(pending) = std::mem::replace(&mut self.state, State::Line) else {
            return Step::More(1);
        };
        let mut block = input.split_to(value_bytes + 2);
        let is_whole = block.ends_with(b"\r\n");
        block.truncate(value_bytes);
        Step::Request(if is_whole {
            filled(pending.request, block.freeze())
        } else {
            reject(pending)
        })
    }

    /// Parses a line without its end.
    fn understand(&self, line: &Bytes) -> Line {
        let tokens = Tokens::of(line);
        match tokens.at(0) {
            // Every command has at least two letters.
            [] | [_] => Line::refused(Refusal::Unknown),
            [b'm', b'a' | b'd' | b'e' | b'g' | b'n' | b's'] => {
                Line::Foreign(ConnectionRefusal::Meta)
            }
            b"get" | b"gets" | b"gat" | b"gats" | b"bget" => classic::read_get(&tokens, line),
            command => classic::read(command, &tokens, self.limits),
        }
    }
}

fn filled(mut request: Request, value: Bytes) -> Request {
    if let Command::Set(set) = &mut request.command {
        set.value = value;
    }
    request
}

fn reject(pending: PendingRequest) -> Request {
    Request { command: Command::Refused(Refusal::BadValue), quiet: pending.request.quiet }
}

/// Removes a line from the front of `input`, and returns it without its end. `None` if no line is complete.
fn cut_line(input: &mut BytesMut) -> Result<Option<Bytes>, ConnectionRefusal> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        let fits =
            input.len() <= OTHER_LINE_BYTES_MAX || (is_get(input) && input.len() <= LINE_BYTES_MAX);
        return if fits { Ok(None) } else { Err(ConnectionRefusal::TooLong) };
    };
    let mut line = input.split_to(end + 1);
    line.truncate(end);
    // As in memcached, a line that consists only of CR is an unknown command.
    if line.len() > 1 && line.ends_with(b"\r") {
        line.truncate(end - 1);
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(ConnectionRefusal::TooLong);
    }
    Ok(Some(line.freeze()))
}

fn is_get(input: &[u8]) -> bool {
    let blanks = input.iter().take_while(|byte| **byte == b' ').count();
    let rest = &input[blanks..];
    blanks <= BLANKS_MAX && (rest.starts_with(b"get ") || rest.starts_with(b"gets "))
}

/// The keys of a `get`: the part of the line after the first `tokens` tokens.
pub(crate) fn rest_of(line: &Bytes, tokens: usize) -> Bytes {
    let Some(last) = line::all(line).nth(tokens - 1) else { return Bytes::new() };
    let end = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
    line.slice(end..)
}
