//! Why bytes could not be read, by name.
//!
//! A refusal is about one thing that was read: a frame, a message, a row. Whoever reads decides how
//! far it reaches: a row that cannot be read costs its table ([`crate::Transactions`] turns it into a
//! change of the whole table), a transaction's beginning or end costs the connection.
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
    /// A text that is not UTF-8.
    BadText,
    /// A message of a kind that is not known.
    UnknownMessage,
    /// A message where it does not belong: a row outside of a transaction, one transaction in another.
    UnexpectedMessage,
    /// A row of a table that no relation message has named.
    UnknownTable,
    /// More columns than a table can have.
    TooManyColumns,
    /// A row has another number of columns than its table.
    ColumnMismatch,
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
            Refusal::BadText => "bad-text",
            Refusal::UnknownMessage => "unknown-message",
            Refusal::UnexpectedMessage => "unexpected-message",
            Refusal::UnknownTable => "unknown-table",
            Refusal::TooManyColumns => "too-many-columns",
            Refusal::ColumnMismatch => "column-mismatch",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Refusal {}
