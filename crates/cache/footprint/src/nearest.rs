//! Statements whose result is the rows nearest to a bound, and which of them a changed row touches.
//!
//! `SELECT ID FROM posts WHERE date > '2020-01-05' AND type = 'post' ORDER BY date LIMIT 1` is the next article.
//! Statements that differ in the bound alone are a group. Let `Y` be the value of a changed row in the column, before or
//! after its transaction, and `N` that of the `LIMIT`-th row below it. Bounds in `[N, Y]` are touched (mirrored for `<`
//! and `DESC`); those below `N` have enough nearer rows.
//!
//! Invariant: the rows between are rows of the state right after the transaction, satisfy the rest of the condition, and
//! are strictly nearer. A row that is not shown to be all this does not count. So each statement whose result the
//! transaction changes is touched ([0096](../../../../docs/decisions/neighbour-rows.md) has the proof). Not
//! here: the look-up.

use crate::budget::MatchBudget;
use crate::compare::{Constant, Match, moment};
use crate::condition::{Atom, Condition, MomentPart, Operand, RangeEnd, Slot, Test};
use crate::footprint::{FirstRows, Position, Reads, ReadsForm, RowOrder, TableReads};
use crate::row::{SqlRow, SqlValue, TableChange};
use crate::saved::put_operand;
use crate::schema::{Columns, SqlColumnKind, SqlSchema, SqlTable, TableId};
use crate::sql_text::{put_name, put_value};
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The longest list of constants in a look-up.
const LISTED_MAX: usize = 100;

/// A value of a column as a number: greater values have no smaller number. Fractions of seconds are left out, and
/// integers beyond 63 bits are the greatest.
pub(crate) type OrderKey = u64;

/// The common part of the statements of a group: everything but the bound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GroupKey {
    form: Arc<ReadsForm>,
    /// The position of the bound among the conditions, which may depend on the constants.
    at: usize,
    /// The other constants, as bytes.
    rest: Box<[u8]>,
}

/// A statement of a group.
#[derive(Debug)]
pub(crate) struct BoundedStatement {
    pub key: GroupKey,
    pub bound: OrderKey,
}

/// The rows that must be looked up to know which statements of a group a changed row touches: those with the nearest
/// values on the side of the bounds, as many as the statements return.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestLookup {
    /// The table of the rows.
    pub table: TableId,
    /// The position of the group in the index.
    pub(crate) group: u32,
    /// A statement of the group.
    reads: Reads,
    first: FirstRows,
    /// The position of the bound among the conditions.
    bound: usize,
    kind: SqlColumnKind,
    /// The value of the changed row in the column.
    value: Box<str>,
}

impl Reads {
    fn first(&self) -> Option<(&TableReads, FirstRows)> {
        match &self.form.blocks[..] {
            [block] => match &block.tables[..] {
                [only] => Some((only, only.first?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The group and the bound, if the result is the rows nearest to a bound.
    pub(crate) fn bounded(&self, schema: &SqlSchema) -> Option<BoundedStatement> {
        let (reads, first) = self.first()?;
        let table = schema.table(reads.table);
        let kind = table.columns[usize::from(first.column)].kind;
        let (at, bound) = bound(reads, first, &self.operands)?;
        let bound = match (kind, bound) {
            (SqlColumnKind::Integer, Constant::Integer(_)) => constant_key(bound)?,
            (SqlColumnKind::Moment, Constant::Moment(_)) => constant_key(bound)?,
            _ => return None,
        };
        let mut own = Vec::new();
        let conjuncts = reads.condition.conjuncts();
        collect_slots(&conjuncts[at], &mut own);
        let mut others = conjuncts.iter().enumerate().filter(|(other, _)| *other != at);
        let mut sql = String::new();
        if !others.all(|(_, other)| put_condition(&mut sql, table, other, &self.operands).is_some())
        {
            return None;
        }
        let mut rest = Vec::new();
        for (operand, slot) in self.operands.iter().zip(0..) {
            if !own.contains(&Slot(slot)) {
                put_operand(&mut rest, operand);
            }
        }
        let key = GroupKey { form: self.form.clone(), at, rest: rest.into() };
        Some(BoundedStatement { key, bound })
    }

    /// The look-up for a changed row of the group that this statement belongs to.
    pub(crate) fn nearest(
        &self,
        schema: &SqlSchema,
        group: u32,
        row: &SqlRow<'_>,
        budget: &mut MatchBudget,
    ) -> RowInGroup {
        let Some((reads, first)) = self.first() else { return RowInGroup::Unknown };
        let Some((bound, _)) = bound(reads, first, &self.operands) else {
            return RowInGroup::Unknown;
        };
        if rest_matches(reads, bound, row, &self.operands, budget) == Match::No {
            return RowInGroup::Outside;
        }
        let kind = schema.table(reads.table).columns[usize::from(first.column)].kind;
        let value: Box<str> = match row.get(first.column) {
            // NULL is on no side of a bound.
            SqlValue::Null => return RowInGroup::Outside,
            SqlValue::Unknown => return RowInGroup::Unknown,
            SqlValue::Text(text) if value_key(kind, text).is_some() => text.as_ref().into(),
            SqlValue::Text(_) => return RowInGroup::Unknown,
        };
        let (table, reads) = (reads.table, self.clone());
        RowInGroup::Nearest(NearestLookup { table, group, reads, first, bound, kind, value })
    }
}

/// The place of a changed row in a group of statements.
#[derive(Debug)]
pub enum RowInGroup {
    /// The row is in no result of the group.
    Outside,
    /// The value of the row is not known: the row touches each statement whose condition it satisfies.
    Unknown,
    /// The row touches the statements with a bound between its value and the rows of this look-up.
    Nearest(NearestLookup),
}

impl NearestLookup {
    /// The bounds on the row's side of it.
    pub(crate) fn side(&self) -> RangeInclusive<OrderKey> {
        let own = self.own_key();
        match self.first.order {
            RowOrder::Ascending => 0..=own,
            RowOrder::Descending => own..=OrderKey::MAX,
        }
    }

    /// The bounds that may have the changed row in their result. `rows` are rows of the state after the transaction;
    /// `None` if there is no look-up. Rows that are not shown to be nearer shorten nothing.
    pub(crate) fn bounds(&self, rows: Option<&[SqlRow<'_>]>) -> RangeInclusive<OrderKey> {
        let own = self.own_key();
        let Some(end) = rows.and_then(|rows| self.end(rows)) else { return self.side() };
        match self.first.order {
            RowOrder::Ascending => end..=own,
            RowOrder::Descending => own..=end,
        }
    }

    fn own_key(&self) -> OrderKey {
        value_key(self.kind, &self.value).unwrap_or_default()
    }

    /// The value of the last of the rows that are in a result with this bound or nearer ones, if there are enough.
    fn end(&self, rows: &[SqlRow<'_>]) -> Option<OrderKey> {
        let (mut keys, mut budget) = (Vec::with_capacity(rows.len()), MatchBudget::of_row());
        for row in rows {
            let SqlValue::Text(value) = row.get(self.first.column) else { continue };
            let is_nearer = compare(self.kind, value, &self.value) == Some(self.nearer());
            if is_nearer && self.rest_matches(row, &mut budget) == Match::Yes {
                keys.push(value_key(self.kind, value)?);
            }
        }
        keys.sort_unstable();
        if self.first.order == RowOrder::Ascending {
            keys.reverse();
        }
        keys.get(usize::from(self.first.count) - 1).copied()
    }

    fn nearer(&self) -> Ordering {
        match self.first.order {
            RowOrder::Ascending => Ordering::Less,
            RowOrder::Descending => Ordering::Greater,
        }
    }

    /// The columns that the statements read.
    #[must_use]
    pub fn columns(&self) -> Columns {
        let mut columns = self.reads.at(Position { block: 0, table: 0 }).read();
        columns.insert(self.first.column.into());
        columns
    }

    /// Whether a later change may have put a row between the changed row and the last of these rows. Then they may not
    /// have been there in the state that the look-up is about.
    #[must_use]
    pub fn is_in_doubt(&self, rows: &[SqlRow<'_>], later: &TableChange) -> bool {
        let event = match later {
            TableChange::Everything => return true,
            TableChange::Table(table) => return *table == self.table,
            TableChange::Row(event) if event.table != self.table => return false,
            TableChange::Row(event) => event,
        };
        let Some(after) = &event.after else { return false };
        let bounds = self.bounds(Some(rows));
        let is_between = match after.get(self.first.column) {
            SqlValue::Null => false,
            SqlValue::Unknown => true,
            SqlValue::Text(value) => {
                value_key(self.kind, value).is_none_or(|key| bounds.contains(&key))
            }
        };
        let mut budget = MatchBudget::of_row();
        if !is_between || self.rest_matches(after, &mut budget) == Match::No {
            return false;
        }
        // A row that was at the same place before is the same row.
        let is_same = |before: &SqlRow<'_>| {
            let value = before.get(self.first.column);
            value == after.get(self.first.column)
                && *value != SqlValue::Unknown
                && self.rest_matches(before, &mut budget) == Match::Yes
        };
        !event.before.as_ref().is_some_and(is_same)
    }

    /// Whether a row satisfies all conditions but that of the bound.
    fn rest_matches(&self, row: &SqlRow<'_>, budget: &mut MatchBudget) -> Match {
        let reads = &self.reads.form.blocks[0].tables[0];
        rest_matches(reads, self.bound, row, &self.reads.operands, budget)
    }

    /// The query for the rows, and how the values of each column are read. A column of the kind
    /// [`SqlColumnKind::Opaque`] is not selected.
    #[must_use]
    pub fn query(&self, schema: &SqlSchema) -> (String, Vec<SqlColumnKind>) {
        let table = schema.table(self.table);
        let reads = &self.reads.form.blocks[0].tables[0];
        let mut tested = Columns::NONE;
        let conjuncts = reads.condition.conjuncts();
        let rest = conjuncts.iter().enumerate().filter(|(at, _)| *at != self.bound);
        rest.clone().for_each(|(_, condition)| condition.collect_columns(&mut tested));
        tested.insert(self.first.column.into());
        let kinds = table.columns.iter().enumerate().map(|(at, column)| {
            if tested.contains(at) { column.kind } else { SqlColumnKind::Opaque }
        });
        let kinds: Vec<SqlColumnKind> = kinds.collect();
        let mut sql = "SELECT ".to_owned();
        for (at, (column, kind)) in table.columns.iter().zip(&kinds).enumerate() {
            sql.push_str(if at > 0 { "," } else { "" });
            crate::sql_text::put_column(&mut sql, &column.name, *kind);
        }
        sql.push_str(" FROM ");
        put_name(&mut sql, &table.name);
        sql.push_str(" WHERE ");
        for (_, condition) in rest {
            // Each could be written when the group began.
            let _ = put_condition(&mut sql, table, condition, &self.reads.operands);
            sql.push_str(" AND ");
        }
        let name = &table.columns[usize::from(self.first.column)].name;
        let (sign, order) = match self.first.order {
            RowOrder::Ascending => ('<', "DESC"),
            RowOrder::Descending => ('>', "ASC"),
        };
        put_name(&mut sql, name);
        sql.push(sign);
        put_value(&mut sql, self.kind, &self.value);
        sql.push_str(" ORDER BY ");
        put_name(&mut sql, name);
        // Writing to a string cannot fail.
        let _ = write!(sql, " {order} LIMIT {}", self.first.count);
        (sql, kinds)
    }
}

/// The condition of the bound, by its position, and the bound.
fn bound<'o>(
    reads: &TableReads,
    first: FirstRows,
    operands: &'o [Operand],
) -> Option<(usize, &'o Constant)> {
    let mut conjuncts = reads.condition.conjuncts().iter().enumerate();
    conjuncts.find_map(|(at, conjunct)| Some((at, bound_of(conjunct, first, operands)?)))
}

/// The bound of a condition that all rows beyond it satisfy, and no row before it: `c > X`, `c >= X`, or
/// `c > X OR c = X AND …`.
fn bound_of<'o>(
    condition: &Condition,
    first: FirstRows,
    operands: &'o [Operand],
) -> Option<&'o Constant> {
    match condition {
        Condition::Atom(atom) => beyond(atom, first, operands),
        Condition::Any(arms) => {
            let bound = arms.iter().find_map(|arm| match arm {
                Condition::Atom(atom) => beyond(atom, first, operands),
                _ => None,
            })?;
            let is_at = |arm: &Condition| is_at(arm, bound, first.column, operands);
            let is_beyond = |arm: &Condition| match arm {
                Condition::Atom(atom) => beyond(atom, first, operands) == Some(bound),
                _ => false,
            };
            arms.iter().all(|arm| is_beyond(arm) || is_at(arm)).then_some(bound)
        }
        Condition::Always | Condition::Never | Condition::All(_) => None,
    }
}

fn beyond<'o>(atom: &Atom, first: FirstRows, operands: &'o [Operand]) -> Option<&'o Constant> {
    let Atom { column, part: None, test, is_negated: false } = atom else { return None };
    let end: &RangeEnd = match (test, first.order) {
        (Test::Range { low: Some(low), high: None }, RowOrder::Ascending) => low,
        (Test::Range { low: None, high: Some(high) }, RowOrder::Descending) => high,
        _ => return None,
    };
    match end.value.of(operands) {
        Operand::One(constant) if *column == first.column => Some(constant),
        _ => None,
    }
}

/// Whether only rows with this value in the column can satisfy the condition.
fn is_at(condition: &Condition, bound: &Constant, column: u16, operands: &[Operand]) -> bool {
    condition.conjuncts().iter().any(|conjunct| match conjunct {
        Condition::Atom(Atom {
            column: own,
            part: None,
            test: Test::In(slot),
            is_negated: false,
        }) => {
            *own == column
                && matches!(slot.of(operands), Operand::One(constant) if constant == bound)
        }
        _ => false,
    })
}

/// Whether a row satisfies all conditions but that of the bound.
fn rest_matches(
    reads: &TableReads,
    bound: usize,
    row: &SqlRow<'_>,
    operands: &[Operand],
    budget: &mut MatchBudget,
) -> Match {
    let conjuncts = reads.condition.conjuncts().iter().enumerate();
    let rest = conjuncts.filter(|(at, _)| *at != bound);
    let matches = rest.map(|(_, condition)| condition.matches(row, operands, budget));
    matches.min().unwrap_or(Match::Yes)
}

fn collect_slots(condition: &Condition, slots: &mut Vec<Slot>) {
    match condition {
        Condition::Always | Condition::Never => {}
        Condition::Atom(atom) => match &atom.test {
            Test::In(slot) | Test::Like(slot) => slots.push(*slot),
            Test::Range { low, high } => {
                slots.extend(low.iter().chain(high).map(|end| end.value));
            }
            Test::Null => {}
        },
        Condition::All(all) | Condition::Any(all) => {
            all.iter().for_each(|condition| collect_slots(condition, slots));
        }
    }
}

fn constant_key(constant: &Constant) -> Option<OrderKey> {
    match constant {
        Constant::Integer(number) => Some(integer_key(*number)),
        Constant::Moment(text) => moment_key(text),
        Constant::Number(_) | Constant::Text { .. } | Constant::Folded(_) | Constant::Bytes(_) => {
            None
        }
    }
}

/// The number of a value; `None` if its order is not known.
fn value_key(kind: SqlColumnKind, value: &str) -> Option<OrderKey> {
    match kind {
        SqlColumnKind::Integer => {
            let number: i128 = value.parse().ok()?;
            let bounded = number.clamp(i64::MIN.into(), i64::MAX.into());
            i64::try_from(bounded).ok().map(integer_key)
        }
        SqlColumnKind::Moment => moment_key(value),
        SqlColumnKind::Number
        | SqlColumnKind::Text { .. }
        | SqlColumnKind::Bytes
        | SqlColumnKind::Opaque => None,
    }
}

fn integer_key(number: i64) -> OrderKey {
    number.cast_unsigned() ^ 1 << 63
}

/// The digits of a date and time up to the seconds, as a number.
fn moment_key(text: &str) -> Option<OrderKey> {
    const SECOND: usize = "0000-00-00 00:00:00".len();
    let moment = moment(text)?;
    let digits = moment[..SECOND].iter().filter(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + OrderKey::from(digit - b'0')))
}

/// The order of two values.
fn compare(kind: SqlColumnKind, one: &str, other: &str) -> Option<Ordering> {
    match kind {
        SqlColumnKind::Integer => Some(one.parse::<i128>().ok()?.cmp(&other.parse::<i128>().ok()?)),
        SqlColumnKind::Moment => Some(moment(one)?.cmp(&moment(other)?)),
        SqlColumnKind::Number
        | SqlColumnKind::Text { .. }
        | SqlColumnKind::Bytes
        | SqlColumnKind::Opaque => None,
    }
}

/// Appends a condition as SQL; `None` if it cannot be written. Rows are tested again when they are there, so it need not
/// be exact.
fn put_condition(
    sql: &mut String,
    table: &SqlTable,
    condition: &Condition,
    operands: &[Operand],
) -> Option<()> {
    let (all, between) = match condition {
        Condition::Always | Condition::Never => {
            sql.push(if *condition == Condition::Always { '1' } else { '0' });
            return Some(());
        }
        Condition::Atom(atom) => return put_atom(sql, table, atom, operands),
        Condition::All(all) => (all, " AND "),
        Condition::Any(all) => (all, " OR "),
    };
    sql.push('(');
    for (at, condition) in all.iter().enumerate() {
        sql.push_str(if at > 0 { between } else { "" });
        put_condition(sql, table, condition, operands)?;
    }
    sql.push(')');
    Some(())
}

fn put_atom(sql: &mut String, table: &SqlTable, atom: &Atom, operands: &[Operand]) -> Option<()> {
    let column = &table.columns[usize::from(atom.column)];
    let (function, kind) = match atom.part {
        None => ("", column.kind),
        Some(MomentPart::Year) => ("YEAR", SqlColumnKind::Integer),
        Some(MomentPart::Month) => ("MONTH", SqlColumnKind::Integer),
        Some(MomentPart::Day) => ("DAY", SqlColumnKind::Integer),
    };
    let put_target = |sql: &mut String| {
        sql.push_str(function);
        sql.push('(');
        put_name(sql, &column.name);
        sql.push(')');
    };
    sql.push_str(if atom.is_negated { "NOT(" } else { "(" });
    match &atom.test {
        Test::In(slot) => {
            put_target(sql);
            sql.push_str(" IN ");
            put_list(sql, kind, slot.of(operands))?;
        }
        Test::Range { low, high } => {
            let ends = low.iter().map(|end| (end, ">")).chain(high.iter().map(|end| (end, "<")));
            for (at, (end, sign)) in ends.enumerate() {
                sql.push_str(if at > 0 { " AND " } else { "" });
                put_target(sql);
                sql.push_str(sign);
                sql.push_str(if end.is_included { "=" } else { "" });
                let Operand::One(value) = end.value.of(operands) else { return None };
                put_constant(sql, kind, value)?;
            }
        }
        Test::Like(slot) => {
            let Operand::Pattern(pattern) = slot.of(operands) else { return None };
            put_target(sql);
            sql.push_str(" LIKE ");
            put_value(sql, kind, pattern.text());
        }
        Test::Null => {
            put_target(sql);
            sql.push_str(" IS NULL");
        }
    }
    sql.push(')');
    Some(())
}

fn put_list(sql: &mut String, kind: SqlColumnKind, operand: &Operand) -> Option<()> {
    sql.push('(');
    let separator = |at| if at > 0 { "," } else { "" };
    match operand {
        Operand::One(constant) => put_constant(sql, kind, constant)?,
        Operand::Integers(all) if all.len() <= LISTED_MAX => {
            for (at, number) in all.iter().enumerate() {
                let _ = write!(sql, "{}{number}", separator(at));
            }
        }
        Operand::Constants(all) if all.len() <= LISTED_MAX => {
            for (at, constant) in all.iter().enumerate() {
                sql.push_str(separator(at));
                put_constant(sql, kind, constant)?;
            }
        }
        Operand::Integers(_) | Operand::Constants(_) | Operand::Pattern(_) => return None,
    }
    sql.push(')');
    Some(())
}

fn put_constant(sql: &mut String, kind: SqlColumnKind, constant: &Constant) -> Option<()> {
    match constant {
        Constant::Integer(number) => {
            let _ = write!(sql, "{number}");
        }
        Constant::Number(number) if number.is_finite() => {
            let _ = write!(sql, "{number:e}");
        }
        Constant::Moment(text) | Constant::Text { text, .. } | Constant::Bytes(text) => {
            put_value(sql, kind, text);
        }
        // The text itself is not known; and a row is never shown to be equal.
        Constant::Folded(_) | Constant::Number(_) => return None,
    }
    Some(())
}
