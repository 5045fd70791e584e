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

use crate::compare::{self, ValueKey};
use crate::condition::Condition;
use crate::footprint::{Footprint, Reads};
use crate::row::{RowEvent, SqlValue};
use crate::schema::{ColumnKey, Columns, SqlSchema, TableId};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// A statement in an [`Index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementId(u32);

impl StatementId {
    /// The number of the statement. It is given again once no page uses the statement.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

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
    reads: Reads,
    users: u32,
    /// For each footprint, in order.
    paths: Box<[Path]>,
}

/// How a footprint is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// By the values of a column.
    Column(u16),
    /// With all that have no column.
    Rest,
}

/// The footprints of a table, by the columns that they read: an update of other columns touches none.
#[derive(Debug, Default)]
struct TableIndex {
    by_value: HashMap<(u16, Columns), ValueIndex>,
    rest: HashMap<Columns, Vec<StatementId>>,
}

/// The footprints that are found by the values of one column.
#[derive(Debug, Default)]
struct ValueIndex {
    integers: HashMap<i64, StatementList>,
    texts: HashMap<Box<str>, StatementList>,
}

impl Index {
    /// The tables that statements are found by.
    #[must_use]
    pub fn schema(&self) -> &Arc<SqlSchema> {
        &self.schema
    }

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
    pub fn acquire(&mut self, key: u128, reads: impl FnOnce() -> Reads) -> StatementId {
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
        let paths: Box<[Path]> = reads.footprints().map(|footprint| self.path(footprint)).collect();
        for (footprint, path) in reads.footprints().zip(&paths) {
            self.tables.entry(footprint.table).or_default().insert(*path, footprint, id);
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
        if let Some(Entry { key, reads, paths, .. }) = self.statements[id.0 as usize].take() {
            self.by_key.remove(&key);
            for (footprint, path) in reads.footprints().zip(&paths) {
                if let Some(table) = self.tables.get_mut(&footprint.table) {
                    table.remove(*path, footprint, id);
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
    pub fn reads(&self, id: StatementId) -> Option<&Reads> {
        Some(&self.statements.get(id.0 as usize)?.as_ref()?.reads)
    }

    /// The statements at `count` places from the place `from` on, each with its key; `None` behind the last place.
    pub fn part(&self, from: usize, count: usize) -> Option<impl Iterator<Item = (u128, &Reads)>> {
        let places = self.statements.get(from..).filter(|places| !places.is_empty())?;
        Some(places.iter().take(count).flatten().map(|entry| (entry.key, &entry.reads)))
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
            if seen.insert(id) && self.reads(id).is_some_and(|reads| reads.touched_by(event)) {
                touched.insert(id);
            }
        };
        let may_touch = |read: &Columns| {
            let is_update = event.before.is_some() && event.after.is_some();
            !is_update || !event.changed.intersection(*read).is_empty()
        };
        let rest = table.rest.iter().filter(|(read, _)| may_touch(read));
        rest.flat_map(|(_, ids)| ids).copied().for_each(&mut test);
        for ((column, _), index) in table.by_value.iter().filter(|((_, read), _)| may_touch(read)) {
            let kind = self.schema.table(event.table).columns[usize::from(*column)].kind;
            for row in event.images() {
                let key = match row.get(*column) {
                    SqlValue::Text(text) => compare::key(kind, text),
                    // No constant is equal to NULL.
                    SqlValue::Null => continue,
                    SqlValue::Unknown => None,
                };
                match key {
                    Some(key) => index
                        .get(&key)
                        .iter()
                        .flat_map(|list| list.ids())
                        .copied()
                        .for_each(&mut test),
                    None => index.lists().flat_map(StatementList::ids).copied().for_each(&mut test),
                }
            }
        }
        touched
    }

    /// All statements that read a table: for a change of the whole table.
    #[must_use]
    pub fn of_table(&self, table: TableId) -> BTreeSet<StatementId> {
        let Some(table) = self.tables.get(&table) else { return BTreeSet::new() };
        let by_value =
            table.by_value.values().flat_map(ValueIndex::lists).flat_map(StatementList::ids);
        table.rest.values().flatten().chain(by_value).copied().collect()
    }

    fn entry_mut(&mut self, id: StatementId) -> Option<&mut Entry> {
        self.statements.get_mut(id.0 as usize)?.as_mut()
    }

    /// The shortest way to find a footprint.
    fn path(&self, footprint: Footprint<'_>) -> Path {
        let columns = &self.schema.table(footprint.table).columns;
        let lists = self.tables.get(&footprint.table);
        let paths = footprint.reads.condition.conjuncts().iter().filter_map(|conjunct| {
            let Condition::Atom(atom) = conjunct else { return None };
            let keys = atom.constants()?.of(footprint.operands).keys()?;
            let index =
                lists.and_then(|lists| lists.by_value.get(&(atom.column, footprint.read())));
            let list = |key: &ValueKey| index.and_then(|index| index.get(key));
            let longest = keys.iter().filter_map(list).map(|list| list.ids().len()).max();
            let rank: ColumnKey = columns[usize::from(atom.column)].key;
            Some(((longest.unwrap_or(0), rank, keys.len()), Path::Column(atom.column)))
        });
        paths.min_by(|(one, _), (other, _)| one.cmp(other)).map_or(Path::Rest, |(_, path)| path)
    }
}

/// The values that a row must have one of in a column, for a footprint that is found by that column.
fn keys(footprint: Footprint<'_>, column: u16) -> Vec<ValueKey> {
    let slot = footprint.reads.condition.constants(column);
    slot.and_then(|slot| slot.of(footprint.operands).keys()).unwrap_or_default()
}

/// The statements that are found by one value. Most values have one.
#[derive(Debug)]
enum StatementList {
    One(StatementId),
    #[expect(clippy::box_collection, reason = "a list in a map of many takes half of the memory")]
    Many(Box<Vec<StatementId>>),
}

impl StatementList {
    fn ids(&self) -> &[StatementId] {
        match self {
            StatementList::One(id) => std::slice::from_ref(id),
            StatementList::Many(ids) => ids,
        }
    }

    fn push(&mut self, id: StatementId) {
        match self {
            StatementList::One(first) => *self = StatementList::Many(Box::new(vec![*first, id])),
            StatementList::Many(ids) => ids.push(id),
        }
    }

    /// Removes a statement once. Returns whether others are left.
    fn remove(&mut self, id: StatementId) -> bool {
        match self {
            StatementList::One(only) => *only != id,
            StatementList::Many(ids) => {
                if let Some(at) = ids.iter().rposition(|own| *own == id) {
                    ids.swap_remove(at);
                }
                !ids.is_empty()
            }
        }
    }
}

impl ValueIndex {
    fn get(&self, key: &ValueKey) -> Option<&StatementList> {
        match key {
            ValueKey::Integer(number) => self.integers.get(number),
            ValueKey::Text(text) => self.texts.get(text),
        }
    }

    fn lists(&self) -> impl Iterator<Item = &StatementList> {
        self.integers.values().chain(self.texts.values())
    }

    fn insert(&mut self, key: ValueKey, id: StatementId) {
        let (add, new) = (|list: &mut StatementList| list.push(id), StatementList::One(id));
        match key {
            ValueKey::Integer(number) => self.integers.entry(number).and_modify(add).or_insert(new),
            ValueKey::Text(text) => self.texts.entry(text).and_modify(add).or_insert(new),
        };
    }

    fn remove(&mut self, key: &ValueKey, id: StatementId) {
        let is_last = |list: Option<&mut StatementList>| list.is_some_and(|list| !list.remove(id));
        match key {
            ValueKey::Integer(number) if is_last(self.integers.get_mut(number)) => {
                self.integers.remove(number);
            }
            ValueKey::Text(text) if is_last(self.texts.get_mut(text)) => {
                self.texts.remove(text);
            }
            ValueKey::Integer(_) | ValueKey::Text(_) => {}
        }
    }

    fn is_empty(&self) -> bool {
        self.integers.is_empty() && self.texts.is_empty()
    }
}

impl TableIndex {
    fn insert(&mut self, path: Path, footprint: Footprint<'_>, id: StatementId) {
        match path {
            Path::Rest => self.rest.entry(footprint.read()).or_default().push(id),
            Path::Column(column) => {
                let index = self.by_value.entry((column, footprint.read())).or_default();
                keys(footprint, column).into_iter().for_each(|key| index.insert(key, id));
            }
        }
    }

    fn remove(&mut self, path: Path, footprint: Footprint<'_>, id: StatementId) {
        match path {
            Path::Rest => {
                let Some(ids) = self.rest.get_mut(&footprint.read()) else { return };
                if let Some(at) = ids.iter().rposition(|own| *own == id) {
                    ids.swap_remove(at);
                }
                if ids.is_empty() {
                    self.rest.remove(&footprint.read());
                }
            }
            Path::Column(column) => {
                let place = (column, footprint.read());
                let Some(index) = self.by_value.get_mut(&place) else { return };
                keys(footprint, column).iter().for_each(|key| index.remove(key, id));
                if index.is_empty() {
                    self.by_value.remove(&place);
                }
            }
        }
    }
}
