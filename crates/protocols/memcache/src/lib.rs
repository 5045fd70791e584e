//! The server side of memcached's text protocol (`doc/protocol.txt` of memcached 1.6).
//!
//! [`Decoder`] decodes requests. [`execute`] executes a request against [`Items`] and writes the same answer as
//! memcached 1.6.18 (`tests/memcached.rs` sends the same bytes to both). The implementor of [`Items`] stores
//! the items and handles concurrent access.
//!
//! No sockets, no clock, no logging: times are passed as [`Moment`]s. Everything is bounded: keys (250 bytes),
//! command lines ([`LINE_BYTES_MAX`]), values ([`Limits::item_bytes_max`]). Not supported: the binary protocol
//! and the meta commands (their connections are closed), UDP, authentication, and memcached's maintenance
//! commands (`slabs`, `lru`, `lru_crawler`, `watch`, `cache_memlimit`), which are answered with `ERROR`.

#![forbid(unsafe_code)]

mod answer;
mod classic;
mod decoder;
mod execute;
mod item;
mod line;
mod request;

pub use answer::Answer;
pub use decoder::{ConnectionRefusal, Decoder, LINE_BYTES_MAX, Limits, Step};
pub use execute::{Next, execute};
pub use item::{Edit, EditResult, Expiry, Item, Items, Moment, NewCas, SetRefusal};
pub use request::{
    Arithmetic, Command, Delete, Direction, Get, Mode, OversizedValue, Refusal, Request,
    StorageCommand, Touch,
};
