//! The table definition with which rows are decoded: its columns, and the known properties of each.
//!
//! The stream's table map always contains the column types. Names, signs, character sets, enum members and the
//! primary key are only sent if the server is configured so (`binlog_row_metadata`; the default is `NO_LOG` in
//! MariaDB and `MINIMAL` in MySQL). Missing properties are taken from the schema
//! ([`crate::schema::TableShape`]) if it matches ([`Table::of`]).
//!
//! Invariant: the stream takes precedence over the schema. If they contradict each other, the table was altered
//! in between, and its columns are refused.

use crate::column::Column;
use crate::schema::TableShape;
use mysql_wire::Refusal;
use std::sync::Arc;

/// A table as described by one table map of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The name of the database.
    pub schema: Arc<str>,
    /// The name of the table.
    pub name: Arc<str>,
    /// The columns, in order; or the reason why they cannot be decoded.
    pub columns: Result<Vec<Column>, Refusal>,
    /// The indices of the primary-key columns, if known; empty if there is no primary key.
    pub primary_key: Option<Vec<usize>>,
}

impl Table {
    /// Completes the table from the schema. If stream and schema contradict each other, the columns are refused
    /// with `SchemaMismatch`.
    #[must_use]
    pub fn of(mut self, shape: Option<&TableShape>) -> Table {
        let (Some(shape), Ok(columns)) = (shape, &mut self.columns) else { return self };
        match shape.fill(columns) {
            Ok(()) => self.primary_key = self.primary_key.or_else(|| Some(shape.primary_key())),
            Err(refusal) => self.columns = Err(refusal),
        }
        self
    }

    /// The index of the column with this name, ignoring case; `None` if there is none, or if the names are
    /// unknown.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        let columns = self.columns.as_ref().ok()?;
        let is_it = |column: &Column| {
            let own = column.name.as_deref();
            own.is_some_and(|own| own == name || own.to_lowercase() == name.to_lowercase())
        };
        columns.iter().position(is_it)
    }
}
