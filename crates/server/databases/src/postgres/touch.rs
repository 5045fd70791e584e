//! Converts a transaction to what it touches: the tags of its rows and tables.
//!
//! One transaction is one change. Rows count for the rules of their table and for those of its
//! parents. A table missing from the catalogue was created after the catalogue was read. Its
//! parents are not known until the catalogue is read again. Not here: the store, the stream.

use super::catalogue::{Catalogue, Kind};
use change_feed::{Cell, Feed, RequiredChanges, RowImages, RowKind, TouchedTags};
use postgres_replication::{ChangeScope, Interest, RowChange, TableRows, Watch};
use std::borrow::Cow;

/// The followed part of a database: its rules with the catalogue applied.
#[derive(Default)]
pub struct Tables {
    feed: Feed,
    catalogue: Catalogue,
}

impl Tables {
    /// Combines the rules and the catalogue.
    pub fn new(feed: Feed, catalogue: Catalogue) -> Tables {
        Tables { feed, catalogue }
    }

    /// Returns the followed tables: those that rules name, and their children.
    pub fn followed(&self) -> Vec<&super::catalogue::Table> {
        self.catalogue.all().filter(|table| self.wanted(&table.names) != Interest::None).collect()
    }

    /// Returns whether the catalogue covers all changes of a transaction.
    pub fn covers(&self, changes: &[ChangeScope]) -> bool {
        let is_known = |what: &ChangeScope| match what {
            ChangeScope::Rows(rows) => {
                self.catalogue.at(&rows.table.schema, &rows.table.name).is_some()
            }
            ChangeScope::Table { schema, name, why } => {
                *why != postgres_replication::FallbackReason::Defined
                    && self.catalogue.at(schema, name).is_some()
            }
            ChangeScope::Definitions => false,
            ChangeScope::Everything(_) => true,
        };
        changes.iter().all(is_known)
    }

    /// Adds what a change touches to `touched`.
    pub fn touch(&self, what: &ChangeScope, touched: &mut TouchedTags) {
        match what {
            ChangeScope::Rows(rows) => self.rows(rows, touched),
            ChangeScope::Table { schema, name, .. } => match self.catalogue.at(schema, name) {
                Some(table) => self.any_row(&table.names, touched),
                // The table existed only for a moment.
                None => touched.add_everything(),
            },
            ChangeScope::Definitions => {}
            ChangeScope::Everything(_) => touched.add_everything(),
        }
    }

    /// Adds a change of any row of the tables with these names.
    pub fn any_row(&self, names: &[String], touched: &mut TouchedTags) {
        for name in names {
            self.feed.table(name, touched);
        }
    }

    /// Adds every table that differs from `before`: any of its rows, by the rules of both versions.
    pub fn touch_changed(&self, before: &Tables, touched: &mut TouchedTags) {
        let names = self.catalogue.changed_since(&before.catalogue);
        self.any_row(&names, touched);
        before.any_row(&names, touched);
    }

    fn rows(&self, rows: &TableRows, touched: &mut TouchedTags) {
        let Some(table) = self.catalogue.at(&rows.table.schema, &rows.table.name) else {
            return touched.add_everything();
        };
        for change in rows.changes() {
            match change {
                Ok(change) => {
                    let images = Images { change: &change, rows };
                    for name in &table.names {
                        self.feed.row(name, &images, touched);
                    }
                }
                Err(_) => self.any_row(&table.names, touched),
            }
            if touched.is_everything() {
                return;
            }
        }
    }

    fn wanted(&self, names: &[String]) -> Interest {
        let wanted = names.iter().map(|name| match self.feed.wanted(name) {
            RequiredChanges::Nothing => Interest::None,
            RequiredChanges::Table => Interest::Table,
            RequiredChanges::Rows => Interest::Rows,
        });
        wanted
            .max_by_key(|interest| match interest {
                Interest::None => 0,
                Interest::Table => 1,
                Interest::Rows => 2,
            })
            .unwrap_or(Interest::None)
    }
}

impl Watch for Tables {
    fn interest(&mut self, schema: &str, table: &str) -> Interest {
        match self.catalogue.at(schema, table) {
            Some(table) if table.kind == Kind::View => Interest::None,
            Some(table) => self.wanted(&table.names),
            // It may be a child of a table that rules name.
            None => Interest::Table,
        }
    }
}

/// A row of the stream, accessible by column names.
struct Images<'a> {
    change: &'a RowChange<'a>,
    rows: &'a TableRows,
}

impl<'a> Images<'a> {
    fn cell(&self, column: &str, of: impl Fn(usize) -> postgres_replication::Cell<'a>) -> Cell<'a> {
        match self.rows.table.column(column).map(of) {
            Some(postgres_replication::Cell::Text(text)) => Cell::Text(Cow::Borrowed(text)),
            Some(postgres_replication::Cell::Null) => Cell::Null,
            Some(postgres_replication::Cell::Unknown) | None => Cell::Unknown,
        }
    }
}

impl RowImages for Images<'_> {
    fn kind(&self) -> RowKind {
        match (self.change.is_insert(), self.change.is_delete()) {
            (true, _) => RowKind::Insert,
            (_, true) => RowKind::Delete,
            _ => RowKind::Update,
        }
    }

    fn before(&self, column: &str) -> Cell<'_> {
        self.cell(column, |place| self.change.before(place))
    }

    fn after(&self, column: &str) -> Cell<'_> {
        self.cell(column, |place| self.change.after(place))
    }

    fn may_have_changed(&self, column: &str) -> bool {
        let place = self.rows.table.column(column);
        place.is_none_or(|place| self.change.changed(place))
    }
}
