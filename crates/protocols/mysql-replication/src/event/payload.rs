//! A complete transaction in one compressed event, written by MySQL with `binlog_transaction_compression`.
//!
//! Layout: fields with id and length until id 0 (size, compression type, uncompressed size), then the events
//! without checksums. Source: "Transaction_payload_event". The events are decompressed one by one, so that
//! memory for one event is enough.

use super::{HEADER_LEN, Header};
use crate::compressed::DecompressedEvents;
use bytes::Bytes;
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;

const FIELDS_END: u64 = 0;
const FIELD_COMPRESSION: u64 = 2;
const ZSTD: u64 = 0;
const PLAIN: u64 = 255;

/// The event with a compressed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    compression: u64,
    events: Bytes,
}

/// An event inside a compressed transaction.
pub(crate) enum Inner {
    /// The complete event.
    Whole(Bytes),
    /// The first bytes of an event that exceeds the limit.
    Head(Bytes),
}

impl Payload {
    pub(super) fn read(body: &Bytes) -> Result<Payload, Refusal> {
        let mut reader = Reader::new(body);
        let mut compression = None;
        loop {
            let id = reader.lenenc()?;
            if id == FIELDS_END {
                break;
            }
            let mut field = Reader::new(reader.lenenc_bytes()?);
            if id == FIELD_COMPRESSION {
                compression = Some(field.lenenc()?);
            }
        }
        let compression = compression.ok_or(Refusal::Truncated)?;
        if !matches!(compression, ZSTD | PLAIN) {
            return Err(Refusal::UnknownCompression);
        }
        Ok(Payload { compression, events: body.slice_ref(reader.rest()) })
    }

    /// Starts the decompression. The events are read with [`next_event`].
    ///
    /// # Errors
    /// `BadCompression`.
    pub(crate) fn open(&self) -> Result<DecompressedEvents<'_>, Refusal> {
        match self.compression {
            ZSTD => DecompressedEvents::zstd(&self.events),
            _ => Ok(DecompressedEvents::plain(&self.events)),
        }
    }
}

/// The next event; `None` at the end.
///
/// # Errors
/// `Truncated`, `BadLength`, `BadCompression`.
pub(crate) fn next_event(
    events: &mut DecompressedEvents<'_>,
    event_bytes: usize,
) -> Result<Option<Inner>, Refusal> {
    const HEAD_LEN: usize = 256;
    let mut event = events.take(HEADER_LEN)?;
    if event.is_empty() {
        return Ok(None);
    }
    let len = Header::read(&mut Reader::new(&event))?.len as usize;
    let rest = len.checked_sub(HEADER_LEN).ok_or(Refusal::BadLength)?;
    let wanted = if len > event_bytes { rest.min(HEAD_LEN) } else { rest };
    let taken = events.take(wanted)?;
    if taken.len() < wanted {
        return Err(Refusal::Truncated);
    }
    event.extend_from_slice(&taken);
    if len <= event_bytes {
        return Ok(Some(Inner::Whole(event.into())));
    }
    events.skip(rest - wanted)?;
    Ok(Some(Inner::Head(event.into())))
}
