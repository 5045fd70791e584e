//! What a server answers with: OK, ERR and EOF packets, and the errors that matter to a replica.
//!
//! Source: "OK_Packet", "ERR_Packet", "EOF_Packet" of the client/server protocol 4.1. A replica's
//! errors are sorted by what is to be done about them ([`ServerErrorKind`]); the text is the
//! server's own and is for people only.

use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// Longer packets that begin like an EOF packet are rows.
const EOF_MAX: usize = 8;
/// The server's text is kept up to here.
const TEXT_MAX: usize = 512;

/// What kind of packet answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// Done.
    Ok,
    /// The end of a list, or of the stream.
    Eof,
    /// It failed.
    Err(ServerError),
    /// Something else, for whoever asked to read.
    Other,
}

/// Reads the packet as a response to a command.
#[must_use]
pub fn read(payload: &[u8]) -> Response {
    match payload.first() {
        Some(&OK) => Response::Ok,
        Some(&EOF) if payload.len() <= EOF_MAX => Response::Eof,
        Some(&ERR) => Response::Err(ServerError::read(payload).unwrap_or_default()),
        _ => Response::Other,
    }
}

/// An error that the server reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// Its number; 0 where the packet could not be read.
    pub code: u16,
    /// Its SQLSTATE, five characters, or empty.
    pub state: String,
    /// What the server says, cut after 512 bytes.
    pub text: String,
}

/// What an error of the server means to a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerErrorKind {
    /// User or password are wrong, or the account may not log in from here (1045, 1698).
    AccessDenied,
    /// The account lacks a privilege (1044, 1142, 1227).
    NotPermitted,
    /// The position is not in the server's logs any more, or never was: a gap (1236).
    PositionGone,
    /// Another replica uses the same server id and has taken the stream over (4052 of MariaDB; MySQL
    /// says 1236 with a text that names the id or UUID).
    ServerIdTaken,
    /// The server has no binary log (1381).
    NoBinaryLog,
    /// Too many connections, or the account has used up its share (1040, 1203, 1226).
    TooManyConnections,
    /// The server is shutting down or has ended this connection (1053, 1927, 3169, 4031).
    Ended,
    /// There is no such database or table (1049, 1146).
    NoSuchTable,
    /// This host is blocked, or may not connect (1129, 1130).
    HostBlocked,
    /// Whatever else.
    Other,
}

impl ServerErrorKind {
    /// Its name, as in logs and counters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ServerErrorKind::AccessDenied => "access-denied",
            ServerErrorKind::NotPermitted => "not-permitted",
            ServerErrorKind::PositionGone => "position-gone",
            ServerErrorKind::ServerIdTaken => "server-id-taken",
            ServerErrorKind::NoBinaryLog => "no-binary-log",
            ServerErrorKind::TooManyConnections => "too-many-connections",
            ServerErrorKind::Ended => "ended",
            ServerErrorKind::NoSuchTable => "no-such-table",
            ServerErrorKind::HostBlocked => "host-blocked",
            ServerErrorKind::Other => "other",
        }
    }
}

impl ServerError {
    /// Reads an ERR packet.
    ///
    /// # Errors
    /// `Truncated`; `UnexpectedPacket` if it is none.
    pub fn read(payload: &[u8]) -> Result<ServerError, Refusal> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != ERR {
            return Err(Refusal::UnexpectedPacket);
        }
        let code = reader.u16()?;
        let mut state = String::new();
        // Before the capabilities are agreed on there is no SQLSTATE.
        if reader.rest().first() == Some(&b'#') {
            state = String::from_utf8_lossy(&reader.take(6)?[1..]).into_owned();
        }
        let text = &reader.rest()[..reader.rest().len().min(TEXT_MAX)];
        Ok(ServerError { code, state, text: String::from_utf8_lossy(text).into_owned() })
    }

    /// What it means to a replica.
    #[must_use]
    pub fn kind(&self) -> ServerErrorKind {
        match self.code {
            1045 | 1698 => ServerErrorKind::AccessDenied,
            1044 | 1142 | 1227 => ServerErrorKind::NotPermitted,
            1236 if self.text.contains("same server_") || self.text.contains("same server-") => {
                ServerErrorKind::ServerIdTaken
            }
            1236 => ServerErrorKind::PositionGone,
            4052 => ServerErrorKind::ServerIdTaken,
            1381 => ServerErrorKind::NoBinaryLog,
            1040 | 1203 | 1226 => ServerErrorKind::TooManyConnections,
            1053 | 1927 | 3169 | 4031 => ServerErrorKind::Ended,
            1049 | 1146 => ServerErrorKind::NoSuchTable,
            1129 | 1130 => ServerErrorKind::HostBlocked,
            _ => ServerErrorKind::Other,
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.kind().as_str(), self.text)
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_kinds() {
        let error = ServerError::read(b"\xff\xd4\x04#HY000Could not find GTID").expect("an error");
        assert_eq!((error.code, error.state.as_str()), (1236, "HY000"));
        assert_eq!(error.kind(), ServerErrorKind::PositionGone);
        let mysql = ServerError {
            text: "A replica with the same server_uuid/server_id as this replica".into(),
            ..error
        };
        assert_eq!(mysql.kind(), ServerErrorKind::ServerIdTaken);
        let early = ServerError::read(b"\xff\x6a\x04Host is not allowed").expect("an error");
        assert_eq!((early.kind(), early.state.as_str()), (ServerErrorKind::HostBlocked, ""));
        assert_eq!(read(b"\xff\x01"), Response::Err(ServerError::default()));
    }

    #[test]
    fn an_eof_is_short() {
        assert_eq!(read(&[0xfe, 0, 0, 2, 0]), Response::Eof);
        assert_eq!(read(&[0xfe; 12]), Response::Other);
        assert_eq!(read(b""), Response::Other);
    }
}
