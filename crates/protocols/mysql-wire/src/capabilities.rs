//! The capability flags of a client and a server: bits of the number that each sends in the login.
//!
//! Source: "Capability Flags" of the client/server protocol, and MariaDB's manual of it. Not here: the capabilities
//! that a client requests (`greeting`), and those that a relay removes (`mysql_relay`).

/// `CLIENT_LONG_PASSWORD` of MySQL, `CLIENT_MYSQL` of MariaDB: without it, a server of MariaDB has further capabilities.
pub const CLIENT_MYSQL: u32 = 1;
/// The response of the client names a database.
pub const CONNECT_WITH_DB: u32 = 1 << 3;
/// Packets are compressed by zlib.
pub const COMPRESS: u32 = 1 << 5;
/// The protocol is that of version 4.1.
pub const PROTOCOL_41: u32 = 1 << 9;
/// The connection goes on over TLS.
pub const SSL: u32 = 1 << 11;
/// Responses have the status of the transaction.
pub const TRANSACTIONS: u32 = 1 << 13;
/// The proof of the password is that of version 4.1, after its length.
pub const SECURE_CONNECTION: u32 = 1 << 15;
/// Greeting and response name the login plugin.
pub const PLUGIN_AUTH: u32 = 1 << 19;
/// The length of the proof is a length-encoded integer.
pub const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
/// A result may have no definitions of its columns.
pub const OPTIONAL_METADATA: u32 = 1 << 25;
/// Packets are compressed by zstd.
pub const ZSTD: u32 = 1 << 26;
/// Statements have attributes beside their text.
pub const QUERY_ATTRIBUTES: u32 = 1 << 27;
/// A login has several proofs, one after the other.
pub const MULTI_FACTOR: u32 = 1 << 28;
/// `CLIENT_PROGRESS` of MariaDB: packets between those of a response.
pub const PROGRESS: u32 = 1 << 29;
