//! The format description: the first event of every file, which defines how to decode the others.
//!
//! Layout: format version, server version, creation time, length of the header, length of the fixed part of
//! each event type, checksum type. Source: "Format_description_event".

use super::{CHECKSUM_LEN, Checksum, HEADER_LEN};
use mysql_wire::Refusal;
use mysql_wire::greeting::Flavour;
use mysql_wire::reader::Reader;

/// The code of this event type.
pub(super) const CODE: u8 = 15;
const TABLE_MAP: usize = 19;

/// How to decode the events of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatDescription {
    /// The version of the server.
    pub version: String,
    /// The time at which the file was created, in seconds since 1970, if the server was started since the
    /// previous file; otherwise 0. If it is not 0, open transactions will not be committed.
    pub created_seconds: u32,
    pub(super) checksum: Checksum,
    pub(super) table_id_bytes: usize,
}

impl FormatDescription {
    /// Decodes the body, which has no checksum but ends with the checksum type.
    ///
    /// # Errors
    /// `Truncated`, `OldFormat`, `BadLength`, `UnknownChecksum`.
    pub(super) fn read(body: &[u8]) -> Result<FormatDescription, Refusal> {
        let mut reader = Reader::new(body);
        if reader.u16()? != 4 {
            return Err(Refusal::OldFormat);
        }
        let version = Reader::new(reader.take(50)?).nul_bytes();
        let version = String::from_utf8_lossy(version).into_owned();
        let created_seconds = reader.u32()?;
        if usize::from(reader.u8()?) != HEADER_LEN {
            return Err(Refusal::BadLength);
        }
        let (kind, fixed) = reader.rest().split_last().ok_or(Refusal::Truncated)?;
        let table_id_bytes = match fixed.get(TABLE_MAP - 1) {
            Some(6) => 4,
            Some(_) => 6,
            None => return Err(Refusal::Truncated),
        };
        let checksum = kind_of(*kind)?;
        Ok(FormatDescription { version, created_seconds, checksum, table_id_bytes })
    }

    /// The kind of server that wrote the log.
    #[must_use]
    pub fn flavour(&self) -> Flavour {
        Flavour::of_version(&self.version)
    }
}

/// The checksum type in a complete format description.
///
/// # Errors
/// `Truncated`, `UnknownChecksum`.
pub(super) fn checksum(event: &[u8]) -> Result<Checksum, Refusal> {
    let at = event.len().checked_sub(CHECKSUM_LEN + 1).filter(|at| *at >= HEADER_LEN);
    kind_of(event[at.ok_or(Refusal::Truncated)?])
}

fn kind_of(code: u8) -> Result<Checksum, Refusal> {
    match code {
        0 => Ok(Checksum::None),
        1 => Ok(Checksum::Crc32),
        _ => Err(Refusal::UnknownChecksum),
    }
}
