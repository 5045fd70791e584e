//! Assembles frames of the stream into whole transactions, each with its changes and its end position.
//!
//! | state | message | effect |
//! |---|---|---|
//! | idle | `Begin` | a transaction is open |
//! | in a transaction | rows, `TRUNCATE` | its changes are collected, within the limits |
//! | in a transaction | `Commit` | the transaction is returned, and the position is after it |
//! | idle | keepalive | the position is that of the server: everything before it was sent |
//! | any | relation | the table is known; if its definition differs from before, it was altered |
//!
//! The server never sends changes that were rolled back, also to a savepoint. A prepared transaction arrives
//! with its `COMMIT PREPARED`. Invariants: the position includes a transaction only when it has been returned.
//! Memory stays within [`Limits`], whatever the size of a transaction. No change is lost: data that cannot be
//! decoded or held becomes a change of the whole table, or of everything, with a reason ([`FallbackReason`]). Not here:
//! the effect of a change on pages.

mod group;
mod outcome;

pub use outcome::{ChangeScope, FallbackReason, Step, TableRows, Transaction};

use crate::Refusal;
use crate::message::{self, Message, Table};
use crate::position::Lsn;
use crate::wire::frame::Frame;
use crate::wire::stream::{self, StreamMessage};
use group::Group;
use std::collections::HashMap;
use std::sync::Arc;

/// The prefix for `pg_logical_emit_message` that announces changed table definitions.
pub const DEFINED_PREFIX: &str = "pagewell-defined";

/// Limits for the memory that transactions use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum bytes of rows in one transaction. Larger transactions are reported as whole tables.
    pub transaction_bytes: usize,
    /// The maximum number of tables in one transaction. Larger transactions are reported as a change of
    /// everything.
    pub tables: usize,
    /// The maximum bytes of names and columns of known tables. Beyond it the stream cannot be used.
    pub known_bytes: usize,
}

impl Default for Limits {
    /// 16 MiB per transaction, 1,000 tables, 64 MiB of definitions.
    fn default() -> Limits {
        Limits { transaction_bytes: 16 << 20, tables: 1000, known_bytes: 64 << 20 }
    }
}

/// The detail in which changes of a table are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Changes are ignored.
    None,
    /// Changes are reported without rows.
    Table,
    /// Changed rows are reported.
    Rows,
}

/// The reader of the stream, which chooses the tables.
pub trait Watch {
    /// The detail in which changes of this table are to be reported.
    fn interest(&mut self, schema: &str, table: &str) -> Interest;
}

#[derive(Debug)]
struct KnownTable {
    table: Arc<Table>,
    interest: Interest,
}

/// Assembles transactions from the frames of one stream.
#[derive(Debug)]
pub struct Transactions<W> {
    watch: W,
    limits: Limits,
    known: HashMap<u32, KnownTable>,
    known_bytes: usize,
    open: Option<Group>,
    position: Lsn,
}

impl<W: Watch> Transactions<W> {
    /// A reader for a stream that starts at `start`. After a lost connection, create a new one that starts at
    /// [`Transactions::position`].
    #[must_use]
    pub fn new(start: Lsn, limits: Limits, watch: W) -> Transactions<W> {
        let known = HashMap::new();
        Transactions { watch, limits, known, known_bytes: 0, open: None, position: start }
    }

    /// The position up to which all transactions have been returned.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// The reader that chooses the tables.
    pub fn watch(&mut self) -> &mut W {
        &mut self.watch
    }

    /// Calls [`Watch::interest`] again for each known table.
    pub fn ask_interests(&mut self) {
        for known in self.known.values_mut() {
            known.interest = self.watch.interest(&known.table.schema, &known.table.name);
        }
    }

    /// Processes the next frame of the stream.
    ///
    /// # Errors
    /// The frame is invalid, and nothing more can be read from the stream.
    pub fn read(&mut self, frame: &Frame) -> Result<Step, Refusal> {
        match stream::read(frame)? {
            StreamMessage::Keepalive(keepalive) => {
                // Within a transaction the server's position is ahead of the transactions returned.
                if self.open.is_none() {
                    self.position = self.position.max(keepalive.end);
                }
                Ok(Step::Keepalive(keepalive.reply))
            }
            StreamMessage::Message(bytes) if frame.is_whole() => self.message(bytes),
            StreamMessage::Message(bytes) => self.too_long(bytes),
            StreamMessage::Ended => Ok(Step::Ended),
        }
    }

    fn message(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        match message::read(bytes) {
            Ok(Message::Begin(begin)) => match self.open {
                Some(_) => return Err(Refusal::UnexpectedMessage),
                None => self.open = Some(Group::new(begin)),
            },
            Ok(Message::Commit(commit)) => {
                let group = self.open.take().ok_or(Refusal::UnexpectedMessage)?;
                self.position = self.position.max(commit.end);
                return Ok(Step::Transaction(group.finish(commit)));
            }
            Ok(Message::Relation(table)) => self.relation(table)?,
            Ok(Message::Row(oid)) => self.row(oid, bytes)?,
            Ok(Message::Truncate(oids)) => {
                for oid in oids {
                    self.whole(oid, FallbackReason::Emptied)?;
                }
            }
            Ok(Message::Emitted(DEFINED_PREFIX)) => {
                // A message outside a transaction is sent at once, so it announces no committed change.
                if self.open.is_some() {
                    self.add(ChangeScope::Definitions)?;
                }
            }
            Ok(Message::Emitted(_) | Message::Nothing) => {}
            Err(refusal) => return self.unreadable(bytes, refusal),
        }
        Ok(Step::Nothing)
    }

    fn unreadable(&mut self, bytes: &[u8], refusal: Refusal) -> Result<Step, Refusal> {
        match bytes.first() {
            // Without these messages the position, or the columns of a table, would be unknown.
            Some(b'B' | b'C' | b'R') | None => return Err(refusal),
            Some(_) => self.add(ChangeScope::Everything(FallbackReason::Unreadable(refusal)))?,
        }
        Ok(Step::Nothing)
    }

    /// Processes a message that exceeds its limit. Of a row only the beginning is needed.
    fn too_long(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        match message::read(bytes) {
            Ok(Message::Row(oid)) => self.whole(oid, FallbackReason::TooLarge)?,
            Ok(Message::Emitted(prefix)) if prefix != DEFINED_PREFIX => {}
            _ => return Err(Refusal::TooLong),
        }
        Ok(Step::Nothing)
    }

    fn relation(&mut self, table: Table) -> Result<(), Refusal> {
        let interest = self.watch.interest(&table.schema, &table.name);
        let table = Arc::new(table);
        self.known_bytes += table.bytes();
        let before = self.known.insert(table.oid, KnownTable { table: table.clone(), interest });
        if let Some(before) = before {
            self.known_bytes -= before.table.bytes();
            if before.table != table {
                for (table, interest) in [(before.table, before.interest), (table, interest)] {
                    if interest != Interest::None {
                        self.add(outcome::whole(&table, FallbackReason::Defined))?;
                    }
                }
            }
        }
        if self.known_bytes > self.limits.known_bytes {
            return Err(Refusal::TooLong);
        }
        Ok(())
    }

    fn row(&mut self, oid: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let group = self.open.as_mut().ok_or(Refusal::UnexpectedMessage)?;
        match self.known.get(&oid) {
            Some(known) if known.interest == Interest::Rows => {
                group.add_row(&known.table, bytes, &self.limits);
                Ok(())
            }
            _ => self.whole(oid, FallbackReason::Asked),
        }
    }

    /// Adds a change of a whole table, unless the table is ignored.
    fn whole(&mut self, oid: u32, why: FallbackReason) -> Result<(), Refusal> {
        let what = match self.known.get(&oid) {
            Some(known) if known.interest == Interest::None => return Ok(()),
            Some(known) => outcome::whole(&known.table, why),
            None => ChangeScope::Everything(FallbackReason::Unreadable(Refusal::UnknownTable)),
        };
        self.add(what)
    }

    fn add(&mut self, what: ChangeScope) -> Result<(), Refusal> {
        let group = self.open.as_mut().ok_or(Refusal::UnexpectedMessage)?;
        group.add(what, &self.limits);
        Ok(())
    }
}
