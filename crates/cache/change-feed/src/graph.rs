//! The child rows that a change of a parent row affects inside the database.
//!
//! | change of the parent | acting foreign key | change of the child |
//! |---|---|---|
//! | deleted | `ON DELETE CASCADE` | deleted |
//! | deleted | `ON DELETE SET NULL` | updated, in the key's columns |
//! | referenced columns updated | `ON UPDATE CASCADE`, `SET NULL` | updated |
//!
//! The child may in turn be the parent of further rows. Edges that lead to no table with rules are left
//! out. Invariants: the walk ends, because an edge without known values is followed once, and the depth
//! never exceeds InnoDB's limit. Unknown values of a child's row count as any value.

use crate::rule::Rule;
use crate::schema::{Action, ForeignKey, Schema};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The maximum depth of a cascade in InnoDB ("FK_MAX_CASCADE_DEL").
const DEPTH_MAX: usize = 15;

/// The change of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was deleted.
    Gone,
    /// These columns (in lower case) were updated.
    Updated(Vec<String>),
    /// It may have been deleted or updated, in any column.
    Any,
}

/// The known values of a child's row: columns in lower case, and their text; `None` for NULL.
pub(crate) type KnownValues = BTreeMap<String, Option<String>>;

/// A foreign key that leads to tables with rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    child: String,
    /// For each column of the key: the parent's column, the child's column, and whether the parent's value
    /// determines the child's.
    pairs: Vec<(String, String, bool)>,
    on_delete: Action,
    on_update: Action,
}

/// The edges from each parent table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Graph {
    edges: BTreeMap<String, Vec<Edge>>,
}

impl Graph {
    pub(crate) fn new(schema: &Schema, rules: &[Rule]) -> Graph {
        let acts =
            |key: &&ForeignKey| key.on_delete != Action::Refuse || key.on_update != Action::Refuse;
        let keys: Vec<&ForeignKey> = schema.foreign_keys.iter().filter(acts).collect();
        let mut reached: BTreeSet<String> =
            rules.iter().map(|rule| rule.table.to_lowercase()).collect();
        // The parents of tables with rules are needed too.
        loop {
            let leads = |key: &&&ForeignKey| {
                reached.contains(&key.child.to_lowercase())
                    && !reached.contains(&key.parent.to_lowercase())
            };
            let Some(parent) = keys.iter().find(leads).map(|key| key.parent.to_lowercase()) else {
                break;
            };
            reached.insert(parent);
        }
        let mut graph = Graph::default();
        for key in keys.iter().filter(|key| reached.contains(&key.child.to_lowercase())) {
            let edge = Edge::new(schema, key);
            graph.edges.entry(key.parent.to_lowercase()).or_default().push(edge);
        }
        graph
    }

    /// The edges from this table.
    pub(crate) fn from(&self, table: &str) -> &[Edge] {
        self.edges.get(&table.to_lowercase()).map(Vec::as_slice).unwrap_or_default()
    }

    /// Visits every child row that a change of a row of `table` reaches. `visit` gets the table's name, the
    /// known values of the child's row and its change. `value` returns the row's value in a column, or
    /// `None` if it is unknown.
    pub(crate) fn walk(
        &self,
        table: &str,
        fate: &Fate,
        value: &dyn Fn(&str) -> Option<Option<String>>,
        visit: &mut dyn FnMut(&str, &KnownValues, &Fate),
    ) {
        let mut walk = Walk { graph: self, blind: HashSet::new(), visit };
        walk.on(table, fate, value, 0);
    }
}

struct Walk<'a> {
    graph: &'a Graph,
    /// Edges followed without known values, by address and kind of change.
    blind: HashSet<(*const Edge, bool)>,
    visit: &'a mut dyn FnMut(&str, &KnownValues, &Fate),
}

impl Walk<'_> {
    fn on(
        &mut self,
        table: &str,
        fate: &Fate,
        value: &dyn Fn(&str) -> Option<Option<String>>,
        depth: usize,
    ) {
        if depth >= DEPTH_MAX {
            return;
        }
        let graph = self.graph;
        for edge in graph.from(table) {
            let Some(child_fate) = edge.fate(fate) else { continue };
            let known = edge.known(value);
            let goes = child_fate != Fate::Updated(edge.child_columns());
            if known.is_empty() && !self.blind.insert((std::ptr::from_ref(edge), goes)) {
                continue;
            }
            (self.visit)(&edge.child, &known, &child_fate);
            self.on(&edge.child, &child_fate, &|column| known.get(column).cloned(), depth + 1);
        }
    }
}

impl Edge {
    fn new(schema: &Schema, key: &ForeignKey) -> Edge {
        let is_copied = |column: &str| {
            let found = schema.table(&key.child).and_then(|table| table.column(column));
            found.is_some_and(|column| !column.is_loosely_equal)
        };
        let pairs = key.parent_columns.iter().zip(&key.columns);
        let pairs = pairs
            .map(|(parent, child)| (parent.to_lowercase(), child.to_lowercase(), is_copied(child)));
        Edge {
            child: key.child.clone(),
            pairs: pairs.collect(),
            on_delete: key.on_delete,
            on_update: key.on_update,
        }
    }

    fn child_columns(&self) -> Vec<String> {
        self.pairs.iter().map(|(_, child, _)| child.clone()).collect()
    }

    /// The change of the child; `None` if it does not change.
    fn fate(&self, parent: &Fate) -> Option<Fate> {
        let updated = || Fate::Updated(self.child_columns());
        match parent {
            Fate::Gone => match self.on_delete {
                Action::Refuse => None,
                Action::Cascade => Some(Fate::Gone),
                Action::Set => Some(updated()),
            },
            Fate::Updated(columns) => {
                let is_referred = self.pairs.iter().any(|(own, _, _)| columns.contains(own));
                (is_referred && self.on_update != Action::Refuse).then(updated)
            }
            Fate::Any if self.on_delete == Action::Cascade => Some(Fate::Any),
            Fate::Any => Some(updated()),
        }
    }

    fn known(&self, value: &dyn Fn(&str) -> Option<Option<String>>) -> KnownValues {
        let pairs = self.pairs.iter().filter(|(_, _, is_copied)| *is_copied);
        pairs.filter_map(|(parent, child, _)| Some((child.clone(), value(parent)?))).collect()
    }
}
