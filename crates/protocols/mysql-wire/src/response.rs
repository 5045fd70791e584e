//! Responses of a server: OK, ERR and EOF packets, and the errors that concern a replica.
//!
//! Source: "OK_Packet", "ERR_Packet", "EOF_Packet" of the client/server protocol 4.1. Errors are classified by
//! the reaction that they require ([`ServerErrorKind`]). The text is the server's own and only for people.

use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

/// The first byte of an OK packet.
pub const OK: u8 = 0x00;
/// The first byte of more data for a login plugin.
pub const AUTH_MORE: u8 = 0x01;
/// The first byte of a request for a local file ("LOCAL INFILE Request").
pub const LOCAL_FILE: u8 = 0xfb;
/// The first byte of a switch of the login plugin.
pub const AUTH_SWITCH: u8 = 0xfe;
/// The first byte of an ERR packet.
pub const ERR: u8 = 0xff;
const EOF: u8 = 0xfe;
/// Longer packets with the first byte of an EOF packet are rows.
const EOF_MAX: usize = 8;
/// The maximum number of bytes kept of the server's text.
const TEXT_MAX: usize = 512;

/// The type of a response packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// The command succeeded.
    Ok,
    /// The end of a list, or of the stream.
    Eof,
    /// The command failed.
    Err(ServerError),
    /// Another packet, which the caller must decode.
    Other,
}

/// Classifies a packet as the response to a command.
#[must_use]
pub fn read(payload: &[u8]) -> Response {
    match payload.first() {
        Some(&OK) => Response::Ok,
        Some(&EOF) if payload.len() <= EOF_MAX => Response::Eof,
        Some(&ERR) => Response::Err(ServerError::read(payload).unwrap_or_default()),
        _ => Response::Other,
    }
}

/// An error reported by the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// The error number; 0 if the packet is invalid.
    pub code: u16,
    /// The SQLSTATE, five characters, or empty.
    pub state: String,
    /// The server's message, cut after 512 bytes.
    pub text: String,
}

/// The kind of an error, as far as a replica distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerErrorKind {
    /// The user name or password is wrong, or the account may not log in from this host (1045, 1698).
    AccessDenied,
    /// The account lacks a privilege (1044, 1142, 1227).
    NotPermitted,
    /// The position does not exist in the server's logs: a gap (1236).
    PositionGone,
    /// Another replica uses the same server id and has taken over the stream (4052 in MariaDB; 1236 in MySQL,
    /// with a text that contains the id or UUID).
    ServerIdTaken,
    /// The server has no binary log (1381).
    NoBinaryLog,
    /// Too many connections, or the account has reached its limit (1040, 1203, 1226).
    TooManyConnections,
    /// The server is shutting down or has ended this connection (1053, 1927, 3169, 4031).
    Ended,
    /// The database or table does not exist (1049, 1146).
    NoSuchTable,
    /// This host is blocked, or must not connect (1129, 1130).
    HostBlocked,
    /// Any other error.
    Other,
}

impl ServerErrorKind {
    /// The name of the kind in logs and metrics.
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

    /// Whether a new attempt fails in the same way until a setting or an account is changed.
    #[must_use]
    pub fn is_lasting(self) -> bool {
        match self {
            ServerErrorKind::AccessDenied
            | ServerErrorKind::NotPermitted
            | ServerErrorKind::NoBinaryLog
            | ServerErrorKind::NoSuchTable => true,
            ServerErrorKind::PositionGone
            | ServerErrorKind::ServerIdTaken
            | ServerErrorKind::TooManyConnections
            | ServerErrorKind::Ended
            | ServerErrorKind::HostBlocked
            | ServerErrorKind::Other => false,
        }
    }
}

impl ServerError {
    /// Decodes an ERR packet.
    ///
    /// # Errors
    /// `Truncated`; `UnexpectedPacket` if it is not an ERR packet.
    pub fn read(payload: &[u8]) -> Result<ServerError, Refusal> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != ERR {
            return Err(Refusal::UnexpectedPacket);
        }
        let code = reader.u16()?;
        let mut state = String::new();
        // Before the capabilities are negotiated there is no SQLSTATE.
        if reader.rest().first() == Some(&b'#') {
            state = String::from_utf8_lossy(&reader.take(6)?[1..]).into_owned();
        }
        let text = &reader.rest()[..reader.rest().len().min(TEXT_MAX)];
        Ok(ServerError { code, state, text: String::from_utf8_lossy(text).into_owned() })
    }

    /// The kind of this error.
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
