//! A subscriber for PostgreSQL's logical replication (14 and later, output plugin `pgoutput`) without I/O:
//! bytes in, complete transactions with rows out.
//!
//! The README shows how to use it.
//!
//! Invariants: no input causes a panic. Every length is bounded. Data that cannot be decoded never counts as
//! "nothing changed" ([`FallbackReason`]). Not here: sockets, TLS, time, tags, and the query whether a change is visible
//! to readers ([`snapshot::Snapshot`] evaluates its result).
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
pub use row::{Cell, Row, RowChange};
pub use transactions::{
    ChangeScope, DEFINED_PREFIX, FallbackReason, Interest, Limits, Step, TableRows, Transaction,
    Transactions, Watch,
};
