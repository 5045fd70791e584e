//! The server side of memcached's text and meta protocols (`doc/protocol.txt` of memcached 1.6).
//!
//! [`Decoder`] makes requests of bytes, [`execute`] carries one out against [`Items`] and writes the answer,
//! to the letter as memcached 1.6.18 does (`tests/memcached.rs` sends both the same bytes). What is kept,
//! where, and for whom several at once are told apart, is the implementor's of [`Items`].
//!
//! No sockets, no clock, no logging. Times come in as [`Moment`]s. Everything is bounded: keys (250 bytes),
//! command lines ([`LINE_BYTES_MAX`]), values ([`Limits::item_bytes_max`]).
//! One departure: `ma` with `T` or `c` speaks of the item as it is now, where memcached 1.6.18 means the one
//! just replaced if the number grew longer. Not there: the binary protocol (a connection that begins in it is closed), UDP, authentication, and memcached's own housekeeping (`slabs`, `lru`,
//! `lru_crawler`, `watch`, `cache_memlimit`), which are answered with `ERROR`.

#![forbid(unsafe_code)]

mod answer;
mod base64;
mod classic;
mod decoder;
mod execute;
mod item;
mod line;
mod meta;
mod meta_execute;
mod request;

pub use answer::Answer;
pub use decoder::{Decoder, LINE_BYTES_MAX, Limits, NotSpoken, Step};
pub use execute::{Next, execute};
pub use item::{Edit, Edited, Expiry, Item, Items, Moment, NewCas, NotKept, Page, Seen};
pub use request::{
    Arithmetic, Command, Delete, Direction, Flag, Get, Meta, MetaArithmetic, MetaDelete, MetaGet,
    MetaSet, Mode, Oversized, Refusal, Request, Set, Touch,
};
