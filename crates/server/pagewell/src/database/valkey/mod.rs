//! A stream of Valkey or Redis as a source of changes: what machines tell each other, and whatever else is
//! put there by hand. What it answers to the questions of `source`, and the stream itself.
//!
//! | file | |
//! |---|---|
//! | `connection` | a login, commands, replies |
//! | `stream` | connects, reads, hands out one entry after the other |
//! | `words` | a change as the fields of an entry, and back |
//! | `readers` | how far each machine has read |
//! | `others` | tells the other machines what was changed here, and knows when they have applied it |
//!
//! An entry is added after what it tells of was committed, so everybody sees that: there is nothing to settle.
//! Not here: bytes, entries, and how far a stream is read (`valkey`).

mod connection;
mod others;
mod readers;
mod stream;
mod words;

pub use others::Others;
pub use stream::{Session, Stream, connect};
pub use words::Heard;
