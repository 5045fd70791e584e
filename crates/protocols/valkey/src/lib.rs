//! A client for streams of Valkey or Redis, without the connection: encodes commands, decodes replies (RESP2),
//! and tracks the position in a stream.
//!
//! | file | contents |
//! |---|---|
//! | `reply` | [`Replies`]: bytes in, complete replies out |
//! | `command` | encodes commands |
//! | `entry` | the entries in a reply to `XREAD`, the fields in a reply to `HGETALL` |
//! | `place` | the position in a stream, and whether entries were removed before they were read |
//! | `extent` | the replies to `XINFO STREAM` and `INFO` |
//!
//! Sources: <https://valkey.io/topics/protocol/>, <https://valkey.io/topics/streams-intro/>, and the pages of
//! the commands. No sockets, no clock. The size and depth of a reply are bounded. Callers interpret the
//! entries.

#![forbid(unsafe_code)]

mod command;
mod entry;
mod extent;
mod place;
mod reply;

pub use command::{
    NewEntry, add, add_nothing, all_fields, ask_extent, authenticate, command, read_after,
    read_whole, remove_field_if, select, set_field,
};
pub use entry::{Entry, entries, fields, whole};
pub use extent::{Server, extent};
pub use place::{Id, NoPlace, Place};
pub use reply::{DEPTH_MAX, Replies, Reply, ReplyError, VALUE_BYTES};
