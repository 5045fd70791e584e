//! A statement and its rows as text ("Simple Query").
//!
//! | comes | then |
//! |---|---|
//! | `T` | the columns' number |
//! | `D` | a row |
//! | `C`, `I`, notices, settings | |
//! | `E` | the refusal is kept |
//! | `Z` | done: the rows, or the refusal |
//!
//! Rows and bytes are bounded. Several statements give the rows of the last one that has any. Not
//! here: prepared statements, types: every value is text, or NULL.

use super::error::ServerError;
use super::frame::Frame;
use crate::Refusal;
use crate::reader::Reader;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::fmt;

const COLUMNS_MAX: u16 = 2000;

/// The bytes of a statement.
///
/// # Errors
/// `BadText` where it has a zero byte in it.
pub fn query(sql: &str) -> Result<Vec<u8>, Refusal> {
    let mut out = BytesMut::new();
    frontend::query(sql, &mut out).map_err(|_| Refusal::BadText)?;
    Ok(out.to_vec())
}

/// A text as a literal of SQL.
#[must_use]
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// A name as an identifier of SQL.
#[must_use]
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// How much of a result is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Rows.
    pub rows: usize,
    /// Bytes of all values together.
    pub bytes: usize,
}

impl Default for QueryLimits {
    fn default() -> QueryLimits {
        QueryLimits { rows: 1_000_000, bytes: 64 << 20 }
    }
}

/// A row: a text for each column, or none for NULL.
pub type TextRow = Vec<Option<Vec<u8>>>;

/// What a statement gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// Its rows.
    pub rows: Vec<TextRow>,
}

impl Rows {
    /// The text in a row, by the column's place; none for NULL, or where there is no such place.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.rows.get(row)?.get(column)?.as_ref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

/// Why a statement gave no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryRefused {
    /// The server says no; the connection is good.
    Server(ServerError),
    /// More rows or bytes than the limits: the rest is still to come, so the connection is of no use.
    TooMuch,
    /// A frame that cannot be read: the connection is of no use.
    Frame(Refusal),
}

impl QueryRefused {
    /// Its name, as in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            QueryRefused::Server(error) => error.kind().as_str(),
            QueryRefused::TooMuch => "too-much",
            QueryRefused::Frame(refusal) => refusal.as_str(),
        }
    }
}

impl fmt::Display for QueryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryRefused::Server(error) => error.fmt(f),
            QueryRefused::TooMuch => f.write_str("the result is over its limits"),
            QueryRefused::Frame(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for QueryRefused {}

impl From<Refusal> for QueryRefused {
    fn from(refusal: Refusal) -> QueryRefused {
        QueryRefused::Frame(refusal)
    }
}

/// The reading of one statement's result.
#[derive(Debug)]
pub struct Query {
    limits: QueryLimits,
    columns: Option<u16>,
    bytes: usize,
    rows: Rows,
    refused: Option<ServerError>,
}

impl Query {
    /// For a statement that was just sent.
    #[must_use]
    pub fn new(limits: QueryLimits) -> Query {
        Query { limits, columns: None, bytes: 0, rows: Rows::default(), refused: None }
    }

    /// Takes the next frame; the rows once all are in.
    ///
    /// # Errors
    /// Why there are none.
    pub fn read(&mut self, frame: &Frame) -> Result<Option<Rows>, QueryRefused> {
        let payload = frame.whole()?;
        match frame.tag {
            b'T' => {
                let count = Reader::new(payload).u16()?;
                if count > COLUMNS_MAX {
                    return Err(Refusal::TooManyColumns.into());
                }
                self.columns = Some(count);
                self.rows.rows.clear();
            }
            b'D' => self.row(payload)?,
            b'C' | b'I' | b'N' | b'S' | b'A' => {}
            b'E' => self.refused = Some(ServerError::read(payload)?),
            b'Z' => {
                return match self.refused.take() {
                    Some(error) => Err(QueryRefused::Server(error)),
                    None => Ok(Some(std::mem::take(&mut self.rows))),
                };
            }
            _ => return Err(Refusal::UnexpectedMessage.into()),
        }
        Ok(None)
    }

    fn row(&mut self, payload: &[u8]) -> Result<(), QueryRefused> {
        self.bytes = self.bytes.saturating_add(payload.len());
        if self.rows.rows.len() >= self.limits.rows || self.bytes > self.limits.bytes {
            return Err(QueryRefused::TooMuch);
        }
        let mut reader = Reader::new(payload);
        let count = reader.u16()?;
        if self.columns != Some(count) {
            return Err(Refusal::ColumnMismatch.into());
        }
        let mut row = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let is_null = reader.rest().first_chunk::<4>() == Some(&[0xff; 4]);
            row.push(if is_null {
                reader.take(4)?;
                None
            } else {
                Some(reader.counted()?.to_vec())
            });
        }
        reader.end()?;
        self.rows.rows.push(row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), " E'a\\\\''b'");
    }
}
