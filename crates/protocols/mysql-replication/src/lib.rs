//! A replica's reader for the binary log of MariaDB (10.6 and later) and MySQL (8.0 and later) without I/O:
//! bytes in, complete transactions with typed rows out.
//!
//! The README shows how to use it.
//!
//! Invariants: no input causes a panic. Every length is bounded. Data that cannot be decoded never counts as
//! "nothing changed" ([`FallbackReason`]). Not here: the client/server protocol (`mysql_wire`), sockets, TLS, time, tags, the tables that a foreign key's cascade
//! reaches (no server logs those rows), and the time when a change becomes visible (servers send it before).
#![doc = include_str!("../README.md")]

pub mod charset;
pub mod column;
pub mod command;
mod compressed;
pub mod event;
mod landmark;
pub mod position;
pub mod schema;
pub mod statement;
pub mod table;
mod transactions;
pub mod value;

pub use column::{Column, ColumnKind};
pub use landmark::{Landmark, LandmarkCheck, Proof};
pub use table::Table;
pub use transactions::{
    Change, ChangeScope, Effect, Ending, FallbackReason, Interest, Limits, Step, StreamRefused,
    TableRows, Transaction, Transactions, Watch,
};
pub use value::{NoText, Value};
