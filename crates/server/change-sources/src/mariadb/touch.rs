//! Converts a transaction to what it touches: the tags of its rows and tables.
//!
//! One transaction is one change. Rolled-back changes count as if they were committed: servers log
//! them only if a non-transactional table may be among the changed ones. A write in statement
//! format touches every page, because its triggers may have changed any table. Not here: the store,
//! the stream.

use super::schema::Shapes;
use change_feed::{Cell, Feed, RequiredChanges, RowImages, RowKind, TouchedTags};
use mysql_replication::event::{ColumnChange, Row, RowChange};
use mysql_replication::schema::TableShape;
use mysql_replication::{
    Change, ChangeScope, FallbackReason, Interest, NoText, Table, TableRows, Watch,
};
use std::cell::RefCell;
use std::sync::Arc;

/// The followed part of a database: its name, its rules with the schema applied, its table shapes.
#[derive(Default)]
pub struct Tables {
    name: String,
    feed: Feed,
    shapes: Shapes,
}

/// Whether the schema has to be read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definitions {
    /// The schema may have changed.
    Changed,
    /// The schema is unchanged.
    Same,
}

impl Tables {
    /// Combines a database's name, rules and table shapes.
    pub fn new(name: String, feed: Feed, shapes: Shapes) -> Tables {
        Tables { name, feed, shapes }
    }

    /// Adds what a change touches to `touched`.
    pub fn touch(&self, change: &Change, touched: &mut TouchedTags) {
        match &change.what {
            ChangeScope::Rows(rows) if self.is_own(&rows.table.schema) => self.rows(rows, touched),
            ChangeScope::Table { schema, why: FallbackReason::Statement, .. }
                if self.is_own(schema) =>
            {
                touched.add_everything();
            }
            ChangeScope::Table { schema, name, .. } if self.is_own(schema) => {
                self.feed.table(name, touched);
            }
            ChangeScope::Schema { schema, .. } if self.is_own(schema) => touched.add_everything(),
            ChangeScope::Everything(_) => touched.add_everything(),
            ChangeScope::Rows(_) | ChangeScope::Table { .. } | ChangeScope::Schema { .. } => {}
        }
    }

    fn rows(&self, rows: &TableRows, touched: &mut TouchedTags) {
        let places = Places { table: &rows.table, found: RefCell::default() };
        for change in rows.changes() {
            match change {
                Ok(change) => {
                    let images = Images { change: &change, places: &places };
                    self.feed.row(&rows.table.name, &images, touched);
                }
                Err(_) => self.feed.table(&rows.table.name, touched),
            }
            if touched.is_everything() {
                return;
            }
        }
    }

    fn is_own(&self, schema: &str) -> bool {
        schema.eq_ignore_ascii_case(&self.name)
    }
}

/// Returns whether a change concerns the definition of tables.
pub fn definitions(change: &Change) -> Definitions {
    match &change.what {
        ChangeScope::Table { why: FallbackReason::Defined, .. }
        | ChangeScope::Schema { .. }
        | ChangeScope::Everything(_) => Definitions::Changed,
        ChangeScope::Table { .. } | ChangeScope::Rows(_) => Definitions::Same,
    }
}

impl Watch for Tables {
    fn interest(&mut self, schema: &str, table: &str) -> Interest {
        if !self.is_own(schema) {
            return Interest::None;
        }
        match self.feed.wanted(table) {
            RequiredChanges::Nothing => Interest::None,
            RequiredChanges::Table => Interest::Table,
            RequiredChanges::Rows => Interest::Rows,
        }
    }

    fn shape(&mut self, schema: &str, table: &str) -> Option<Arc<TableShape>> {
        let shape = self.is_own(schema).then(|| self.shapes.get(&table.to_lowercase()));
        shape.flatten().cloned()
    }
}

/// The positions of a table's columns, looked up once for all rows of an event.
struct Places<'a> {
    table: &'a Table,
    found: RefCell<Vec<(String, Option<usize>)>>,
}

impl Places<'_> {
    fn of(&self, column: &str) -> Option<usize> {
        let mut found = self.found.borrow_mut();
        if let Some((_, place)) = found.iter().find(|(name, _)| name == column) {
            return *place;
        }
        let place = self.table.column(column);
        found.push((column.to_owned(), place));
        place
    }
}

/// A row of the stream, accessible by column names.
struct Images<'a> {
    change: &'a RowChange<'a>,
    places: &'a Places<'a>,
}

impl Images<'_> {
    fn cell<'r>(&self, row: Option<&'r Row<'_>>, column: &str) -> Cell<'r> {
        let (Some(row), Some(place)) = (row, self.places.of(column)) else {
            return Cell::Unknown;
        };
        let Some(value) = row.get(place) else { return Cell::LeftOut };
        match value.tag_text() {
            Ok(text) => Cell::Text(text),
            Err(NoText::Null) => Cell::Null,
            Err(_) => Cell::Unknown,
        }
    }
}

impl RowImages for Images<'_> {
    fn kind(&self) -> RowKind {
        match (&self.change.before, &self.change.after) {
            (None, _) => RowKind::Insert,
            (Some(_), None) => RowKind::Delete,
            (Some(_), Some(_)) => RowKind::Update,
        }
    }

    fn before(&self, column: &str) -> Cell<'_> {
        self.cell(self.change.before.as_ref(), column)
    }

    fn after(&self, column: &str) -> Cell<'_> {
        self.cell(self.change.after.as_ref(), column)
    }

    fn may_have_changed(&self, column: &str) -> bool {
        self.places.of(column).is_none_or(|place| self.change.changed(place) == ColumnChange::Yes)
    }
}
