//! From frames of the stream to whole transactions, each with its changes and the place after it.
//!
//! | open | comes | then |
//! |---|---|---|
//! | nothing | `Begin` | a transaction is open |
//! | a transaction | rows, `TRUNCATE` | its changes grow, within the bound |
//! | | `Commit` | it is handed out, and the position is after it |
//! | nothing | a keepalive | the position is where the server is: all before it was sent |
//! | any | a relation | the table is known; if it was known and looked otherwise, it was altered |
//!
//! What was rolled back, also to a savepoint, is never sent; a prepared transaction comes with its
//! `COMMIT PREPARED`. Invariants: the position counts a transaction only when it is handed out;
//! memory stays within [`Limits`], whatever the size of a transaction; nothing that may have changed
//! is left out: what cannot be read or held becomes a change of the whole table, or of everything,
//! and says why ([`Why`]). Not here: what a change means to a page.

mod group;
mod outcome;

pub use outcome::{Step, TableRows, Transaction, What, Why};

use crate::Refusal;
use crate::message::{self, Message, Table};
use crate::position::Lsn;
use crate::wire::frame::Frame;
use crate::wire::stream::{self, Copied};
use group::Group;
use std::collections::HashMap;
use std::sync::Arc;

/// What `pg_logical_emit_message` is given as a prefix to say that definitions have changed.
pub const DEFINED_PREFIX: &str = "pagewell-defined";

/// What may be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of rows of one transaction; beyond them only its tables are told.
    pub transaction_bytes: usize,
    /// Tables of one transaction; beyond them it is about everything.
    pub tables: usize,
    /// Bytes of tables' names and columns that are remembered; beyond them the stream is of no use.
    pub known_bytes: usize,
}

impl Default for Limits {
    /// 16 MiB a transaction, 1,000 tables, 64 MiB of definitions.
    fn default() -> Limits {
        Limits { transaction_bytes: 16 << 20, tables: 1000, known_bytes: 64 << 20 }
    }
}

/// What is wanted of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interest {
    /// Nothing: its changes are passed over.
    None,
    /// That it changed.
    Table,
    /// Its changed rows.
    Rows,
}

/// Who follows the stream.
pub trait Watch {
    /// What is wanted of this table.
    fn interest(&mut self, schema: &str, table: &str) -> Interest;
}

#[derive(Debug)]
struct Known {
    table: Arc<Table>,
    interest: Interest,
}

/// Puts transactions together.
#[derive(Debug)]
pub struct Transactions<W> {
    watch: W,
    limits: Limits,
    known: HashMap<u32, Known>,
    known_bytes: usize,
    open: Option<Group>,
    position: Lsn,
}

impl<W: Watch> Transactions<W> {
    /// For a stream that was asked for from `start`. After a break of the connection take a new one,
    /// from [`Transactions::position`].
    #[must_use]
    pub fn new(start: Lsn, limits: Limits, watch: W) -> Transactions<W> {
        let known = HashMap::new();
        Transactions { watch, limits, known, known_bytes: 0, open: None, position: start }
    }

    /// Up to where everything was handed out.
    #[must_use]
    pub fn position(&self) -> Lsn {
        self.position
    }

    /// Who follows.
    pub fn watch(&mut self) -> &mut W {
        &mut self.watch
    }

    /// Asks anew what is wanted of each table that is known.
    pub fn ask_interests(&mut self) {
        for known in self.known.values_mut() {
            known.interest = self.watch.interest(&known.table.schema, &known.table.name);
        }
    }

    /// Takes the next frame of the stream.
    ///
    /// # Errors
    /// Why nothing more can be read from it.
    pub fn read(&mut self, frame: &Frame) -> Result<Step, Refusal> {
        match stream::read(frame)? {
            Copied::Keepalive(keepalive) => {
                // Within a transaction the server is further than what was handed out.
                if self.open.is_none() {
                    self.position = self.position.max(keepalive.end);
                }
                Ok(Step::Keepalive(keepalive.reply))
            }
            Copied::Message(bytes) if frame.is_whole() => self.message(bytes),
            Copied::Message(bytes) => self.too_long(bytes),
            Copied::Ended => Ok(Step::Ended),
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
                    self.whole(oid, Why::Emptied)?;
                }
            }
            Ok(Message::Emitted(DEFINED_PREFIX)) => {
                // One that is not part of a transaction comes at once, and nothing is known of it.
                if self.open.is_some() {
                    self.add(What::Definitions)?;
                }
            }
            Ok(Message::Emitted(_) | Message::Nothing) => {}
            Err(refusal) => return self.unreadable(bytes, refusal),
        }
        Ok(Step::Nothing)
    }

    fn unreadable(&mut self, bytes: &[u8], refusal: Refusal) -> Result<Step, Refusal> {
        match bytes.first() {
            // Without these nobody knows where the stream is, and without that what its rows are.
            Some(b'B' | b'C' | b'R') | None => return Err(refusal),
            Some(_) => self.add(What::Everything(Why::Unreadable(refusal)))?,
        }
        Ok(Step::Nothing)
    }

    /// A message over its bound: of a row the beginning is enough.
    fn too_long(&mut self, bytes: &[u8]) -> Result<Step, Refusal> {
        match message::read(bytes) {
            Ok(Message::Row(oid)) => self.whole(oid, Why::TooLarge)?,
            Ok(Message::Emitted(prefix)) if prefix != DEFINED_PREFIX => {}
            _ => return Err(Refusal::TooLong),
        }
        Ok(Step::Nothing)
    }

    fn relation(&mut self, table: Table) -> Result<(), Refusal> {
        let interest = self.watch.interest(&table.schema, &table.name);
        let table = Arc::new(table);
        self.known_bytes += table.bytes();
        let before = self.known.insert(table.oid, Known { table: table.clone(), interest });
        if let Some(before) = before {
            self.known_bytes -= before.table.bytes();
            if before.table != table {
                for (table, interest) in [(before.table, before.interest), (table, interest)] {
                    if interest != Interest::None {
                        self.add(outcome::whole(&table, Why::Defined))?;
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
            _ => self.whole(oid, Why::Asked),
        }
    }

    /// Any row of a table, if it is wanted.
    fn whole(&mut self, oid: u32, why: Why) -> Result<(), Refusal> {
        let what = match self.known.get(&oid) {
            Some(known) if known.interest == Interest::None => return Ok(()),
            Some(known) => outcome::whole(&known.table, why),
            None => What::Everything(Why::Unreadable(Refusal::UnknownTable)),
        };
        self.add(what)
    }

    fn add(&mut self, what: What) -> Result<(), Refusal> {
        let group = self.open.as_mut().ok_or(Refusal::UnexpectedMessage)?;
        group.add(what, &self.limits);
        Ok(())
    }
}
