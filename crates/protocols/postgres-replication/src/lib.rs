//! PostgreSQL's logical replication (14 and later, output plugin `pgoutput`), read as a subscriber
//! reads it, without I/O: bytes in, whole transactions with rows out.
//!
//! The README shows the use of it.
//!
//! Invariants: nothing panics on what came in; every length is bounded; what cannot be read never
//! counts as "nothing changed" ([`Why`]). Not here: sockets, TLS, time, tags, when a change is visible
//! to readers ([`snapshot::Snapshot`] says it, somebody else has to ask).
#![doc = include_str!("../README.md")]

pub mod message;
pub mod position;
pub mod reader;
mod refusal;
pub mod row;
pub mod snapshot;
mod transactions;
pub mod wire;

pub use refusal::Refusal;
pub use row::{Cell, Changed, Row, RowChange};
pub use transactions::{
    DEFINED_PREFIX, Interest, Limits, Step, TableRows, Transaction, Transactions, Watch, What, Why,
};
