//! From a transaction to what it touches.
//!
//! One transaction is one change. Rows count for the table's own rules and for those of the tables
//! above it. A table that the catalogue does not have was made after it was read: whose rows they are
//! is not known before it is read again. Not here: the store, the stream.

use super::catalogue::{Catalogue, Kind};
use change_feed::{Cell, Feed, RowImages, RowKind, Touched, Wanted};
use postgres_replication::{ChangeScope, ColumnChange, Interest, RowChange, TableRows, Watch};
use std::borrow::Cow;

/// What is followed of a database: the rules held against its catalogue.
#[derive(Default)]
pub struct Tables {
    feed: Feed,
    catalogue: Catalogue,
}

/// Whether the catalogue has to be read before it can be said what a transaction touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definitions {
    /// It may have changed.
    Changed,
    /// It is as it was.
    Same,
}

impl Tables {
    /// Puts them together.
    pub fn new(feed: Feed, catalogue: Catalogue) -> Tables {
        Tables { feed, catalogue }
    }

    /// The tables that are followed: those that rules are about, and those below them.
    pub fn followed(&self) -> Vec<&super::catalogue::Table> {
        self.catalogue.all().filter(|table| self.wanted(&table.names) != Interest::None).collect()
    }

    /// Whether what a transaction touches can be said.
    pub fn definitions(&self, changes: &[ChangeScope]) -> Definitions {
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
        if changes.iter().all(is_known) { Definitions::Same } else { Definitions::Changed }
    }

    /// What a change touches.
    pub fn touch(&self, what: &ChangeScope, touched: &mut Touched) {
        match what {
            ChangeScope::Rows(rows) => self.rows(rows, touched),
            ChangeScope::Table { schema, name, .. } => match self.catalogue.at(schema, name) {
                Some(table) => self.any_row(&table.names, touched),
                // It was there for a moment only.
                None => touched.add_everything(),
            },
            ChangeScope::Definitions => {}
            ChangeScope::Everything(_) => touched.add_everything(),
        }
    }

    /// Any row of the tables of these names.
    pub fn any_row(&self, names: &[String], touched: &mut Touched) {
        for name in names {
            self.feed.table(name, touched);
        }
    }

    /// What differs from what was before: any row of it, by the rules of both.
    pub fn touch_changed(&self, before: &Tables, touched: &mut Touched) {
        let names = self.catalogue.changed_since(&before.catalogue);
        self.any_row(&names, touched);
        before.any_row(&names, touched);
    }

    fn rows(&self, rows: &TableRows, touched: &mut Touched) {
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
            Wanted::Nothing => Interest::None,
            Wanted::Table => Interest::Table,
            Wanted::Rows => Interest::Rows,
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
            // It may be below one that rules are about.
            None => Interest::Table,
        }
    }
}

/// A row of the stream, by the names of its columns.
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
        place.is_none_or(|place| self.change.changed(place) == ColumnChange::Yes)
    }
}
