//! A recording: statements of pages, changes of rows, and the pages that really changed.
//!
//! The file is JSON, compressed by gzip or not. Not here: what footprints make of it, and how a recording is made.

use flate2::read::GzDecoder;
use footprint::schema::{SqlColumn, SqlSchema, TableId};
use footprint::{RowEvent, SqlRow, SqlValue};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// A column: its name, key, type and collation.
pub type RecordedColumn = (String, String, String, Option<String>);
/// A row, by the names of its columns.
pub type RecordedRow = BTreeMap<String, Json>;
/// A changed row: table, row before, row after, second.
pub type RecordedEvent = (String, Option<RecordedRow>, Option<RecordedRow>, i64);

/// A recording of an application.
#[derive(Debug, Deserialize, Serialize)]
pub struct Recording {
    /// The application: `wp` or `mw`, or another without a profile.
    #[serde(default)]
    pub app: String,
    /// The paths of the pages.
    pub urls: Vec<String>,
    /// For each table its columns: name, key, type and collation.
    pub schema: BTreeMap<String, Vec<RecordedColumn>>,
    /// For each table its rows at the start.
    pub initial: BTreeMap<String, Vec<Vec<Json>>>,
    /// The texts of all statements.
    #[serde(rename = "stmts")]
    pub statements: Vec<String>,
    /// For each state and page what was seen.
    #[serde(rename = "snaps")]
    pub states: Vec<BTreeMap<String, RecordedPage>>,
    /// The changes, in order.
    pub changes: Vec<RecordedChange>,
}

/// A page as it was seen in a state.
#[derive(Debug, Deserialize, Serialize)]
pub struct RecordedPage {
    /// The statements of its render, by their position.
    #[serde(rename = "s")]
    pub statements: Vec<usize>,
    /// The statements after its output.
    #[serde(rename = "post", default)]
    pub late_statements: Vec<usize>,
    /// The status code of the response.
    #[serde(default)]
    pub status: u16,
    /// The value of `Location`.
    #[serde(rename = "loc", default)]
    pub location: String,
    /// A hash of the response. It differs if the page changed.
    #[serde(default)]
    pub hash: String,
    /// The length of the content in bytes.
    #[serde(rename = "len", default)]
    pub length: usize,
    /// The rows that the visit itself changed.
    #[serde(rename = "ev", default)]
    pub events: Vec<RecordedEvent>,
}

/// A change, with the rows that it changed.
#[derive(Debug, Deserialize, Serialize)]
pub struct RecordedChange {
    /// A description for people.
    pub name: String,
    /// The state before the change.
    pub before: usize,
    /// The state after the change, if it was seen.
    #[serde(default)]
    pub after: Option<usize>,
    /// The changed rows: table, row before, row after, second.
    pub events: Vec<RecordedEvent>,
    /// The pages whose content changed.
    pub changed: Vec<Json>,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// A message with the file, if it cannot be read or has another format.
    pub fn read(file: &Path) -> Result<Recording, String> {
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        serde_json::from_slice(&read_file(file)?).map_err(|error| fault(&error))
    }

    /// The tables with their columns.
    #[must_use]
    pub fn schema(&self) -> SqlSchema {
        let mut schema = SqlSchema::new("recorded");
        for (table, columns) in &self.schema {
            let column = |(name, key, kind, collation): &RecordedColumn| {
                SqlColumn::new(name, kind, collation.as_deref(), key)
            };
            schema.add(table, columns.iter().map(column).collect());
        }
        schema
    }

    /// The page that a change names, by its path or its position.
    #[must_use]
    pub fn url<'r>(&'r self, page: &'r Json) -> &'r str {
        let position = page.as_u64().and_then(|at| usize::try_from(at).ok());
        match (page.as_str(), position) {
            (Some(path), _) => path,
            (None, Some(at)) => self.urls.get(at).map_or("", String::as_str),
            (None, None) => "",
        }
    }
}

/// The content of a file, without its compression.
///
/// # Errors
/// A message with the file, if it cannot be read.
pub fn read_file(file: &Path) -> Result<Vec<u8>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", file.display());
    let bytes = std::fs::read(file).map_err(fault)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut content = Vec::new();
    GzDecoder::new(bytes.as_slice()).read_to_end(&mut content).map_err(fault)?;
    Ok(content)
}

impl RecordedChange {
    /// The changed rows, as events. Tables that the schema does not have are left out.
    #[must_use]
    pub fn row_events(&self, schema: &SqlSchema) -> Vec<(RowEvent<'static>, i64)> {
        let event = |(table, before, after, second): &RecordedEvent| {
            let table = schema.table_id(table)?;
            let row =
                |row: &Option<RecordedRow>| row.as_ref().map(|row| named_row(schema, table, row));
            Some((RowEvent::new(schema, table, row(before), row(after)), *second))
        };
        self.events.iter().filter_map(event).collect()
    }
}

fn named_row(schema: &SqlSchema, table: TableId, row: &RecordedRow) -> SqlRow<'static> {
    let columns = &schema.table(table).columns;
    let value = |column: &SqlColumn| {
        row.get(&column.name).map_or(SqlValue::Unknown, |json| value(column, json))
    };
    SqlRow::new(columns.iter().map(value).collect())
}

/// The row of a table whose values are in the order of its columns.
#[must_use]
pub fn positional_row(schema: &SqlSchema, table: TableId, row: &[Json]) -> SqlRow<'static> {
    let columns = &schema.table(table).columns;
    SqlRow::new(columns.iter().zip(row).map(|(column, json)| value(column, json)).collect())
}

/// The recorder writes a date of zeros as null.
fn value(column: &SqlColumn, json: &Json) -> SqlValue<'static> {
    match json {
        Json::Null if column.kind == footprint::schema::SqlColumnKind::Moment => {
            SqlValue::Text("0000-00-00 00:00:00".into())
        }
        Json::Null => SqlValue::Null,
        Json::String(text) => SqlValue::Text(text.clone().into()),
        other => SqlValue::Text(other.to_string().into()),
    }
}
