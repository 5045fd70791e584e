//! Why bytes could not be read, by name.
//!
//! A refusal is about one thing that was read: a packet, an event, a table's map, a row. Whoever
//! reads decides how far it reaches: a row that cannot be read costs its table
//! ([`crate::Transactions`] turns it into a change of the whole table), a broken event header or a
//! wrong checksum costs the connection.
//!
//! Nothing here says what to do about it, and nothing panics on what came in.

use std::fmt;

/// Why something could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It ends before it should.
    Truncated,
    /// It goes on where it should have ended.
    LeftOver,
    /// It is longer than the limit that the caller gave.
    TooLong,
    /// A length or a count that cannot be.
    BadLength,
    /// A value that its type does not have.
    BadValue,
    /// The event's CRC32 is another than the one sent with it.
    BadChecksum,
    /// A kind of checksum other than none and CRC32.
    UnknownChecksum,
    /// An event came before the format description that says how to read it.
    NoFormat,
    /// A format of log older than version 4.
    OldFormat,
    /// The log's events are sent encrypted.
    Encrypted,
    /// Compressed in a way that is not known.
    UnknownCompression,
    /// What is compressed cannot be decompressed, or has another length than it says.
    BadCompression,
    /// A column type that is not known.
    UnknownColumnType,
    /// A rows event for a table that no map has named.
    UnknownTable,
    /// More columns than a table can have.
    TooManyColumns,
    /// The columns in the stream are not those that the schema lists.
    SchemaMismatch,
    /// Nested deeper than the limit.
    TooDeep,
    /// Packets came out of their order.
    OutOfSequence,
    /// A packet of a kind that does not belong here.
    UnexpectedPacket,
}

impl Refusal {
    /// Its name, as in logs and counters.
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
