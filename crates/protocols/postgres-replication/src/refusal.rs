//! The reasons why bytes cannot be decoded.
//!
//! A refusal concerns one frame, message or row. The caller decides on the consequence: an invalid row becomes
//! a change of its whole table ([`crate::Transactions`]), and an invalid beginning or end of a transaction
//! closes the connection.
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
    /// A string is not UTF-8.
    BadText,
    /// The type of a message is unknown.
    UnknownMessage,
    /// A message is out of order: a row outside a transaction, or a transaction inside another.
    UnexpectedMessage,
    /// A row belongs to a table that no relation message has described.
    UnknownTable,
    /// A table has more columns than PostgreSQL allows.
    TooManyColumns,
    /// The number of columns in a row differs from that of its table.
    ColumnMismatch,
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
