//! The transactions of a stream, their changes, and the reasons for changes of whole tables.
//!
//! A change never reports less than what may have changed; [`FallbackReason`] is the reason if it reports more. Rows are
//! kept as the server sent them, concatenated in one buffer. Not here: the assembly of transactions
//! ([`super::Transactions`]).

use crate::Refusal;
use crate::message::Table;
use crate::position::Lsn;
use crate::row::RowChange;
use crate::wire::stream::Reply;
use std::sync::Arc;

/// The reason why a change concerns a whole table, or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FallbackReason {
    /// The reader requested only this ([`super::Interest::Table`]).
    Asked,
    /// The table was truncated.
    Emptied,
    /// The definition of the table changed.
    Defined,
    /// The transaction, or a row, exceeded a limit.
    TooLarge,
    /// The change cannot be decoded.
    Unreadable(Refusal),
}

impl FallbackReason {
    /// The name of the reason in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FallbackReason::Asked => "asked",
            FallbackReason::Emptied => "emptied",
            FallbackReason::Defined => "defined",
            FallbackReason::TooLarge => "too-large",
            FallbackReason::Unreadable(_) => "unreadable",
        }
    }
}

/// A change in a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeScope {
    /// Changed rows of a table.
    Rows(TableRows),
    /// A change of a table: any of its rows may have changed.
    Table {
        /// The schema of the table.
        schema: Arc<str>,
        /// The name of the table.
        name: Arc<str>,
        /// The reason why rows are not reported.
        why: FallbackReason,
    },
    /// Table definitions may have changed: an event trigger sent a message with [`super::DEFINED_PREFIX`]. The
    /// catalogue has the new definitions.
    Definitions,
    /// Everything may have changed.
    Everything(FallbackReason),
}

pub(super) fn whole(table: &Table, why: FallbackReason) -> ChangeScope {
    ChangeScope::Table { schema: table.schema.clone(), name: table.name.clone(), why }
}

/// Changed rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRows {
    /// The table as it was when the rows were written.
    pub table: Arc<Table>,
    /// The messages, each preceded by its length.
    messages: Vec<u8>,
}

/// The memory in bytes that a row needs in addition to its message.
pub(super) const ROW_EXTRA_BYTES: usize = 4;

impl TableRows {
    pub(super) fn new(table: Arc<Table>) -> TableRows {
        TableRows { table, messages: Vec::new() }
    }

    pub(super) fn push(&mut self, message: &[u8]) {
        // Messages are limited to much less than 4 GiB.
        self.messages.extend_from_slice(&(message.len() as u32).to_be_bytes());
        self.messages.extend_from_slice(message);
    }

    /// The size of the rows in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.messages.len()
    }

    /// The rows, in order. An error means that any row of the table may have changed; the rows after it can
    /// still be decoded.
    pub fn changes(&self) -> impl Iterator<Item = Result<RowChange<'_>, Refusal>> {
        let mut rest = self.messages.as_slice();
        std::iter::from_fn(move || {
            let (len, after) = rest.split_first_chunk::<4>()?;
            let (message, after) = after.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            rest = after;
            Some(RowChange::read(message, &self.table))
        })
    }
}

/// A complete, committed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The transaction ID, which [`crate::snapshot::Snapshot`] uses.
    pub xid: u32,
    /// The position of the commit in the log.
    pub commit: Lsn,
    /// The position after the transaction.
    pub end: Lsn,
    /// The time of the commit: microseconds since 2000-01-01 00:00 UTC by the server's clock.
    pub micros: i64,
    /// The changes of the transaction, in order, without those of ignored tables.
    pub changes: Vec<ChangeScope>,
}

/// The result of processing a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A complete transaction; [`super::Transactions::position`] is after it.
    Transaction(Transaction),
    /// The frame completes no transaction; more frames may follow.
    Nothing,
    /// A keepalive of the server, which may have moved [`super::Transactions::position`], and whether the
    /// server requests a status message.
    Keepalive(Reply),
    /// The server has ended the stream.
    Ended,
}
