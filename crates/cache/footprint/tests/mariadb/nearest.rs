//! Look-ups of the rows that are nearest to a changed row: right after the change, and after one more.
//!
//! Invariant: a look-up that is late misses nothing, because the later change puts its rows in doubt. Not here: how a
//! look-up knows the later changes (`change-sources`).

use crate::{Case, text};
use footprint::schema::SqlColumnKind;
use footprint::{FoundStatements, RowEvent, SqlRow, SqlValue, StatementId, TableChange};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A change, and the statements whose results it has changed.
pub struct EarlierChange {
    pub sql: String,
    pub events: [RowEvent<'static>; 3],
    pub changed: Vec<(StatementId, String)>,
}

impl Case {
    /// The statements that a change touches, with look-ups now. `later` is a change since.
    pub fn nearest(
        &mut self,
        event: &RowEvent<'_>,
        later: Option<&RowEvent<'static>>,
    ) -> BTreeSet<StatementId> {
        let FoundStatements { mut touched, nearest } = self.index.find_touched(event);
        for lookup in nearest {
            let (sql, kinds) = lookup.query(&self.schema);
            let row = |row: &Vec<Option<Vec<u8>>>| {
                let value = |(kind, value): (&SqlColumnKind, &Option<Vec<u8>>)| match kind {
                    SqlColumnKind::Opaque => SqlValue::Unknown,
                    _ => text(value.as_deref()),
                };
                SqlRow::new(kinds.iter().zip(row).map(value).collect())
            };
            let rows = self.writer.rows(&sql).ok();
            let rows: Option<Vec<SqlRow<'_>>> =
                rows.map(|rows| rows.rows.iter().map(row).collect());
            let rows = rows.filter(|rows| {
                let later = later.cloned().map(TableChange::Row);
                !later.is_some_and(|later| lookup.is_in_doubt(rows, &later))
            });
            touched.extend(self.index.nearest(event, &lookup, rows.as_deref()));
        }
        touched
    }

    /// Looks the rows near an earlier change up once more, and returns the statements that are missing now.
    pub fn check_later(
        &mut self,
        earlier: &EarlierChange,
        later: &[RowEvent<'static>; 3],
    ) -> Option<String> {
        let mut missing = String::new();
        for (event, later) in earlier.events.iter().zip(later) {
            let found = self.nearest(event, Some(later));
            for (id, sql) in &earlier.changed {
                if !found.contains(id) {
                    let seed = self.seed;
                    let _ =
                        writeln!(missing, "seed {seed}: {sql}\n  with {} {event:?}", earlier.sql);
                    let _ = writeln!(missing, "  later {later:?}");
                }
            }
        }
        (!missing.is_empty()).then_some(missing)
    }
}
