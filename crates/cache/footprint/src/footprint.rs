//! The reads of a statement in each table, and whether a changed row touches it.
//!
//! A statement consists of query blocks (a `SELECT` each, also in subqueries and `UNION`), and a block reads
//! tables. Invariant: if the result of a block can differ before and after a change of a row, the change
//! touches the footprint of that table in that block:
//!
//! | row before, row after | touched |
//! |---|---|
//! | neither satisfies the condition | no |
//! | a used column changed | yes |
//! | both satisfy it exactly | no: the same row is in the result, with the same values |
//! | otherwise | if a column of the condition changed: the row entered, left, or may have |
//!
//! Not here: how statements are read, and whether other tables have partners of the row.

use crate::compare::{Constant, Match};
use crate::condition::{Atom, Condition, Test};
use crate::literal::Literal;
use crate::row::RowEvent;
use crate::schema::{Columns, SqlSchema, TableId};

/// The reads of a statement: its footprints.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reads {
    /// Its query blocks.
    pub(crate) blocks: Vec<Block>,
    /// Whether the result depends on the time of day.
    pub uses_clock: bool,
    /// Whether the result is different each time.
    pub is_random: bool,
}

/// The reads of a query block: the rows of its tables, joined.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Block {
    pub tables: Vec<Footprint>,
}

/// The reads of a query block in one table.
#[derive(Debug, Clone, PartialEq)]
pub struct Footprint {
    /// The table that is read.
    pub table: TableId,
    /// The condition on its rows.
    pub(crate) condition: Condition,
    /// The columns that the condition tests.
    pub(crate) tested: Columns,
    /// The columns whose values the result depends on, apart from the condition.
    pub(crate) used: Columns,
    /// The partners without which a row is not in the result.
    pub(crate) partners: Vec<Partner>,
}

/// A row of another table without which a row is not in the result: of the same block, or of one that `IN`
/// connects with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Partner {
    /// The column of the row.
    pub column: u16,
    /// The table of the partner.
    pub other: Position,
    /// The column of the partner that has the same value.
    pub other_column: u16,
}

/// A table of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The position of its block.
    pub block: usize,
    /// The position of the table in the block.
    pub table: usize,
}

/// The way in which a changed row touches a footprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FootprintTouch {
    /// These columns that the result depends on changed, or the row is new or gone.
    Changed(Columns),
    /// The row began or ended to satisfy the condition, or may have.
    Moved(Columns),
}

impl Reads {
    /// The footprints of all blocks.
    pub fn footprints(&self) -> impl Iterator<Item = &Footprint> {
        self.blocks.iter().flat_map(|block| &block.tables)
    }

    /// Narrows what the statement reads of a table to the rows with one of these texts in a column: the
    /// application has loaded all rows, and has shown which it used. A column that is not text is left
    /// alone.
    pub fn narrow(&mut self, schema: &SqlSchema, table: TableId, column: u16, values: &[&str]) {
        let definition = &schema.table(table).columns[usize::from(column)];
        let constant =
            |value: &&str| Constant::of(definition.kind, &Literal::Text((*value).into()));
        let Some(constants) = values.iter().map(constant).collect::<Option<Vec<Constant>>>() else {
            return;
        };
        let atom = Atom { column, part: None, test: Test::In(constants), is_negated: false };
        let footprints = self.blocks.iter_mut().flat_map(|block| &mut block.tables);
        for footprint in footprints.filter(|footprint| footprint.table == table) {
            let condition = std::mem::replace(&mut footprint.condition, Condition::Always);
            footprint.condition = Condition::all([Condition::Atom(atom.clone()), condition]);
            footprint.tested.insert(column.into());
        }
    }

    pub(crate) fn at(&self, position: Position) -> &Footprint {
        &self.blocks[position.block].tables[position.table]
    }

    /// Whether the statement reads no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| block.tables.is_empty())
    }
}

impl Footprint {
    /// The whole table.
    pub(crate) fn whole(table: TableId) -> Footprint {
        Footprint {
            table,
            condition: Condition::Always,
            tested: Columns::NONE,
            used: Columns::ALL,
            partners: Vec::new(),
        }
    }

    /// Whether a changed row of this table touches the footprint. Partners are not looked at.
    #[must_use]
    pub fn touch(&self, event: &RowEvent<'_>) -> Option<FootprintTouch> {
        let mut matches = event.images().map(|row| self.condition.matches(row));
        let (first, second) = (matches.next()?, matches.next());
        if first.max(second.unwrap_or(first)) == Match::No {
            return None;
        }
        let Some(second) = second else { return Some(FootprintTouch::Changed(event.changed)) };
        let used = event.changed.intersection(self.used);
        let tested = event.changed.intersection(self.tested);
        if !used.is_empty() {
            return Some(FootprintTouch::Changed(used));
        }
        let stays = first == Match::Yes && second == Match::Yes;
        (!stays && !tested.is_empty()).then_some(FootprintTouch::Moved(tested))
    }
}
