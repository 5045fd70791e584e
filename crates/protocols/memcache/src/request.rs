//! Parsed requests: [`Decoder`](crate::Decoder) returns them and [`execute`](crate::execute) executes them.
//!
//! A request owns its data. The text of each refusal is exactly the line that memcached sends.

use crate::item::Expiry;
use bytes::Bytes;

/// A request after parsing, with its command.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The command to execute.
    pub command: Command,
    /// Whether the client wants no answer (`noreply`).
    pub quiet: bool,
}

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `get`, `gets`, `gat`, `gats`.
    Get(Get),
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
    Set(StorageCommand),
    /// `delete`.
    Delete(Delete),
    /// `touch`.
    Touch(Touch),
    /// `incr`, `decr`.
    Arithmetic(Arithmetic),
    /// `flush_all`, with its delay.
    Flush(Expiry),
    /// `stats`, with its first and second argument.
    Stats(Option<Bytes>, Option<Bytes>),
    /// `version`.
    Version,
    /// `verbosity`, which has no effect.
    Verbosity,
    /// `quit`.
    Quit,
    /// A storage command whose value is too large. The value was received and discarded; an older value is
    /// removed.
    Oversized(OversizedValue),
    /// A command that is invalid or not allowed.
    Refused(Refusal),
}

impl Command {
    /// Whether the command removes an item.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        matches!(self, Command::Delete(_))
    }
}

/// `get`, `gets`, `gat` or `gats`.
#[derive(Clone, Debug, PartialEq)]
pub struct Get {
    /// The rest of the line: the keys.
    pub(crate) keys: Bytes,
    /// Whether the answer includes `cas` (`gets`, `gats`).
    pub cas: bool,
    /// The new expiry time (`gat`, `gats`).
    pub touch: Option<Expiry>,
}

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `set`: store in any case.
    Set,
    /// `add`: store only if there is no item.
    Add,
    /// `replace`: store only if there is an item.
    Replace,
    /// `append`: add the value after the existing one.
    Append,
    /// `prepend`: add the value before the existing one.
    Prepend,
    /// `cas`: store only if the item has this `cas` number.
    Cas,
}

/// `set`, `add`, `replace`, `append`, `prepend` or `cas`, with the value.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageCommand {
    /// The key of the item.
    pub key: Bytes,
    /// How the value is stored.
    pub mode: Mode,
    /// The flags that the client has set.
    pub flags: u32,
    /// The expiry time of the item.
    pub expiry: Expiry,
    /// The `cas` number that the item must have; 0 for any.
    pub cas: u64,
    /// The value of the item.
    pub value: Bytes,
}

/// The arguments of a `delete` command.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The key of the item.
    pub key: Bytes,
}

/// The arguments of a `touch` command.
#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    /// The key of the item.
    pub key: Bytes,
    /// The new expiry time.
    pub expiry: Expiry,
}

/// The direction of an arithmetic command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `incr`: wraps around to 0 after the largest 64-bit number.
    Up,
    /// `decr`: stops at 0.
    Down,
}

/// The arguments of `incr` and `decr`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arithmetic {
    /// The key of the item.
    pub key: Bytes,
    /// The direction of the arithmetic operation.
    pub direction: Direction,
    /// The number to add or subtract.
    pub delta: u64,
}

/// A storage command whose value is too large.
#[derive(Clone, Debug, PartialEq)]
pub struct OversizedValue {
    /// The key of the item.
    pub key: Bytes,
    /// Whether the existing item is removed, so that no outdated value stays because a newer one was too large.
    pub discards: bool,
}

/// The reason why a request is refused. Its text is the line that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The command is unknown, or has the wrong number of tokens.
    Unknown,
    /// `shutdown` is not available to clients.
    Shutdown,
    /// A token is invalid.
    BadLine,
    /// A token of `delete` is invalid.
    BadDelete,
    /// A token of `stats detail` is invalid.
    BadDetail,
    /// The value does not end with a line end.
    BadValue,
    /// An expiry time is invalid.
    BadExpiry,
    /// The number of `incr` or `decr` is invalid.
    BadDelta,
    /// The item for `incr` or `decr` is not a number.
    NotANumber,
    /// A value is too large.
    TooLarge,
    /// There is no memory for a value.
    NoRoom,
    /// The page metadata of a value is invalid.
    UnreadablePage,
    /// A page is compressed, or not text.
    EncodedPage,
}

impl Refusal {
    /// The line to send, without its end.
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
            Refusal::TooLarge => "SERVER_ERROR object too large for cache",
            Refusal::NoRoom => "SERVER_ERROR out of memory storing object",
            Refusal::UnreadablePage => "CLIENT_ERROR unreadable page line",
            Refusal::EncodedPage => "CLIENT_ERROR a page has flags 0: text, not compressed",
        }
    }
}
