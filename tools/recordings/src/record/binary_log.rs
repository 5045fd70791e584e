//! The row changes in the binary log of the blog's database, read from its file.
//!
//! The server writes an event to the file before it confirms the commit. The file therefore
//! contains the rows of each confirmed statement. Not here: the decoding of events (the crate `mysql-replication`).

use super::super::recording::{RecordedEvent, RecordedRow};
use bytes::Bytes;
use harness::MariaDb;
use mysql_replication::Table;
use mysql_replication::event::{Event, EventBody, EventReader, HEADER_LEN, Row, Rows};
use mysql_replication::value::Value;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The bytes at the start of each log file.
const MAGIC_LEN: u64 = 4;
/// The maximum length of an event in bytes.
const EVENT_BYTES: usize = 64 << 20;
const ZERO_DATE: &str = "0000-00-00 00:00:00";

/// A reader of the binary log, with the position up to which it was read.
#[derive(Debug)]
pub struct BinaryLog {
    file: PathBuf,
    position: u64,
    reader: EventReader,
    tables: HashMap<u64, Table>,
}

impl BinaryLog {
    /// A reader that starts after the last change.
    ///
    /// # Errors
    /// A message, if the log cannot be read.
    pub fn open(database: &MariaDb) -> Result<BinaryLog, String> {
        let ask = |sql: &str| database.sql(sql).map_err(|error| error.to_string());
        let (base, status) = (ask("SELECT @@log_bin_basename")?, ask("SHOW MASTER STATUS")?);
        let name = status.split_whitespace().next().unwrap_or_default();
        let mut log = BinaryLog {
            file: Path::new(base.trim()).with_file_name(name),
            position: MAGIC_LEN,
            reader: EventReader::new(EVENT_BYTES),
            tables: HashMap::new(),
        };
        // The description of the format is the first event.
        log.events()?;
        Ok(log)
    }

    /// The row changes since the last call.
    ///
    /// # Errors
    /// A message, if a change cannot be read with all values.
    pub fn changes(&mut self) -> Result<Vec<RecordedEvent>, String> {
        let mut changes = Vec::new();
        for event in self.events()? {
            match event.body {
                EventBody::TableMap(map) => {
                    let table = map.table().map_err(|refusal| self.fault(&refusal))?;
                    self.tables.insert(map.table_id, table);
                }
                EventBody::Rows(rows) if !rows.is_empty() => {
                    let table = self.tables.get(&rows.table_id);
                    let table = table.ok_or_else(|| self.fault(&"rows of an unknown table"))?;
                    let read = row_changes(table, &rows, event.header.seconds);
                    changes.extend(read.map_err(|error| self.fault(&error))?);
                }
                EventBody::Query(query) if !is_bracket(&query.sql) => {
                    let sql = String::from_utf8_lossy(&query.sql).into_owned();
                    return Err(self.fault(&format!("a statement instead of rows: {sql}")));
                }
                _ => {}
            }
        }
        Ok(changes)
    }

    fn events(&mut self) -> Result<Vec<Event>, String> {
        let mut bytes = Vec::new();
        let mut read = || {
            let mut file = File::open(&self.file)?;
            file.seek(SeekFrom::Start(self.position))?;
            file.read_to_end(&mut bytes)
        };
        read().map_err(|error| self.fault(&error))?;
        let (mut rest, mut events) = (Bytes::from(bytes), Vec::new());
        while let Some(length) = event_length(&rest).filter(|length| *length <= rest.len()) {
            let bytes = rest.split_to(length);
            self.position += length as u64;
            let event = self.reader.read(&bytes).map_err(|(_, refusal)| self.fault(&refusal))?;
            events.push(event);
        }
        Ok(events)
    }

    fn fault(&self, what: &dyn std::fmt::Display) -> String {
        format!("{} before {}: {what}", self.file.display(), self.position)
    }
}

/// The length in the header of the next event.
fn event_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.get(..HEADER_LEN)?.get(9..13)?.first_chunk()?;
    // At least the header, so that the reader always proceeds.
    usize::try_from(u32::from_le_bytes(*length)).ok().map(|length| length.max(HEADER_LEN))
}

/// Whether a statement only begins or ends a transaction.
fn is_bracket(sql: &[u8]) -> bool {
    [b"BEGIN".as_slice(), b"COMMIT", b"ROLLBACK"].contains(&sql)
}

fn row_changes(table: &Table, rows: &Rows, seconds: u32) -> Result<Vec<RecordedEvent>, String> {
    let changes = rows.changes(table).map(|change| {
        let change = change.map_err(|refusal| refusal.to_string())?;
        let before = change.before.map(|row| named(table, &row)).transpose()?;
        let after = change.after.map(|row| named(table, &row)).transpose()?;
        Ok((table.name.to_string(), before, after, i64::from(seconds)))
    });
    changes.collect()
}

fn named(table: &Table, row: &Row<'_>) -> Result<RecordedRow, String> {
    let columns = table.columns.as_ref().map_err(|refusal| refusal.to_string())?;
    let value = |(column, value): (&mysql_replication::Column, &Option<Value<'_>>)| {
        let name = column.name.as_ref().map(ToString::to_string);
        let fault = || format!("{} of {} has no value", name.as_deref().unwrap_or("?"), table.name);
        let value = json(value.as_ref().ok_or_else(fault)?).ok_or_else(fault)?;
        Ok((name.clone().ok_or_else(fault)?, value))
    };
    columns.iter().zip(row.values()).map(value).collect()
}

/// A value as recordings have it: text, and null for NULL and for a date of zeros.
fn json(value: &Value<'_>) -> Option<Json> {
    if *value == Value::Null {
        return Some(Json::Null);
    }
    let text = value.tag_text().ok()?;
    let is_zero_date = matches!(value, Value::DateTime(_)) && text == ZERO_DATE;
    Some(if is_zero_date { Json::Null } else { Json::String(text.into_owned()) })
}
