//! Formats the lines of the access log: the format that `[access_log]` selects, the omitted data,
//! the word for the cache result, and the time. A line is written into the caller's buffer.
//!
//! Buffers, files and threads are in `telemetry`, `access_log`.

mod escape;
mod format;
mod outcome;
mod stamp;

pub use format::{ClientText, Format, Line, Masks, Unreadable};
pub use outcome::{FILE, HIT, Outcome, outcome};
pub use stamp::Stamp;

/// Maximum length of a line: seven values, truncated to [`format::VALUE_BYTES_MAX`], and the text
/// between them. Each byte of a value takes at most six bytes.
pub const LINE_BYTES_MAX: usize = 96 << 10;
/// Minimum size of a buffer: enough for one line, and for more until the writer runs.
pub const SHARD_BYTES_MIN: usize = 2 * LINE_BYTES_MAX;
/// Minimum size of all buffers together.
pub const BUFFER_BYTES_MIN: usize = 2 * SHARD_BYTES_MIN;
