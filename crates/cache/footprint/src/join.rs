//! The join check: whether a changed row has the partners in other tables without which it is in no result.
//!
//! The row is completed once: its partners are looked up by key, and the conditions of all waiting
//! statements are tested on them in memory, along the whole chain of joins. The caller does the look-ups
//! ([`PartnerRows::take_missing`]) and asks again.
//!
//! Invariant: partners are the present rows *and* the rows before recent changes. With the present rows
//! alone, two rows that are deleted one after the other would each be without the other. A partner that is not
//! known (too many rows, no database) counts as present. The caller does not test a change if a recent one
//! was forgotten ([`RecentRows::is_complete_after`]). Not here: the look-ups, and how late they are.

use crate::budget::MatchBudget;
use crate::compare::Match;
use crate::footprint::{Position, Reads};
use crate::row::{RowEvent, SqlRow, SqlValue};
use crate::schema::TableId;
use change_feed::text::fold_value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The rows of a table that have a value in a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// The table of the rows.
    pub table: TableId,
    /// The position of the column.
    pub column: u16,
    /// The value, as text.
    pub value: Box<str>,
}

/// The steps for the rows that are tested for a transaction. Each statement can have many ways from table to table;
/// beyond this number, partners count as present.
const STEPS_MAX: u64 = 64 << 20;
/// The steps for a row that is tested, beside those of its comparisons.
const ROW_STEPS: usize = 64;

/// The maximum memory for the values of remembered rows, in bytes.
const BYTES_MAX: usize = 8 << 20;
/// The longest text that is remembered of a row, in bytes. A longer one counts as unknown.
const TEXT_BYTES_MAX: usize = 1024;

/// Whether a changed row affects a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Affects {
    /// The row does not affect the result.
    No,
    /// Partners must be looked up first.
    Unfinished,
    /// The row affects the result, or that is not known.
    Yes,
}

/// The rows before recent changes.
#[derive(Debug)]
pub struct RecentRows {
    rows: VecDeque<(u64, TableId, SqlRow<'static>)>,
    max: usize,
    /// The memory for the rows.
    bytes: usize,
    /// The position of the last change that was forgotten.
    dropped: u64,
}

impl RecentRows {
    /// Room for this number of rows, and for 8 MiB of values.
    #[must_use]
    pub fn new(max: usize) -> RecentRows {
        RecentRows { rows: VecDeque::new(), max, bytes: 0, dropped: 0 }
    }

    /// Adds the row before a change. Positions ascend. A change is added before it is tested, since its row may
    /// be its own partner.
    pub fn push(&mut self, position: u64, event: &RowEvent<'_>) {
        let Some(before) = &event.before else { return };
        let row = before.without_long_texts(TEXT_BYTES_MAX);
        self.bytes += row.heap_bytes();
        self.rows.push_back((position, event.table, row));
        while self.rows.len() > self.max || self.bytes > BYTES_MAX {
            self.dropped = self.pop_oldest().unwrap_or(position);
        }
    }

    /// Removes the oldest row, and returns the position of its change.
    fn pop_oldest(&mut self) -> Option<u64> {
        let (position, _, row) = self.rows.pop_front()?;
        self.bytes -= row.heap_bytes();
        Some(position)
    }

    /// Forgets all changes up to this position: no look-up was made before it.
    pub fn forget_up_to(&mut self, position: u64) {
        while self.rows.front().is_some_and(|(own, ..)| *own <= position) {
            self.pop_oldest();
        }
        self.dropped = self.dropped.max(position);
    }

    /// Whether all changes after this position are there.
    #[must_use]
    pub fn is_complete_after(&self, position: u64) -> bool {
        self.dropped <= position
    }

    fn find(&self, lookup: &Lookup) -> impl Iterator<Item = &SqlRow<'static>> {
        let sought = fold_value(&lookup.value);
        let may_match = move |row: &SqlRow<'_>| match row.get(lookup.column) {
            // A column with ZEROFILL has zeros before the digits.
            SqlValue::Text(text) if is_number(text) && is_number(&lookup.value) => {
                text.trim_start_matches('0') == lookup.value.trim_start_matches('0')
            }
            SqlValue::Text(text) => {
                let own = fold_value(text);
                own.is_none() || sought.is_none() || own == sought
            }
            SqlValue::Unknown => true,
            SqlValue::Null => false,
        };
        let own = self.rows.iter().filter(|(_, table, _)| *table == lookup.table);
        own.map(|(.., row)| row).filter(move |row| may_match(row))
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The partners that have been looked up for a transaction.
#[derive(Debug)]
pub struct PartnerRows<'r> {
    recent: &'r RecentRows,
    /// With the rows before recent changes; `None` if they are not known.
    present: HashMap<Lookup, Option<Arc<[SqlRow<'static>]>>>,
    missing: HashSet<Lookup>,
    budget: MatchBudget,
}

impl<'r> PartnerRows<'r> {
    /// None yet, beside the rows before recent changes.
    #[must_use]
    pub fn new(recent: &'r RecentRows) -> PartnerRows<'r> {
        let budget = MatchBudget::new(STEPS_MAX);
        PartnerRows { recent, present: HashMap::new(), missing: HashSet::new(), budget }
    }

    /// Adds the rows that a look-up found; `None` if it could not be made, or found too many.
    pub fn found(&mut self, lookup: Lookup, rows: Option<Vec<SqlRow<'static>>>) {
        // The recent rows are searched once, and not for each statement that asks.
        let rows = rows.map(|mut rows| {
            rows.extend(self.recent.find(&lookup).cloned());
            Arc::from(rows)
        });
        self.present.insert(lookup, rows);
    }

    /// The look-ups that are needed, and have not been made.
    pub fn take_missing(&mut self) -> HashSet<Lookup> {
        std::mem::take(&mut self.missing)
    }

    /// Whether some partner satisfies the test.
    fn any(
        &mut self,
        lookup: &Lookup,
        mut test: impl FnMut(&mut Self, &SqlRow<'_>) -> Affects,
    ) -> Affects {
        let Some(present) = self.present.get(lookup) else {
            if !self.missing.contains(lookup) {
                self.missing.insert(lookup.clone());
            }
            return Affects::Unfinished;
        };
        // Shared, since the test looks up the partners of partners.
        let Some(present) = present.clone() else { return Affects::Yes };
        let mut most = Affects::No;
        for row in present.iter() {
            self.budget.spend(ROW_STEPS);
            if self.budget.is_spent() {
                return Affects::Yes;
            }
            most = most.max(test(self, row));
            if most == Affects::Yes {
                break;
            }
        }
        most
    }
}

impl Reads {
    /// Whether a changed row affects the result, as far as its partners are known.
    pub fn affected_by(&self, event: &RowEvent<'_>, partners: &mut PartnerRows<'_>) -> Affects {
        let mut most = Affects::No;
        if partners.budget.is_spent() {
            return Affects::Yes;
        }
        for (block, tables) in self.form.blocks.iter().map(|block| &block.tables).enumerate() {
            for (table, reads) in tables.iter().enumerate() {
                let at = Position { block, table };
                let is_touched =
                    |budget: &mut MatchBudget| self.at(at).touch_within(event, budget).is_some();
                if reads.table == event.table && is_touched(&mut partners.budget) {
                    most = most.max(self.joins_any(at, event, partners));
                }
                if most == Affects::Yes {
                    return most;
                }
            }
        }
        most
    }

    /// Whether the row before or the row after has all the partners that it needs.
    fn joins_any(
        &self,
        at: Position,
        event: &RowEvent<'_>,
        partners: &mut PartnerRows<'_>,
    ) -> Affects {
        let footprint = self.at(at);
        let joins = |row: &SqlRow<'_>| match footprint.matches(row, &mut partners.budget) {
            Match::No => Affects::No,
            Match::Maybe | Match::Yes => self.joins(at, row, &mut vec![at], partners),
        };
        event.images().map(joins).max().unwrap_or(Affects::No)
    }

    /// Whether a row of one of the tables has all the partners that it needs in tables that are not on the
    /// way to it.
    fn joins(
        &self,
        at: Position,
        row: &SqlRow<'_>,
        way: &mut Vec<Position>,
        partners: &mut PartnerRows<'_>,
    ) -> Affects {
        let mut least = Affects::Yes;
        for partner in &self.at(at).reads.partners {
            if way.contains(&partner.other) {
                continue;
            }
            let value = match row.get(partner.column) {
                SqlValue::Text(text) => text.as_ref().into(),
                SqlValue::Null => return Affects::No,
                SqlValue::Unknown => continue,
            };
            let other = self.at(partner.other);
            let lookup = Lookup { table: other.table, column: partner.other_column, value };
            way.push(partner.other);
            let found = partners.any(&lookup, |partners, row| {
                match other.matches(row, &mut partners.budget) {
                    Match::No => Affects::No,
                    Match::Maybe | Match::Yes => self.joins(partner.other, row, way, partners),
                }
            });
            way.pop();
            least = least.min(found);
            if least == Affects::No {
                return least;
            }
        }
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Columns, SqlColumn, SqlSchema};

    #[test]
    fn rows_have_a_limit_in_number_and_in_memory() {
        let mut schema = SqlSchema::new("site");
        schema.add("t", vec![SqlColumn::new("a", "text", None, "")]);
        let table = schema.table_id("t").expect("added");
        let event = |bytes: usize| RowEvent {
            table,
            before: Some(SqlRow::new(vec![SqlValue::Text("x".repeat(bytes).into())])),
            after: None,
            changed: Columns::ALL,
        };
        let mut recent = RecentRows::new(3);
        (1..=4).for_each(|position| recent.push(position, &event(1)));
        assert!(recent.is_complete_after(1) && !recent.is_complete_after(0));
        let mut recent = RecentRows::new(usize::MAX);
        (1..=20_000).for_each(|position| recent.push(position, &event(1_000)));
        assert!(recent.rows.len() < 9_000 && !recent.is_complete_after(1));
        recent.forget_up_to(20_000);
        assert_eq!((recent.rows.len(), recent.bytes), (0, 0));
    }

    #[test]
    fn a_recent_row_is_found_by_each_form_of_its_value() {
        let mut schema = SqlSchema::new("site");
        schema.add("t", vec![SqlColumn::new("a", "int", None, "")]);
        let table = schema.table_id("t").expect("added");
        let is_found = |own: &'static str, value: &str| {
            let before = Some(SqlRow::new(vec![SqlValue::Text(own.into())]));
            let event = RowEvent { table, before, after: None, changed: Columns::ALL };
            let mut recent = RecentRows::new(1);
            recent.push(1, &event);
            recent.find(&Lookup { table, column: 0, value: value.into() }).count() == 1
        };
        assert!(is_found("42", "42") && is_found("00042", "42") && is_found("0", "00"));
        assert!(is_found("Caf\u{e9}", "cafe") && is_found("-1", "-1"));
        assert!(!is_found("42", "420") && !is_found("0", "1") && !is_found("a", "b"));
    }
}
