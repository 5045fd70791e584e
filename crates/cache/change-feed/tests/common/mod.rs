//! Short forms of tables and rows for the tests.

#![allow(dead_code, reason = "each test uses a part of it")]

use change_feed::schema::{Action, Column, ForeignKey, TableDefinition};
use change_feed::{Cell, ChangeRule, RowImages, RowKind};
use std::collections::HashMap;

pub fn rule(table: &str, tags: &[&str]) -> ChangeRule {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    ChangeRule { table: table.into(), tags, ..ChangeRule::default() }
}

/// A table whose first column is its key.
pub fn table(name: &str, columns: &[&str]) -> TableDefinition {
    let columns = columns.iter().enumerate().map(|(at, name)| Column {
        name: (*name).into(),
        is_primary_key: at == 0,
        is_loosely_equal: false,
        is_generated: false,
        is_text: true,
        collation: None,
    });
    TableDefinition { name: name.into(), is_view: false, columns: columns.collect() }
}

/// A foreign key to the parent's `id`; updates cascade.
pub fn foreign_key(child: &str, column: &str, parent: &str, on_delete: Action) -> ForeignKey {
    ForeignKey {
        child: child.into(),
        columns: vec![column.into()],
        parent: parent.into(),
        parent_columns: vec!["id".into()],
        on_delete,
        on_update: Action::Cascade,
    }
}

pub struct Row {
    pub kind: RowKind,
    before: HashMap<String, Cell<'static>>,
    after: HashMap<String, Cell<'static>>,
}

fn image(cells: &[(&str, &str)]) -> HashMap<String, Cell<'static>> {
    let cell =
        |(name, text): &(&str, &str)| ((*name).to_owned(), Cell::Text((*text).to_owned().into()));
    cells.iter().map(cell).collect()
}

impl Row {
    pub fn insert(after: &[(&str, &str)]) -> Row {
        Row { kind: RowKind::Insert, before: HashMap::new(), after: image(after) }
    }

    pub fn update(before: &[(&str, &str)], after: &[(&str, &str)]) -> Row {
        Row { kind: RowKind::Update, before: image(before), after: image(after) }
    }

    pub fn delete(before: &[(&str, &str)]) -> Row {
        Row { kind: RowKind::Delete, before: image(before), after: HashMap::new() }
    }

    /// Sets this value in the image after the change.
    pub fn cell(mut self, name: &str, cell: Cell<'static>) -> Row {
        self.after.insert(name.into(), cell);
        self
    }
}

impl RowImages for Row {
    fn kind(&self) -> RowKind {
        self.kind
    }

    fn before(&self, column: &str) -> Cell<'_> {
        self.before.get(column).cloned().unwrap_or(Cell::LeftOut)
    }

    fn after(&self, column: &str) -> Cell<'_> {
        self.after.get(column).cloned().unwrap_or(Cell::LeftOut)
    }

    fn may_have_changed(&self, column: &str) -> bool {
        match self.after(column) {
            Cell::LeftOut => false,
            after => after != self.before(column),
        }
    }
}
