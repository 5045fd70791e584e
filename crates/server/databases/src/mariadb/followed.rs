//! The tables of a followed database whose changed rows are reported with their values, for automatic
//! dependencies, and the rows in the form that footprints have.
//!
//! Invariant: a row is reported only if its columns are those of the schema. Otherwise the whole table counts as
//! changed. That includes tables that do not log each change as it is: with system versioning, a deleted row is
//! logged as an update. Not here: which statements a row touches (`footprint`).
//!
//! | value | as |
//! |---|---|
//! | integers, decimals, dates, text | text, as the database writes it |
//! | `BLOB`, `VARBINARY` | text if it is UTF-8 |
//! | a column that an update did not write | the value before |
//! | generated columns, `BINARY`, `BIT`, undecodable text, columns that the stream left out | unknown |

use super::untracked::UntrackedReason;
use change_feed::schema::{Action, ForeignKey};
use footprint::schema::{
    ChildAction, Columns, ForeignKeyAction, SqlColumn, SqlColumnKind, SqlSchema, TableId,
};
use footprint::{RowEvent, SqlRow, SqlValue, TableChange};
use mysql_replication::event::{Row, RowChange};
use mysql_replication::schema::TableShape;
use mysql_replication::{NoText, Table, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The maximum number of changed rows of one table that a transaction reports; beyond it, any row of the table
/// may have changed.
const ROWS_MAX: usize = 10_000;
/// The maximum number of values of all rows that a transaction reports. They take about 24 bytes each, and their
/// texts.
const VALUES_MAX: usize = 1 << 20;

/// The tables of the followed database.
#[derive(Debug)]
pub struct FollowedTables {
    schema: Arc<SqlSchema>,
    /// The tables whose rows are not reported.
    whole: HashSet<TableId>,
}

/// A table in `information_schema.TABLES`, with its columns.
pub struct ListedTable<'s> {
    /// The name of the table (`TABLE_NAME`).
    pub name: &'s str,
    /// The kind of the table (`TABLE_TYPE`), such as `BASE TABLE`.
    pub kind: &'s str,
    /// The storage engine of the table (`ENGINE`).
    pub engine: &'s str,
    /// The columns; `None` if the account may not see them.
    pub shape: Option<&'s TableShape>,
}

/// Whether the rows of a table can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowTable {
    /// Yes: they have the columns of the schema.
    Rows(TableId),
    /// No: a change counts as one of the whole table.
    Whole(TableId),
    /// The schema does not have the table, so no statement reads it: it has been dropped or renamed since, or the
    /// account may not see it, or statements that name it are refused (`untracked`).
    Unknown,
}

impl FollowedTables {
    /// The tables of a database with this name. Statements that read one of the `untracked` tables are refused.
    pub fn new(
        database: &str,
        listed: &[ListedTable<'_>],
        keys: &[ForeignKey],
        untracked: &BTreeMap<String, UntrackedReason>,
    ) -> FollowedTables {
        let mut schema = SqlSchema::new(database);
        for table in listed {
            match (untracked.get(table.name), table.shape) {
                (Some(reason), _) => schema.add_untracked(table.name, &reason.to_string()),
                (None, Some(shape)) => schema.add(table.name, columns(shape)),
                (None, None) => {}
            }
        }
        let mut names: HashMap<String, usize> = HashMap::new();
        listed.iter().for_each(|table| *names.entry(table.name.to_lowercase()).or_default() += 1);
        // Shapes are found by names in lower case.
        let is_whole = |table: &&ListedTable<'_>| {
            table.kind != "BASE TABLE" || names[&table.name.to_lowercase()] > 1
        };
        let whole = listed.iter().filter(is_whole).filter_map(|table| schema.table_id(table.name));
        let whole: HashSet<TableId> = whole.collect();
        // Other engines show a row before it is in the log.
        let innodb = listed.iter().filter(|table| table.engine.eq_ignore_ascii_case("InnoDB"));
        let innodb: Vec<TableId> = innodb.filter_map(|table| schema.table_id(table.name)).collect();
        innodb.iter().filter(|id| !whole.contains(id)).for_each(|id| schema.set_logged_first(*id));
        for key in keys {
            // The children of tables that are not there are not there either (`untracked`).
            if let (Some(child), Some(parent)) =
                (schema.table_id(&key.child), schema.table_id(&key.parent))
            {
                schema.add_foreign_key(action(&schema, key, child, parent));
            }
        }
        FollowedTables { schema: Arc::new(schema), whole }
    }

    /// The tables as the reader of statements needs them.
    pub fn schema(&self) -> &Arc<SqlSchema> {
        &self.schema
    }

    /// Finds the table of changed rows.
    pub fn find(&self, table: &Table) -> RowTable {
        let Some(id) = self.schema.table_id(&table.name) else { return RowTable::Unknown };
        let own = &self.schema.table(id).columns;
        let is_same = |(own, column): (&SqlColumn, &mysql_replication::Column)| {
            let name = column.name.as_deref();
            name.is_some_and(|name| name.to_lowercase() == own.name.to_lowercase())
        };
        let fits = table.columns.as_ref().is_ok_and(|columns| {
            columns.len() == own.len() && own.iter().zip(columns).all(is_same)
        });
        if fits && !self.whole.contains(&id) { RowTable::Rows(id) } else { RowTable::Whole(id) }
    }
}

fn columns(shape: &TableShape) -> Vec<SqlColumn> {
    let column = |shape: &mysql_replication::schema::ColumnShape| {
        let collation = shape.collation.as_deref();
        let column = SqlColumn::new(&shape.name, &shape.declared, collation, &shape.key);
        if shape.is_generated { column.generated() } else { column }
    };
    shape.columns().iter().map(column).collect()
}

/// The actions of a foreign key.
fn action(
    schema: &SqlSchema,
    key: &ForeignKey,
    child: TableId,
    parent: TableId,
) -> ForeignKeyAction {
    let of = |action: Action| match action {
        Action::Refuse => ChildAction::None,
        Action::Cascade => ChildAction::Follow,
        Action::Set => ChildAction::SetNull,
    };
    let pair = |(own, other): (&String, &String)| {
        Some((schema.table(child).column(own)?, schema.table(parent).column(other)?))
    };
    let pairs = key.columns.iter().zip(&key.parent_columns).filter_map(pair);
    let (columns, parent_columns) = pairs.unzip();
    let (on_delete, on_update) = (of(key.on_delete), of(key.on_update));
    ForeignKeyAction { child, columns, parent, parent_columns, on_delete, on_update }
}

/// The changes of one transaction, within bounds.
#[derive(Debug, Default)]
pub struct CollectedChanges {
    rows: Vec<RowEvent<'static>>,
    /// The number of rows of each table.
    counts: HashMap<TableId, usize>,
    values: usize,
    whole: BTreeSet<TableId>,
    is_everything: bool,
}

impl CollectedChanges {
    /// Any row of any table may have changed.
    pub fn add_everything(&mut self) {
        *self = CollectedChanges { is_everything: true, ..CollectedChanges::default() };
    }

    /// Any row of the table may have changed, and of those that follow from it by foreign keys.
    pub fn add_table(&mut self, tables: &FollowedTables, table: TableId) {
        if !self.is_everything && self.whole.insert(table) {
            self.whole.extend(tables.schema.following_tables(table));
        }
    }

    /// Returns whether more rows of the table make no difference.
    pub fn is_whole(&self, table: TableId) -> bool {
        self.is_everything || self.whole.contains(&table)
    }

    /// Adds a changed row, and the changes that follow from it by foreign keys.
    pub fn add_row(&mut self, tables: &FollowedTables, table: TableId, change: &RowChange<'_>) {
        if self.is_whole(table) {
            return;
        }
        let event = event(&tables.schema, table, change);
        match event.following(&tables.schema) {
            Some(following) => {
                following.into_iter().for_each(|event| self.add_event(tables, event))
            }
            None => {
                let following = tables.schema.following_tables(table);
                following.into_iter().for_each(|table| self.add_table(tables, table));
            }
        }
        self.add_event(tables, event);
    }

    fn add_event(&mut self, tables: &FollowedTables, event: RowEvent<'static>) {
        let table = event.table;
        if self.is_whole(table) {
            return;
        }
        let count = self.counts.entry(table).or_default();
        *count += 1;
        self.values += event.images().count() * tables.schema.table(table).columns.len();
        if *count > ROWS_MAX || self.values > VALUES_MAX {
            return self.add_table(tables, table);
        }
        self.rows.push(event);
    }

    /// The changes, in the order of the transaction; then those of whole tables.
    pub fn into_changes(self) -> Vec<TableChange> {
        if self.is_everything {
            return vec![TableChange::Everything];
        }
        let CollectedChanges { rows, whole, .. } = self;
        let rows = rows.into_iter().filter(|row| !whole.contains(&row.table));
        let mut changes: Vec<_> = rows.map(TableChange::Row).collect();
        changes.extend(whole.into_iter().map(TableChange::Table));
        changes
    }
}

/// A changed row of a table whose columns fit.
fn event(schema: &SqlSchema, table: TableId, change: &RowChange<'_>) -> RowEvent<'static> {
    let columns = &schema.table(table).columns;
    let is_changed = |at| change.changed(at);
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let written = |row: &Row<'_>| {
        let value = |(at, column)| value(column, row.get(at));
        SqlRow::new(columns.iter().enumerate().map(value).collect())
    };
    // A column that is missing in the row after was not written.
    let kept = |row: &Row<'_>| {
        let of = |at| row.get(at).or_else(|| before.and_then(|before| before.get(at)));
        let value = |(at, column)| value(column, of(at));
        SqlRow::new(columns.iter().enumerate().map(value).collect())
    };
    let changed = match (before, after) {
        (Some(_), Some(_)) => schema.table(table).changed(is_changed),
        _ => Columns::ALL,
    };
    RowEvent { table, before: before.map(written), after: after.map(kept), changed }
}

fn value(column: &SqlColumn, value: Option<&Value<'_>>) -> SqlValue<'static> {
    let Some(value) = value.filter(|_| !column.is_generated) else { return SqlValue::Unknown };
    match value {
        Value::Bytes(bytes) if column.kind == SqlColumnKind::Bytes => match str::from_utf8(bytes) {
            Ok(text) => SqlValue::Text(text.to_owned().into()),
            Err(_) => SqlValue::Unknown,
        },
        Value::Bytes(_) | Value::Bits(_) => SqlValue::Unknown,
        value => match value.tag_text() {
            Ok(text) => SqlValue::Text(text.into_owned().into()),
            Err(NoText::Null) => SqlValue::Null,
            Err(_) => SqlValue::Unknown,
        },
    }
}

#[cfg(test)]
#[path = "followed_tests.rs"]
mod tests;
