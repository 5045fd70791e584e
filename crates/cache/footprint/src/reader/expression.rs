//! Small questions about expressions of the syntax tree, without tables.
//!
//! Not here: columns, and the meaning of an expression for a table.

use crate::compare::Constant;
use crate::literal::Literal;
use sqlparser::ast::{BinaryOperator, Expr, ObjectName as DottedName, ObjectNamePart as NamePart};

/// The parts of an expression that must all be true.
pub(super) fn split<'e>(expr: &'e Expr, conjuncts: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Nested(inner) => split(inner, conjuncts),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            split(left, conjuncts);
            split(right, conjuncts);
        }
        other => conjuncts.push(other),
    }
}

pub(super) fn unnested(mut expr: &Expr) -> &Expr {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

pub(super) fn is_dual(name: &DottedName) -> bool {
    match name.0.as_slice() {
        [NamePart::Identifier(name)] => name.value.eq_ignore_ascii_case("dual"),
        _ => false,
    }
}

pub(super) fn signed(constant: Constant, has_minus: bool) -> Option<Constant> {
    if has_minus { constant.negated() } else { Some(constant) }
}

/// The comparison that is true where this one is false, unless a value is NULL.
pub(super) fn opposite(op: &BinaryOperator) -> Option<BinaryOperator> {
    match op {
        BinaryOperator::Eq => Some(BinaryOperator::NotEq),
        BinaryOperator::NotEq => Some(BinaryOperator::Eq),
        BinaryOperator::Lt => Some(BinaryOperator::GtEq),
        BinaryOperator::LtEq => Some(BinaryOperator::Gt),
        BinaryOperator::Gt => Some(BinaryOperator::LtEq),
        BinaryOperator::GtEq => Some(BinaryOperator::Lt),
        _ => None,
    }
}

/// The comparison with its sides exchanged.
pub(super) fn mirrored(op: &BinaryOperator) -> Option<BinaryOperator> {
    match op {
        BinaryOperator::Eq | BinaryOperator::NotEq => Some(op.clone()),
        BinaryOperator::Lt => Some(BinaryOperator::Gt),
        BinaryOperator::LtEq => Some(BinaryOperator::GtEq),
        BinaryOperator::Gt => Some(BinaryOperator::Lt),
        BinaryOperator::GtEq => Some(BinaryOperator::LtEq),
        _ => None,
    }
}

/// Compares two whole numbers, as in `1 = 1`.
pub(super) fn constants_compare(
    one: &Literal,
    op: &BinaryOperator,
    other: &Literal,
) -> Option<bool> {
    let (Literal::Number(_), Literal::Number(_)) = (one, other) else { return None };
    let (one, other) = (one.integer()?, other.integer()?);
    match op {
        BinaryOperator::Eq => Some(one == other),
        BinaryOperator::NotEq => Some(one != other),
        BinaryOperator::Lt => Some(one < other),
        BinaryOperator::LtEq => Some(one <= other),
        BinaryOperator::Gt => Some(one > other),
        BinaryOperator::GtEq => Some(one >= other),
        _ => None,
    }
}
