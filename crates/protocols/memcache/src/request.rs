//! Requests as they were understood: what [`Decoder`](crate::Decoder) gives and [`execute`](crate::execute)
//! carries out.
//!
//! A request owns what it needs. Refusals are memcached's own lines, to the letter; each has a name here.

use crate::item::{Expiry, Page};
use bytes::Bytes;

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What is asked for.
    pub command: Command,
    /// Whether the client does not want to hear of it: `noreply`, or meta's `q`.
    pub quiet: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `get`, `gets`, `gat`, `gats`.
    Get(Get),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Set(Set),
    /// `delete`.
    Delete(Delete),
    /// `touch`.
    Touch(Touch),
    /// `incr`, `decr`.
    Arithmetic(Arithmetic),
    /// `mg`.
    MetaGet(Meta<MetaGet>),
    /// `ms`.
    MetaSet(Meta<MetaSet>),
    /// `md`.
    MetaDelete(Meta<MetaDelete>),
    /// `ma`.
    MetaArithmetic(Meta<MetaArithmetic>),
    /// `me`.
    MetaDebug {
        /// Of which item.
        key: Bytes,
    },
    /// `mn`.
    MetaNoOp,
    /// `flush_all`, with when.
    Flush(Expiry),
    /// `stats`, with what of, and what of that.
    Stats(Option<Bytes>, Option<Bytes>),
    /// `version`.
    Version,
    /// `verbosity`: there is nothing to be set.
    Verbosity,
    /// `quit`.
    Quit,
    /// A value larger than may be; it was read and forgotten. What was there before it goes.
    Oversized(Oversized),
    /// Not understood, or not allowed.
    Refused(Refusal),
}

impl Command {
    /// Whether it takes away what is there: `delete` and `md`.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        matches!(self, Command::Delete(_) | Command::MetaDelete(_))
    }
}

/// `get` and its kin.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    /// The rest of the line: the keys.
    pub(crate) keys: Bytes,
    /// Whether to answer with `cas` (`gets`, `gats`).
    pub cas: bool,
    /// The new end (`gat`, `gats`).
    pub touch: Option<Expiry>,
}

/// How a value is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whatever is there.
    Set,
    /// Where nothing is.
    Add,
    /// Where something is.
    Replace,
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
    /// Where what is there has this `cas`.
    Cas,
}

/// `set` and its kin, with the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Under which key.
    pub key: Bytes,
    /// How.
    pub mode: Mode,
    /// The client's flags.
    pub flags: u32,
    /// How long.
    pub expiry: Expiry,
    /// What the item there must have; 0 for nothing.
    pub cas: u64,
    /// What.
    pub value: Bytes,
    /// What is said about it; nothing, but by `ms`.
    pub page: Page,
}

/// `delete`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Which item.
    pub key: Bytes,
}

/// `touch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    /// Which item.
    pub key: Bytes,
    /// The new end.
    pub expiry: Expiry,
}

/// Up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `incr`: beyond the largest number it begins anew.
    Up,
    /// `decr`: not below 0.
    Down,
}

/// `incr` and `decr`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arithmetic {
    /// Which item.
    pub key: Bytes,
    /// Which way.
    pub direction: Direction,
    /// By how much.
    pub delta: u64,
}

/// A meta command: its key, its flags as written, and what they mean for this command.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta<M> {
    /// The key, decoded.
    pub key: Bytes,
    /// Whether it was in base64.
    pub binary_key: bool,
    /// The flags that have something to do with the answer, in their order.
    pub flags: Vec<Flag>,
    /// The command's own.
    pub own: M,
}

/// A flag that is answered or that has to be obeyed in its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    /// `c`: the item's `cas`.
    Cas,
    /// `f`: the client's flags.
    ClientFlags,
    /// `h`: whether it was asked for before.
    Hit,
    /// `k`: the key.
    Key,
    /// `l`: seconds since it was asked for.
    LastAccess,
    /// `O`: whatever the client likes, and its letter.
    Opaque(Bytes),
    /// `s`: the value's length.
    Size,
    /// `t`: seconds it still has.
    Left,
    /// `N`: to be made where nothing is, for so long.
    Vivify(Expiry),
    /// `R`: to be made anew by whoever finds that it has less than this.
    Recache(Expiry),
    /// `T`: the new end.
    Touch(Expiry),
}

/// `mg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaGet {
    /// `v`: the value is wanted.
    pub value: bool,
    /// `u`: not to be counted as asked for.
    pub unseen: bool,
}

/// `ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaSet {
    /// What is to be stored.
    pub set: Set,
    /// `I`: an older `cas` will do, but the item is stale then.
    pub invalidate: bool,
}

/// `md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaDelete {
    /// `C`: what the item must have; 0 counts as well.
    pub cas: Option<u64>,
    /// `I`: to be marked stale instead.
    pub invalidate: bool,
}

/// `ma`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaArithmetic {
    /// Which way.
    pub direction: Direction,
    /// By how much.
    pub delta: u64,
    /// What it begins with where it is made.
    pub initial: u64,
    /// What the item must have; 0 for nothing.
    pub cas: u64,
    /// `v`: the number is wanted.
    pub value: bool,
}

/// A value that was too large.
#[derive(Clone, Debug, PartialEq)]
pub struct Oversized {
    /// Under which key.
    pub key: Bytes,
    /// Whether the item that is there goes: no outdated value stays because a newer one was too large.
    pub discards: bool,
}

/// Why a request is not carried out: the line that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such command, or not so many words.
    Unknown,
    /// `shutdown` is not for clients.
    Shutdown,
    /// A word is not what it has to be.
    BadLine,
    /// The same, of `delete`.
    BadDelete,
    /// The same, of `stats detail`.
    BadDetail,
    /// The value does not end where it should.
    BadValue,
    /// A time that is none.
    BadExpiry,
    /// A number that is none.
    BadDelta,
    /// `incr` or `decr` of what is no number.
    NotANumber,
    /// A flag that there is not.
    UnknownFlag,
    /// A flag given twice.
    DuplicateFlag,
    /// The same two, of `md` and `ma`.
    UnknownOrDuplicateFlag,
    /// More flags than may be (`mg`).
    TooManyOptions,
    /// The same, of the others.
    TooManyFlags,
    /// A key that is not base64.
    BadKey,
    /// What comes with a flag is not what it has to be.
    BadToken,
    /// `M` with more or less than one letter.
    BadModeLength,
    /// `J` without a number.
    BadInitial,
    /// `D` without a number.
    BadMetaDelta,
    /// `ms` with an `M` that there is not.
    BadSetMode,
    /// `ma` with an `M` that there is not.
    BadArithmeticMode,
    /// `O` with more than 31 bytes.
    OpaqueTooLong,
    /// A value larger than may be.
    TooLarge,
    /// No room for a value.
    NoRoom,
    /// What a value says about itself cannot be read.
    UnreadablePage,
    /// A page that is compressed, or no text.
    EncodedPage,
}

impl Refusal {
    /// The line, without its end.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Unknown => "ERROR",
            Refusal::Shutdown => "ERROR: shutdown not enabled",
            Refusal::BadLine => "CLIENT_ERROR bad command line format",
            Refusal::BadDelete => {
                "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"
            }
            Refusal::BadDetail => "CLIENT_ERROR usage: stats detail on|off|dump",
            Refusal::BadValue => "CLIENT_ERROR bad data chunk",
            Refusal::BadExpiry => "CLIENT_ERROR invalid exptime argument",
            Refusal::BadDelta => "CLIENT_ERROR invalid numeric delta argument",
            Refusal::NotANumber => "CLIENT_ERROR cannot increment or decrement non-numeric value",
            Refusal::UnknownFlag => "CLIENT_ERROR invalid flag",
            Refusal::DuplicateFlag => "CLIENT_ERROR duplicate flag",
            Refusal::UnknownOrDuplicateFlag => "CLIENT_ERROR invalid or duplicate flag",
            Refusal::TooManyOptions => "CLIENT_ERROR options flags are too long",
            Refusal::TooManyFlags => "CLIENT_ERROR options flags too long",
            Refusal::BadKey => "CLIENT_ERROR error decoding key",
            Refusal::BadToken => "CLIENT_ERROR bad token in command line format",
            Refusal::BadModeLength => "CLIENT_ERROR incorrect length for M token",
            Refusal::BadInitial => "CLIENT_ERROR invalid numeric initial value",
            Refusal::BadMetaDelta => "CLIENT_ERROR invalid numeric delta value",
            Refusal::BadSetMode => "CLIENT_ERROR invalid mode for ms M token",
            Refusal::BadArithmeticMode => "CLIENT_ERROR invalid mode for ma M token",
            Refusal::OpaqueTooLong => "CLIENT_ERROR opaque token too long",
            Refusal::TooLarge => "SERVER_ERROR object too large for cache",
            Refusal::NoRoom => "SERVER_ERROR out of memory storing object",
            Refusal::UnreadablePage => "CLIENT_ERROR unreadable page line",
            Refusal::EncodedPage => "CLIENT_ERROR a page has flags 0: text, not compressed",
        }
    }
}
