//! Assembles events into complete transactions, each with its changes and the position after it.
//!
//! | state | event | effect |
//! |---|---|---|
//! | idle | GTID; `BEGIN`; rows | a transaction is open |
//! | idle | a definition, a write in statement format | a transaction of one statement |
//! | in a transaction | rows, statements | its changes are collected, within the limits |
//! | in a transaction | `SAVEPOINT`, `ROLLBACK TO` | changes after it are marked as undone |
//! | in a transaction | XID, `COMMIT`, `ROLLBACK` | it is returned |
//! | in a transaction | `XA PREPARE` | it waits; `XA COMMIT` returns it, `XA ROLLBACK` discards it |
//! | in a transaction | another GTID, file, or start of the server | it is returned as rolled back: it never ended |
//!
//! Invariants: the position includes a transaction only when it has been returned. Memory stays within
//! [`Limits`], whatever the size of a transaction. No change is lost: data that cannot be decoded, held or
//! classified becomes a change of the whole table, or of everything, with a reason ([`FallbackReason`]). Not here: the
//! effect of a change on pages.

mod group;
mod outcome;
mod prepared;

pub use outcome::{
    Change, ChangeScope, Effect, Ending, FallbackReason, Step, StreamRefused, TableRows,
    Transaction,
};

use crate::event::{
    Event, EventBody, EventReader, GtidEvent, Header, Inner, Payload, QueryEvent, Rows, TableMap,
    XaPhase, next_event,
};
use crate::landmark::{Landmark, Track};
use crate::position::{FilePosition, Gtid, Position, Start};
use crate::schema::TableShape;
use crate::statement::{self, NamedTables, TableName, Verb};
use crate::table::Table;
use bytes::Bytes;
use group::Group;
use mysql_wire::Refusal;
use mysql_wire::packet::Packet;
use prepared::PreparedTransactions;
use std::collections::HashMap;
use std::sync::Arc;

/// The event at the end of a file that the server has closed when it stopped.
const STOP: u8 = 3;

/// Limits for the memory that transactions use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum bytes of rows in one transaction. Larger transactions are reported as whole tables.
    pub transaction_bytes: usize,
    /// The maximum number of tables in one transaction. Larger transactions are reported as a change of
    /// everything.
    pub tables: usize,
    /// The maximum size of a decompressed event in bytes.
    pub event_bytes: usize,
    /// The maximum bytes of rows in all prepared transactions together.
    pub prepared_bytes: usize,
}

impl Default for Limits {
    /// 16 MiB per transaction, 1,000 tables, 16 MiB per event, 16 MiB of prepared transactions.
    fn default() -> Limits {
        Limits {
            transaction_bytes: 16 << 20,
            tables: 1000,
            event_bytes: 16 << 20,
            prepared_bytes: 16 << 20,
        }
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

/// The reader of the stream, which chooses the tables and knows their schema.
pub trait Watch {
    /// The detail in which changes of this table are to be reported.
    fn interest(&mut self, schema: &str, table: &str) -> Interest;

    /// Whether writes in statement format to any table of this database, and definitions of any view, are to be reported:
    /// the triggers of the table may write others, and a new view may be read and replaced later. So are writes in
    /// statement format to other databases that may call a function of this one.
    fn follows(&mut self, schema: &str) -> bool;

    /// The table's columns according to the schema, if it was queried.
    fn shape(&mut self, schema: &str, table: &str) -> Option<Arc<TableShape>>;
}

/// The maximum number of tables that are remembered by their table ids, and of the bytes of their table maps
/// together.
const KNOWN_MAX: usize = 4096;
const KNOWN_BYTES_MAX: usize = 4 << 20;

#[derive(Debug)]
struct KnownTable {
    map: Bytes,
    table: Arc<Table>,
    interest: Interest,
}

/// Assembles transactions from the packets of one stream.
#[derive(Debug)]
pub struct Transactions<W> {
    watch: W,
    limits: Limits,
    events: EventReader,
    known: HashMap<u64, KnownTable>,
    open: Option<Group>,
    prepared: PreparedTransactions,
    position: Position,
    track: Track,
}

impl<W: Watch> Transactions<W> {
    /// A reader for a stream that starts at `start`. After a lost connection, create a new one that starts at
    /// [`Transactions::position`].
    #[must_use]
    pub fn new(start: &Start, limits: Limits, watch: W) -> Transactions<W> {
        Transactions {
            watch,
            limits,
            events: EventReader::new(limits.event_bytes),
            known: HashMap::new(),
            open: None,
            prepared: PreparedTransactions::new(limits.prepared_bytes),
            position: Position::at(start),
            track: Track::default(),
        }
    }

    /// The landmark by which the log is recognised at the position; `None` before the server has sent a file
    /// name.
    #[must_use]
    pub fn landmark(&self) -> Option<&Landmark> {
        self.track.landmark()
    }

    /// Sets the landmark of an earlier stream that this one continues.
    pub fn go_on(&mut self, landmark: Landmark) {
        self.track.go_on(landmark);
    }

    /// Whether the server has begun to send its log.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.track.has_begun()
    }

    /// The position up to which all transactions have been returned.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Whether an XA transaction is prepared, and neither committed nor rolled back.
    #[must_use]
    pub fn has_prepared(&self) -> bool {
        !self.prepared.is_empty()
    }

    /// The reader that chooses the tables.
    pub fn watch(&mut self) -> &mut W {
        &mut self.watch
    }

    /// Forgets all tables, so that interests and shapes are requested again.
    pub fn forget_tables(&mut self) {
        self.known.clear();
    }

    /// Processes the next packet of the stream.
    ///
    /// # Errors
    /// The reason why the stream ended; nothing more can be read from it.
    pub fn read(&mut self, packet: &Packet) -> Result<Step, StreamRefused> {
        let payload = &packet.payload;
        match payload.first() {
            Some(0) => {}
            Some(0xfe) => return Ok(Step::Ended),
            Some(0xff) => return Err(StreamRefused::said(packet)),
            Some(_) => return Err(Refusal::UnexpectedPacket.into()),
            None => return Err(Refusal::Truncated.into()),
        }
        let bytes = payload.slice(1..);
        self.track.came(&bytes);
        let event = if packet.is_whole() {
            self.events.read(&bytes)
        } else {
            Ok(self.events.read_head(&bytes)?)
        };
        self.event(event)
    }

    fn event(&mut self, event: Result<Event, (Header, Refusal)>) -> Result<Step, StreamRefused> {
        let Event { header, body } = match event {
            Ok(event) => event,
            Err(refused) if EventReader::is_fatal(&refused) => return Err(refused.1.into()),
            Err((header, refusal)) => return Ok(self.unreadable(header, refusal)?),
        };
        Ok(match body {
            EventBody::Format(format) => {
                self.known.clear();
                self.track.begins(header, format.created_seconds, &self.position)?;
                // The server was restarted: open transactions were never committed.
                if format.created_seconds != 0 { self.abandon(header) } else { Step::Nothing }
            }
            EventBody::Rotate(place) => {
                let step = self.abandon(header);
                self.track.rotated(header, self.position.file.as_ref(), &place);
                self.rotate(place);
                step
            }
            EventBody::Heartbeat => {
                self.pass(header);
                if self.open.is_none() {
                    self.track.is_idle(self.position.file.as_ref());
                }
                Step::Heartbeat
            }
            EventBody::Gtid(gtid) => {
                let step = self.abandon(header);
                self.open = Some(Group::new(&gtid));
                step
            }
            EventBody::Query(query) => self.query(header, &query),
            EventBody::Xid(_) => self.finish(header, Ending::Committed),
            EventBody::XaPrepare(id, phase) => match phase {
                XaPhase::Committed => self.finish(header, Ending::Committed),
                XaPhase::Prepared => {
                    let group = self.open.get_or_insert_with(Group::unnamed);
                    self.prepared.keep(id, group.take_changes());
                    self.finish(header, Ending::Prepared)
                }
            },
            EventBody::TableMap(map) => {
                self.table_map(&map);
                Step::Nothing
            }
            EventBody::Rows(rows) => {
                self.rows(rows);
                Step::Nothing
            }
            EventBody::TooLong(table_id) => {
                self.too_long(table_id);
                Step::Nothing
            }
            EventBody::Payload(payload) => return self.payload(header, &payload),
            EventBody::Incident => {
                self.add(ChangeScope::Everything(FallbackReason::Incident));
                self.finish(header, Ending::Committed)
            }
            EventBody::Unknown => self.everything(header, FallbackReason::UnknownEvent),
            EventBody::PreviousGtids(set) => {
                self.track.preceded(&set, &self.position)?;
                self.pass(header);
                Step::Nothing
            }
            EventBody::GtidList(_) | EventBody::StartEncryption | EventBody::Nothing => {
                self.pass(header);
                Step::Nothing
            }
        })
    }

    /// Between transactions, events without changes move the offset, so that it equals the server's own offset.
    /// Artificial events have no offset in the file.
    fn pass(&mut self, header: Header) {
        if header.code == STOP {
            self.track.stopped();
        }
        if let (None, Some(place)) = (&self.open, &mut self.position.file)
            && u64::from(header.end) > place.offset & 0xffff_ffff
        {
            place.offset = widened(place.offset, header.end);
        }
    }

    /// Handles an event with a valid header and an invalid body.
    fn unreadable(&mut self, header: Header, refusal: Refusal) -> Result<Step, Refusal> {
        match header.code {
            // Without these events the position in the stream is unknown.
            4 | 33 | 42 | 162 => Err(refusal),
            // These events are only informative.
            35 | 163 => Ok(Step::Nothing),
            // The commit ends the transaction even if its body is invalid.
            16 => {
                self.add(ChangeScope::Everything(FallbackReason::Unreadable(refusal)));
                Ok(self.finish(header, Ending::Committed))
            }
            _ => Ok(self.everything(header, FallbackReason::Unreadable(refusal))),
        }
    }

    /// Ends an open transaction that will never end in the log, because the server was killed while writing it.
    /// Rows of non-transactional tables may have been changed. Its GTID does not count as read.
    fn abandon(&mut self, header: Header) -> Step {
        let Some(mut group) = self.open.take() else { return Step::Nothing };
        group.undo_all();
        let (_, changes) = group.into_parts();
        if changes.is_empty() {
            return Step::Nothing;
        }
        let (server_id, seconds, ending) = (header.server_id, header.seconds, Ending::RolledBack);
        Step::Transaction(Transaction { gtid: None, server_id, seconds, ending, changes })
    }

    fn rotate(&mut self, place: FilePosition) {
        self.known.clear();
        // The first event of a stream names the file. The offset that the caller passed is more recent.
        let named = self.position.file.as_ref().is_some_and(|own| own.file == place.file);
        if !(named && place.offset <= 4) {
            self.position.file = Some(place);
        }
    }

    fn table_map(&mut self, map: &TableMap) {
        let id = map.table_id;
        if self.known.get(&id).is_some_and(|known| known.map == map.bytes()) {
            return;
        }
        let Ok((schema, name)) = map.names() else {
            self.known.remove(&id);
            return;
        };
        let interest = self.watch.interest(schema, name);
        let shape = self.watch.shape(schema, name);
        let Ok(table) = map.table() else { return };
        let bytes: usize = self.known.values().map(|known| known.map.len()).sum();
        if self.known.len() >= KNOWN_MAX || bytes > KNOWN_BYTES_MAX {
            self.known.clear();
        }
        let table = Arc::new(table.of(shape.as_deref()));
        // In its own allocation, because the receive buffer is freed earlier.
        let map = Bytes::copy_from_slice(map.bytes());
        self.known.insert(id, KnownTable { map, table, interest });
    }

    fn rows(&mut self, rows: Rows) {
        // The table id of an event that only ends a statement.
        const NO_TABLE: u64 = 0xff_ffff;
        let Some(known) = self.known.get(&rows.table_id) else {
            if rows.table_id != NO_TABLE || !rows.is_empty() {
                self.add(ChangeScope::Everything(FallbackReason::Unreadable(
                    Refusal::UnknownTable,
                )));
            }
            return;
        };
        let (table, interest) = (known.table.clone(), known.interest);
        let what = match (interest, &table.columns) {
            (Interest::None, _) => {
                self.open.get_or_insert_with(Group::begun);
                return;
            }
            (Interest::Table, _) => whole(&table, FallbackReason::Asked),
            (Interest::Rows, Err(refusal)) => whole(&table, FallbackReason::Unreadable(*refusal)),
            (Interest::Rows, Ok(_)) => match rows.unpacked(self.limits.event_bytes) {
                Ok(rows) if rows.is_empty() => whole(&table, FallbackReason::NoImage),
                Ok(rows) => ChangeScope::Rows(TableRows { table, rows: rows.detached() }),
                Err(refusal) => whole(&table, FallbackReason::Unreadable(refusal)),
            },
        };
        self.add(what);
    }

    fn too_long(&mut self, table_id: Option<u64>) {
        let known = table_id.and_then(|id| self.known.get(&id));
        let what = match known {
            Some(known) if known.interest == Interest::None => return,
            Some(known) => whole(&known.table, FallbackReason::TooLarge),
            None => ChangeScope::Everything(FallbackReason::TooLarge),
        };
        self.add(what);
    }

    /// Adds a change to the open transaction. Rows without a transaction open one.
    fn add(&mut self, what: ChangeScope) {
        let group = self.open.get_or_insert_with(Group::begun);
        group.begin();
        group.add(what, &self.limits);
    }

    fn everything(&mut self, header: Header, why: FallbackReason) -> Step {
        let is_open = self.open.as_ref().is_some_and(Group::goes_on);
        self.add(ChangeScope::Everything(why));
        if is_open { Step::Nothing } else { self.finish(header, Ending::Committed) }
    }

    fn query(&mut self, header: Header, query: &QueryEvent) -> Step {
        let goes_on = self.open.as_ref().is_some_and(Group::goes_on);
        match statement::read(&query.sql, &query.schema) {
            Verb::Begin | Verb::XaStart => {
                self.open.get_or_insert_with(Group::unnamed).begin();
                return Step::Nothing;
            }
            Verb::Commit => return self.finish(header, Ending::Committed),
            Verb::Rollback => {
                self.open.get_or_insert_with(Group::unnamed).undo_all();
                return self.finish(header, Ending::RolledBack);
            }
            Verb::Savepoint(name) => {
                self.open.get_or_insert_with(Group::begun).savepoint(name);
                return Step::Nothing;
            }
            Verb::RollbackTo(name) => {
                self.open.get_or_insert_with(Group::begun).undo_to(&name);
                return Step::Nothing;
            }
            Verb::XaCommit(id) => {
                match id.and_then(|id| self.prepared.take(&id)) {
                    Some(changes) => {
                        self.open.get_or_insert_with(Group::unnamed).put_changes(changes);
                    }
                    None => self.add(ChangeScope::Everything(FallbackReason::UnknownXa)),
                }
                return self.finish(header, Ending::Committed);
            }
            Verb::XaRollback(id) => {
                if let Some(id) = id {
                    self.prepared.take(&id);
                }
                return self.finish(header, Ending::RolledBack);
            }
            Verb::Nothing => {}
            Verb::Define(named) => {
                self.named(named, FallbackReason::Defined, |watch, table| {
                    watch.interest(&table.schema, &table.name) != Interest::None
                });
            }
            Verb::DefineViews(named) => {
                self.named(named, FallbackReason::Defined, |watch, view| {
                    watch.follows(&view.schema)
                });
            }
            Verb::Write(NamedTables::Tables(tables))
                if self.may_write_elsewhere(&tables, query) =>
            {
                self.known.clear();
                self.add_alone(ChangeScope::Everything(FallbackReason::Statement));
            }
            Verb::Write(named) => {
                self.named(named, FallbackReason::Statement, |watch, table| {
                    watch.follows(&table.schema)
                });
            }
            Verb::Unknown => {
                self.add_alone(ChangeScope::Everything(FallbackReason::UnknownStatement))
            }
        }
        if goes_on { Step::Nothing } else { self.finish(header, Ending::Committed) }
    }

    /// Whether a write of tables that are not followed may call a function of a followed database: of one that it names,
    /// or of the session's, whose functions need no name before them.
    fn may_write_elsewhere(&mut self, tables: &[TableName], query: &QueryEvent) -> bool {
        if tables.iter().any(|table| self.watch.follows(&table.schema)) {
            return false;
        }
        let Some(calls) = statement::calls(&query.sql, tables, query.has_escapes) else {
            return true;
        };
        calls.are_of_session && self.watch.follows(&query.schema)
            || calls.databases.iter().any(|name| self.watch.follows(name))
    }

    /// Adds a change of tables or views, of single ones if `is_reported` says so.
    fn named(
        &mut self,
        named: NamedTables,
        why: FallbackReason,
        is_reported: impl Fn(&mut W, &TableName) -> bool,
    ) {
        // Known table ids and shapes are no longer valid.
        self.known.clear();
        match named {
            NamedTables::Everything => self.add_alone(ChangeScope::Everything(why)),
            NamedTables::Schema(schema) => {
                self.add_alone(ChangeScope::Schema { schema: schema.as_str().into(), why });
            }
            NamedTables::Tables(tables) => {
                for table in tables {
                    if is_reported(&mut self.watch, &table) {
                        let (schema, name) = (table.schema.as_str(), table.name.as_str());
                        let (schema, name) = (schema.into(), name.into());
                        self.add_alone(ChangeScope::Table { schema, name, why });
                    }
                }
            }
        }
    }

    /// Adds a change without opening a transaction that waits for its end.
    fn add_alone(&mut self, what: ChangeScope) {
        self.open.get_or_insert_with(Group::unnamed).add(what, &self.limits);
    }

    fn payload(&mut self, outer: Header, payload: &Payload) -> Result<Step, StreamRefused> {
        match self.unpack(outer, payload) {
            // All transactions in a payload event are committed.
            Err(StreamRefused::Event(refusal)) => {
                self.add(ChangeScope::Everything(FallbackReason::Unreadable(refusal)));
                Ok(self.finish(outer, Ending::Committed))
            }
            step => step,
        }
    }

    fn unpack(&mut self, outer: Header, payload: &Payload) -> Result<Step, StreamRefused> {
        let mut events = payload.open()?;
        let mut last = Step::Nothing;
        while let Some(inner) = next_event(&mut events, self.events.event_bytes())? {
            let event = match inner {
                Inner::Whole(bytes) => self.events.read_inner(&bytes),
                Inner::Head(bytes) => Ok(self.events.read_head(&bytes)?),
            };
            let event = event.map(|mut event| {
                (event.header.end, event.header.len) = (outer.end, outer.len);
                event
            });
            // The format does not allow nested payload events.
            if event.as_ref().is_ok_and(|event| matches!(event.body, EventBody::Payload(_))) {
                return Err(Refusal::BadValue.into());
            }
            if let step @ Step::Transaction(_) = self.event(event)? {
                last = step;
            }
        }
        Ok(last)
    }

    fn finish(&mut self, header: Header, ending: Ending) -> Step {
        let group = self.open.take().unwrap_or_else(Group::unnamed);
        let (gtid, changes) = group.into_parts();
        self.position.advance(gtid.as_ref());
        if let Some(place) = &mut self.position.file {
            place.offset = widened(place.offset, header.end);
        }
        self.track.ended(header, self.position.file.as_ref());
        let (server_id, seconds) = (header.server_id, header.seconds);
        Step::Transaction(Transaction { gtid, server_id, seconds, ending, changes })
    }
}

fn whole(table: &Table, why: FallbackReason) -> ChangeScope {
    ChangeScope::Table { schema: table.schema.clone(), name: table.name.clone(), why }
}

/// The full offset for its lower 32 bits. Files of more than 4 GiB exist if a transaction is very large.
fn widened(before: u64, end: u32) -> u64 {
    if end == 0 {
        return before;
    }
    let same = before & !0xffff_ffff | u64::from(end);
    if same < before { same + (1 << 32) } else { same }
}

impl Group {
    fn new(gtid: &GtidEvent) -> Group {
        match gtid {
            // Unless it is standalone, the group is a transaction without BEGIN.
            GtidEvent::MariaDb(_, flags) if !flags.is_standalone() => {
                let mut group = Group::begun();
                group.name(gtid.gtid());
                group
            }
            _ => {
                let mut group = Group::unnamed();
                group.name(gtid.gtid());
                group
            }
        }
    }
}
