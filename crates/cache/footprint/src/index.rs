//! From a changed row to the statements that it touches, without testing every statement.
//!
//! Each footprint is found in one way, its *access path*: by the values of one column, if a row must
//! have one of them, or by the list of those that have no such column. Among several columns the one is chosen whose
//! lists are shortest now, so that a status or a type, which thousands of statements compare with the same
//! value, is used only if there is nothing else.
//!
//! Invariant: a statement that a row touches is found by the row before or by the row after; a value that is
//! not known finds all statements of its column. Statements are counted: one that no page uses is gone.
//! Not here: which pages use a statement, and the join check.

use crate::compare;
use crate::condition::Condition;
use crate::footprint::{Footprint, Reads};
use crate::row::{RowEvent, SqlValue};
use crate::schema::{ColumnKey, SqlSchema, TableId};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A statement in an [`Index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementId(u32);

/// The statements of all pages, by the rows that touch them.
#[derive(Debug)]
pub struct Index {
    schema: Arc<SqlSchema>,
    by_key: HashMap<u128, StatementId>,
    statements: Vec<Option<Entry>>,
    free: Vec<StatementId>,
    tables: HashMap<TableId, TableIndex>,
}

#[derive(Debug)]
struct Entry {
    key: u128,
    reads: Arc<Reads>,
    users: u32,
    paths: Vec<(TableId, Path)>,
}

/// How a footprint is found.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Path {
    /// By the values of a column.
    Column(u16, Vec<Box<str>>),
    /// With all that have no column.
    Rest,
}

#[derive(Debug, Default)]
struct TableIndex {
    columns: HashMap<u16, HashMap<Box<str>, Vec<StatementId>>>,
    rest: Vec<StatementId>,
}

impl Index {
    /// An empty index for the tables of a schema.
    #[must_use]
    pub fn new(schema: Arc<SqlSchema>) -> Index {
        Index {
            schema,
            by_key: HashMap::new(),
            statements: Vec::new(),
            free: Vec::new(),
            tables: HashMap::new(),
        }
    }

    /// Adds a user of the statement with this key, a hash of its text and of everything else that decides
    /// what it reads. `reads` is called if the index does not have the statement.
    pub fn acquire(&mut self, key: u128, reads: impl FnOnce() -> Arc<Reads>) -> StatementId {
        if let Some(&id) = self.by_key.get(&key)
            && let Some(entry) = self.entry_mut(id)
        {
            entry.users += 1;
            return id;
        }
        let reads = reads();
        let id = self.free.pop().unwrap_or_else(|| {
            self.statements.push(None);
            StatementId(u32::try_from(self.statements.len() - 1).unwrap_or(u32::MAX))
        });
        let paths: Vec<(TableId, Path)> =
            reads.footprints().map(|footprint| (footprint.table, self.path(footprint))).collect();
        for (table, path) in &paths {
            self.tables.entry(*table).or_default().insert(path, id);
        }
        self.by_key.insert(key, id);
        self.statements[id.0 as usize] = Some(Entry { key, reads, users: 1, paths });
        id
    }

    /// Removes a user of the statement.
    pub fn release(&mut self, id: StatementId) {
        let Some(entry) = self.entry_mut(id) else { return };
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        if let Some(Entry { key, paths, .. }) = self.statements[id.0 as usize].take() {
            self.by_key.remove(&key);
            for (table, path) in &paths {
                if let Some(table) = self.tables.get_mut(table) {
                    table.remove(path, id);
                }
            }
            self.free.push(id);
        }
    }

    /// The statement with this key, if a page uses it.
    #[must_use]
    pub fn find(&self, key: u128) -> Option<StatementId> {
        self.by_key.get(&key).copied()
    }

    /// The key of a statement.
    #[must_use]
    pub fn key(&self, id: StatementId) -> Option<u128> {
        Some(self.statements.get(id.0 as usize)?.as_ref()?.key)
    }

    /// The reads of a statement.
    #[must_use]
    pub fn reads(&self, id: StatementId) -> Option<&Arc<Reads>> {
        Some(&self.statements.get(id.0 as usize)?.as_ref()?.reads)
    }

    /// The number of statements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are no statements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The statements that a changed row touches, before the join check, in ascending order.
    #[must_use]
    pub fn touched(&self, event: &RowEvent<'_>) -> BTreeSet<StatementId> {
        let Some(table) = self.tables.get(&event.table) else { return BTreeSet::new() };
        let mut seen: HashSet<StatementId> = HashSet::new();
        let mut touched = BTreeSet::new();
        let mut test = |id: StatementId| {
            if seen.insert(id) && self.touches(id, event) {
                touched.insert(id);
            }
        };
        table.rest.iter().copied().for_each(&mut test);
        for (&column, by_value) in &table.columns {
            let kind = self.schema.table(event.table).columns[usize::from(column)].kind;
            for row in event.images() {
                let key = match row.get(column) {
                    SqlValue::Text(text) => compare::key(kind, text),
                    // No constant is equal to NULL.
                    SqlValue::Null => continue,
                    SqlValue::Unknown => None,
                };
                match key {
                    Some(key) => {
                        by_value.get(&key).into_iter().flatten().copied().for_each(&mut test)
                    }
                    None => by_value.values().flatten().copied().for_each(&mut test),
                }
            }
        }
        touched
    }

    /// All statements that read a table: for a change of the whole table.
    #[must_use]
    pub fn of_table(&self, table: TableId) -> BTreeSet<StatementId> {
        let Some(table) = self.tables.get(&table) else { return BTreeSet::new() };
        let by_column = table.columns.values().flat_map(HashMap::values).flatten();
        table.rest.iter().chain(by_column).copied().collect()
    }

    fn touches(&self, id: StatementId, event: &RowEvent<'_>) -> bool {
        let Some(reads) = self.reads(id) else { return false };
        let own = reads.footprints().filter(|footprint| footprint.table == event.table);
        own.into_iter().any(|footprint| footprint.touch(event).is_some())
    }

    fn entry_mut(&mut self, id: StatementId) -> Option<&mut Entry> {
        self.statements.get_mut(id.0 as usize)?.as_mut()
    }

    /// The shortest way to find a footprint.
    fn path(&self, footprint: &Footprint) -> Path {
        let columns = &self.schema.table(footprint.table).columns;
        let lists = self.tables.get(&footprint.table);
        let paths = footprint.condition.conjuncts().iter().filter_map(|conjunct| {
            let Condition::Atom(atom) = conjunct else { return None };
            let keys: Vec<Box<str>> =
                atom.constants()?.iter().map(|constant| constant.key()).collect::<Option<_>>()?;
            let by_value = lists.and_then(|lists| lists.columns.get(&atom.column));
            let length = |key: &str| by_value.and_then(|lists| lists.get(key)).map_or(0, Vec::len);
            let cost: usize = keys.iter().map(|key| length(key)).max().unwrap_or(0);
            let rank: ColumnKey = columns[usize::from(atom.column)].key;
            Some(((cost, rank, keys.len()), Path::Column(atom.column, keys)))
        });
        paths.min_by(|(one, _), (other, _)| one.cmp(other)).map_or(Path::Rest, |(_, path)| path)
    }
}

impl TableIndex {
    fn insert(&mut self, path: &Path, id: StatementId) {
        match path {
            Path::Rest => self.rest.push(id),
            Path::Column(column, keys) => {
                let by_value = self.columns.entry(*column).or_default();
                for key in keys {
                    by_value.entry(key.clone()).or_default().push(id);
                }
            }
        }
    }

    fn remove(&mut self, path: &Path, id: StatementId) {
        let drop_one = |list: &mut Vec<StatementId>| {
            if let Some(at) = list.iter().rposition(|own| *own == id) {
                list.swap_remove(at);
            }
        };
        match path {
            Path::Rest => drop_one(&mut self.rest),
            Path::Column(column, keys) => {
                let Some(by_value) = self.columns.get_mut(column) else { return };
                for key in keys {
                    if let Some(list) = by_value.get_mut(key) {
                        drop_one(list);
                        if list.is_empty() {
                            by_value.remove(key);
                        }
                    }
                }
                if by_value.is_empty() {
                    self.columns.remove(column);
                }
            }
        }
    }
}
