//! How a line of the access log is written: the format that `[access_log]` names, what it leaves out, the
//! word for what the cache did, and the time. One line becomes bytes here, in the buffer of the caller.
//!
//! Not here: buffers, files, threads (`access_log`).

mod escape;
mod format;
mod outcome;
mod stamp;

pub use format::{Client, Format, Line, Masks, Unreadable};
pub use outcome::{FILE, HIT, Outcome, outcome};
pub use stamp::Stamp;

/// No line is longer: seven values, cut off at [`format::VALUE_BYTES_MAX`], each byte of them written as
/// six at worst, and what stands between them.
pub const LINE_BYTES_MAX: usize = 96 << 10;
/// A buffer is no smaller: it has room for a line, and for others while the writer comes.
pub const SHARD_BYTES_MIN: usize = 2 * LINE_BYTES_MAX;
/// The smallest that all buffers together may be.
pub const BUFFER_BYTES_MIN: usize = 2 * SHARD_BYTES_MIN;
