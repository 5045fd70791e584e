//! The reasons why bytes cannot be decoded.
//!
//! A refusal concerns one packet, event, table map or row. The caller decides on the consequence: an invalid
//! row becomes a change of its whole table ([`crate::Transactions`]), and an invalid event header or a wrong
//! checksum closes the connection.
//!
//! No input causes a panic. Not here: the reaction to a refusal.

use std::fmt;

/// The reason why bytes cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The data ends too early.
    Truncated,
    /// Bytes are left after the end of the data.
    LeftOver,
    /// The data exceeds the limit set by the caller.
    TooLong,
    /// A length or a count is impossible.
    BadLength,
    /// A value is not valid for its type.
    BadValue,
    /// The event's CRC32 differs from the one sent with it.
    BadChecksum,
    /// The checksum type is neither none nor CRC32.
    UnknownChecksum,
    /// An event arrived before the format description.
    NoFormat,
    /// The log has a format older than version 4.
    OldFormat,
    /// The log's events are sent encrypted.
    Encrypted,
    /// The compression algorithm is unknown.
    UnknownCompression,
    /// Compressed data is invalid, or does not have the announced length.
    BadCompression,
    /// A column type is unknown.
    UnknownColumnType,
    /// A rows event belongs to a table that no table map has described.
    UnknownTable,
    /// A table has more columns than the servers allow.
    TooManyColumns,
    /// The columns in the stream differ from those in the schema.
    SchemaMismatch,
    /// The data is nested more deeply than the limit.
    TooDeep,
    /// Packets arrived in the wrong order.
    OutOfSequence,
    /// A packet type is not allowed at this point.
    UnexpectedPacket,
}

impl Refusal {
    /// The name of the reason in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Truncated => "truncated",
            Refusal::LeftOver => "left-over",
            Refusal::TooLong => "too-long",
            Refusal::BadLength => "bad-length",
            Refusal::BadValue => "bad-value",
            Refusal::BadChecksum => "bad-checksum",
            Refusal::UnknownChecksum => "unknown-checksum",
            Refusal::NoFormat => "no-format",
            Refusal::OldFormat => "old-format",
            Refusal::Encrypted => "encrypted",
            Refusal::UnknownCompression => "unknown-compression",
            Refusal::BadCompression => "bad-compression",
            Refusal::UnknownColumnType => "unknown-column-type",
            Refusal::UnknownTable => "unknown-table",
            Refusal::TooManyColumns => "too-many-columns",
            Refusal::SchemaMismatch => "schema-mismatch",
            Refusal::TooDeep => "too-deep",
            Refusal::OutOfSequence => "out-of-sequence",
            Refusal::UnexpectedPacket => "unexpected-packet",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Refusal {}
