//! Sends a statement and reads its rows as text ("COM_QUERY", "Text Resultset").
//!
//! | state | packet | effect |
//! |---|---|---|
//! | `Began` | OK | done, no rows |
//! | `Began` | the number of columns | `Columns` |
//! | `Columns` | the definition of a column | none |
//! | `Columns` | EOF | `Rows` |
//! | `Rows` | a row | the row is stored |
//! | `Rows` | EOF | done |
//!
//! Rows and bytes are limited. A request for a local file is refused. Not here: several statements in one,
//! prepared statements, and types; every value is text, or NULL.

use super::commands::{COM_PING, COM_QUERY, COM_QUIT};
use super::packet::{Packet, put_packet};
use super::response::{self, LOCAL_FILE, Response, ServerError};
use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

const COLUMNS_MAX: u64 = 4096;
const NULL: u8 = 0xfb;

/// Encodes a statement as packets. It must not be longer than the server's `max_allowed_packet`.
#[must_use]
pub fn query(sql: &str) -> Vec<u8> {
    command(COM_QUERY, sql.as_bytes())
}

/// The packet that checks the connection; the server answers OK.
#[must_use]
pub fn ping() -> Vec<u8> {
    command(COM_PING, b"")
}

/// The packet that ends the connection; the server does not answer.
#[must_use]
pub fn quit() -> Vec<u8> {
    command(COM_QUIT, b"")
}

/// The packet of a command: its code and its payload.
#[must_use]
pub fn command(code: u8, payload: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(payload.len() + 1);
    whole.push(code);
    whole.extend_from_slice(payload);
    let mut out = Vec::with_capacity(whole.len() + 4);
    put_packet(&mut out, 0, &whole);
    out
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
        QueryLimits { rows: 100_000, bytes: 64 << 20 }
    }
}

/// A row: a text for each column, or `None` for NULL.
pub type TextRow = Vec<Option<Vec<u8>>>;

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// The names of the columns.
    pub columns: Vec<String>,
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

    /// The value for a name in rows of names and values (`SHOW STATUS`, `SHOW VARIABLES`).
    #[must_use]
    pub fn named(&self, name: &str) -> Option<String> {
        let is_it =
            |row: &usize| self.text(*row, 0).is_some_and(|own| own.eq_ignore_ascii_case(name));
        let row = (0..self.rows.len()).find(is_it)?;
        self.text(row, 1)
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
    /// A packet is invalid; the connection cannot be used any more.
    Packet(Refusal),
}

impl QueryRefused {
    /// The name of the reason in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            QueryRefused::Server(error) => error.kind().as_str(),
            QueryRefused::TooMuch => "too-much",
            QueryRefused::Packet(refusal) => refusal.as_str(),
        }
    }

    /// Whether a new attempt fails in the same way until a setting or an account is changed.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            QueryRefused::Server(error) => error.kind().is_lasting(),
            QueryRefused::TooMuch | QueryRefused::Packet(_) => false,
        }
    }
}

impl fmt::Display for QueryRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryRefused::Server(error) => error.fmt(f),
            QueryRefused::TooMuch => f.write_str("the result is over its limits"),
            QueryRefused::Packet(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for QueryRefused {}

impl From<Refusal> for QueryRefused {
    fn from(refusal: Refusal) -> QueryRefused {
        QueryRefused::Packet(refusal)
    }
}

/// Reads the result of one statement.
#[derive(Debug)]
pub struct Query {
    limits: QueryLimits,
    state: State,
    bytes: usize,
    rows: Rows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Began,
    Columns { left: u64 },
    Rows,
}

impl Query {
    /// A reader for the result of a statement that was just sent.
    #[must_use]
    pub fn new(limits: QueryLimits) -> Query {
        Query { limits, state: State::Began, bytes: 0, rows: Rows::default() }
    }

    /// Processes the next packet. Returns the rows when all have arrived, `None` before.
    ///
    /// # Errors
    /// The reason why there is no result.
    pub fn read(&mut self, packet: &Packet) -> Result<Option<Rows>, QueryRefused> {
        let payload = packet.whole()?;
        let response = response::read(payload);
        match (self.state, response) {
            (_, Response::Err(error)) => return Err(QueryRefused::Server(error)),
            (State::Began, Response::Ok) => return Ok(Some(std::mem::take(&mut self.rows))),
            (State::Began, _) => self.began(payload)?,
            (State::Columns { left: 0 }, Response::Eof) => self.state = State::Rows,
            (State::Columns { left }, _) if left > 0 => {
                self.rows.columns.push(column_name(payload)?);
                self.state = State::Columns { left: left - 1 };
            }
            (State::Columns { .. }, _) => return Err(Refusal::UnexpectedPacket.into()),
            (State::Rows, Response::Eof) => return Ok(Some(std::mem::take(&mut self.rows))),
            (State::Rows, _) => self.row(payload)?,
        }
        Ok(None)
    }

    fn began(&mut self, payload: &[u8]) -> Result<(), QueryRefused> {
        if payload.first() == Some(&LOCAL_FILE) {
            return Err(Refusal::UnexpectedPacket.into());
        }
        let left = Reader::new(payload).lenenc()?;
        if left == 0 || left > COLUMNS_MAX {
            return Err(Refusal::BadLength.into());
        }
        self.state = State::Columns { left };
        Ok(())
    }

    fn row(&mut self, payload: &[u8]) -> Result<(), QueryRefused> {
        self.bytes = self.bytes.saturating_add(payload.len());
        if self.rows.rows.len() >= self.limits.rows || self.bytes > self.limits.bytes {
            return Err(QueryRefused::TooMuch);
        }
        let mut reader = Reader::new(payload);
        let mut row = Vec::with_capacity(self.rows.columns.len());
        for _ in 0..self.rows.columns.len() {
            if reader.rest().first() == Some(&NULL) {
                reader.take(1)?;
                row.push(None);
            } else {
                row.push(Some(reader.lenenc_bytes()?.to_vec()));
            }
        }
        if !reader.is_empty() {
            return Err(Refusal::LeftOver.into());
        }
        self.rows.rows.push(row);
        Ok(())
    }
}

/// The name in "Protocol::ColumnDefinition41": catalogue, schema, table, original table, name.
fn column_name(payload: &[u8]) -> Result<String, Refusal> {
    let mut reader = Reader::new(payload);
    for _ in 0..4 {
        reader.lenenc_bytes()?;
    }
    Ok(String::from_utf8_lossy(reader.lenenc_bytes()?).into_owned())
}
