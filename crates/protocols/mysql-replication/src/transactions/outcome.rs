//! What a stream comes to: transactions, their changes, and why some are of whole tables.
//!
//! Types only. A change never says less than what may have changed; [`Why`] names the reason where it
//! says more. Not here: how they are put together ([`super::Transactions`]).

use crate::Refusal;
use crate::event::Rows;
use crate::position::Gtid;
use crate::table::Table;
use crate::wire::packet::Packet;
use crate::wire::response::ServerError;
use std::fmt;
use std::sync::Arc;

/// Why a change is of a whole table, a database, or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Only that was wanted ([`super::Interest::Table`]).
    Asked,
    /// It was defined anew, emptied, renamed or dropped.
    Defined,
    /// It was written in statement format: its triggers may have reached other tables.
    Statement,
    /// The transaction was larger than is held.
    TooLarge,
    /// Its rows cannot be read.
    Unreadable(Refusal),
    /// The images leave out every column.
    NoImage,
    /// A statement that is not known.
    UnknownStatement,
    /// An event that is not known.
    UnknownEvent,
    /// The server has lost track of changes.
    Incident,
    /// A prepared transaction was committed that was prepared before the stream began, or not held.
    UnknownXa,
}

impl Why {
    /// Its name, as in logs and counters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Why::Asked => "asked",
            Why::Defined => "defined",
            Why::Statement => "statement",
            Why::TooLarge => "too-large",
            Why::Unreadable(_) => "unreadable",
            Why::NoImage => "no-image",
            Why::UnknownStatement => "unknown-statement",
            Why::UnknownEvent => "unknown-event",
            Why::Incident => "incident",
            Why::UnknownXa => "unknown-xa",
        }
    }
}

/// What changed.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Rows of a table.
    Rows(TableRows),
    /// A table: any of its rows.
    Table {
        /// Its database.
        schema: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// Why no rows are told.
        why: Why,
    },
    /// A database: any of its tables.
    Schema {
        /// Its name.
        schema: Arc<str>,
        /// Why.
        why: Why,
    },
    /// Anything.
    Everything(Why),
}

/// Changed rows of a table: [`TableRows::changes`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableRows {
    /// The table as it was when they were written.
    pub table: Arc<Table>,
    /// The rows.
    pub rows: Rows,
}

impl TableRows {
    /// The rows, one by one. A refusal means that any row of the table may have changed.
    #[must_use]
    pub fn changes(&self) -> crate::event::RowChanges<'_> {
        self.rows.changes(&self.table)
    }
}

/// Whether a change holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It does.
    Holds,
    /// It was rolled back, and holds only if its table does not take part in transactions (MyISAM,
    /// Aria, MEMORY): servers log a rollback only where such a table may be among them.
    UndoneIfTransactional,
}

/// One change of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// What changed.
    pub what: What,
    /// Whether it holds.
    pub effect: Effect,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It is committed.
    Committed,
    /// It is rolled back.
    RolledBack,
    /// It is prepared and waits: nothing of it holds yet, and its changes come when it is committed.
    Prepared,
}

/// A whole transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// Its name; none where the server gives none.
    pub gtid: Option<Gtid>,
    /// The server where it came about.
    pub server_id: u32,
    /// When it ended, in seconds since 1970 by that server's clock.
    pub seconds: u32,
    /// How it ended.
    pub ending: Ending,
    /// Its changes, in order; those of tables that nobody wants are left out.
    pub changes: Vec<Change>,
}

/// What a packet came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A whole transaction; [`super::Transactions::position`] is after it.
    Transaction(Transaction),
    /// Nothing that changes anything; more may follow.
    Nothing,
    /// The server has nothing to say, and is there.
    Heartbeat,
    /// The server has ended the stream.
    Ended,
}

/// Why a stream cannot be followed any further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamRefused {
    /// The server says why.
    Server(ServerError),
    /// An event that cannot be read, and without which nothing can.
    Event(Refusal),
    /// The log that was read is there no more, and another goes on in its place: changes were missed.
    Replaced,
}

impl StreamRefused {
    /// What a packet says that is an error.
    pub(crate) fn said(packet: &Packet) -> StreamRefused {
        StreamRefused::Server(ServerError::read(&packet.payload).unwrap_or_default())
    }

    /// Its name, as in logs and counters.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            StreamRefused::Server(error) => error.kind().as_str(),
            StreamRefused::Event(refusal) => refusal.as_str(),
            StreamRefused::Replaced => "log-replaced",
        }
    }
}

impl fmt::Display for StreamRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamRefused::Server(error) => error.fmt(f),
            StreamRefused::Event(refusal) => refusal.fmt(f),
            StreamRefused::Replaced => {
                f.write_str("another log goes on in the place of the one read")
            }
        }
    }
}

impl std::error::Error for StreamRefused {}

impl From<Refusal> for StreamRefused {
    fn from(refusal: Refusal) -> StreamRefused {
        StreamRefused::Event(refusal)
    }
}
