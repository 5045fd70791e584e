//! The event that begins a transaction and contains its GTID.
//!
//! | event | code | layout |
//! |---|---|---|
//! | MariaDB | 162 | number (8), domain (4), flags (1), …; the server is in the header |
//! | MySQL | 33 | flags (1), UUID (16), number (8), … |
//! | MySQL, anonymous | 34 | the same, all zero |
//! | MySQL 8.3 with a tag | 42 | fields by their ids, in the format of `libs/mysql/serialization` |

use crate::position::{Gtid, MariaDbGtid, MySqlGtid, SourceId};
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;

/// The beginning of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GtidEvent {
    /// A transaction of MariaDB.
    MariaDb(MariaDbGtid, MariaDbGtidFlags),
    /// A transaction of MySQL with a GTID.
    MySql(MySqlGtid),
    /// A transaction of MySQL without a GTID.
    Anonymous,
}

/// The flags of a GTID event of MariaDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MariaDbGtidFlags(u8);

impl MariaDbGtidFlags {
    /// Whether the group is a single statement without a commit event.
    #[must_use]
    pub fn is_standalone(self) -> bool {
        self.0 & 1 != 0
    }
}

impl GtidEvent {
    /// The GTID; `None` for an anonymous transaction.
    #[must_use]
    pub fn gtid(&self) -> Option<Gtid> {
        match self {
            GtidEvent::MariaDb(gtid, _) => Some(Gtid::MariaDb(*gtid)),
            GtidEvent::MySql(gtid) => Some(Gtid::MySql(gtid.clone())),
            GtidEvent::Anonymous => None,
        }
    }

    pub(super) fn read_mariadb(reader: &mut Reader<'_>, server: u32) -> Result<GtidEvent, Refusal> {
        let (sequence, domain) = (reader.u64()?, reader.u32()?);
        let flags = MariaDbGtidFlags(reader.u8()?);
        Ok(GtidEvent::MariaDb(MariaDbGtid { domain, server, sequence }, flags))
    }

    pub(super) fn read_mysql(reader: &mut Reader<'_>) -> Result<GtidEvent, Refusal> {
        reader.u8()?;
        let source = SourceId { uuid: reader.array()?, tag: String::new() };
        let number = reader.u64()?;
        if number == 0 || number > i64::MAX as u64 {
            return Err(Refusal::BadValue);
        }
        Ok(GtidEvent::MySql(MySqlGtid { source, number }))
    }

    /// Decodes version, size and last relevant field; then flags (0), UUID (1, one number per byte), number (2,
    /// signed), tag (3). Later fields are not needed.
    pub(super) fn read_tagged(reader: &mut Reader<'_>) -> Result<GtidEvent, Refusal> {
        if reader.varlen()? != 1 {
            return Err(Refusal::BadValue);
        }
        reader.varlen()?;
        reader.varlen()?;
        let mut source = SourceId { uuid: [0; 16], tag: String::new() };
        let mut number = None;
        while !reader.is_empty() {
            match reader.varlen()? {
                0 => {
                    reader.varlen()?;
                }
                1 => {
                    for byte in &mut source.uuid {
                        *byte = u8::try_from(reader.varlen()?).map_err(|_| Refusal::BadValue)?;
                    }
                }
                2 => number = Some(reader.varlen()?),
                3 => source.tag = crate::position::read_tag(reader)?,
                _ => break,
            }
        }
        // The lowest bit is the sign, and GTID numbers start at 1.
        let number = number.filter(|number| number & 1 == 0).ok_or(Refusal::BadValue)? >> 1;
        if number == 0 {
            return Err(Refusal::BadValue);
        }
        Ok(GtidEvent::MySql(MySqlGtid { source, number }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tagged_gtid_is_read() {
        let mut body = vec![1 << 1, 40 << 1, 0];
        body.extend_from_slice(&[0, 1 << 1]);
        body.push(1 << 1);
        // 0xfe does not fit into one byte: one trailing 1-bit, then 14 bits of value.
        for _ in 0..16 {
            body.extend_from_slice(&((0xfeu16 << 2) | 1).to_le_bytes());
        }
        body.extend_from_slice(&[2 << 1, 7 << 2]);
        body.extend_from_slice(&[3 << 1, 3 << 1, b'a', b'_', b'1', 4 << 1, 9 << 1]);
        let read = GtidEvent::read_tagged(&mut Reader::new(&body)).expect("an event");
        let text = read.gtid().expect("a name").to_string();
        assert_eq!(text, "fefefefe-fefe-fefe-fefe-fefefefefefe:a_1:7");
        for len in 0..body.len() - 3 {
            let cut = GtidEvent::read_tagged(&mut Reader::new(&body[..len]));
            assert!(cut.is_err() || len > 37, "{len}");
        }
    }

    #[test]
    fn mariadb_has_the_server_in_the_header() {
        let body = [7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1];
        let read = GtidEvent::read_mariadb(&mut Reader::new(&body), 9).expect("an event");
        assert_eq!(read.gtid().expect("a name").to_string(), "3-9-7");
        assert!(matches!(read, GtidEvent::MariaDb(_, flags) if flags.is_standalone()));
    }
}
