//! Events of the log: their header, their checksum, their kinds.
//!
//! [`EventReader`] holds what one event says about the next: whether there are checksums, and how
//! long ids of tables are. It reads one event at a time and keeps nothing else. Bodies are read as far
//! as a cache needs: rows stay as bytes until somebody asks ([`Rows::changes`]).
//!
//! Sources: MySQL's internals manual "Binary Log" and `libs/mysql/binlog/event`; MariaDB's manual of
//! its replication protocol, `sql/log_event.h`. Formats before version 4 are refused. Not here: what
//! belongs together ([`crate::Transactions`]).

mod format;
mod gtid;
mod payload;
mod query;
mod rows;
mod table_map;

pub use format::FormatDescription;
pub use gtid::{GtidEvent, MariaDbGtidFlags};
pub use payload::Payload;
pub(crate) use payload::{Inner, next_event};
pub use query::QueryEvent;
pub use rows::{Changed, Row, RowChange, RowChanges, RowKind, Rows};
pub use table_map::TableMap;

use crate::Refusal;
use crate::position::{FilePosition, GtidList, GtidSet, MariaDbGtid};
use crate::reader::Reader;
use bytes::Bytes;
use flate2::Crc;

/// Bytes of an event's header.
pub const HEADER_LEN: usize = 19;
const CHECKSUM_LEN: usize = 4;
/// The log is being written; cleared before the checksum is made.
const IN_USE: u16 = 0x0001;
/// Whoever does not know the event may pass it over.
const IGNORABLE: u16 = 0x0080;

/// What every event begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When it happened, in seconds since 1970 by the server's clock.
    pub seconds: u32,
    /// Its kind's code.
    pub code: u8,
    /// The server where it came about.
    pub server_id: u32,
    /// Its length with header and checksum.
    pub len: u32,
    /// The offset after it in its file, the lower 32 bits; 0 for what is in no file.
    pub end: u32,
    /// Flags.
    pub flags: u16,
}

impl Header {
    /// # Errors
    /// `Truncated`.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Header, Refusal> {
        Ok(Header {
            seconds: reader.u32()?,
            code: reader.u8()?,
            server_id: reader.u32()?,
            len: reader.u32()?,
            end: reader.u32()?,
            flags: reader.u16()?,
        })
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its header.
    pub header: Header,
    /// What it says.
    pub body: EventBody,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// How the events that follow are to be read.
    Format(FormatDescription),
    /// The log goes on in this file, at this offset.
    Rotate(FilePosition),
    /// The server is there and has nothing to say.
    Heartbeat,
    /// A transaction (or a single statement) begins.
    Gtid(GtidEvent),
    /// The last GTIDs before this file, of MariaDB.
    GtidList(GtidList),
    /// The GTIDs before this file, of MySQL.
    PreviousGtids(GtidSet),
    /// A statement.
    Query(QueryEvent),
    /// A transaction is committed.
    Xid(u64),
    /// A transaction is prepared (`XA PREPARE`), or committed in one phase.
    XaPrepare(crate::statement::XaId, XaPhase),
    /// Which table an id stands for.
    TableMap(TableMap),
    /// Rows were changed.
    Rows(Rows),
    /// A compressed transaction, with all its events.
    Payload(Payload),
    /// The server has lost track of changes: anything may have changed.
    Incident,
    /// The log's events are encrypted where they are stored.
    StartEncryption,
    /// Nothing that changes a row: comments, counters, ends of files, what may be ignored.
    Nothing,
    /// A kind that is not known and must not be ignored.
    Unknown,
    /// Too long to be held: the id of the table, if it is one of changed rows.
    TooLong(Option<u64>),
}

/// Whether an `XA PREPARE` event stands for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XaPhase {
    /// It waits for `XA COMMIT` or `XA ROLLBACK`.
    Prepared,
    /// It is committed (`XA COMMIT … ONE PHASE`).
    Committed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checksum {
    /// No format description yet.
    Untold,
    None,
    Crc32,
}

/// Reads events one by one.
#[derive(Debug)]
pub struct EventReader {
    checksum: Checksum,
    table_id_bytes: usize,
    event_bytes: usize,
    is_encrypted: bool,
}

impl EventReader {
    /// At the start of a stream. `event_bytes` bounds what a compressed event may grow to.
    #[must_use]
    pub fn new(event_bytes: usize) -> EventReader {
        let (checksum, table_id_bytes) = (Checksum::Untold, 6);
        EventReader { checksum, table_id_bytes, event_bytes, is_encrypted: false }
    }

    /// Reads an event that came whole.
    ///
    /// # Errors
    /// Why it cannot be read. Of a broken header, length or checksum ([`EventReader::is_fatal`]) there
    /// is no way on; other refusals are about this event alone.
    pub fn read(&mut self, event: &Bytes) -> Result<Event, (Header, Refusal)> {
        let none = Header { seconds: 0, code: 0, server_id: 0, len: 0, end: 0, flags: 0 };
        let header = Header::read(&mut Reader::new(event)).map_err(|refusal| (none, refusal))?;
        let body = self.unsealed(header, event).map_err(|refusal| (none, refusal))?;
        self.read_body(header, &body)
    }

    /// Whether a refusal means that the stream cannot be followed any further.
    #[must_use]
    pub fn is_fatal(refused: &(Header, Refusal)) -> bool {
        // A header that could not be trusted is left empty.
        refused.0.code == 0
    }

    /// Reads the beginning of an event that was too long to be held.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn read_head(&self, head: &[u8]) -> Result<Event, Refusal> {
        let mut reader = Reader::new(head);
        let header = Header::read(&mut reader)?;
        let body = match header.code {
            23..=25 | 30..=32 | 39 | 166..=171 => {
                EventBody::TooLong(Some(reader.uint(self.table_id_bytes)?))
            }
            // The text of a statement, beside its rows.
            29 | 160 => EventBody::Nothing,
            _ => EventBody::TooLong(None),
        };
        Ok(Event { header, body })
    }

    /// An event inside a compressed transaction: it has no checksum.
    ///
    /// # Errors
    /// As for [`EventReader::read`].
    pub(crate) fn read_inner(&mut self, event: &Bytes) -> Result<Event, (Header, Refusal)> {
        let none = Header { seconds: 0, code: 0, server_id: 0, len: 0, end: 0, flags: 0 };
        let header = Header::read(&mut Reader::new(event)).map_err(|refusal| (none, refusal))?;
        self.read_body(header, &event.slice(HEADER_LEN..))
    }

    pub(crate) fn event_bytes(&self) -> usize {
        self.event_bytes
    }

    /// The event without header and checksum; the checksum has to be right.
    fn unsealed(&self, header: Header, event: &Bytes) -> Result<Bytes, Refusal> {
        if header.len as usize != event.len() {
            return Err(Refusal::BadLength);
        }
        let without = event.len().saturating_sub(CHECKSUM_LEN);
        let checksum = match (header.code, self.checksum) {
            // It says of itself whether it has one.
            (format::CODE, _) => format::checksum(event)?,
            (_, Checksum::Untold) if without >= HEADER_LEN && is_sealed(event) => Checksum::Crc32,
            (_, Checksum::Untold) => Checksum::None,
            (_, checksum) => checksum,
        };
        match checksum {
            Checksum::Crc32 if without < HEADER_LEN => Err(Refusal::Truncated),
            Checksum::Crc32 if is_sealed(event) => Ok(event.slice(HEADER_LEN..without)),
            Checksum::Crc32 if self.is_encrypted => Err(Refusal::Encrypted),
            Checksum::Crc32 => Err(Refusal::BadChecksum),
            // A format description has the room for a checksum even where there is none.
            Checksum::None if header.code == format::CODE => Ok(event.slice(HEADER_LEN..without)),
            Checksum::None | Checksum::Untold => Ok(event.slice(HEADER_LEN..)),
        }
    }

    fn read_body(&mut self, header: Header, body: &Bytes) -> Result<Event, (Header, Refusal)> {
        let is_format = header.code == format::CODE;
        match self.body(header, body) {
            Ok(body) => Ok(Event { header, body }),
            // Without it nothing else can be read.
            Err(refusal) if is_format => Err((Header { code: 0, ..header }, refusal)),
            Err(refusal) => Err((header, refusal)),
        }
    }

    fn body(&mut self, header: Header, body: &Bytes) -> Result<EventBody, Refusal> {
        let mut reader = Reader::new(body);
        Ok(match header.code {
            format::CODE => EventBody::Format(self.format(body)?),
            4 => EventBody::Rotate(rotate(&mut reader)?),
            27 | 41 => EventBody::Heartbeat,
            2 => EventBody::Query(QueryEvent::read(body)?),
            165 => EventBody::Query(QueryEvent::read_compressed(body, self.event_bytes)?),
            // The statement of a LOAD DATA, after where its file's parts are.
            18 => EventBody::Query(QueryEvent::read_load(body)?),
            16 => EventBody::Xid(reader.u64()?),
            38 => xa_prepare(&mut reader)?,
            19 => EventBody::TableMap(TableMap::read(body, self.table_id_bytes)?),
            23..=25 | 30..=32 | 39 | 166..=171 => {
                EventBody::Rows(Rows::read(header.code, body, self.table_id_bytes)?)
            }
            33 => EventBody::Gtid(GtidEvent::read_mysql(&mut reader)?),
            34 => EventBody::Gtid(GtidEvent::Anonymous),
            42 => EventBody::Gtid(GtidEvent::read_tagged(&mut reader)?),
            162 => EventBody::Gtid(GtidEvent::read_mariadb(&mut reader, header.server_id)?),
            163 => EventBody::GtidList(gtid_list(&mut reader)?),
            35 => EventBody::PreviousGtids(GtidSet::decode(body)?),
            40 => EventBody::Payload(Payload::read(body)?),
            26 => EventBody::Incident,
            164 => {
                self.is_encrypted = true;
                EventBody::StartEncryption
            }
            // End of file, variables of statements, a part of a file, remarks, group replication.
            3 | 5 | 13 | 14 | 9 | 17 | 28 | 29 | 36 | 37 | 160 | 161 => EventBody::Nothing,
            _ if header.flags & IGNORABLE != 0 => EventBody::Nothing,
            _ => EventBody::Unknown,
        })
    }

    fn format(&mut self, body: &Bytes) -> Result<FormatDescription, Refusal> {
        let format = FormatDescription::read(body)?;
        self.checksum = format.checksum;
        self.table_id_bytes = format.table_id_bytes;
        Ok(format)
    }
}

/// Whether the last four bytes are the CRC32 of those before.
fn is_sealed(event: &[u8]) -> bool {
    let Some((bytes, sum)) = event.split_last_chunk::<CHECKSUM_LEN>() else { return false };
    let mut crc = Crc::new();
    match bytes.first_chunk::<HEADER_LEN>() {
        Some(header) => {
            let mut header = *header;
            if header[4] == format::CODE {
                header[17] &= !(IN_USE as u8);
            }
            crc.update(&header);
            crc.update(&bytes[HEADER_LEN..]);
        }
        None => crc.update(bytes),
    }
    crc.sum() == u32::from_le_bytes(*sum)
}

fn rotate(reader: &mut Reader<'_>) -> Result<FilePosition, Refusal> {
    let offset = reader.u64()?;
    let file = std::str::from_utf8(reader.rest()).map_err(|_| Refusal::BadValue)?;
    if file.len() > 512 {
        return Err(Refusal::BadLength);
    }
    Ok(FilePosition { file: file.into(), offset })
}

/// Whether it is a commit in one phase, and the id: format, lengths of its two parts, the parts.
fn xa_prepare(reader: &mut Reader<'_>) -> Result<EventBody, Refusal> {
    let phase = if reader.u8()? == 0 { XaPhase::Prepared } else { XaPhase::Committed };
    let format = reader.u32()?;
    let (first, second) = (reader.u32()?, reader.u32()?);
    if first > 64 || second > 64 {
        return Err(Refusal::BadLength);
    }
    let parts = reader.take_long(u64::from(first + second))?;
    let (global, branch) = parts.split_at(first as usize);
    let id = crate::statement::XaId { format, global: global.into(), branch: branch.into() };
    Ok(EventBody::XaPrepare(id, phase))
}

fn gtid_list(reader: &mut Reader<'_>) -> Result<GtidList, Refusal> {
    let mut list = GtidList::default();
    // The upper bits are flags.
    for _ in 0..reader.u32()? & 0x0fff_ffff {
        let (domain, server, sequence) = (reader.u32()?, reader.u32()?, reader.u64()?);
        list.advance(MariaDbGtid { domain, server, sequence });
    }
    Ok(list)
}
