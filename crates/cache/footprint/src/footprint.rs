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

use crate::budget::MatchBudget;
use crate::compare::{Constant, Match};
use crate::condition::{Atom, Condition, Operand, Slot, Test};
use crate::literal::Literal;
use crate::row::{RowEvent, SqlRow};
use crate::schema::{Columns, SqlColumnKind, SqlSchema, SqlTable, TableId};
use std::sync::Arc;

/// The reads of a statement: its footprints.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// Shared by all statements of the same shape.
    pub(crate) form: Arc<ReadsForm>,
    /// Shared with those who test a row without a lock of the index.
    pub(crate) operands: Arc<[Operand]>,
}

/// The reads of all statements of a shape: everything but the constants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct ReadsForm {
    /// The query blocks, also those of subqueries.
    pub blocks: Vec<Block>,
    /// Whether the result depends on the time of day.
    pub uses_clock: bool,
    /// Whether the result is different each time.
    pub is_random: bool,
}

/// The reads of a query block: the rows of its tables, joined.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Block {
    pub tables: Vec<TableReads>,
}

/// The reads of a query block in one table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableReads {
    /// The table that is read.
    pub table: TableId,
    /// The condition on its rows.
    pub condition: Condition,
    /// The columns that the condition tests.
    pub tested: Columns,
    /// The columns whose values the result depends on, apart from the condition.
    pub used: Columns,
    /// The partners without which a row is not in the result.
    pub partners: Vec<Partner>,
    /// The part of the rows that the result consists of, if it has no other rows or tables.
    pub first: Option<FirstRows>,
}

/// The first rows in the order of a column, among those that satisfy the condition. The condition is exact then: each row
/// for which it is [`Match::Yes`] satisfies `WHERE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FirstRows {
    /// The first column of `ORDER BY`.
    pub column: u16,
    /// The direction in which the rows ascend or descend in it.
    pub order: RowOrder,
    /// The number of rows (`LIMIT`), at least 1.
    pub count: u8,
}

/// The direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowOrder {
    /// `ASC`
    Ascending,
    /// `DESC`
    Descending,
}

/// The reads of a query block in one table, with the constants of a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Footprint<'r> {
    /// The table that is read.
    pub table: TableId,
    pub(crate) reads: &'r TableReads,
    pub(crate) operands: &'r [Operand],
}

/// A row of another table without which a row is not in the result: of the same block, or of one that `IN`
/// connects with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Partner {
    /// The column of the row.
    pub column: u16,
    /// The table of the partner.
    pub other: Position,
    /// The column of the partner that has the same value.
    pub other_column: u16,
}

/// A table of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl Default for Reads {
    fn default() -> Reads {
        Reads::new(ReadsForm::default(), Vec::new())
    }
}

impl Reads {
    pub(crate) fn new(form: ReadsForm, operands: Vec<Operand>) -> Reads {
        Reads { form: Arc::new(form), operands: operands.into() }
    }

    /// The footprints of all blocks.
    pub fn footprints(&self) -> impl Iterator<Item = Footprint<'_>> {
        let all = self.form.blocks.iter().flat_map(|block| &block.tables);
        all.map(|reads| Footprint { table: reads.table, reads, operands: &self.operands })
    }

    /// Whether the statement reads some of these tables, and no other.
    #[must_use]
    pub fn are_within(&self, tables: &[TableId]) -> bool {
        !self.is_empty() && self.footprints().all(|own| tables.contains(&own.table))
    }

    /// Whether a changed row touches one of the footprints. Partners are not looked at.
    #[must_use]
    pub fn touched_by(&self, event: &RowEvent<'_>) -> bool {
        self.touched_within(event, &mut MatchBudget::new(u64::MAX))
    }

    /// As [`touched_by`](Self::touched_by), within a budget. A row whose budget is spent touches every footprint of its
    /// table.
    #[must_use]
    pub fn touched_within(&self, event: &RowEvent<'_>, budget: &mut MatchBudget) -> bool {
        budget.spend(1);
        let mut of_table = self.footprints().filter(|own| own.table == event.table);
        of_table.any(|own| budget.is_spent() || own.touch_within(event, budget).is_some())
    }

    /// Whether a changed row may have to have partners to affect the result.
    #[must_use]
    pub fn has_partners(&self) -> bool {
        self.form.blocks.iter().flat_map(|block| &block.tables).any(|own| !own.partners.is_empty())
    }

    /// Whether the result depends on the time of day.
    #[must_use]
    pub fn uses_clock(&self) -> bool {
        self.form.uses_clock
    }

    /// Whether the result is different each time.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.form.is_random
    }

    /// Whether the statement loads all rows of a table, so that it can be narrowed to some values of a column.
    #[must_use]
    pub fn can_be_narrowed(&self, schema: &SqlSchema, table: TableId, column: u16) -> bool {
        let definition = schema.table(table);
        let kind = definition.columns[usize::from(column)].kind;
        let is_load = match &self.form.blocks[..] {
            [Block { tables }] => {
                matches!(&tables[..], [only] if only.table == table && only.loads(definition, column))
            }
            _ => false,
        };
        is_load && matches!(kind, SqlColumnKind::Text { .. })
    }

    /// See [`crate::StatementReader::narrow`].
    pub(crate) fn narrow(
        &mut self,
        schema: &SqlSchema,
        table: TableId,
        column: u16,
        values: &[&str],
    ) -> bool {
        if !self.can_be_narrowed(schema, table, column) {
            return false;
        }
        let kind = schema.table(table).columns[usize::from(column)].kind;
        let constant = |value: &&str| Constant::of(kind, &Literal::Text((*value).into()));
        let constants = values.iter().map(constant).collect::<Option<Vec<Constant>>>();
        let slot = u16::try_from(self.operands.len()).map(Slot);
        let (Some(constants), Ok(slot)) = (constants, slot) else { return false };
        let mut operands = self.operands.to_vec();
        operands.push(Operand::of(constants));
        self.operands = operands.into();
        let atom = Atom { column, part: None, test: Test::In(slot), is_negated: false };
        let blocks = &mut Arc::make_mut(&mut self.form).blocks;
        for reads in blocks.iter_mut().flat_map(|block| &mut block.tables) {
            let condition = std::mem::replace(&mut reads.condition, Condition::Always);
            reads.condition = Condition::all([Condition::Atom(atom.clone()), condition]);
            reads.tested.insert(column.into());
            // Rows of other names are in the result, too.
            reads.first = None;
        }
        true
    }

    /// The memory that the statement needs in an index, in bytes: its constants, and about 16 bytes for each value
    /// by which it is found. `cargo measure footprints` compares this with the memory of the process.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        const STATEMENT_BYTES: usize = 130;
        STATEMENT_BYTES + self.operands.iter().map(Operand::heap_bytes).sum::<usize>()
    }

    pub(crate) fn at(&self, position: Position) -> Footprint<'_> {
        let reads = &self.form.blocks[position.block].tables[position.table];
        Footprint { table: reads.table, reads, operands: &self.operands }
    }

    /// Whether the two use the same memory for everything but their constants.
    #[must_use]
    pub fn shares_form(&self, other: &Reads) -> bool {
        Arc::ptr_eq(&self.form, &other.form)
    }

    /// Whether the statement reads no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.form.blocks.iter().all(|block| block.tables.is_empty())
    }
}

impl TableReads {
    /// All rows and columns of a table.
    pub fn whole(table: TableId) -> TableReads {
        TableReads {
            table,
            condition: Condition::Always,
            tested: Columns::NONE,
            used: Columns::ALL,
            partners: Vec::new(),
            first: None,
        }
    }
}

impl TableReads {
    /// Whether a statement that reads only this loads all values by their names: it uses the column of the names and
    /// one more, and has no condition but one on a third column, which says what is loaded at once (`autoload`).
    fn loads(&self, table: &SqlTable, names: u16) -> bool {
        let used = (0..table.columns.len()).filter(|at| self.used.contains(*at));
        let conditions: &[Condition] = match &self.condition {
            Condition::Always => &[],
            condition => condition.conjuncts(),
        };
        let is_of_loading = |condition: &Condition| matches!(condition, Condition::Atom(atom) if table.columns[usize::from(atom.column)].name == "autoload");
        self.used != Columns::ALL
            && self.used.contains(names.into())
            && used.count() == 2
            && conditions.iter().all(is_of_loading)
    }
}

impl Footprint<'_> {
    /// Whether a row satisfies the condition.
    pub(crate) fn matches(&self, row: &SqlRow<'_>, budget: &mut MatchBudget) -> Match {
        self.reads.condition.matches(row, self.operands, budget)
    }

    /// The columns that it reads: an update of other columns does not touch it.
    pub(crate) fn read(&self) -> Columns {
        let mut read = self.reads.used;
        read.extend(self.reads.tested);
        read
    }

    /// Whether a changed row of this table touches the footprint. Partners are not looked at.
    #[must_use]
    pub fn touch(&self, event: &RowEvent<'_>) -> Option<FootprintTouch> {
        self.touch_within(event, &mut MatchBudget::new(u64::MAX))
    }

    /// As [`touch`](Self::touch), within a budget.
    pub(crate) fn touch_within(
        &self,
        event: &RowEvent<'_>,
        budget: &mut MatchBudget,
    ) -> Option<FootprintTouch> {
        let mut matches = event.images().map(|row| self.matches(row, budget));
        let (first, second) = (matches.next()?, matches.next());
        if first.max(second.unwrap_or(first)) == Match::No {
            return None;
        }
        let Some(second) = second else { return Some(FootprintTouch::Changed(event.changed)) };
        let used = event.changed.intersection(self.reads.used);
        let tested = event.changed.intersection(self.reads.tested);
        if !used.is_empty() {
            return Some(FootprintTouch::Changed(used));
        }
        let stays = first == Match::Yes && second == Match::Yes;
        (!stays && !tested.is_empty()).then_some(FootprintTouch::Moved(tested))
    }
}
