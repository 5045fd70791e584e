//! Changed rows: their values before and after.
//!
//! Not here: how they are read from the database's stream.

use crate::schema::{Columns, SqlSchema, TableId};
use std::borrow::Cow;

/// The value of a column in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlValue<'a> {
    /// SQL NULL.
    Null,
    /// Any other value, as text in the form in which the database writes it.
    Text(Cow<'a, str>),
    /// A value that is not known: the stream left it out, or it is not text.
    Unknown,
}

/// The values of a row, in the order of the table's columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlRow<'a>(Vec<SqlValue<'a>>);

/// A row that was inserted, updated or deleted.
#[derive(Debug, Clone)]
pub struct RowEvent<'a> {
    /// The table of the row.
    pub table: TableId,
    /// The row before the change; `None` if it was inserted.
    pub before: Option<SqlRow<'a>>,
    /// The row after the change; `None` if it was deleted.
    pub after: Option<SqlRow<'a>>,
    /// The columns that may have changed: all for an inserted or deleted row.
    pub changed: Columns,
}

impl SqlValue<'_> {
    /// The value, independent of what it was read from.
    #[must_use]
    pub fn into_owned(self) -> SqlValue<'static> {
        match self {
            SqlValue::Null => SqlValue::Null,
            SqlValue::Text(text) => SqlValue::Text(text.into_owned().into()),
            SqlValue::Unknown => SqlValue::Unknown,
        }
    }
}

impl<'a> SqlRow<'a> {
    /// A row with these values. Columns without a value are unknown.
    #[must_use]
    pub fn new(values: Vec<SqlValue<'a>>) -> SqlRow<'a> {
        SqlRow(values)
    }

    /// The value of a column.
    #[must_use]
    pub fn get(&self, column: u16) -> &SqlValue<'a> {
        self.0.get(usize::from(column)).unwrap_or(&SqlValue::Unknown)
    }

    /// The number of values.
    pub(crate) fn len(&self) -> u16 {
        u16::try_from(self.0.len()).unwrap_or(u16::MAX)
    }

    /// The row, independent of what it was read from.
    #[must_use]
    pub fn into_owned(self) -> SqlRow<'static> {
        SqlRow(self.0.into_iter().map(SqlValue::into_owned).collect())
    }
}

impl<'a> RowEvent<'a> {
    /// A changed row of a table.
    #[must_use]
    pub fn new(
        schema: &SqlSchema,
        table: TableId,
        before: Option<SqlRow<'a>>,
        after: Option<SqlRow<'a>>,
    ) -> RowEvent<'a> {
        let changed = match (&before, &after) {
            (Some(before), Some(after)) => changed(schema, table, before, after),
            _ => Columns::ALL,
        };
        RowEvent { table, before, after, changed }
    }

    /// The row before and the row after, as far as they exist.
    pub fn images(&self) -> impl Iterator<Item = &SqlRow<'a>> {
        self.before.iter().chain(&self.after)
    }
}

fn changed(schema: &SqlSchema, table: TableId, before: &SqlRow<'_>, after: &SqlRow<'_>) -> Columns {
    let mut changed = Columns::NONE;
    let (mut is_any, mut generated) = (false, Columns::NONE);
    for (at, column) in (0_u16..).zip(&schema.table(table).columns) {
        let is_same = before.get(at) == after.get(at) && *before.get(at) != SqlValue::Unknown;
        if column.is_generated {
            generated.insert(at.into());
        } else if !is_same {
            is_any = true;
            changed.insert(at.into());
        }
    }
    // A generated column follows others, and the stream need not have it.
    if is_any {
        changed.extend(generated);
    }
    changed
}
