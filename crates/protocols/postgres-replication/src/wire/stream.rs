//! The replication stream: the command that starts it, the server's messages, and the reader's status.
//!
//! | direction | type | content |
//! |---|---|---|
//! | in | `w` | a part of the log: one message of the plugin |
//! | in | `k` | keepalive: the server's position, and whether it requests a status |
//! | out | `r` | status: the position up to which the slot need not keep the log |
//!
//! Source: PostgreSQL's manual, "Streaming Replication Protocol". Not here: when to send a status.

use super::error::{ServerError, ServerErrorKind};
use super::frame::Frame;
use super::query::{QueryRefused, identifier, literal, query};
use crate::Refusal;
use crate::position::Lsn;
use crate::reader::Reader;
use bytes::BytesMut;
use postgres_protocol::message::frontend;

const HEAD_BYTES: usize = 24;

/// The slot and publication to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The name of the replication slot.
    pub slot: String,
    /// The name of the publication.
    pub publication: String,
}

/// Encodes the command that starts the stream at `from`. Slot names consist of lower-case letters, digits and
/// underscores. The server answers with `W` ([`started`]).
///
/// # Errors
/// `BadText` if a name contains a zero byte.
pub fn start(subscription: &Subscription, from: Lsn) -> Result<Vec<u8>, Refusal> {
    let Subscription { slot, publication } = subscription;
    // The name of the publication is an identifier inside a literal.
    let publications = literal(&identifier(publication));
    query(&format!(
        "START_REPLICATION SLOT {} LOGICAL {from} (proto_version '1', publication_names {publications}, \
         messages 'true')",
        identifier(slot)
    ))
}

/// Whether a frame received after [`start`] begins the stream; other frames may come before it.
///
/// # Errors
/// The server refused to start the stream, or the frame is invalid.
pub fn started(frame: &Frame) -> Result<bool, QueryRefused> {
    match frame.tag {
        b'W' => Ok(true),
        b'N' | b'S' => Ok(false),
        b'E' => Err(QueryRefused::Server(ServerError::read(frame.whole()?)?)),
        _ => Err(Refusal::UnexpectedMessage.into()),
    }
}

/// Whether the sender requests a status at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A status is requested.
    Wanted,
    /// No status is requested.
    NotNeeded,
}

/// A keepalive message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Everything before this position was sent.
    pub end: Lsn,
    /// Whether the server requests a status.
    pub reply: Reply,
}

/// The content of a frame of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMessage<'a> {
    /// A message of the plugin, or the beginning of a message that is too long.
    Message(&'a [u8]),
    /// A keepalive message.
    Keepalive(Keepalive),
    /// The server has ended the stream.
    Ended,
}

/// Decodes a frame of the stream.
///
/// # Errors
/// The frame is invalid. Errors of the server are decoded by [`error`].
pub fn read(frame: &Frame) -> Result<StreamMessage<'_>, Refusal> {
    match frame.tag {
        b'd' => {}
        b'c' | b'C' => return Ok(StreamMessage::Ended),
        _ => return Err(Refusal::UnexpectedMessage),
    }
    let mut reader = Reader::new(&frame.payload);
    match reader.u8()? {
        b'w' => {
            reader.take(HEAD_BYTES)?;
            Ok(StreamMessage::Message(reader.rest()))
        }
        b'k' => {
            let end = Lsn(reader.u64()?);
            reader.u64()?;
            let reply = if reader.u8()? == 0 { Reply::NotNeeded } else { Reply::Wanted };
            reader.end()?;
            Ok(StreamMessage::Keepalive(Keepalive { end, reply }))
        }
        _ => Err(Refusal::UnknownMessage),
    }
}

/// The error in a frame, if the frame is an error of the server, or its warning that it leaves out
/// changes. Since version 18 a missing publication is such a warning ("skipped loading publication",
/// `pgoutput.c`); before, it is an error.
#[must_use]
pub fn error(frame: &Frame) -> Option<ServerError> {
    match frame.tag {
        b'E' => Some(ServerError::read(&frame.payload).unwrap_or_default()),
        b'N' => ServerError::read(&frame.payload)
            .ok()
            .filter(|notice| notice.kind() == ServerErrorKind::NotInState),
        _ => None,
    }
}

/// Whether a frame is unrelated to the stream: a notice, or a changed setting.
#[must_use]
pub fn is_aside(frame: &Frame) -> bool {
    matches!(frame.tag, b'N' | b'S')
}

/// Whether an error of [`start`] means that the slot does not exist, or has lost its position.
#[must_use]
pub fn is_slot_lost(error: &ServerError) -> bool {
    matches!(error.kind(), ServerErrorKind::NotThere | ServerErrorKind::NotInState)
}

/// Encodes the reader's status: the positions received and applied. The slot keeps no log from before
/// `applied`.
#[must_use]
pub fn status(received: Lsn, applied: Lsn, reply: Reply) -> Vec<u8> {
    let mut said = vec![b'r'];
    for lsn in [received, applied, applied] {
        said.extend_from_slice(&lsn.0.to_be_bytes());
    }
    // The reader's clock, which the server does not use.
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
