//! The stream itself: the command that starts it, what comes, and what the reader says of itself.
//!
//! | direction | | |
//! |---|---|---|
//! | in | `w` | a part of the log: one message of the plugin |
//! | in | `k` | where the server is, and whether it wants to hear from the reader |
//! | out | `r` | how far the reader is: what the slot need not keep any more |
//!
//! Source: PostgreSQL's manual, "Streaming Replication Protocol". Not here: when what is said.

use super::error::{ServerError, ServerErrorKind};
use super::frame::Frame;
use super::query::{QueryRefused, identifier, literal, query};
use crate::Refusal;
use crate::position::Lsn;
use crate::reader::Reader;
use bytes::BytesMut;
use postgres_protocol::message::frontend;

const HEAD_BYTES: usize = 24;

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The slot.
    pub slot: String,
    /// The publication.
    pub publication: String,
}

/// The command that starts the stream. Names of slots have small letters, digits and underscores
/// only. After it comes `W` ([`started`]).
///
/// # Errors
/// `BadText` for a zero byte in a name.
pub fn start(subscription: &Subscription, from: Lsn) -> Result<Vec<u8>, Refusal> {
    let Subscription { slot, publication } = subscription;
    // The name of the publication is an identifier within a literal.
    let publications = literal(&identifier(publication));
    query(&format!(
        "START_REPLICATION SLOT {} LOGICAL {from} (proto_version '1', publication_names {publications}, \
         messages 'true')",
        identifier(slot)
    ))
}

/// Whether the frame that came after [`start`] begins the stream; others may come before it.
///
/// # Errors
/// Why there is none.
pub fn started(frame: &Frame) -> Result<bool, QueryRefused> {
    match frame.tag {
        b'W' => Ok(true),
        b'N' | b'S' => Ok(false),
        b'E' => Err(QueryRefused::Server(ServerError::read(frame.whole()?)?)),
        _ => Err(Refusal::UnexpectedMessage.into()),
    }
}

/// Whether the server wants to hear from the reader at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// It does.
    Wanted,
    /// It does not mind.
    NotNeeded,
}

/// Where the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Everything before this place was sent.
    pub end: Lsn,
    /// Whether it wants to hear from the reader.
    pub reply: Reply,
}

/// What a frame of the stream has in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied<'a> {
    /// A message of the plugin, or the beginning of one.
    Message(&'a [u8]),
    /// Where the server is.
    Keepalive(Keepalive),
    /// The server has ended the stream.
    Ended,
}

/// Reads a frame.
///
/// # Errors
/// Why it cannot be read. Errors of the server are for [`error`].
pub fn read(frame: &Frame) -> Result<Copied<'_>, Refusal> {
    match frame.tag {
        b'd' => {}
        b'c' | b'C' => return Ok(Copied::Ended),
        _ => return Err(Refusal::UnexpectedMessage),
    }
    let mut reader = Reader::new(&frame.payload);
    match reader.u8()? {
        b'w' => {
            reader.take(HEAD_BYTES)?;
            Ok(Copied::Message(reader.rest()))
        }
        b'k' => {
            let end = Lsn(reader.u64()?);
            reader.u64()?;
            let reply = if reader.u8()? == 0 { Reply::NotNeeded } else { Reply::Wanted };
            reader.end()?;
            Ok(Copied::Keepalive(Keepalive { end, reply }))
        }
        _ => Err(Refusal::UnknownMessage),
    }
}

/// What the server says instead of going on.
#[must_use]
pub fn error(frame: &Frame) -> Option<ServerError> {
    let payload = (frame.tag == b'E').then_some(&frame.payload)?;
    Some(ServerError::read(payload).unwrap_or_default())
}

/// Whether a frame says nothing of the stream: a notice, a setting that was changed.
#[must_use]
pub fn is_aside(frame: &Frame) -> bool {
    matches!(frame.tag, b'N' | b'S')
}

/// Whether an error of [`start`] means that the slot is gone, or has lost its place.
#[must_use]
pub fn is_slot_lost(error: &ServerError) -> bool {
    matches!(error.kind(), ServerErrorKind::NotThere | ServerErrorKind::NotInState)
}

/// How far the reader is: received, and applied. The slot keeps nothing from before `applied`.
#[must_use]
pub fn status(received: Lsn, applied: Lsn, reply: Reply) -> Vec<u8> {
    let mut said = vec![b'r'];
    for lsn in [received, applied, applied] {
        said.extend_from_slice(&lsn.0.to_be_bytes());
    }
    // The reader's clock: nobody looks at it.
    said.extend_from_slice(&[0; 8]);
    said.push(u8::from(reply == Reply::Wanted));
    let mut out = BytesMut::new();
    if let Ok(data) = frontend::CopyData::new(said.as_slice()) {
        data.write(&mut out);
    }
    out.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_places() {
        let status = status(Lsn(2), Lsn(1), Reply::Wanted);
        assert_eq!((status[0], &status[1..5], status[5]), (b'd', &[0, 0, 0, 38][..], b'r'));
        assert_eq!((status[13], status[21], status[29], status[38]), (2, 1, 1, 1));
    }

    #[test]
    fn names_are_quoted() {
        let subscription = Subscription { slot: "s".into(), publication: "it's".into() };
        let bytes = start(&subscription, Lsn(1)).expect("a command");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            text.contains("SLOT \"s\" LOGICAL 0/1 (") && text.contains("'\"it''s\"'"),
            "{text}"
        );
    }
}
