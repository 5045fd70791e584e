//! The change stream of MariaDB (10.6 and later) and MySQL (8.0 and later), read as a replica reads
//! it, without I/O: bytes in, whole transactions with typed rows out.
//!
//! The README shows the use of it.
//!
//! Invariants: nothing panics on what came in; every length is bounded; what cannot be read never
//! counts as "nothing changed" ([`Why`]). Not here: sockets, TLS, time, tags, which tables a foreign
//! key's cascade reaches (no server logs those rows), when a change is visible to readers (servers send
//! it before).
#![doc = include_str!("../README.md")]

mod compressed;
pub mod event;
mod landmark;
pub mod position;
pub mod reader;
mod refusal;
pub mod schema;
pub mod statement;
pub mod table;
mod transactions;
pub mod value;
pub mod wire;

pub use landmark::{Landmark, Proof, Proving};
pub use refusal::Refusal;
pub use table::{Column, ColumnKind, Table};
pub use transactions::{
    Change, Effect, Ending, Interest, Limits, Step, StreamRefused, TableRows, Transaction,
    Transactions, Watch, What, Why,
};
pub use value::{NoText, Value};
