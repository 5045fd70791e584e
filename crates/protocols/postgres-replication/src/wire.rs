//! The client/server protocol, as far as a subscriber needs it: frames, login, statements, the stream.
//!
//! Order of a session: [`login::Login`] until it is done; statements ([`query::Query`]); then
//! [`stream::start`]. After that, frames of the server are passed to [`crate::Transactions::read`], and
//! [`stream::status`] is sent back often enough that the server does not time out (`wal_sender_timeout`).
//!
//! The crate `postgres-protocol` encodes messages and handles passwords. Messages are decoded here, because
//! that crate buffers whole messages and does not support the replication stream. Source: PostgreSQL's manual,
//! "Frontend/Backend Protocol". Not here: sockets, TLS itself, prepared statements.

pub mod error;
pub mod frame;
pub mod login;
pub mod query;
pub mod stream;
