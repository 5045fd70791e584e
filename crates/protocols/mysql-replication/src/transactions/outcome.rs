//! The transactions of a stream, their changes, and the reasons for changes of whole tables.
//!
//! Only types. A change never reports less than what may have changed; [`FallbackReason`] is the reason if it reports
//! more. Not here: the assembly of transactions ([`super::Transactions`]).

use crate::event::Rows;
use crate::position::Gtid;
use crate::table::Table;
use mysql_wire::Refusal;
use mysql_wire::packet::Packet;
use mysql_wire::response::ServerError;
use std::fmt;
use std::sync::Arc;

/// The reason why a change concerns a whole table, a database, or everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FallbackReason {
    /// The reader requested only this ([`super::Interest::Table`]).
    Asked,
    /// The table was created, altered, truncated, renamed or dropped.
    Defined,
    /// The table was written in statement format: its triggers may have changed other tables.
    Statement,
    /// The transaction exceeded a limit.
    TooLarge,
    /// The rows cannot be decoded.
    Unreadable(Refusal),
    /// The row images contain no columns.
    NoImage,
    /// The statement is unknown.
    UnknownStatement,
    /// The event type is unknown.
    UnknownEvent,
    /// The server has lost changes.
    Incident,
    /// A prepared transaction was committed that was prepared before the stream began, or was not kept.
    UnknownXa,
}

impl FallbackReason {
    /// The name of the reason in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FallbackReason::Asked => "asked",
            FallbackReason::Defined => "defined",
            FallbackReason::Statement => "statement",
            FallbackReason::TooLarge => "too-large",
            FallbackReason::Unreadable(_) => "unreadable",
            FallbackReason::NoImage => "no-image",
            FallbackReason::UnknownStatement => "unknown-statement",
            FallbackReason::UnknownEvent => "unknown-event",
            FallbackReason::Incident => "incident",
            FallbackReason::UnknownXa => "unknown-xa",
        }
    }
}

/// A change in a transaction.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangeScope {
    /// Changed rows of a table.
    Rows(TableRows),
    /// A change of a table: any of its rows may have changed.
    Table {
        /// The name of the database.
        schema: Arc<str>,
        /// The name of the table.
        name: Arc<str>,
        /// The reason why rows are not reported.
        why: FallbackReason,
    },
    /// A change of a database: any of its tables may have changed.
    Schema {
        /// The name of the database.
        schema: Arc<str>,
        /// The reason why tables are not reported.
        why: FallbackReason,
    },
    /// Everything may have changed.
    Everything(FallbackReason),
}

/// Changed rows of a table: [`TableRows::changes`].
#[derive(Debug, Clone, PartialEq)]
pub struct TableRows {
    /// The table as it was when the rows were written.
    pub table: Arc<Table>,
    /// The rows in their encoded form.
    pub rows: Rows,
}

impl TableRows {
    /// Iterates over the rows. An error means that any row of the table may have changed.
    #[must_use]
    pub fn changes(&self) -> crate::event::RowChanges<'_> {
        self.rows.changes(&self.table)
    }
}

/// Whether a change is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The change is in effect.
    Holds,
    /// The change was rolled back. It is in effect only if its table is not transactional (MyISAM, Aria,
    /// MEMORY). Servers log a rollback only if such a table may be involved.
    UndoneIfTransactional,
}

/// A change of a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The table or rows that changed.
    pub what: ChangeScope,
    /// Whether the change is in effect.
    pub effect: Effect,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The transaction is committed.
    Committed,
    /// The transaction is rolled back.
    RolledBack,
    /// The transaction is prepared. It has no effect yet, and its changes are reported with the commit.
    Prepared,
}

/// A complete transaction of the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// The GTID; `None` if the server assigns none.
    pub gtid: Option<Gtid>,
    /// The id of the server on which the transaction originated.
    pub server_id: u32,
    /// The time at which the transaction ended, in seconds since 1970 by that server's clock.
    pub seconds: u32,
    /// The way in which the transaction ended.
    pub ending: Ending,
    /// The changes of the transaction, in order, without those of ignored tables.
    pub changes: Vec<Change>,
}

/// The result of processing a packet.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A complete transaction; [`super::Transactions::position`] is after it.
    Transaction(Transaction),
    /// The packet completes no transaction; more packets may follow.
    Nothing,
    /// A heartbeat: the server is connected and has no new events.
    Heartbeat,
    /// The server has ended the stream.
    Ended,
}

/// The reason why a stream cannot be continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamRefused {
    /// The server reported an error.
    Server(ServerError),
    /// An essential event is invalid.
    Event(Refusal),
    /// The log that was being read was replaced by another one: changes were missed.
    Replaced,
}

impl StreamRefused {
    /// The error in an error packet.
    pub(crate) fn said(packet: &Packet) -> StreamRefused {
        StreamRefused::Server(ServerError::read(&packet.payload).unwrap_or_default())
    }

    /// The name of the reason in logs and metrics.
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
