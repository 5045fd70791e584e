//! Changed rows: their values before and after.
//!
//! Not here: how they are read from the database's stream.

use crate::schema::{Columns, SqlSchema, TableId};
use crate::value_text::{RowForms, ValueText};
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
pub struct SqlRow<'a> {
    values: Vec<SqlValue<'a>>,
    forms: RowForms,
}

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
        SqlRow { values, forms: RowForms::default() }
    }

    /// The value of a column.
    #[must_use]
    pub fn get(&self, column: u16) -> &SqlValue<'a> {
        self.at(usize::from(column))
    }

    fn at(&self, column: usize) -> &SqlValue<'a> {
        self.values.get(column).unwrap_or(&SqlValue::Unknown)
    }

    /// A text of this row in a column, for comparisons.
    pub(crate) fn text<'r>(&'r self, column: u16, text: &'r str) -> ValueText<'r> {
        self.forms.text(self.values.len(), column, text)
    }

    /// The number of values.
    pub(crate) fn len(&self) -> u16 {
        u16::try_from(self.values.len()).unwrap_or(u16::MAX)
    }

    /// The row without its texts of more than `bytes` bytes, which are unknown in it.
    #[must_use]
    pub fn without_long_texts(&self, bytes: usize) -> SqlRow<'static> {
        let short = |value: &SqlValue<'a>| match value {
            SqlValue::Text(text) if text.len() > bytes => SqlValue::Unknown,
            value => value.clone().into_owned(),
        };
        SqlRow::new(self.values.iter().map(short).collect())
    }

    /// The memory for the values, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let texts = self.values.iter().map(|value| match value {
            SqlValue::Text(text) => text.len(),
            SqlValue::Null | SqlValue::Unknown => 0,
        });
        self.values.len() * size_of::<SqlValue<'a>>() + texts.sum::<usize>()
    }

    /// The row, independent of what it was read from.
    #[must_use]
    pub fn into_owned(self) -> SqlRow<'static> {
        SqlRow::new(self.values.into_iter().map(SqlValue::into_owned).collect())
    }
}

/// A transaction that a render has committed, and that its statements after it have seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTransaction {
    /// The identifier of the transaction, as the database's log has it (GTID).
    pub id: Box<str>,
    /// The number of statements that were sent before it was seen to be committed.
    pub after: usize,
}

/// A change in a database.
#[derive(Debug, Clone)]
pub enum TableChange {
    /// One row changed.
    Row(RowEvent<'static>),
    /// Any row of a table may have changed: it was emptied or redefined, or the rows are not known.
    Table(TableId),
    /// Any row of any table may have changed.
    Everything,
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
            (Some(before), Some(after)) => {
                let is_same = |at| {
                    let (before, after) = (before.at(at), after.at(at));
                    before == after && *before != SqlValue::Unknown
                };
                schema.table(table).changed(|at| !is_same(at))
            }
            _ => Columns::ALL,
        };
        RowEvent { table, before, after, changed }
    }

    /// This change without texts of more than `bytes` bytes, which are unknown in it: it touches at least
    /// what this one touches.
    #[must_use]
    pub fn without_long_texts(&self, bytes: usize) -> RowEvent<'static> {
        let short =
            |row: &Option<SqlRow<'a>>| row.as_ref().map(|row| row.without_long_texts(bytes));
        RowEvent {
            table: self.table,
            before: short(&self.before),
            after: short(&self.after),
            changed: self.changed,
        }
    }

    /// The row before and the row after, as far as they exist.
    pub fn images(&self) -> impl Iterator<Item = &SqlRow<'a>> {
        self.before.iter().chain(&self.after)
    }
}
