//! Sends a statement and reads its rows as text ("Simple Query").
//!
//! | frame | effect |
//! |---|---|
//! | `T` | the number of columns |
//! | `D` | a row |
//! | `C`, `I`, notices, settings | none |
//! | `E` | the error is stored |
//! | `Z` | done: the rows, or the error |
//!
//! Rows and bytes are limited. Several statements return the rows of the last one that has rows. Not here:
//! prepared statements and types; every value is text, or NULL.

use super::error::ServerError;
use super::frame::Frame;
use crate::Refusal;
use crate::reader::Reader;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::fmt;

const COLUMNS_MAX: u16 = 2000;

/// Encodes a statement.
///
/// # Errors
/// `BadText` if the statement contains a zero byte.
pub fn query(sql: &str) -> Result<Vec<u8>, Refusal> {
    let mut out = BytesMut::new();
    frontend::query(sql, &mut out).map_err(|_| Refusal::BadText)?;
    Ok(out.to_vec())
}

/// A text as an SQL literal.
#[must_use]
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}

/// A name as an SQL identifier.
#[must_use]
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Limits for a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// The maximum number of rows.
    pub rows: usize,
    /// The maximum size of all values together, in bytes.
    pub bytes: usize,
}

impl Default for QueryLimits {
    fn default() -> QueryLimits {
        QueryLimits { rows: 1_000_000, bytes: 64 << 20 }
    }
}

/// A row: a text for each column, or `None` for NULL.
pub type TextRow = Vec<Option<Vec<u8>>>;

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// The rows, in order.
    pub rows: Vec<TextRow>,
}

impl Rows {
    /// The text in the column with this index; `None` for NULL, or if there is no such row or column.
    #[must_use]
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        let value = self.rows.get(row)?.get(column)?.as_ref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }
}

/// The reason why a statement returned no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryRefused {
    /// The server reported an error; the connection remains usable.
    Server(ServerError),
    /// The result exceeds the limits. The rest of it has not been read, so the connection cannot be used any
    /// more.
    TooMuch,
    /// A frame is invalid; the connection cannot be used any more.
    Frame(Refusal),
}

impl QueryRefused {
    /// The name of the reason in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            QueryRefused::Server(error) => error.kind().as_str(),
            QueryRefused::TooMuch => "too-much",
            QueryRefused::Frame(refusal) => refusal.as_str(),
        }
    }

    /// Whether a new attempt fails in the same way until a setting or an account is changed.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            QueryRefused::Server(error) => error.kind().is_lasting(),
            QueryRefused::TooMuch | QueryRefused::Frame(_) => false,
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

/// Reads the result of one statement.
#[derive(Debug)]
pub struct Query {
    limits: QueryLimits,
    columns: Option<u16>,
    bytes: usize,
    rows: Rows,
    refused: Option<ServerError>,
}

impl Query {
    /// A reader for the result of a statement that was just sent.
    #[must_use]
    pub fn new(limits: QueryLimits) -> Query {
        Query { limits, columns: None, bytes: 0, rows: Rows::default(), refused: None }
    }

    /// Processes the next frame. Returns the rows when all have arrived, `None` before.
    ///
    /// # Errors
    /// The reason why there is no result.
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
