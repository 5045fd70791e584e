//! What following a stream of Valkey or Redis takes: commands as bytes, bytes as replies (RESP2), the
//! entries of a stream, and how far it is read.
//!
//! | file | |
//! |---|---|
//! | `reply` | [`Replies`]: bytes in, whole replies out |
//! | `command` | the commands, written |
//! | `entry` | the entries in a reply to `XREAD`, the fields in one to `HGETALL` |
//! | `place` | how far a stream is read, and whether something of it has gone unread |
//! | `extent` | what `XINFO STREAM` and `INFO` say |
//!
//! Sources: <https://valkey.io/topics/protocol/>, <https://valkey.io/topics/streams-intro/>, and the pages of
//! the commands. No sockets, no clock. Bounded: a reply's bytes and depth, by the reader. What an entry
//! means is its reader's.

#![forbid(unsafe_code)]

mod command;
mod entry;
mod extent;
mod place;
mod reply;

pub use command::{
    Added, add, add_nothing, all_fields, ask_extent, authenticate, command, read_after, read_whole,
    remove_field_if, select, set_field,
};
pub use entry::{Entry, entries, fields, whole};
pub use extent::{Server, extent};
pub use place::{Id, NoPlace, Place};
pub use reply::{DEPTH_MAX, Replies, Reply, Unreadable, VALUE_BYTES};
