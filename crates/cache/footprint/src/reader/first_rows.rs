//! Queries whose result is the first rows of one table in the order of a column, such as the next article:
//! `SELECT … FROM t WHERE … ORDER BY c LIMIT 1`.
//!
//! Invariant: [`first_rows`] returns something only if the result consists of the first rows among those that satisfy
//! `WHERE`, and the conditions that were read are all of `WHERE`, exactly. No group, no set of distinct rows, no count
//! of all rows, no partition of the table. Not here: how many of these queries a changed row touches
//! (`crate::nearest`).

use super::block::BlockBuilder;
use super::predicate::place;
use crate::footprint::{FirstRows, RowOrder};
use crate::literal::Literal;
use crate::schema::{SqlColumnKind, SqlSchema};
use sqlparser::ast::{
    Expr, GroupByExpr, LimitClause, OrderByKind, OrderBySort, Query, Select, SelectItem, SetExpr,
    TableFactor, Value,
};

/// The maximum number of rows. As many are looked up for a changed row.
const COUNT_MAX: u8 = 16;

/// The rows that the result of a query consists of; `None` if it may depend on other rows. `block` is that of its
/// `SELECT`, with its conditions. The caller makes sure that there is no other block.
pub(super) fn first_rows(
    schema: &SqlSchema,
    literals: &[Literal],
    query: &Query,
    block: &BlockBuilder,
) -> Option<FirstRows> {
    let (SetExpr::Select(select), None) = (&*query.body, &query.with) else { return None };
    let [source] = block.sources.as_slice() else { return None };
    let table = schema.table(source.table?);
    // `FOR UPDATE SKIP LOCKED` leaves rows out.
    let is_locking = !query.locks.is_empty();
    if block.is_inexact || is_locking || !table.is_logged_first || !is_plain(select) {
        return None;
    }
    let count = limit(query.limit_clause.as_ref()?, literals)?;
    let order = query.order_by.as_ref().filter(|order| order.interpolate.is_none())?;
    let OrderByKind::Expressions(expressions) = &order.kind else { return None };
    // Later expressions decide among rows with equal values in the column.
    let first = expressions.first().filter(|first| first.with_fill.is_none())?;
    let order = match (&first.options.sort, first.options.nulls_first) {
        (None | Some(OrderBySort::Asc), None) => RowOrder::Ascending,
        (Some(OrderBySort::Desc), None) => RowOrder::Descending,
        _ => return None,
    };
    let column = place(schema, block, &first.expr, &(0..1))?.column;
    let kind = table.columns[usize::from(column)].kind;
    let is_ordered = matches!(kind, SqlColumnKind::Integer | SqlColumnKind::Moment);
    is_ordered.then_some(FirstRows { column, order, count })
}

/// Whether each row that satisfies `WHERE` is a row of the result, and none has a name that `ORDER BY` could mean.
fn is_plain(select: &Select) -> bool {
    let is_column = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::Wildcard(_)
                | SelectItem::QualifiedWildcard(..)
                | SelectItem::UnnamedExpr(Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        )
    };
    let is_grouped = !matches!(
        &select.group_by,
        GroupByExpr::Expressions(columns, modifiers) if columns.is_empty() && modifiers.is_empty()
    );
    let is_one_table = match select.from.as_slice() {
        [from] => {
            let is_whole = matches!(
                &from.relation,
                TableFactor::Table { partitions, .. } if partitions.is_empty()
            );
            is_whole && from.joins.is_empty()
        }
        _ => false,
    };
    is_one_table
        && !is_grouped
        && select.distinct.is_none()
        && select.select_modifiers.is_none()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.projection.iter().all(is_column)
}

/// The number of rows.
fn limit(clause: &LimitClause, literals: &[Literal]) -> Option<u8> {
    let LimitClause::LimitOffset { limit: Some(Expr::Value(value)), offset: None, limit_by } =
        clause
    else {
        return None;
    };
    let digits = match &value.value {
        Value::Placeholder(name) => {
            match literals.get(name.strip_prefix(':')?.parse::<usize>().ok()?)? {
                Literal::Number(digits) => digits.to_string(),
                _ => return None,
            }
        }
        Value::Number(digits, _) => digits.to_string(),
        _ => return None,
    };
    let count = digits.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count))?;
    limit_by.is_empty().then_some(count)
}
