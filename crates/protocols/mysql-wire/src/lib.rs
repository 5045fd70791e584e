//! The client/server protocol of MariaDB and MySQL without I/O: packets, login, statements and their results, and
//! the cursor that decodes all of it.
//!
//! Order of a session: the server's greeting, [`login::Login`] until it is done, then statements
//! ([`query::Query`]).
//!
//! Invariants: no input causes a panic. Every length is bounded. Source: the client/server protocol of MySQL
//! ("Connection Phase", "Command Phase") and MariaDB's manual of it. Not here: sockets, TLS itself, compression of
//! the connection, prepared statements, the binary log (`mysql_replication`).

pub mod auth;
pub mod capabilities;
pub mod commands;
pub mod greeting;
pub mod login;
pub mod packet;
pub mod query;
pub mod reader;
mod refusal;
pub mod response;

pub use refusal::Refusal;
