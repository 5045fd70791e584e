//! Parses the lines of the meta commands (protocol.txt, "Meta Commands").
//!
//! Flags are parsed in order. A duplicate or unknown flag ends the parsing; of other errors the last one is
//! reported, as memcached 1.6 does. The flags `P` and `L`, which memcached ignores, carry the tags and the
//! lease of a page ([`Page`]).

use crate::base64;
use crate::classic::{KEY_BYTES_MAX, VALUE_BYTES_MAX, owned};
use crate::decoder::{Limits, Line, PendingRequest};
use crate::item::{Expiry, Page};
use crate::line::{self, Tokens};
use crate::request::{
    Command, Direction, Flag, Meta, MetaArithmetic, MetaDelete, MetaGet, MetaSet, Mode,
    OversizedValue, Refusal, Request, StorageCommand,
};
use bytes::Bytes;

/// The maximum number of tokens in a line, as in memcached, which counts the end marker too.
const WORDS_MAX: usize = 19;
/// The maximum length in bytes of the flag `O`, including its letter.
pub(crate) const OPAQUE_BYTES_MAX: usize = 32;

/// Parses the meta command `m` followed by this letter.
pub(crate) fn read(command: u8, tokens: &Tokens<'_>, limits: Limits) -> Line {
    let read = match command {
        b'n' => return Line::of(Command::MetaNoOp),
        b'e' => return read_debug(tokens),
        b'g' => read_get(tokens),
        b's' => return read_set(tokens, limits),
        b'd' => read_delete(tokens),
        b'a' => read_arithmetic(tokens),
        _ => Err(Refusal::Unknown),
    };
    read.unwrap_or_else(Line::refused)
}

/// All flags of a command.
#[derive(Default)]
struct MetaFlags {
    flags: Vec<Flag>,
    /// The decoded key, if the key was sent in base64.
    binary_key: Option<Bytes>,
    opaque: Opaque,
    value: bool,
    unseen: bool,
    quiet: bool,
    invalidate: bool,
    client_flags: u32,
    cas: Option<u64>,
    mode: Option<u8>,
    initial: u64,
    delta: Option<u64>,
    page: Page,
    touch: Option<Expiry>,
}

#[derive(Default, PartialEq)]
enum Opaque {
    #[default]
    Fits,
    TooLong,
}

impl MetaFlags {
    /// Parses the tokens from index `start` on.
    fn of(tokens: &Tokens<'_>, start: usize) -> Result<MetaFlags, Refusal> {
        let (mut read, mut seen, mut mistake) = (MetaFlags::default(), 0_u128, None);
        for token in tokens.from(start) {
            let (letter, rest) = (token[0], &token[1..]);
            if letter >= 127 || seen & (1 << letter) != 0 {
                return Err(Refusal::DuplicateFlag);
            }
            seen |= 1 << letter;
            match read.take(letter, rest, token, tokens.at(1)) {
                Ok(()) => {}
                Err(Refusal::UnknownFlag) => return Err(Refusal::UnknownFlag),
                // An invalid `F` does not replace an earlier error; without one, the general error is reported.
                Err(Refusal::BadLine) => mistake = mistake.or(Some(Refusal::BadLine)),
                Err(refusal) => mistake = Some(refusal),
            }
        }
        mistake.map_or(Ok(read), Err)
    }

    fn take(&mut self, letter: u8, rest: &[u8], token: &[u8], key: &[u8]) -> Result<(), Refusal> {
        let expiry = || line::signed(rest).map(Expiry::of).ok_or(Refusal::BadToken);
        let flag = match letter {
            b'c' => Flag::Cas,
            b'f' => Flag::ClientFlags,
            b'h' => Flag::Hit,
            b'k' => Flag::Key,
            b'l' => Flag::LastAccess,
            b's' => Flag::Size,
            b't' => Flag::Left,
            b'N' => Flag::Vivify(expiry()?),
            b'R' => Flag::Recache(expiry()?),
            b'T' => {
                self.touch = Some(expiry()?);
                Flag::Touch(expiry()?)
            }
            b'O' => {
                if token.len() > OPAQUE_BYTES_MAX {
                    self.opaque = Opaque::TooLong;
                }
                Flag::Opaque(owned(token))
            }
            _ => return self.take_silent(letter, rest, key),
        };
        self.flags.push(flag);
        Ok(())
    }

    /// Parses a flag that has no return flag.
    fn take_silent(&mut self, letter: u8, rest: &[u8], key: &[u8]) -> Result<(), Refusal> {
        match letter {
            b'b' => {
                self.binary_key = Some(base64::decode(key).ok_or(Refusal::BadKey)?.into());
            }
            b'v' => self.value = true,
            b'u' => self.unseen = true,
            b'q' => self.quiet = true,
            b'I' => self.invalidate = true,
            b'P' => self.page.tags = Some(rest.into()),
            b'L' => self.page.lease = Some(rest.into()),
            b'F' => self.client_flags = line::unsigned(rest).ok_or(Refusal::BadLine)?,
            b'C' => self.cas = Some(line::large(rest).ok_or(Refusal::BadToken)?),
            b'M' => match rest {
                [mode] => self.mode = Some(*mode),
                _ => return Err(Refusal::BadModeLength),
            },
            b'J' => self.initial = line::large(rest).ok_or(Refusal::BadInitial)?,
            b'D' => self.delta = Some(line::large(rest).ok_or(Refusal::BadMetaDelta)?),
            _ => return Err(Refusal::UnknownFlag),
        }
        Ok(())
    }

    fn meta<M>(self, key: &[u8], own: M) -> Meta<M> {
        let binary_key = self.binary_key.is_some();
        let key = self.binary_key.unwrap_or_else(|| owned(key));
        Meta { key, binary_key, flags: self.flags, own }
    }
}

/// The key of the command, checked for its length.
fn key_of<'a>(tokens: &Tokens<'a>) -> Result<&'a [u8], Refusal> {
    match tokens.at(1) {
        [] => Err(Refusal::Unknown),
        key if key.len() > KEY_BYTES_MAX => Err(Refusal::BadLine),
        key => Ok(key),
    }
}

fn read_debug(tokens: &Tokens<'_>) -> Line {
    let key = tokens.at(1);
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Line::refused(Refusal::BadLine);
    }
    let key = match tokens.at(2) {
        b"b" => base64::decode(key),
        _ => Some(key.to_vec()),
    };
    match key {
        Some(key) => Line::of(Command::MetaDebug { key: key.into() }),
        None => Line::refused(Refusal::BadLine),
    }
}

fn read_get(tokens: &Tokens<'_>) -> Result<Line, Refusal> {
    let key = key_of(tokens)?;
    if tokens.count() > WORDS_MAX {
        return Err(Refusal::TooManyOptions);
    }
    let read = MetaFlags::of(tokens, 2)?;
    if read.opaque == Opaque::TooLong {
        return Err(Refusal::OpaqueTooLong);
    }
    let (quiet, own) = (read.quiet, MetaGet { value: read.value, unseen: read.unseen });
    Ok(Line::of(Command::MetaGet(read.meta(key, own))).quiet(quiet))
}

/// Parses `ms`. Errors are reported after the length of the value is known, so that the value can be skipped.
fn read_set(tokens: &Tokens<'_>, limits: Limits) -> Line {
    let length = line::signed(tokens.at(2));
    let checked = key_of(tokens).and_then(|key| match (tokens.count(), length) {
        (WORDS_MAX.., _) if tokens.count() > WORDS_MAX => Err(Refusal::TooManyFlags),
        (3.., Some(length @ 0..=VALUE_BYTES_MAX)) => Ok((key, length.unsigned_abs() as usize)),
        _ => Err(Refusal::BadLine),
    });
    let (key, value_bytes) = match checked {
        Ok(both) => both,
        Err(refusal) => return Line::refused(refusal),
    };
    let swallow = |command| Line::Spoiled(Request { command, quiet: false }, value_bytes + 2);
    let read = match MetaFlags::of(tokens, 3) {
        Ok(read) => read,
        Err(refusal) => return swallow(Command::Refused(refusal)),
    };
    let (quiet, flags) = (read.quiet, read.client_flags);
    let set = match to_set(read, key) {
        Ok(set) => set,
        Err(refusal) => return swallow(Command::Refused(refusal)),
    };
    if !limits.allow(set.key.len(), flags, value_bytes) {
        return swallow(Command::Oversized(OversizedValue { key: set.key, discards: true }));
    }
    let request = Request { command: Command::MetaSet(set), quiet };
    Line::Begun(PendingRequest { request, value_bytes })
}

fn to_set(mut read: MetaFlags, key: &[u8]) -> Result<Meta<MetaSet>, Refusal> {
    let mode = match read.mode {
        None | Some(b'S') => Mode::Set,
        Some(b'E') => Mode::Add,
        Some(b'A') => Mode::Append,
        Some(b'P') => Mode::Prepend,
        Some(b'R') => Mode::Replace,
        Some(_) => return Err(Refusal::BadSetMode),
    };
    if read.opaque == Opaque::TooLong {
        return Err(Refusal::OpaqueTooLong);
    }
    // With `C`, replacing commands become `cas`. The other modes compare as well.
    let mode = match mode {
        Mode::Set | Mode::Replace if read.cas.is_some() => Mode::Cas,
        mode => mode,
    };
    let set = StorageCommand {
        key: Bytes::new(),
        mode,
        flags: read.client_flags,
        expiry: read.touch.unwrap_or(Expiry::Never),
        cas: read.cas.unwrap_or(0),
        value: Bytes::new(),
        page: std::mem::take(&mut read.page),
    };
    let invalidate = read.invalidate && mode == Mode::Cas;
    let mut meta = read.meta(key, MetaSet { set, invalidate });
    meta.own.set.key = meta.key.clone();
    Ok(meta)
}

fn read_delete(tokens: &Tokens<'_>) -> Result<Line, Refusal> {
    let key = key_of(tokens)?;
    let read = read_named(tokens)?;
    if read.opaque == Opaque::TooLong {
        return Err(Refusal::OpaqueTooLong);
    }
    let own = MetaDelete { cas: read.cas, invalidate: read.invalidate };
    let quiet = read.quiet;
    Ok(Line::of(Command::MetaDelete(read.meta(key, own))).quiet(quiet))
}

fn read_arithmetic(tokens: &Tokens<'_>) -> Result<Line, Refusal> {
    let key = key_of(tokens)?;
    let read = read_named(tokens)?;
    let direction = match read.mode {
        None | Some(b'I' | b'+') => Direction::Up,
        Some(b'D' | b'-') => Direction::Down,
        Some(_) => return Err(Refusal::BadArithmeticMode),
    };
    let own = MetaArithmetic {
        direction,
        delta: read.delta.unwrap_or(1),
        initial: read.initial,
        cas: read.cas.unwrap_or(0),
        value: read.value,
    };
    let quiet = read.quiet;
    Ok(Line::of(Command::MetaArithmetic(read.meta(key, own))).quiet(quiet))
}

/// Parses the flags of `md` and `ma`, which report a duplicate and an unknown flag with the same error.
fn read_named(tokens: &Tokens<'_>) -> Result<MetaFlags, Refusal> {
    if tokens.count() > WORDS_MAX {
        return Err(Refusal::TooManyFlags);
    }
    MetaFlags::of(tokens, 2).map_err(|_| Refusal::UnknownOrDuplicateFlag)
}
