//! The client/server protocol, as far as a replica needs it.
//!
//! Order of a session: the server's greeting, [`login::Login`] until it is done, statements ([`query::Query`])
//! that prepare the session ([`command::prepare`]), the dump command. After that, every packet is one event
//! ([`crate::event`]).
//!
//! Source: the client/server protocol of MySQL ("Connection Phase", "Command Phase") and MariaDB's manual of
//! it. Not here: sockets, TLS itself, compression of the connection, prepared statements.

pub mod auth;
pub mod command;
pub mod greeting;
pub mod login;
pub mod packet;
pub mod query;
pub mod response;
