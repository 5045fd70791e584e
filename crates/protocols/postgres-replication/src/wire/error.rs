//! Errors of the server: severity, code (SQLSTATE) and message.
//!
//! Texts are limited in length. Source: PostgreSQL's manual, "Error and Notice Message Fields", "PostgreSQL
//! Error Codes". Notices have the same fields; `stream::error` decides which of them count.

use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

const TEXT_BYTES_MAX: usize = 2000;

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// The SQLSTATE code: five letters and digits.
    pub code: String,
    /// The message, in the server's language.
    pub text: String,
    /// The hint; empty if there is none.
    pub hint: String,
}

/// The kind of an error, as far as a reader of the stream distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerErrorKind {
    /// The user name or password is wrong, or `pg_hba.conf` rejects the connection.
    AccessDenied,
    /// The role lacks a privilege.
    NotPermitted,
    /// The database does not exist.
    NoSuchDatabase,
    /// A slot, publication, table or other object does not exist.
    NotThere,
    /// Another session uses the slot.
    InUse,
    /// The state of the server does not allow it: the slot has lost its position, or `wal_level` is too low.
    NotInState,
    /// The server has reached its limit of connections, slots or WAL senders.
    Full,
    /// The server is starting or stopping, or has closed the connection.
    Away,
    /// Any other error.
    Other,
}

impl ServerErrorKind {
    /// The name of the kind in logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ServerErrorKind::AccessDenied => "access-denied",
            ServerErrorKind::NotPermitted => "not-permitted",
            ServerErrorKind::NoSuchDatabase => "no-such-database",
            ServerErrorKind::NotThere => "not-there",
            ServerErrorKind::InUse => "in-use",
            ServerErrorKind::NotInState => "not-in-state",
            ServerErrorKind::Full => "server-full",
            ServerErrorKind::Away => "server-away",
            ServerErrorKind::Other => "server-error",
        }
    }

    /// Whether a new attempt fails in the same way until a setting or an account is changed.
    #[must_use]
    pub fn is_lasting(self) -> bool {
        match self {
            ServerErrorKind::AccessDenied
            | ServerErrorKind::NotPermitted
            | ServerErrorKind::NoSuchDatabase => true,
            ServerErrorKind::NotThere
            | ServerErrorKind::InUse
            | ServerErrorKind::NotInState
            | ServerErrorKind::Full
            | ServerErrorKind::Away
            | ServerErrorKind::Other => false,
        }
    }
}

impl ServerError {
    /// Decodes the fields of an `ErrorResponse`.
    ///
    /// # Errors
    /// The message is invalid.
    pub fn read(payload: &[u8]) -> Result<ServerError, Refusal> {
        let mut error = ServerError::default();
        let mut reader = Reader::new(payload);
        loop {
            let field = match reader.u8()? {
                0 => return Ok(error),
                b'C' => &mut error.code,
                b'M' => &mut error.text,
                b'H' => &mut error.hint,
                _ => {
                    zero_ended(&mut reader)?;
                    continue;
                }
            };
            // Before the encoding is negotiated, the text has the server's own encoding.
            *field = bounded(zero_ended(&mut reader)?);
        }
    }

    /// The kind of this error, from its code.
    #[must_use]
    pub fn kind(&self) -> ServerErrorKind {
        match self.code.as_str() {
            "28000" | "28P01" => ServerErrorKind::AccessDenied,
            "42501" => ServerErrorKind::NotPermitted,
            "3D000" => ServerErrorKind::NoSuchDatabase,
            "42704" | "42P01" => ServerErrorKind::NotThere,
            "55006" => ServerErrorKind::InUse,
            "55000" => ServerErrorKind::NotInState,
            code if code.starts_with("53") => ServerErrorKind::Full,
            code if code.starts_with("57P") => ServerErrorKind::Away,
            _ => ServerErrorKind::Other,
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.text, self.code)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, ": {}", self.hint) }
    }
}

impl std::error::Error for ServerError {}

fn zero_ended<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Refusal> {
    let end = reader.rest().iter().position(|byte| *byte == 0).ok_or(Refusal::Truncated)?;
    let taken = reader.take(end)?;
    reader.take(1)?;
    Ok(taken)
}

fn bounded(text: &[u8]) -> String {
    let text = text.get(..TEXT_BYTES_MAX).unwrap_or(text);
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_in_any_order() {
        let payload = b"SFATAL\0C28P01\0Mno password\0Hask\0\0";
        let error = ServerError::read(payload).expect("an error");
        assert_eq!(error.kind(), ServerErrorKind::AccessDenied);
        assert_eq!(error.to_string(), "no password (SQLSTATE 28P01): ask");
        assert_eq!(ServerError::read(b"Cx"), Err(Refusal::Truncated));
        assert_eq!(ServerError::read(b""), Err(Refusal::Truncated));
    }
}
