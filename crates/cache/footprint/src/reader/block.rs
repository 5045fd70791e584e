//! A query block while it is read: its tables, and what is known of each so far.
//!
//! Not here: where the knowledge comes from.

use crate::condition::{Atom, Condition, Operand, Slot, Test};
use crate::footprint::{Block, FirstRows, Partner, Position, TableReads};
use crate::schema::{Columns, SqlColumn, SqlColumnKind, SqlSchema, SqlTable, TableId};

/// How often constants are passed on from partner to partner.
const ROUNDS: usize = 3;

/// A query block.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    /// The tables of `FROM`, in order.
    pub sources: Vec<Source>,
    /// The names that the select list gives, in lower case.
    pub aliases: Vec<String>,
    /// Whether a part of a condition is not understood exactly.
    pub is_inexact: bool,
    /// The part of the rows that the result consists of, if that is known.
    pub first: Option<FirstRows>,
}

/// A table of `FROM`.
#[derive(Debug)]
pub(super) struct Source {
    /// The name by which columns refer to it, in lower case.
    pub name: String,
    /// The name as it is written.
    pub written: String,
    /// The table; `None` for a subquery, a common table expression or a table function.
    pub table: Option<TableId>,
    pub conditions: Vec<Condition>,
    pub used: Columns,
    pub partners: Vec<NeededPartner>,
    /// Whether an outer join may put NULLs in the place of its rows.
    pub is_optional: bool,
}

/// A partner that a row needs, by the tables' positions while the statement is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct NeededPartner {
    pub column: u16,
    /// The position of the other table's block.
    pub block: usize,
    pub partner: Place,
}

/// A column of a table of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The position of the table in the block.
    pub source: usize,
    /// The position of the column in the table.
    pub column: u16,
}

impl Source {
    /// A table of `FROM`. Nothing is known about it yet.
    pub fn new(name: &str, table: Option<TableId>) -> Source {
        Source {
            name: name.to_lowercase(),
            written: name.to_owned(),
            table,
            conditions: Vec::new(),
            used: Columns::NONE,
            partners: Vec::new(),
            is_optional: false,
        }
    }

    /// The constants that a column must have one of, if the conditions say so.
    fn constants(&self, column: u16) -> Option<Slot> {
        self.conditions.iter().find_map(|condition| condition.constants(column))
    }
}

impl BlockBuilder {
    /// The places of a column: those of all tables that have one of this name, or of the named table.
    pub fn places(&self, schema: &SqlSchema, table: Option<&str>, column: &str) -> Vec<Place> {
        let table = table.map(str::to_lowercase);
        let sources = self.sources.iter().enumerate();
        let named =
            sources.filter(|(_, source)| table.as_ref().is_none_or(|name| *name == source.name));
        let place = |(at, source): (usize, &Source)| {
            let column = schema.table(source.table?).column(column)?;
            Some(Place { source: at, column })
        };
        named.filter_map(place).collect()
    }

    /// Whether it has a part of this name whose columns are not known.
    pub fn has_derived_named(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.sources.iter().any(|source| source.table.is_none() && source.name == name)
    }

    /// Whether it has a part whose columns are not known.
    pub fn has_derived(&self) -> bool {
        self.sources.iter().any(|source| source.table.is_none())
    }

    /// Whether the select list gives this name.
    pub fn has_alias(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.aliases.contains(&name)
    }

    /// All columns of all tables count as used.
    pub fn use_all(&mut self) {
        self.sources.iter_mut().for_each(|source| source.used = Columns::ALL);
    }

    /// The column counts as used.
    pub fn use_column(&mut self, place: Place) {
        self.sources[place.source].used.insert(place.column.into());
    }

    fn table<'s>(&self, schema: &'s SqlSchema, source: usize) -> Option<&'s SqlTable> {
        Some(schema.table(self.sources.get(source)?.table?))
    }

    /// The definition of the column.
    pub fn column<'s>(&self, schema: &'s SqlSchema, place: Place) -> Option<&'s SqlColumn> {
        Some(&self.table(schema, place.source)?.columns[usize::from(place.column)])
    }

    /// A row of the first place's table is needed only with one of the second's that has the same value. The
    /// second is in the block at this position.
    pub fn need_partner(&mut self, place: Place, block: usize, partner: Place) {
        self.sources[place.source].partners.push(NeededPartner {
            column: place.column,
            block,
            partner,
        });
    }

    /// The position that each table has in the finished block. Tables of unknown columns are left out, since
    /// their own blocks have what they read.
    pub fn positions(&self) -> Vec<Option<usize>> {
        let mut next = 0..;
        self.sources.iter().map(|source| source.table.and_then(|_| next.next())).collect()
    }

    /// The finished block. `positions` are those of all blocks.
    pub fn finish(self, positions: &[Vec<Option<usize>>]) -> Block {
        let partner = |needed: NeededPartner| {
            let table = positions[needed.block][needed.partner.source]?;
            let other = Position { block: needed.block, table };
            Some(Partner { column: needed.column, other, other_column: needed.partner.column })
        };
        let first = self.first;
        let footprint = |source: Source| {
            let condition = Condition::all(source.conditions);
            let mut tested = Columns::NONE;
            condition.collect_columns(&mut tested);
            Some(TableReads {
                table: source.table?,
                tested,
                used: source.used,
                partners: distinct(source.partners.into_iter().filter_map(partner)),
                first,
                condition,
            })
        };
        Block { tables: self.sources.into_iter().filter_map(footprint).collect() }
    }

    /// If a partner's column must have one of some values, the same holds for the column that equals it.
    pub fn pass_constants_on(&mut self, own: usize, operands: &mut Vec<Operand>) {
        for _ in 0..ROUNDS {
            let mut implied: Vec<(usize, Condition)> = Vec::new();
            for (at, source) in self.sources.iter().enumerate() {
                for partner in source.partners.iter().filter(|partner| partner.block == own) {
                    let NeededPartner { column, partner, .. } = *partner;
                    let constants = self.sources[partner.source].constants(partner.column);
                    let is_known = constants.is_none() || source.constants(column).is_some();
                    if let (Some(constants), false) = (constants, is_known) {
                        // The columns may have different collations.
                        let passed_on = constants.of(operands).passed_on();
                        let test = Test::In(Slot::add(operands, passed_on));
                        let atom = Atom { column, part: None, test, is_negated: false };
                        implied.push((at, Condition::Atom(atom)));
                    }
                }
            }
            if implied.is_empty() {
                return;
            }
            for (at, condition) in implied {
                self.sources[at].conditions.push(condition);
            }
        }
    }
}

fn distinct(partners: impl Iterator<Item = Partner>) -> Vec<Partner> {
    let mut all = Vec::new();
    for partner in partners {
        if !all.contains(&partner) {
            all.push(partner);
        }
    }
    all
}

/// Whether it is known when values of two columns are equal, so that partners can be looked up: texts of
/// several collations are compared by one, and looked up by another.
pub(super) fn is_comparable(one: Option<&SqlColumn>, other: Option<&SqlColumn>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let is_known = matches!(
        one.kind,
        SqlColumnKind::Integer | SqlColumnKind::Text { .. } | SqlColumnKind::Bytes
    );
    is_known && one.kind == other.kind && one.collation == other.collation
}
