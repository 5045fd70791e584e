//! Converts a transaction to what it touches: the tags of its rows and tables, and for automatic dependencies the
//! rows themselves (`followed`).
//!
//! One transaction is one change. Rolled-back changes count as if they were committed: servers log
//! them only if a non-transactional table may be among the changed ones. A write in statement
//! format touches every page, because its triggers may have changed any table. Not here: the store,
//! the stream.

use super::followed::{CollectedChanges, FollowedTables, RowTable};
use super::schema::Shapes;
use change_feed::{Cell, Feed, RequiredChanges, RowImages, RowKind, TouchedTags};
use footprint::schema::{SqlSchema, TableId};
use mysql_replication::event::{Row, RowChange};
use mysql_replication::schema::TableShape;
use mysql_replication::{
    Change, ChangeScope, FallbackReason, Interest, NoText, Table, TableRows, Watch,
};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// The followed part of a database: its name, its rules with the schema applied, its table shapes.
#[derive(Default)]
pub struct Tables {
    name: String,
    feed: Feed,
    shapes: Shapes,
    /// The tables whose rows are reported with their values.
    followed: Option<FollowedTables>,
    /// The views, by name in lower case.
    views: HashSet<String>,
}

/// The changes of a transaction.
#[derive(Default)]
pub struct TransactionChanges {
    /// The tags of the rules.
    pub touched: TouchedTags,
    /// The rows, if they are reported with their values.
    pub rows: CollectedChanges,
}

impl Tables {
    /// Combines a database's name, rules and definitions.
    pub fn new(
        name: String,
        feed: Feed,
        shapes: Shapes,
        followed: Option<FollowedTables>,
        views: HashSet<String>,
    ) -> Tables {
        Tables { name, feed, shapes, followed, views }
    }

    /// The tables as the reader of statements needs them, if rows are reported with their values.
    pub fn schema(&self) -> Option<&Arc<SqlSchema>> {
        self.followed.as_ref().map(FollowedTables::schema)
    }

    /// Whether changes of a table matter: for statements that read it, or for a rule.
    pub fn wants(&self, table: &str) -> bool {
        self.followed.is_some() || self.feed.wanted(table) != RequiredChanges::Nothing
    }

    /// Adds a change to those of its transaction.
    pub fn touch(&self, change: &Change, changes: &mut TransactionChanges) {
        match &change.what {
            ChangeScope::Rows(rows) if self.is_own(&rows.table.schema) => self.rows(rows, changes),
            ChangeScope::Table { schema, why: FallbackReason::Statement, .. }
                if self.is_own(schema) =>
            {
                changes.add_everything();
            }
            ChangeScope::Table { schema, name, .. } if self.is_own(schema) => {
                self.feed.table(name, &mut changes.touched);
                // No rule names a view, and the tables that it reads are not known.
                if self.is_view(name) {
                    changes.touched.add_everything();
                }
                self.whole(name, &mut changes.rows);
            }
            ChangeScope::Schema { schema, .. } if self.is_own(schema) => changes.add_everything(),
            ChangeScope::Everything(_) => changes.add_everything(),
            ChangeScope::Rows(_) | ChangeScope::Table { .. } | ChangeScope::Schema { .. } => {}
        }
    }

    fn rows(&self, rows: &TableRows, changes: &mut TransactionChanges) {
        let (table, places) =
            (&rows.table, Places { table: &rows.table, found: RefCell::default() });
        let TransactionChanges { touched, rows: collected } = changes;
        let wanted = self.feed.wanted(&table.name);
        if wanted == RequiredChanges::Table {
            self.feed.table(&table.name, touched);
        }
        let reported = self.reported(table, collected);
        for change in rows.changes() {
            let is_for_rules = wanted == RequiredChanges::Rows && !touched.is_everything();
            let reported = reported.filter(|(_, id)| !collected.is_whole(*id));
            if !is_for_rules && reported.is_none() {
                return;
            }
            match &change {
                Ok(change) => {
                    if is_for_rules {
                        let images = Images { change, places: &places };
                        self.feed.row(&table.name, &images, touched);
                    }
                    if let Some((tables, id)) = reported {
                        collected.add_row(tables, id, change);
                    }
                }
                Err(_) => {
                    if is_for_rules {
                        self.feed.table(&table.name, touched);
                    }
                    if let Some((tables, id)) = reported {
                        collected.add_table(tables, id);
                    }
                }
            }
        }
    }

    /// The table of changed rows, if they are reported. Otherwise adds what may have changed.
    fn reported(
        &self,
        table: &Table,
        collected: &mut CollectedChanges,
    ) -> Option<(&FollowedTables, TableId)> {
        let followed = self.followed.as_ref()?;
        match followed.find(table) {
            RowTable::Rows(id) => return Some((followed, id)),
            RowTable::Whole(id) => collected.add_table(followed, id),
            RowTable::Unknown => {}
        }
        None
    }

    /// Adds a change of a whole table.
    fn whole(&self, name: &str, collected: &mut CollectedChanges) {
        let Some(followed) = &self.followed else { return };
        if let Some(id) = followed.schema().table_id(name) {
            collected.add_table(followed, id);
        }
    }

    fn is_view(&self, name: &str) -> bool {
        !self.views.is_empty() && self.views.contains(&name.to_lowercase())
    }

    fn is_own(&self, schema: &str) -> bool {
        schema.eq_ignore_ascii_case(&self.name)
    }
}

impl TransactionChanges {
    fn add_everything(&mut self) {
        self.touched.add_everything();
        self.rows.add_everything();
    }
}

/// Returns whether a change concerns the definition of tables.
pub fn changes_definitions(change: &Change) -> bool {
    matches!(
        &change.what,
        ChangeScope::Table { why: FallbackReason::Defined, .. }
            | ChangeScope::Schema { .. }
            | ChangeScope::Everything(_)
    )
}

impl Watch for Tables {
    fn interest(&mut self, schema: &str, table: &str) -> Interest {
        if !self.is_own(schema) {
            return Interest::None;
        }
        if self.followed.is_some() {
            return Interest::Rows;
        }
        match self.feed.wanted(table) {
            RequiredChanges::Nothing if self.is_view(table) => Interest::Table,
            RequiredChanges::Nothing => Interest::None,
            RequiredChanges::Table => Interest::Table,
            RequiredChanges::Rows => Interest::Rows,
        }
    }

    fn follows(&mut self, schema: &str) -> bool {
        self.is_own(schema)
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
        self.places.of(column).is_none_or(|place| self.change.changed(place))
    }
}
