//! What a stream comes to: transactions, their changes, and why some are of whole tables.
//!
//! A change never says less than what may have changed; [`Why`] names the reason where it says more.
//! Rows are kept as they were sent, one after the other in one piece of memory. Not here: how they
//! are put together ([`super::Transactions`]).

use crate::Refusal;
use crate::message::Table;
use crate::position::Lsn;
use crate::row::RowChange;
use crate::wire::stream::Reply;
use std::sync::Arc;

/// Why a change is of a whole table, or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Only that was wanted ([`super::Interest::Table`]).
    Asked,
    /// It was emptied.
    Emptied,
    /// It was defined anew.
    Defined,
    /// The transaction, or a row, was larger than is held.
    TooLarge,
    /// It cannot be read.
    Unreadable(Refusal),
}

impl Why {
    /// Its name, as in logs and counters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Asked => "asked",
            Why::Emptied => "emptied",
            Why::Defined => "defined",
            Why::TooLarge => "too-large",
            Why::Unreadable(_) => "unreadable",
        }
    }
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Rows of a table.
    Rows(TableRows),
    /// A table: any of its rows.
    Table {
        /// The schema that it is in.
        schema: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// Why no rows are told.
        why: Why,
    },
    /// Definitions: somebody who knows says so ([`super::DEFINED_PREFIX`]); which, the catalogue tells.
    Definitions,
    /// Anything.
    Everything(Why),
}

pub(super) fn whole(table: &Table, why: Why) -> What {
    What::Table { schema: table.schema.clone(), name: table.name.clone(), why }
}

/// Changed rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRows {
    /// The table as it was when they were written.
    pub table: Arc<Table>,
    /// Each message after its length.
    messages: Vec<u8>,
}

/// What a row takes beside its own bytes.
pub(super) const ROW_EXTRA_BYTES: usize = 4;

impl TableRows {
    pub(super) fn new(table: Arc<Table>) -> TableRows {
        TableRows { table, messages: Vec::new() }
    }

    pub(super) fn push(&mut self, message: &[u8]) {
        // Messages are bounded far below 4 GiB.
        self.messages.extend_from_slice(&(message.len() as u32).to_be_bytes());
        self.messages.extend_from_slice(message);
    }

    /// How many bytes they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.messages.len()
    }

    /// The rows, in order. A refusal means that any row of the table may have changed; those after it
    /// can be read all the same.
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

/// A whole transaction; it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its number, by which [`crate::snapshot::Snapshot`] knows it.
    pub xid: u32,
    /// Where its commit is in the log.
    pub commit: Lsn,
    /// The place after it.
    pub end: Lsn,
    /// When it was committed: microseconds since 2000-01-01 00:00 UTC by the server's clock.
    pub micros: i64,
    /// Its changes, in order; those of tables that nobody wants are left out.
    pub changes: Vec<What>,
}

/// What a frame came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A whole transaction; [`super::Transactions::position`] is after it.
    Transaction(Transaction),
    /// Nothing that changes anything; more may follow.
    Nothing,
    /// The server is there, and may have moved [`super::Transactions::position`]; whether it wants to
    /// hear how far the reader is.
    Keepalive(Reply),
    /// The server has ended the stream.
    Ended,
}
