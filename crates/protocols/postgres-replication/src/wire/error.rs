//! What the server says when it refuses something: a class, a code (SQLSTATE), a sentence.
//!
//! Texts are bounded. Source: PostgreSQL's manual, "Error and Notice Message Fields", "PostgreSQL Error
//! Codes". Not here: notices, which are passed over.

use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

const TEXT_BYTES_MAX: usize = 2000;

/// An error of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerError {
    /// Its code: five letters and digits.
    pub code: String,
    /// Its sentence, in the server's language.
    pub text: String,
    /// What it suggests, if anything.
    pub hint: String,
}

/// What an error means to whoever follows a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerErrorKind {
    /// The account or its password is wrong, or `pg_hba.conf` does not let it in.
    AccessDenied,
    /// The account may not do this.
    NotPermitted,
    /// There is no such database.
    NoSuchDatabase,
    /// A slot, publication, table or the like does not exist.
    NotThere,
    /// The slot is in use.
    InUse,
    /// It cannot be done as things are: the slot has lost its place, or `wal_level` is too low.
    NotInState,
    /// The server has no place left for another connection, slot or reader.
    Full,
    /// The server starts, stops, or has ended the connection.
    Away,
    /// Anything else.
    Other,
}

impl ServerErrorKind {
    /// Its name, as in logs.
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
}

impl ServerError {
    /// Reads the fields of an `ErrorResponse`.
    ///
    /// # Errors
    /// Why it cannot be read.
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
            // In the server's own encoding, before that is agreed on.
            *field = bounded(zero_ended(&mut reader)?);
        }
    }

    /// What it means.
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
