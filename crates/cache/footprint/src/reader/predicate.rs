//! The conditions of a block: what `WHERE` and `ON` imply for each of its tables alone.
//!
//! The condition of a table is made of the conjuncts that are understood. Everything else is true:
//! comparisons of two columns, functions, subqueries, constants whose comparison is not known; and an `OR`
//! with such a part. `NOT` is moved to the single tests. Outer joins:
//!
//! | condition | restricts |
//! |---|---|
//! | `WHERE`, `ON` of an inner join | all its tables; one that an outer join may replace by NULLs only if NULLs fail |
//! | `ON` of `LEFT JOIN` | the table on the right, in the same way |
//! | `ON` of `RIGHT JOIN` | the tables on the left, in the same way |
//!
//! Invariant: a conjunct whose columns are left out of the used ones is tested exactly by the condition of
//! its table. Not here: the columns of everything else.

use super::Stop;
use super::block::{BlockBuilder, Place, is_comparable};
use super::expression::{constants_compare, is_dual, mirrored, opposite, signed, split, unnested};
use crate::compare::Constant;
use crate::condition::{Atom, Condition, MomentPart, Operand, RangeEnd, Slot, Test};
use crate::lexer::SqlMode;
use crate::literal::Literal;
use crate::pattern::Pattern;
use crate::schema::{ColumnKey, Columns, SqlColumnKind, SqlSchema};
use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, InTarget, Join,
    JoinConstraint, JoinOperator, ObjectName as DottedName, ObjectNamePart as NamePart, Select,
    SetExpr, TableFactor, TableWithJoins, UnaryOperator, Value,
};
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// Reads the conditions of one block.
pub(super) struct Predicates<'a, 'b> {
    pub schema: &'a SqlSchema,
    pub literals: &'a [Literal],
    pub mode: SqlMode,
    pub block: &'b mut BlockBuilder,
    /// The position of the block in the statement.
    pub own: usize,
    /// The constants of all conditions of the statement.
    pub operands: &'b mut Vec<Operand>,
    /// Where subqueries behind `IN` are collected.
    pub memberships: &'b mut Vec<Membership>,
    pub claimed: &'b mut HashSet<*const Expr>,
    /// The tables whose columns the present condition can name.
    pub visible: Range<usize>,
    /// Whether `USING` or `NATURAL` makes one column of several.
    pub has_merged: bool,
}

/// A column that must be in the result of a subquery.
pub(super) struct Membership {
    /// The position of the column's block.
    pub block: usize,
    pub place: Place,
    /// The subquery, by its address in the syntax tree.
    pub select: *const Select,
}

/// The meaning of an expression for one table.
struct Implication {
    condition: Condition,
    /// Whether the condition says all that the expression says.
    is_exact: bool,
    /// The columns that it tests.
    columns: Vec<*const Expr>,
}

impl Implication {
    fn nothing() -> Implication {
        Implication { condition: Condition::Always, is_exact: false, columns: Vec::new() }
    }

    fn constant(is_true: bool) -> Implication {
        let condition = if is_true { Condition::Always } else { Condition::Never };
        Implication { condition, is_exact: true, columns: Vec::new() }
    }
}

/// The tables that a join condition restricts.
enum Restricts {
    Both,
    Left,
    Right,
}

impl Predicates<'_, '_> {
    /// Reads the join conditions of `FROM`.
    pub fn joins(&mut self, from: &[TableWithJoins]) -> Result<(), Stop> {
        let mut next = 0;
        from.iter().try_for_each(|table| self.join_tree(table, &mut next))
    }

    /// Reads the condition of `WHERE`.
    pub fn filter(&mut self, condition: Option<&Expr>) {
        if let Some(condition) = condition {
            self.visible = 0..self.block.sources.len();
            self.restrict(condition, 0..self.block.sources.len(), true);
        }
    }

    /// Reads the join conditions of a part of `FROM`, whose first table is the next one.
    fn join_tree(&mut self, tree: &TableWithJoins, next: &mut usize) -> Result<(), Stop> {
        let first = *next;
        self.factor(&tree.relation, next)?;
        for join in &tree.joins {
            let right = *next;
            self.factor(&join.relation, next)?;
            self.join(join, first..right, right..*next)?;
        }
        Ok(())
    }

    fn factor(&mut self, factor: &TableFactor, next: &mut usize) -> Result<(), Stop> {
        match factor {
            TableFactor::NestedJoin { table_with_joins, alias: _ } => {
                self.join_tree(table_with_joins, next)
            }
            TableFactor::Table { name, .. } => {
                *next += usize::from(!is_dual(name));
                Ok(())
            }
            _ => {
                *next += 1;
                Ok(())
            }
        }
    }

    fn join(&mut self, join: &Join, left: Range<usize>, right: Range<usize>) -> Result<(), Stop> {
        let (restricts, constraint) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => (Restricts::Both, constraint),
            JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                (Restricts::Right, constraint)
            }
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                (Restricts::Left, constraint)
            }
            _ => return Err(Stop::Inexact),
        };
        let (restricted, optional) = match restricts {
            Restricts::Both => (left.start..right.end, 0..0),
            Restricts::Left => (left.clone(), left.clone()),
            Restricts::Right => (right.clone(), right.clone()),
        };
        self.visible = left.start..right.end;
        self.has_merged |= matches!(constraint, JoinConstraint::Using(_) | JoinConstraint::Natural);
        match constraint {
            JoinConstraint::On(condition) => {
                self.restrict(condition, restricted, matches!(restricts, Restricts::Both));
            }
            JoinConstraint::Using(columns) => {
                columns
                    .iter()
                    .try_for_each(|column| self.using(column, &left, &right, &restricted))?;
            }
            JoinConstraint::UsingAlias(..) => return Err(Stop::Inexact),
            JoinConstraint::Natural => {
                self.block.sources[left.start..right.end]
                    .iter_mut()
                    .for_each(|source| source.used = Columns::ALL);
            }
            JoinConstraint::None => {}
        }
        self.block.sources[optional].iter_mut().for_each(|source| source.is_optional = true);
        Ok(())
    }

    /// A column that both sides of a join have, with equal values.
    fn using(
        &mut self,
        column: &DottedName,
        left: &Range<usize>,
        right: &Range<usize>,
        restricted: &Range<usize>,
    ) -> Result<(), Stop> {
        let Some(NamePart::Identifier(name)) = column.0.last() else {
            return Err(Stop::Inexact);
        };
        let places = self.block.places(self.schema, None, &name.value);
        places.iter().for_each(|place| self.block.use_column(*place));
        let of = |side: &Range<usize>| {
            let mut places = places.iter().filter(|place| side.contains(&place.source));
            places.next().copied().filter(|_| places.next().is_none())
        };
        // A table whose columns are not known may have it instead.
        if let (Some(one), Some(other), false) = (of(left), of(right), self.block.has_derived()) {
            for (place, partner) in [(one, other), (other, one)] {
                self.need_partner(place, partner, restricted);
            }
        }
        Ok(())
    }

    /// Restricts some of the tables by a condition. `joins_inner` says that a row of the block exists only
    /// where the condition is true; a table whose NULLs fail then always has a row.
    fn restrict(&mut self, condition: &Expr, restricted: Range<usize>, joins_inner: bool) {
        let mut conjuncts = Vec::new();
        split(condition, &mut conjuncts);
        if joins_inner {
            for conjunct in &conjuncts {
                self.require(conjunct, restricted.clone());
            }
        }
        for conjunct in conjuncts {
            self.partners(conjunct, &restricted);
            self.membership(conjunct, &restricted);
            for source in restricted.clone() {
                let operands = self.operands.len();
                let implied = self.implied(conjunct, source, false);
                self.block.is_inexact |= !implied.is_exact;
                if self.block.sources[source].is_optional && !implied.condition.rejects_null() {
                    self.operands.truncate(operands);
                    continue;
                }
                if implied.condition == Condition::Always {
                    self.operands.truncate(operands);
                }
                self.block.sources[source].conditions.push(implied.condition);
                if implied.is_exact {
                    self.claimed.extend(implied.columns);
                }
            }
        }
    }

    /// Marks the tables that a conjunct requires to have a row.
    fn require(&mut self, conjunct: &Expr, restricted: Range<usize>) {
        for place in self.equal_columns(conjunct).into_iter().flatten() {
            self.block.sources[place.source].is_optional &= !restricted.contains(&place.source);
        }
        for source in restricted {
            if self.block.sources[source].is_optional {
                let operands = self.operands.len();
                let rejects_null = self.implied(conjunct, source, false).condition.rejects_null();
                self.block.sources[source].is_optional = !rejects_null;
                self.operands.truncate(operands);
            }
        }
    }

    /// A conjunct that equates columns of two tables makes each need a partner in the other.
    fn partners(&mut self, conjunct: &Expr, restricted: &Range<usize>) {
        if let Some([one, other]) = self.equal_columns(conjunct) {
            for (place, partner) in [(one, other), (other, one)] {
                self.need_partner(place, partner, restricted);
            }
        }
    }

    /// Columns that are compared in an unknown way are left out.
    fn need_partner(&mut self, place: Place, partner: Place, restricted: &Range<usize>) {
        let columns = [place, partner].map(|place| self.block.column(self.schema, place));
        let is_known = place.source != partner.source && is_comparable(columns[0], columns[1]);
        if is_known && restricted.contains(&place.source) {
            self.block.need_partner(place, self.own, partner);
        }
    }

    /// A conjunct `column IN (SELECT …)` needs a partner in the subquery.
    fn membership(&mut self, conjunct: &Expr, restricted: &Range<usize>) {
        let Expr::In { expr, target: InTarget::Subquery(query), negated: false, global: false } =
            conjunct
        else {
            return;
        };
        let place = self.place(unnested(expr)).filter(|place| restricted.contains(&place.source));
        if let (Some(place), SetExpr::Select(select), None) =
            (place, &*query.body, &query.limit_clause)
            && !self.block.sources[place.source].is_optional
        {
            let select = std::ptr::from_ref(&**select);
            self.memberships.push(Membership { block: self.own, place, select });
        }
    }

    fn equal_columns(&self, conjunct: &Expr) -> Option<[Place; 2]> {
        match conjunct {
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                Some([self.place(unnested(left))?, self.place(unnested(right))?])
            }
            _ => None,
        }
    }

    /// See [`place`]. Names of tables are compared as they are written, since servers differ in whether case
    /// counts.
    fn place(&self, expr: &Expr) -> Option<Place> {
        let is_bare = matches!(expr, Expr::Identifier(_));
        let is_unclear = is_bare && self.has_merged && self.block.has_derived();
        place(self.schema, self.block, expr, &self.visible).filter(|_| !is_unclear)
    }

    /// The meaning of an expression, or of its negation, for one table.
    fn implied(&mut self, expr: &Expr, source: usize, is_negated: bool) -> Implication {
        match expr {
            Expr::Nested(inner) => self.implied(inner, source, is_negated),
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
                self.implied(expr, source, !is_negated)
            }
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.both(left, right, source, is_negated, !is_negated)
            }
            Expr::BinaryOp { left, op: BinaryOperator::Or, right } => {
                self.both(left, right, source, is_negated, is_negated)
            }
            _ => self.test(expr, source, is_negated).unwrap_or_else(Implication::nothing),
        }
    }

    /// Two expressions: both must be true, or at least one.
    fn both(
        &mut self,
        left: &Expr,
        right: &Expr,
        source: usize,
        is_negated: bool,
        is_all: bool,
    ) -> Implication {
        let (left, right) =
            (self.implied(left, source, is_negated), self.implied(right, source, is_negated));
        let conditions = [left.condition, right.condition];
        let condition =
            if is_all { Condition::all(conditions) } else { Condition::any(conditions) };
        let columns = [left.columns, right.columns].concat();
        Implication { condition, is_exact: left.is_exact && right.is_exact, columns }
    }

    /// A test of one column of the table, or of constants alone. `None` if it is not understood.
    fn test(&mut self, expr: &Expr, source: usize, is_negated: bool) -> Option<Implication> {
        match expr {
            Expr::Value(_) => {
                let (literal, _) = self.constant(expr)?;
                Some(Implication::constant((literal.integer()? != 0) != is_negated))
            }
            Expr::BinaryOp { left, op, right } => {
                self.comparison(left, op, right, source, is_negated)
            }
            Expr::In { expr, target: InTarget::List(list), negated, global: false } => {
                let target = self.target(expr, source)?;
                let constants = self.constants(list, target.kind)?;
                let slot = self.slot(Operand::of(constants));
                Some(target.implied(Test::In(slot), *negated != is_negated))
            }
            Expr::Between { expr, negated, low, high } => {
                let target = self.target(expr, source)?;
                if is_negated != *negated || !target.has_order() {
                    return None;
                }
                let bound = |end: &Expr| {
                    let (literal, has_minus) = self.constant(end)?;
                    // How a number is compared with two texts is not documented.
                    let is_known = target.kind != SqlColumnKind::Integer
                        || matches!(*literal, Literal::Number(_));
                    let value = signed(Constant::of(target.kind, &literal)?, has_minus)?;
                    is_known.then_some(value)
                };
                let (low, high) = (bound(low)?, bound(high)?);
                let (low, high) = (self.end(low, true), self.end(high, true));
                let test = Test::Range { low: Some(low), high: Some(high) };
                Some(target.implied(test, false))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                let target = self.target(expr, source)?;
                let (literal, _) = self.constant(pattern)?;
                let pattern = match &*literal {
                    Literal::Text(pattern) => pattern,
                    Literal::Bytes(pattern) if target.kind == SqlColumnKind::Bytes => pattern,
                    _ => return None,
                };
                if self.mode.has_plain_backslashes && pattern.contains('\\') {
                    return None;
                }
                let pattern = Pattern::of(target.kind, pattern)?;
                let slot = self.slot(Operand::Pattern(Box::new(pattern)));
                Some(target.implied(Test::Like(slot), *negated != is_negated))
            }
            Expr::IsNull(expr) => self.null(expr, source, is_negated),
            Expr::IsNotNull(expr) => self.null(expr, source, !is_negated),
            _ => None,
        }
    }

    fn null(&mut self, expr: &Expr, source: usize, is_negated: bool) -> Option<Implication> {
        let target = self.target(expr, source)?;
        // `IS NULL` finds the last inserted row by its automatic key.
        let is_known =
            target.part.is_none() && target.key != ColumnKey::Primary && !target.is_generated;
        is_known.then(|| target.implied(Test::Null, is_negated))
    }

    fn comparison(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
        source: usize,
        is_negated: bool,
    ) -> Option<Implication> {
        let op = if is_negated { opposite(op)? } else { op.clone() };
        if let (Some((one, false)), Some((other, false))) =
            (self.constant(left), self.constant(right))
        {
            return constants_compare(&one, &op, &other).map(Implication::constant);
        }
        let (target, literal, op) = match self.target(left, source) {
            Some(target) => (target, self.constant(right)?, op),
            None => (self.target(right, source)?, self.constant(left)?, mirrored(&op)?),
        };
        let value = signed(Constant::of(target.kind, &literal.0)?, literal.1)?;
        if !target.has_order() && !matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
            return None;
        }
        let test = match op {
            BinaryOperator::Eq | BinaryOperator::NotEq => Test::In(self.slot(Operand::One(value))),
            BinaryOperator::Lt => Test::Range { low: None, high: Some(self.end(value, false)) },
            BinaryOperator::LtEq => Test::Range { low: None, high: Some(self.end(value, true)) },
            BinaryOperator::Gt => Test::Range { low: Some(self.end(value, false)), high: None },
            BinaryOperator::GtEq => Test::Range { low: Some(self.end(value, true)), high: None },
            _ => return None,
        };
        Some(target.implied(test, op == BinaryOperator::NotEq))
    }

    /// Adds the constants of a test to those of the statement.
    fn slot(&mut self, operand: Operand) -> Slot {
        Slot::add(self.operands, operand)
    }

    fn end(&mut self, value: Constant, is_included: bool) -> RangeEnd {
        RangeEnd { value: self.slot(Operand::One(value)), is_included }
    }

    /// The constants of an `IN` list.
    fn constants(&self, list: &[Expr], kind: SqlColumnKind) -> Option<Vec<Constant>> {
        let mut constants = Vec::with_capacity(list.len());
        for expr in list {
            let (literal, has_minus) = self.constant(expr)?;
            let one = |literal: &Literal| signed(Constant::of(kind, literal)?, has_minus);
            match &*literal {
                Literal::List(all) => {
                    let all: Option<Vec<Constant>> = all.iter().map(one).collect();
                    constants.extend(all?);
                }
                literal => constants.push(one(literal)?),
            }
        }
        Some(constants)
    }

    /// The constant that an expression is, and whether it has a minus sign.
    fn constant(&self, expr: &Expr) -> Option<(Cow<'_, Literal>, bool)> {
        match unnested(expr) {
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => {
                    let at: usize = name.strip_prefix(':')?.parse().ok()?;
                    Some((Cow::Borrowed(self.literals.get(at)?), false))
                }
                Value::Number(number, _) => {
                    Some((Cow::Owned(Literal::Number(number.to_string().into())), false))
                }
                Value::SingleQuotedString(text) => {
                    Some((Cow::Owned(Literal::Text(text.as_str().into())), false))
                }
                _ => None,
            },
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                let (literal, has_minus) = self.constant(expr)?;
                let is_number = matches!(*literal, Literal::Number(_)) && !has_minus;
                is_number.then_some((literal, true))
            }
            _ => None,
        }
    }

    /// The column of the table that an expression is, or whose value it takes a part of.
    fn target(&self, expr: &Expr, source: usize) -> Option<Target> {
        let expr = unnested(expr);
        let (column, part) = match expr {
            Expr::Function(function) => {
                let [NamePart::Identifier(name)] = function.name.0.as_slice() else {
                    return None;
                };
                let part = match name.value.to_ascii_uppercase().as_str() {
                    "YEAR" => MomentPart::Year,
                    "MONTH" => MomentPart::Month,
                    "DAY" | "DAYOFMONTH" => MomentPart::Day,
                    _ => return None,
                };
                let FunctionArguments::List(list) = &function.args else { return None };
                let [FunctionArg::Unnamed(FunctionArgExpr::Expr(column))] = list.args.as_slice()
                else {
                    return None;
                };
                (unnested(column), Some(part))
            }
            other => (other, None),
        };
        let place = self.place(column).filter(|place| place.source == source)?;
        let table = self.schema.table(self.block.sources[source].table?);
        let definition = &table.columns[usize::from(place.column)];
        let kind = match (part, definition.kind) {
            (None, kind) => kind,
            (Some(_), SqlColumnKind::Moment) => SqlColumnKind::Integer,
            (Some(_), _) => return None,
        };
        Some(Target {
            expr: std::ptr::from_ref(column),
            column: place.column,
            kind,
            part,
            key: definition.key,
            is_generated: definition.is_generated,
        })
    }
}

/// A column, or a part of its value, that is compared.
struct Target {
    /// The column in the syntax tree.
    expr: *const Expr,
    column: u16,
    kind: SqlColumnKind,
    part: Option<MomentPart>,
    key: ColumnKey,
    is_generated: bool,
}

impl Target {
    /// Whether it is known which of two values is greater: the order of texts depends on the collation.
    fn has_order(&self) -> bool {
        !matches!(self.kind, SqlColumnKind::Text { .. } | SqlColumnKind::Opaque)
    }

    fn implied(&self, test: Test, is_negated: bool) -> Implication {
        let atom = Atom { column: self.column, part: self.part, test, is_negated };
        Implication { condition: Condition::Atom(atom), is_exact: true, columns: vec![self.expr] }
    }
}

/// The column of the visible tables of the block that an expression is; `None` if it is none, or of an outer
/// block, or not clear which.
pub(super) fn place(
    schema: &SqlSchema,
    block: &BlockBuilder,
    expr: &Expr,
    visible: &Range<usize>,
) -> Option<Place> {
    let (table, column) = match expr {
        Expr::Identifier(column) => (None, column),
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [table, column] | [_, table, column] => (Some(table.value.as_str()), column),
            _ => return None,
        },
        _ => return None,
    };
    let mut places = block.places(schema, table, &column.value);
    places.retain(|place| {
        let written = &block.sources[place.source].written;
        visible.contains(&place.source) && table.is_none_or(|table| table == written)
    });
    if let [place] = places.as_slice() { Some(*place) } else { None }
}
