//! Parses the lines of the classic commands: `get`, `set` and similar ones (protocol.txt, "Storage commands"
//! and after).
//!
//! If a line has several errors, the one that memcached 1.6 reports is reported, and none for a command with
//! `noreply`. Clients depend on both.

use crate::decoder::{Limits, Line, PendingRequest, rest_of};
use crate::item::Expiry;
use crate::line::{self, Tokens};
use crate::request::{
    Arithmetic, Command, Delete, Direction, Get, Mode, OversizedValue, Refusal, Request,
    StorageCommand, Touch,
};
use bytes::Bytes;

/// The maximum length of a key in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 250;
/// The exclusive maximum of a value's length in bytes: memcached stores the length with the line end in an
/// `int`.
pub(crate) const VALUE_BYTES_MAX: i32 = i32::MAX - 2;

/// Parses `get`, `gets`, `gat` and `gats`.
pub(crate) fn read_get(tokens: &Tokens<'_>, line: &Bytes) -> Line {
    let command = tokens.at(0);
    if tokens.count() < 2 {
        return Line::refused(Refusal::Unknown);
    }
    let cas = command.ends_with(b"s");
    if !command.starts_with(b"ga") {
        return Line::of(Command::Get(Get { keys: rest_of(line, 1), cas, touch: None }));
    }
    let Some(expiry) = line::signed(tokens.at(1)) else {
        return Line::refused(Refusal::BadExpiry);
    };
    let touch = Some(Expiry::of(expiry));
    Line::of(Command::Get(Get { keys: rest_of(line, 2), cas, touch }))
}

/// Parses every other classic command.
pub(crate) fn read(command: &[u8], tokens: &Tokens<'_>, limits: Limits) -> Line {
    let words = tokens.count();
    let line = match command {
        b"set" => read_set(tokens, Mode::Set, limits),
        b"add" => read_set(tokens, Mode::Add, limits),
        b"replace" => read_set(tokens, Mode::Replace, limits),
        b"append" => read_set(tokens, Mode::Append, limits),
        b"prepend" => read_set(tokens, Mode::Prepend, limits),
        b"cas" => read_set(tokens, Mode::Cas, limits),
        b"incr" => read_arithmetic(tokens, Direction::Up),
        b"decr" => read_arithmetic(tokens, Direction::Down),
        b"delete" if (2..=4).contains(&words) => return read_delete(tokens),
        b"touch" if (3..=4).contains(&words) => read_touch(tokens),
        b"flush_all" if (1..=3).contains(&words) => read_flush(tokens),
        b"verbosity" if (2..=3).contains(&words) => match line::unsigned(tokens.at(1)) {
            Some(_) => Line::of(Command::Verbosity),
            None => Line::refused(Refusal::BadLine),
        },
        b"stats" => {
            let mut words = tokens.from(1).iter().map(|word| owned(word));
            return Line::of(Command::Stats(words.next(), words.next()));
        }
        b"version" => return Line::of(Command::Version),
        b"quit" => return Line::of(Command::Quit),
        b"shutdown" => return Line::refused(Refusal::Shutdown),
        _ => return Line::unknown(tokens),
    };
    // A wrong number of tokens is always reported, because any token might be `noreply`.
    let is_unknown = matches!(&line, Line::Whole(Request { command: Command::Refused(refusal), .. })
        if *refusal == Refusal::Unknown);
    line.quiet(!is_unknown && tokens.last() == b"noreply")
}

fn read_set(tokens: &Tokens<'_>, mode: Mode, limits: Limits) -> Line {
    let numbers = if mode == Mode::Cas { 6 } else { 5 };
    if tokens.count() != numbers && tokens.count() != numbers + 1 {
        return Line::refused(Refusal::Unknown);
    }
    let (key, flags) = (tokens.at(1), line::unsigned(tokens.at(2)));
    let (expiry, length) = (line::signed(tokens.at(3)), line::signed(tokens.at(4)));
    let cas = if mode == Mode::Cas { line::large(tokens.at(5)) } else { Some(0) };
    let (Some(flags), Some(expiry), Some(length), Some(cas)) = (flags, expiry, length, cas) else {
        return Line::refused(Refusal::BadLine);
    };
    if key.len() > KEY_BYTES_MAX || !(0..=VALUE_BYTES_MAX).contains(&length) {
        return Line::refused(Refusal::BadLine);
    }
    let (key, value_bytes) = (owned(key), length.unsigned_abs() as usize);
    if !limits.allow(key.len(), flags, value_bytes) {
        let command = Command::Oversized(OversizedValue { key, discards: mode == Mode::Set });
        return Line::Spoiled(Request { command, quiet: false }, value_bytes + 2);
    }
    let (expiry, value) = (Expiry::of(expiry), Bytes::new());
    let command = Command::Set(StorageCommand { key, mode, flags, expiry, cas, value });
    Line::Begun(PendingRequest { request: Request { command, quiet: false }, value_bytes })
}

fn read_arithmetic(tokens: &Tokens<'_>, direction: Direction) -> Line {
    let key = tokens.at(1);
    if !(3..=4).contains(&tokens.count()) {
        return Line::refused(Refusal::Unknown);
    }
    if key.len() > KEY_BYTES_MAX {
        return Line::refused(Refusal::BadLine);
    }
    match line::large(tokens.at(2)) {
        Some(delta) => {
            Line::of(Command::Arithmetic(Arithmetic { key: owned(key), direction, delta }))
        }
        None => Line::refused(Refusal::BadDelta),
    }
}

/// Parses `delete`. An old form has a time after the key, which must be 0.
fn read_delete(tokens: &Tokens<'_>) -> Line {
    let (key, is_zero) = (tokens.at(1), tokens.at(2) == b"0");
    let quiet = tokens.count() > 2 && tokens.last() == b"noreply";
    let is_right = match tokens.count() {
        2 => true,
        3 => is_zero || quiet,
        _ => is_zero && quiet,
    };
    let line = match (is_right, key.len() <= KEY_BYTES_MAX) {
        (true, true) => Line::of(Command::Delete(Delete { key: owned(key) })),
        (true, false) => Line::refused(Refusal::BadLine),
        (false, _) => Line::refused(Refusal::BadDelete),
    };
    line.quiet(quiet)
}

fn read_touch(tokens: &Tokens<'_>) -> Line {
    let (key, expiry) = (tokens.at(1), line::signed(tokens.at(2)));
    if key.len() > KEY_BYTES_MAX {
        return Line::refused(Refusal::BadLine);
    }
    match expiry {
        Some(expiry) => {
            Line::of(Command::Touch(Touch { key: owned(key), expiry: Expiry::of(expiry) }))
        }
        None => Line::refused(Refusal::BadExpiry),
    }
}

fn read_flush(tokens: &Tokens<'_>) -> Line {
    let without_time = if tokens.last() == b"noreply" { 2 } else { 1 };
    if tokens.count() == without_time {
        return Line::of(Command::Flush(Expiry::Never));
    }
    match line::signed(tokens.at(1)) {
        Some(expiry) => Line::of(Command::Flush(Expiry::of(expiry))),
        None => Line::refused(Refusal::BadExpiry),
    }
}

fn owned(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}
