//! Bytes to requests, as they come.
//!
//! | state | waits for | then |
//! |---|---|---|
//! | `Line` | a newline | a request, or `Value`, or `Swallow` |
//! | `Value` | the value and its end of line | the request with its value |
//! | `Swallow` | the rest of a value that is too large | `Line` |
//!
//! The caller owns the buffer; what was understood is taken from its front. Bounded: a line longer than
//! memcached takes ends the connection, a value over the limit is swallowed as it comes, so the buffer never
//! has to hold more than a line or an allowed value, and what was read beyond it.

use crate::classic;
use crate::line::{self, Tokens};
use crate::meta;
use crate::request::{Command, Refusal, Request};
use bytes::{Buf, Bytes, BytesMut};

/// The longest line of a `get` or `gets`: a thousand keys of 250 bytes. It bounds what one answer can be.
pub const LINE_BYTES_MAX: usize = 256 << 10;
/// The longest line of anything else: memcached's.
const OTHER_LINE_BYTES_MAX: usize = 2_048;
/// What the first request of a connection begins with that speaks the binary protocol.
const BINARY: u8 = 0x80;
/// Blanks that may go before a long `get`: memcached's.
const BLANKS_MAX: usize = 100;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The bytes of an item as memcached counts them: value, key, and about 60 more. memcached's default is
    /// a megabyte.
    pub item_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { item_bytes_max: 1 << 20 }
    }
}

impl Limits {
    /// The bytes that memcached keeps beside key and value: its header with `cas`, and two ends.
    const AROUND: usize = 48 + 8 + 1 + 2;

    pub(crate) fn allow(self, key_bytes: usize, flags: u32, value_bytes: usize) -> bool {
        let flag_bytes = if flags == 0 { 0 } else { 4 };
        key_bytes + value_bytes + flag_bytes + Self::AROUND <= self.item_bytes_max
    }
}

/// What the bytes that are there make.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// No request yet: read so many bytes more, at least.
    More(usize),
    /// A request.
    Request(Request),
    /// The connection is to be closed, without an answer.
    Close(NotSpoken),
}

/// Why a connection is closed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSpoken {
    /// A line was longer than may be.
    TooLong,
    /// It begins as memcached's binary protocol does.
    Binary,
    /// A request of HTTP. What follows it is not to be taken for commands: whoever can have a server ask for an
    /// address of his choice would write into the cache by it. memcached closes as well.
    Http,
}

impl NotSpoken {
    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            NotSpoken::TooLong => "line-too-long",
            NotSpoken::Binary => "binary-protocol",
            NotSpoken::Http => "http",
        }
    }
}

/// Takes requests out of a stream of bytes.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    state: State,
    /// Nothing has come yet.
    is_new: bool,
}

#[derive(Debug)]
enum State {
    Line,
    /// The request without its value, and the value's length without its end of line.
    Value(Pending),
    Swallow(usize),
}

/// A request that waits for its value.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) request: Request,
    pub(crate) value_bytes: usize,
}

/// What a line came to.
pub(crate) enum Line {
    /// A request.
    Whole(Request),
    /// A request whose value is still to come.
    Begun(Pending),
    /// A request whose value is still to come and of no interest: so many bytes.
    Spoiled(Request, usize),
    /// Not for here.
    Foreign(NotSpoken),
}

impl Line {
    pub(crate) fn of(command: Command) -> Line {
        Line::Whole(Request { command, quiet: false })
    }

    pub(crate) fn refused(refusal: Refusal) -> Line {
        Line::of(Command::Refused(refusal))
    }

    /// The same request, of which the client does not want to hear.
    pub(crate) fn quiet(self, quiet: bool) -> Line {
        match self {
            Line::Whole(request) => Line::Whole(Request { quiet, ..request }),
            Line::Begun(Pending { request, value_bytes }) => {
                Line::Begun(Pending { request: Request { quiet, ..request }, value_bytes })
            }
            Line::Spoiled(request, bytes) => Line::Spoiled(Request { quiet, ..request }, bytes),
            Line::Foreign(what) => Line::Foreign(what),
        }
    }

    /// What a command that is none comes to.
    pub(crate) fn unknown(tokens: &Tokens<'_>) -> Line {
        match tokens.last().starts_with(b"HTTP/") {
            true => Line::Foreign(NotSpoken::Http),
            false => Line::refused(Refusal::Unknown),
        }
    }
}

impl Decoder {
    /// A decoder for a new connection.
    pub fn new(limits: Limits) -> Decoder {
        Decoder { limits, state: State::Line, is_new: true }
    }

    /// Takes the next request from the front of `input`.
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
                return Step::Close(NotSpoken::Binary);
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
            spoilt(pending)
        })
    }

    /// What a line (without its end) asks for.
    fn understand(&self, line: &Bytes) -> Line {
        let tokens = Tokens::of(line);
        match tokens.at(0) {
            // No command is shorter than two letters.
            [] | [_] => Line::refused(Refusal::Unknown),
            [b'm', command] => meta::read(*command, &tokens, self.limits),
            b"get" | b"gets" | b"gat" | b"gats" | b"bget" => classic::read_get(&tokens, line),
            command => classic::read(command, &tokens, self.limits),
        }
    }
}

fn filled(mut request: Request, value: Bytes) -> Request {
    match &mut request.command {
        Command::Set(set) => set.value = value,
        Command::MetaSet(meta) => meta.own.set.value = value,
        _ => {}
    }
    request
}

/// Meta commands are told of errors whether they want to or not.
fn spoilt(pending: Pending) -> Request {
    let quiet = pending.request.quiet && matches!(pending.request.command, Command::Set(_));
    Request { command: Command::Refused(Refusal::BadValue), quiet }
}

/// Takes a line from the front, without its end; `None` where there is none yet.
fn cut_line(input: &mut BytesMut) -> Result<Option<Bytes>, NotSpoken> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        let fits =
            input.len() <= OTHER_LINE_BYTES_MAX || (is_get(input) && input.len() <= LINE_BYTES_MAX);
        return if fits { Ok(None) } else { Err(NotSpoken::TooLong) };
    };
    let mut line = input.split_to(end + 1);
    line.truncate(end);
    // A line that is nothing but CR is what memcached takes it for: an unknown command.
    if line.len() > 1 && line.ends_with(b"\r") {
        line.truncate(end - 1);
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(NotSpoken::TooLong);
    }
    Ok(Some(line.freeze()))
}

fn is_get(input: &[u8]) -> bool {
    let blanks = input.iter().take_while(|byte| **byte == b' ').count();
    let rest = &input[blanks..];
    blanks <= BLANKS_MAX && (rest.starts_with(b"get ") || rest.starts_with(b"gets "))
}

/// The keys of a `get`: what comes behind so many tokens of its line.
pub(crate) fn rest_of(line: &Bytes, tokens: usize) -> Bytes {
    let Some(last) = line::all(line).nth(tokens - 1) else { return Bytes::new() };
    let end = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
    line.slice(end..)
}
