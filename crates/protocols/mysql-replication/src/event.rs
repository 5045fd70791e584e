//! Events of the binary log: header, checksum, types.
//!
//! [`EventReader`] keeps the state that one event sets for the next: whether there are checksums, and the
//! length of table ids. It decodes one event at a time. Bodies are decoded as far as a cache needs them; rows
//! stay encoded until [`Rows::changes`] is called.
//!
//! Sources: MySQL's internals manual "Binary Log" and `libs/mysql/binlog/event`; MariaDB's manual of its
//! replication protocol, `sql/log_event.h`. Formats before version 4 are refused. Not here: grouping of events
//! into transactions ([`crate::Transactions`]).

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
pub use rows::{Row, RowChange, RowChanges, RowKind, Rows};
pub use table_map::TableMap;

use crate::position::{FilePosition, GtidList, GtidSet, MariaDbGtid};
use bytes::Bytes;
use flate2::Crc;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;

/// The length of an event's header in bytes.
pub const HEADER_LEN: usize = 19;
const CHECKSUM_LEN: usize = 4;
/// The flag for a log that is still being written; it is cleared before the checksum is computed.
const IN_USE: u16 = 0x0001;
/// The flag for an event that readers may ignore if they do not know its type.
const IGNORABLE: u16 = 0x0080;

/// The header of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The time of the event, in seconds since 1970 by the server's clock.
    pub seconds: u32,
    /// The code of the event's type.
    pub code: u8,
    /// The id of the server on which the event originated.
    pub server_id: u32,
    /// The length of the event in bytes, including header and checksum.
    pub len: u32,
    /// The lower 32 bits of the offset after the event in its file; 0 for events that are in no file.
    pub end: u32,
    /// The flags of the event.
    pub flags: u16,
}

impl Header {
    /// Decodes the header.
    ///
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

/// An event of the binary log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The header of the event.
    pub header: Header,
    /// The decoded body of the event.
    pub body: EventBody,
}

/// The body of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    /// The format description: how to decode the events that follow.
    Format(FormatDescription),
    /// The log continues in this file, at this offset.
    Rotate(FilePosition),
    /// A heartbeat: the server is connected and has no new events.
    Heartbeat,
    /// The beginning of a transaction, or of a single statement.
    Gtid(GtidEvent),
    /// The last GTIDs before this file (MariaDB).
    GtidList(GtidList),
    /// The GTIDs before this file (MySQL).
    PreviousGtids(GtidSet),
    /// A statement.
    Query(QueryEvent),
    /// The commit of a transaction.
    Xid(u64),
    /// The end of `XA PREPARE`, or of an XA transaction committed in one phase.
    XaPrepare(crate::statement::XaId, XaPhase),
    /// The table for a table id.
    TableMap(TableMap),
    /// Changed rows.
    Rows(Rows),
    /// A compressed transaction with all its events.
    Payload(Payload),
    /// The server has lost changes: anything may have changed.
    Incident,
    /// The log's events are encrypted on disk.
    StartEncryption,
    /// An event that changes no row: a comment, a counter, the end of a file, or an ignorable event.
    Nothing,
    /// An event of an unknown type that must not be ignored.
    Unknown,
    /// An event that is too long to be held. For changed rows, the id of the table.
    TooLong(Option<u64>),
}

/// Whether an `XA PREPARE` event is a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XaPhase {
    /// The transaction waits for `XA COMMIT` or `XA ROLLBACK`.
    Prepared,
    /// The transaction is committed (`XA COMMIT … ONE PHASE`).
    Committed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checksum {
    /// No format description has arrived.
    Untold,
    None,
    Crc32,
}

/// Decodes events one by one.
#[derive(Debug)]
pub struct EventReader {
    checksum: Checksum,
    table_id_bytes: usize,
    event_bytes: usize,
    is_encrypted: bool,
}

impl EventReader {
    /// A reader for the start of a stream. A compressed event may decompress to at most `event_bytes` bytes.
    #[must_use]
    pub fn new(event_bytes: usize) -> EventReader {
        let (checksum, table_id_bytes) = (Checksum::Untold, 6);
        EventReader { checksum, table_id_bytes, event_bytes, is_encrypted: false }
    }

    /// Decodes an event that arrived completely.
    ///
    /// # Errors
    /// The event is invalid. After an invalid header, length or checksum ([`EventReader::is_fatal`]) the stream
    /// cannot be continued. Other errors concern only this event.
    pub fn read(&mut self, event: &Bytes) -> Result<Event, (Header, Refusal)> {
        let none = Header { seconds: 0, code: 0, server_id: 0, len: 0, end: 0, flags: 0 };
        let header = Header::read(&mut Reader::new(event)).map_err(|refusal| (none, refusal))?;
        let body = self.unsealed(header, event).map_err(|refusal| (none, refusal))?;
        self.read_body(header, &body)
    }

    /// Whether an error means that the stream cannot be continued.
    #[must_use]
    pub fn is_fatal(refused: &(Header, Refusal)) -> bool {
        // The header is left empty if it cannot be trusted.
        refused.0.code == 0
    }

    /// Decodes the beginning of an event that was too long to be held.
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
            // The text of a statement, sent in addition to its rows.
            29 | 160 => EventBody::Nothing,
            _ => EventBody::TooLong(None),
        };
        Ok(Event { header, body })
    }

    /// Decodes an event inside a compressed transaction, which has no checksum.
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

    /// Checks the checksum, and returns the event without header and checksum.
    fn unsealed(&self, header: Header, event: &Bytes) -> Result<Bytes, Refusal> {
        if header.len as usize != event.len() {
            return Err(Refusal::BadLength);
        }
        let without = event.len().saturating_sub(CHECKSUM_LEN);
        let checksum = match (header.code, self.checksum) {
            // A format description states its own checksum type.
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
            // A format description has space for a checksum even if checksums are off.
            Checksum::None if header.code == format::CODE => Ok(event.slice(HEADER_LEN..without)),
            Checksum::None | Checksum::Untold => Ok(event.slice(HEADER_LEN..)),
        }
    }

    fn read_body(&mut self, header: Header, body: &Bytes) -> Result<Event, (Header, Refusal)> {
        let is_format = header.code == format::CODE;
        match self.body(header, body) {
            Ok(body) => Ok(Event { header, body }),
            // Without the format description no other event can be decoded.
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
            // The statement of a LOAD DATA; it follows the positions of the file name in the statement.
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
            // End of file, variables of statements, a part of a file, comments, group replication.
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

/// Whether the last four bytes are the CRC32 of the bytes before them.
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

/// Decodes whether it is a one-phase commit, and the id: format, lengths of its two parts, the parts.
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
    // The upper four bits are flags.
    for _ in 0..reader.u32()? & 0x0fff_ffff {
        let (domain, server, sequence) = (reader.u32()?, reader.u32()?, reader.u64()?);
        list.advance(MariaDbGtid { domain, server, sequence });
    }
    Ok(list)
}
