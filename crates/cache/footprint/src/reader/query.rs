//! The structure of a query: its blocks, the tables of each, and the columns that its result depends on.
//!
//! A column is used unless it occurs only in a condition that is understood exactly ([`super::predicate`]).
//! Invariant: the fields of the syntax tree are named one by one, so that a part that a new version of the
//! parser adds cannot be overlooked; what is not understood stops the reading. Not here: conditions.

use super::block::{BlockBuilder, Place, Source, is_comparable};
use super::first_rows::first_rows;
use super::predicate::{Membership, Predicates, place};
use super::{Stop, UnknownReads, check_variable};
use crate::condition::Operand;
use crate::footprint::{Reads, ReadsForm};
use crate::functions::{self, Function};
use crate::lexer::SqlMode;
use crate::literal::Literal;
use crate::schema::{Columns, SqlSchema};
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, InTarget,
    ObjectName as DottedName, ObjectNamePart as NamePart, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Statement, TableFactor, TableWithJoins, Visit,
    Visitor, With, visit_relations,
};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// The maximum number of tables in a block, as in the database.
const SOURCES_MAX: usize = 61;
/// The maximum number of blocks in a statement.
const BLOCKS_MAX: usize = 64;

/// Reads the structure of a query, and returns its footprints.
pub(super) fn read(
    schema: &SqlSchema,
    statement: &Statement,
    literals: &[Literal],
    mode: SqlMode,
) -> Result<Reads, Stop> {
    if !matches!(statement, Statement::Query(_)) {
        return Err(Stop::Inexact);
    }
    let mut walk = Walk {
        schema,
        literals,
        mode,
        frames: Vec::new(),
        blocks: Vec::new(),
        selected: HashMap::new(),
        memberships: Vec::new(),
        claimed: HashSet::default(),
        operands: Vec::new(),
        reads: ReadsForm::default(),
    };
    if let ControlFlow::Break(stop) = statement.visit(&mut walk) {
        return Err(stop);
    }
    walk.connect();
    let Walk { mut blocks, mut reads, mut operands, .. } = walk;
    if let [_, _, ..] = blocks[..] {
        blocks.iter_mut().for_each(|block| block.first = None);
    }
    for (own, block) in blocks.iter_mut().enumerate() {
        block.pass_constants_on(own, &mut operands);
    }
    let positions: Vec<Vec<Option<usize>>> = blocks.iter().map(BlockBuilder::positions).collect();
    reads.blocks = blocks.into_iter().map(|block| block.finish(&positions)).collect();
    Ok(Reads::new(reads, operands))
}

struct Walk<'a> {
    schema: &'a SqlSchema,
    literals: &'a [Literal],
    mode: SqlMode,
    /// The queries around the present place, outermost first.
    frames: Vec<Frame>,
    blocks: Vec<BlockBuilder>,
    /// For each `SELECT` of a single column its block and that column, by its address.
    selected: HashMap<*const Select, (usize, Place)>,
    /// Columns that must be in the result of a subquery.
    memberships: Vec<Membership>,
    /// The columns in conditions that are understood exactly, by their address in the syntax tree.
    claimed: HashSet<*const Expr>,
    /// The constants of all conditions.
    operands: Vec<Operand>,
    reads: ReadsForm,
}

/// A query: one block, or several that `UNION` joins.
#[derive(Default)]
struct Frame {
    /// The names of its common table expressions, in lower case.
    tables: Vec<String>,
    /// Its blocks, by the address of their `SELECT`.
    blocks: Vec<(*const Select, usize)>,
    /// The block whose `SELECT` is being visited.
    present: Option<usize>,
}

impl Visitor for Walk<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Stop> {
        flow(self.enter(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Stop> {
        self.frames.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Stop> {
        let address = std::ptr::from_ref(select);
        if let Some(frame) = self.frames.last_mut() {
            let block = frame.blocks.iter().find(|(select, _)| *select == address);
            frame.present = block.map(|(_, block)| *block);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<Stop> {
        if let Some(frame) = self.frames.last_mut() {
            frame.present = None;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Stop> {
        flow(self.expression(expr))
    }
}

fn flow(result: Result<(), Stop>) -> ControlFlow<Stop> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(stop) => ControlFlow::Break(stop),
    }
}

/// Stops the reading if a part of the syntax tree is there that is not understood.
fn absent(parts: &[bool]) -> Result<(), Stop> {
    if parts.contains(&true) { Err(Stop::Inexact) } else { Ok(()) }
}

impl Walk<'_> {
    /// Begins a query: finds its blocks, and reads their tables and conditions.
    fn enter(&mut self, query: &Query) -> Result<(), Stop> {
        let Query {
            with,
            body,
            // See `first_rows`.
            order_by: _,
            limit_clause: _,
            fetch,
            locks: _,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        absent(&[
            fetch.is_some(),
            for_clause.is_some(),
            settings.is_some(),
            format_clause.is_some(),
            !pipe_operators.is_empty(),
        ])?;
        let tables = with.as_ref().map_or(Ok(Vec::new()), |with| self.common_tables(with))?;
        self.frames.push(Frame { tables, ..Frame::default() });
        let mut selects = Vec::new();
        collect_selects(body, &mut selects)?;
        for select in selects {
            let at = self.blocks.len();
            if at >= BLOCKS_MAX {
                return Err(Stop::Inexact);
            }
            let mut block = self.block(select, at)?;
            block.first = first_rows(self.schema, self.literals, query, &block);
            if let Some(place) = self.selected_column(select, &block) {
                self.selected.insert(std::ptr::from_ref(select), (at, place));
            }
            self.blocks.push(block);
            if let Some(frame) = self.frames.last_mut() {
                frame.blocks.push((std::ptr::from_ref(select), at));
            }
        }
        Ok(())
    }

    /// The names of common table expressions. One can have the name of a table, and then read that table;
    /// and without `RECURSIVE`, the names of itself and of later ones are those of other tables.
    fn common_tables(&self, with: &With) -> Result<Vec<String>, Stop> {
        let With { with_token: _, recursive, cte_tables } = with;
        let names: Vec<String> =
            cte_tables.iter().map(|table| table.alias.name.value.to_lowercase()).collect();
        absent(&[names.iter().any(|name| self.schema.table_id(name).is_some())])?;
        if *recursive {
            return Ok(names);
        }
        for (table, later) in cte_tables.iter().zip((0..).filter_map(|at| names.get(at..))) {
            let is_later = |name: &DottedName| match name.0.as_slice() {
                [NamePart::Identifier(name)] => later.contains(&name.value.to_lowercase()),
                _ => false,
            };
            let read = visit_relations(&table.query, |name| {
                if is_later(name) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            absent(&[read.is_break()])?;
        }
        Ok(names)
    }

    fn block(&mut self, select: &Select, own: usize) -> Result<BlockBuilder, Stop> {
        let Select {
            select_token: _,
            optimizer_hints: _,
            distinct: _,
            select_modifiers: _,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection,
            connect_by,
            group_by: _,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window: _,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        absent(&[
            top.is_some(),
            exclude.is_some(),
            !lateral_views.is_empty(),
            prewhere.is_some(),
            !connect_by.is_empty(),
            !cluster_by.is_empty(),
            !distribute_by.is_empty(),
            !sort_by.is_empty(),
            qualify.is_some(),
            value_table_mode.is_some(),
            *flavor != SelectFlavor::Standard,
        ])?;
        if into.is_some() {
            return Err(Stop::Unknown(UnknownReads::Variable("behind INTO".to_owned())));
        }
        let mut block = BlockBuilder::default();
        for table in from {
            self.register(table, &mut block)?;
        }
        if block.sources.len() > SOURCES_MAX {
            return Err(Stop::Inexact);
        }
        let mut predicates = Predicates {
            schema: self.schema,
            literals: self.literals,
            mode: self.mode,
            block: &mut block,
            own,
            memberships: &mut self.memberships,
            operands: &mut self.operands,
            claimed: &mut self.claimed,
            visible: 0..0,
            has_merged: false,
        };
        predicates.joins(from)?;
        predicates.filter(selection.as_ref());
        select_list(projection, &mut block);
        Ok(block)
    }

    /// The only column of a select list, if each row of the block stands for itself: in a group, other rows
    /// have a say in what it gives.
    fn selected_column(&self, select: &Select, block: &BlockBuilder) -> Option<Place> {
        let is_grouped = select.having.is_some()
            || !matches!(&select.group_by, GroupByExpr::Expressions(columns, _) if columns.is_empty());
        match select.projection.as_slice() {
            [SelectItem::UnnamedExpr(column)] if !is_grouped && !block.has_derived() => {
                place(self.schema, block, column, &(0..block.sources.len()))
            }
            _ => None,
        }
    }

    /// A column that must be in the result of a subquery, and the column that the subquery selects, need
    /// each other's rows.
    fn connect(&mut self) {
        for Membership { block, place, select } in std::mem::take(&mut self.memberships) {
            let Some(&(inner, selected)) = self.selected.get(&select) else { continue };
            let columns = [
                self.blocks[block].column(self.schema, place),
                self.blocks[inner].column(self.schema, selected),
            ];
            if is_comparable(columns[0], columns[1]) {
                self.blocks[block].need_partner(place, inner, selected);
                self.blocks[inner].need_partner(selected, block, place);
            }
        }
    }

    /// Adds the tables of a part of `FROM` to the block, in order.
    fn register(&self, table: &TableWithJoins, block: &mut BlockBuilder) -> Result<(), Stop> {
        self.register_factor(&table.relation, block)?;
        table.joins.iter().try_for_each(|join| self.register_factor(&join.relation, block))
    }

    fn register_factor(&self, factor: &TableFactor, block: &mut BlockBuilder) -> Result<(), Stop> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions: _,
                json_path,
                sample,
                index_directives: _,
                inheritance,
            } => {
                absent(&[
                    args.is_some(),
                    !with_hints.is_empty(),
                    version.is_some(),
                    *with_ordinality,
                    json_path.is_some(),
                    sample.is_some(),
                    inheritance.is_some(),
                ])?;
                let source =
                    self.table(name, alias.as_ref().map(|alias| alias.name.value.as_str()))?;
                block.sources.extend(source);
            }
            TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
                absent(&[sample.is_some()])?;
                let name = alias.as_ref().map_or("", |alias| alias.name.value.as_str());
                block.sources.push(Source::new(name, None));
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                absent(&[alias.is_some()])?;
                self.register(table_with_joins, block)?;
            }
            _ => return Err(Stop::Inexact),
        }
        Ok(())
    }

    /// A table by its name. `None` for `DUAL`.
    fn table(&self, name: &DottedName, alias: Option<&str>) -> Result<Option<Source>, Stop> {
        let mut names = name.0.iter().map(|part| match part {
            NamePart::Identifier(name) => Ok(name.value.as_str()),
            NamePart::Function(_) => Err(Stop::Inexact),
        });
        let (first, second) =
            (names.next().transpose()?.unwrap_or_default(), names.next().transpose()?);
        absent(&[names.next().is_some()])?;
        let table = match second {
            None if first.eq_ignore_ascii_case("dual") => return Ok(None),
            None if self.is_common_table(first) => {
                return Ok(Some(Source::new(alias.unwrap_or(first), None)));
            }
            None => first,
            Some(table) if self.schema.is_database(first) => table,
            Some(_) => return Err(Stop::Unknown(UnknownReads::Table(name.to_string()))),
        };
        let unknown = || Stop::Unknown(self.schema.unknown_table(table));
        let id = self.schema.table_id(table).ok_or_else(unknown)?;
        Ok(Some(Source::new(alias.unwrap_or(table), Some(id))))
    }

    fn is_common_table(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.frames.iter().any(|frame| frame.tables.contains(&name))
    }

    /// Uses the columns of an expression, and looks at its functions.
    fn expression(&mut self, expr: &Expr) -> Result<(), Stop> {
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_)
                if self.claimed.contains(&std::ptr::from_ref(expr)) =>
            {
                Ok(())
            }
            Expr::Identifier(name) if name.value.starts_with('@') => variable(name, None),
            Expr::CompoundIdentifier(names)
                if names.iter().any(|name| name.value.starts_with('@')) =>
            {
                match names.as_slice() {
                    [first, member] => variable(first, Some(member)),
                    _ => Err(Stop::Inexact),
                }
            }
            Expr::Identifier(name) => self.use_column(None, &name.value),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, column] => self.use_column(Some(&table.value), &column.value),
                [_, table, column] => self.use_column(Some(&table.value), &column.value),
                _ => Err(Stop::Inexact),
            },
            Expr::Function(function) => self.function(function),
            // The relevance of a row depends on all rows of the table.
            Expr::MatchAgainst { .. } => Err(Stop::Inexact),
            Expr::Wildcard(_) | Expr::QualifiedWildcard(..) => {
                self.use_all();
                Ok(())
            }
            Expr::In { target: InTarget::Table { .. } | InTarget::Unnest(_), .. } => {
                Err(Stop::Inexact)
            }
            _ => Ok(()),
        }
    }

    fn use_all(&mut self) {
        self.blocks.iter_mut().for_each(BlockBuilder::use_all);
    }

    /// Uses a column wherever it may be: in each block around this place that has a table with such a column.
    /// A column of an inner block can hide one of an outer block, but not in all places: `ON` sees its own
    /// tables only, and a subquery in `FROM` none of those beside it.
    fn use_column(&mut self, table: Option<&str>, column: &str) -> Result<(), Stop> {
        let mut is_known = false;
        for frame in self.frames.iter().rev() {
            let all = frame.blocks.iter().map(|(_, block)| *block);
            let blocks: Vec<usize> =
                frame.present.map_or_else(|| all.collect(), |block| vec![block]);
            for block in blocks {
                let block = &mut self.blocks[block];
                for place in block.places(self.schema, table, column) {
                    block.use_column(place);
                    is_known = true;
                }
                is_known |= match table {
                    None => block.has_derived() || block.has_alias(column),
                    Some(table) => block.has_derived_named(table),
                };
            }
        }
        if is_known { Ok(()) } else { Err(Stop::Inexact) }
    }

    fn function(&mut self, function: &sqlparser::ast::Function) -> Result<(), Stop> {
        let name = match function.name.0.as_slice() {
            [NamePart::Identifier(name)] if name.quote_style.is_none() => &name.value,
            _ => return Err(Stop::Unknown(UnknownReads::Function(function.name.to_string()))),
        };
        match functions::known(name) {
            // The time of day is noted by its words, since it needs no parentheses.
            Some(Function::Arguments | Function::Clock) => {}
            Some(Function::Chance) => self.reads.is_random = true,
            None => return Err(Stop::Unknown(UnknownReads::Function(name.clone()))),
        }
        if let FunctionArguments::List(list) = &function.args {
            let has_columns = |argument: &FunctionArg| {
                matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
            };
            if list.args.iter().any(has_columns) {
                self.use_all();
            }
        }
        Ok(())
    }
}

/// A variable, with or without a scope before its name.
fn variable(first: &Ident, member: Option<&Ident>) -> Result<(), Stop> {
    let member = member.map(|member| member.value.as_str());
    check_variable(&first.value, member).map_err(Stop::Unknown)
}

/// The blocks of a query, without those of its subqueries.
fn collect_selects<'q>(body: &'q SetExpr, selects: &mut Vec<&'q Select>) -> Result<(), Stop> {
    match body {
        SetExpr::Select(select) => selects.push(select),
        SetExpr::SetOperation { left, op: _, set_quantifier: _, right } => {
            collect_selects(left, selects)?;
            collect_selects(right, selects)?;
        }
        SetExpr::Query(_) | SetExpr::Values(_) => {}
        SetExpr::Insert(_)
        | SetExpr::Update(_)
        | SetExpr::Delete(_)
        | SetExpr::Merge(_)
        | SetExpr::Table(_) => {
            return Err(Stop::Inexact);
        }
    }
    Ok(())
}

/// Uses the columns of `*` and `t.*`, and collects the names that the select list gives.
fn select_list(items: &[SelectItem], block: &mut BlockBuilder) {
    for item in items {
        match item {
            SelectItem::UnnamedExpr(_) => {}
            SelectItem::ExprWithAlias { expr: _, alias } => {
                block.aliases.push(alias.value.to_lowercase())
            }
            SelectItem::ExprWithAliases { expr: _, aliases } => {
                block.aliases.extend(aliases.iter().map(|alias| alias.value.to_lowercase()));
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let Some(NamePart::Identifier(name)) = name.0.last() else {
                    block.use_all();
                    continue;
                };
                let name = name.value.to_lowercase();
                let named = block.sources.iter_mut().filter(|source| source.name == name);
                named.for_each(|source| source.used = Columns::ALL);
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(_), _)
            | SelectItem::Wildcard(_) => {
                block.use_all();
            }
        }
    }
}
