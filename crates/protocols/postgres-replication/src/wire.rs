//! The client/server protocol, as far as a subscriber needs it: frames, login, statements, the stream.
//!
//! Order of a session: [`login::Login`] until it is done; statements ([`query::Query`]); then
//! [`stream::start`], after which frames go both ways: the server's to
//! [`crate::Transactions::read`], and [`stream::status`] back, often enough that the server does not
//! take the reader for dead (`wal_sender_timeout`).
//!
//! What is sent, and passwords, are the work of `postgres-protocol`; what comes is read here, for that
//! library holds whatever comes in whole, and does not know the stream. Source: PostgreSQL's manual,
//! "Frontend/Backend Protocol". Not here: sockets, TLS itself, prepared statements.

pub mod error;
pub mod frame;
pub mod login;
pub mod query;
pub mod stream;
