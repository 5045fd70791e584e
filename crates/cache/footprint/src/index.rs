//! From a changed row to the statements that it touches, without testing every statement.
//!
//! Each footprint is found in one way, its *access path*: by the values of one column, if a row must have one of them,
//! or by the list of those that have no such column. Among several columns the one with the shortest lists now is
//! chosen: a status, which thousands of statements compare with the same value, only if there is nothing else.
//!
//! Statements that differ in a bound alone are found as a group (`groups`), and the row touches the nearest of them.
//!
//! Invariant: a statement that a row touches is found by the row before or by the row after; a value that is
//! not known finds all statements of its column. Statements are counted: one that no page uses is gone.
//! The caller tests what is found ([`StatementCandidate`]), after it has released its lock of the index.
//! Not here: which pages use a statement, and the join check.

mod groups;
mod lists;

use self::groups::Groups;
use self::lists::{StatementLists, StatementSet, ValuePlaces};
use crate::budget::MatchBudget;
use crate::compare::{self, ValueKey};
use crate::condition::Condition;
use crate::footprint::{Footprint, Reads};
use crate::nearest::{NearestLookup, RowInGroup};
use crate::row::{RowEvent, SqlRow, SqlValue};
use crate::schema::{ColumnKey, Columns, SqlSchema, TableId};
use hashbrown::HashTable;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
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
    by_key: HashTable<StatementId>,
    statements: Vec<Option<Entry>>,
    free: Vec<StatementId>,
    tables: HashMap<TableId, TableIndex>,
    lists: StatementLists,
    groups: Groups,
    /// The memory of all reads, see [`Reads::heap_bytes`].
    heap_bytes: usize,
    /// Draws the seed of the values' hashes.
    hasher: RandomState,
}

#[derive(Debug)]
struct Entry {
    key: u128,
    reads: Reads,
    users: u32,
    paths: Paths,
}

/// How a footprint is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// By the values of a column.
    Column(u16),
    /// With all that have no column.
    Rest,
    /// In a group of statements that differ in a bound alone.
    Group,
}

/// The statements that a changed row touches, before the join check.
#[derive(Debug, Default)]
pub struct FoundStatements {
    /// The statements that the row touches.
    pub touched: BTreeSet<StatementId>,
    /// Groups that the row touches in part. [`Index::nearest`] has that part, with the rows of the look-up or without.
    pub nearest: Vec<NearestLookup>,
}

/// The values of a changed row, in the form in which an index finds statements by them.
#[derive(Debug)]
pub struct RowKeys(Vec<Vec<RowKey>>);

#[derive(Debug)]
enum RowKey {
    /// No statement is found by it.
    None,
    /// Those are found that have this hash.
    Hash(u64),
    /// All statements of the column are found.
    Any,
}

/// A statement or group that a changed row may touch.
#[derive(Debug)]
pub enum StatementCandidate {
    /// A statement with its reads.
    Statement(StatementId, Reads),
    /// Statements that differ in a bound alone.
    Group(CandidateGroup),
}

/// Statements that differ in a bound alone.
#[derive(Debug)]
pub struct CandidateGroup {
    group: u32,
    /// The reads of one of them.
    reads: Reads,
}

impl CandidateGroup {
    /// Where a row before or after a change is in the group.
    #[must_use]
    pub fn place(
        &self,
        schema: &SqlSchema,
        row: &SqlRow<'_>,
        budget: &mut MatchBudget,
    ) -> RowInGroup {
        self.reads.nearest(schema, self.group, row, budget)
    }
}

/// The paths of a statement's footprints, in order: the column, or [`Paths::REST`]. Few of them need no memory
/// of their own.
#[derive(Debug)]
enum Paths {
    Few([u16; 4]),
    Many(Box<[u16]>),
}

/// The footprints of a table, by the columns that they read: an update of other columns touches none.
#[derive(Debug, Default)]
struct TableIndex {
    by_value: HashMap<(u16, Columns), ValuePlaces>,
    rest: HashMap<Columns, StatementSet>,
}

impl Paths {
    const REST: u16 = u16::MAX;
    const GROUP: u16 = u16::MAX - 1;

    fn new(paths: impl Iterator<Item = Path>) -> Paths {
        let column = |path| match path {
            Path::Column(column) => column,
            Path::Rest => Paths::REST,
            Path::Group => Paths::GROUP,
        };
        let columns: Vec<u16> = paths.map(column).collect();
        let mut few = [Paths::REST; 4];
        match few.get_mut(..columns.len()) {
            Some(places) => {
                places.copy_from_slice(&columns);
                Paths::Few(few)
            }
            None => Paths::Many(columns.into()),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Path> {
        let columns: &[u16] = match self {
            Paths::Few(columns) => columns,
            Paths::Many(columns) => columns,
        };
        columns.iter().map(|column| match *column {
            Paths::REST => Path::Rest,
            Paths::GROUP => Path::Group,
            column => Path::Column(column),
        })
    }
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
            by_key: HashTable::new(),
            statements: Vec::new(),
            free: Vec::new(),
            tables: HashMap::new(),
            lists: StatementLists::default(),
            groups: Groups::default(),
            heap_bytes: 0,
            hasher: RandomState::new(),
        }
    }

    /// Adds a user of the statement with this key, a hash of its text and of everything else that decides
    /// what it reads. `reads` is called if the index does not have the statement.
    pub fn acquire(&mut self, key: u128, reads: impl FnOnce() -> Reads) -> StatementId {
        if let Some(id) = self.find(key)
            && let Some(entry) = self.entry_mut(id)
        {
            entry.users += 1;
            return id;
        }
        let reads = reads();
        self.heap_bytes += reads.heap_bytes();
        let id = self.free.pop().unwrap_or_else(|| {
            self.statements.push(None);
            StatementId(u32::try_from(self.statements.len() - 1).unwrap_or(u32::MAX))
        });
        let paths = self.place_all(&reads, id);
        self.statements[id.0 as usize] = Some(Entry { key, reads, users: 1, paths });
        let statements = &self.statements;
        self.by_key.insert_unique(hash_of(key), id, |id| hash_of(key_at(statements, *id)));
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
            self.heap_bytes -= reads.heap_bytes();
            if let Ok(found) = self.by_key.find_entry(hash_of(key), |own| *own == id) {
                found.remove();
            }
            for (footprint, path) in reads.footprints().zip(paths.iter()) {
                match path {
                    Path::Group => self.leave_group(&reads, id),
                    path => self.displace(path, footprint, id),
                }
            }
            self.free.push(id);
        }
    }

    /// The statement with this key, if a page uses it.
    #[must_use]
    pub fn find(&self, key: u128) -> Option<StatementId> {
        let is_own = |id: &StatementId| key_at(&self.statements, *id) == key;
        self.by_key.find(hash_of(key), is_own).copied()
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

    /// The memory of the statements, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.heap_bytes
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

    /// The values of a changed row by which an index finds statements. Made without a lock of the index: a row may be long.
    #[must_use]
    pub fn keys_of(schema: &SqlSchema, hasher: &RandomState, event: &RowEvent<'_>) -> RowKeys {
        let mut budget = MatchBudget::new(u64::MAX);
        let columns = &schema.table(event.table).columns;
        let of_image = |row: &SqlRow<'_>| {
            let mut keys = Vec::with_capacity(columns.len());
            for (at, column) in (0..).zip(columns) {
                keys.push(match row.get(at) {
                    SqlValue::Text(text) => {
                        let key = compare::key(column.kind, row.text(at, text), &mut budget);
                        key.map_or(RowKey::Any, |key| RowKey::Hash(hasher.hash_one(&key)))
                    }
                    // No constant is equal to NULL.
                    SqlValue::Null => RowKey::None,
                    SqlValue::Unknown => RowKey::Any,
                });
            }
            keys
        };
        RowKeys(event.images().map(of_image).collect())
    }

    /// Draws the seed of the values' hashes, for [`Index::keys_of`].
    #[must_use]
    pub fn hasher(&self) -> &RandomState {
        &self.hasher
    }

    /// The statements and groups that a changed row may touch, in any order, some more than once.
    #[must_use]
    pub fn candidates(&self, event: &RowEvent<'_>, keys: &RowKeys) -> Vec<StatementId> {
        let Some(table) = self.tables.get(&event.table) else { return Vec::new() };
        let may_touch = |read: &Columns| {
            let is_update = event.before.is_some() && event.after.is_some();
            !is_update || !event.changed.intersection(*read).is_empty()
        };
        let mut candidates: Vec<StatementId> = Vec::new();
        for (_, ids) in table.rest.iter().filter(|(read, _)| may_touch(read)) {
            candidates.extend(ids.iter());
        }
        for ((column, _), index) in table.by_value.iter().filter(|((_, read), _)| may_touch(read)) {
            for image in &keys.0 {
                match image.get(usize::from(*column)) {
                    Some(RowKey::Hash(hash)) => index.find(*hash, &self.lists, &mut candidates),
                    Some(RowKey::None) => {}
                    Some(RowKey::Any) | None => index.all(&self.lists, &mut candidates),
                }
            }
        }
        candidates
    }

    /// The reads that must be tested for a statement or group; `None` if it is gone.
    #[must_use]
    pub fn candidate(&self, id: StatementId) -> Option<StatementCandidate> {
        match Groups::of_id(id) {
            Some(group) => {
                let reads = self.groups.get(group)?.reads.clone();
                Some(StatementCandidate::Group(CandidateGroup { group, reads }))
            }
            None => Some(StatementCandidate::Statement(id, self.reads(id)?.clone())),
        }
    }

    /// The statements of a group that a changed row may touch. `rows` are the result of the look-up, if they are known
    /// to be rows of the state right after the transaction of the change.
    #[must_use]
    pub fn within(&self, lookup: &NearestLookup, rows: Option<&[SqlRow<'_>]>) -> Vec<StatementId> {
        let Some(group) = self.groups.get(lookup.group) else { return Vec::new() };
        group.within(lookup.bounds(rows)).collect()
    }

    /// All statements of a group.
    #[must_use]
    pub fn members(&self, group: &CandidateGroup) -> Vec<StatementId> {
        let group = self.groups.get(group.group);
        group.map(|group| group.within(0..=u64::MAX).collect()).unwrap_or_default()
    }

    /// Whether a group has statements that a row with this look-up may touch.
    #[must_use]
    pub fn has_bounds(&self, lookup: &NearestLookup) -> bool {
        let group = self.groups.get(lookup.group);
        group.is_some_and(|group| group.within(lookup.side()).next().is_some())
    }

    /// The statements that a changed row touches, before the join check, without look-ups.
    #[must_use]
    pub fn touched(&self, event: &RowEvent<'_>) -> BTreeSet<StatementId> {
        let FoundStatements { mut touched, nearest } = self.find_touched(event);
        touched.extend(nearest.iter().flat_map(|lookup| self.nearest(event, lookup, None)));
        touched
    }

    /// The statements that a changed row touches, before the join check, and the groups that it touches in part: all
    /// steps at once, for a caller without a lock.
    #[must_use]
    pub fn find_touched(&self, event: &RowEvent<'_>) -> FoundStatements {
        let (mut found, mut budget) = (FoundStatements::default(), MatchBudget::of_row());
        let mut open = self.candidates(event, &Index::keys_of(&self.schema, &self.hasher, event));
        while let Some(id) = open.pop() {
            match self.candidate(id) {
                Some(StatementCandidate::Statement(id, reads))
                    if reads.touched_within(event, &mut budget) =>
                {
                    found.touched.insert(id);
                }
                Some(StatementCandidate::Group(group)) => {
                    for row in event.images() {
                        match group.place(&self.schema, row, &mut budget) {
                            RowInGroup::Outside => {}
                            RowInGroup::Unknown => open.extend(self.members(&group)),
                            RowInGroup::Nearest(lookup) => {
                                if self.has_bounds(&lookup) && !found.nearest.contains(&lookup) {
                                    found.nearest.push(lookup);
                                }
                            }
                        }
                    }
                }
                Some(StatementCandidate::Statement(..)) | None => {}
            }
        }
        found
    }

    /// The statements of a group that a changed row touches, see [`Index::within`].
    #[must_use]
    pub fn nearest(
        &self,
        event: &RowEvent<'_>,
        lookup: &NearestLookup,
        rows: Option<&[SqlRow<'_>]>,
    ) -> Vec<StatementId> {
        let mut within = self.within(lookup, rows);
        within.retain(|id| self.reads(*id).is_some_and(|reads| reads.touched_by(event)));
        within
    }

    /// All statements that read a table, in any order, some more than once: for a change of the whole table.
    #[must_use]
    pub fn of_table(&self, table: TableId) -> Vec<StatementId> {
        let Some(table) = self.tables.get(&table) else { return Vec::new() };
        let mut all: Vec<StatementId> = table.rest.values().flat_map(StatementSet::iter).collect();
        table.by_value.values().for_each(|index| index.all(&self.lists, &mut all));
        let groups: HashSet<u32> = all.iter().filter_map(|id| Groups::of_id(*id)).collect();
        all.retain(|id| Groups::of_id(*id).is_none());
        let groups = groups.into_iter().filter_map(|group| self.groups.get(group));
        all.extend(groups.flat_map(|group| group.within(0..=u64::MAX)));
        all
    }

    /// Adds a new statement wherever its footprints are found, and returns how.
    fn place_all(&mut self, reads: &Reads, id: StatementId) -> Paths {
        if let Some(bounded) = reads.bounded(&self.schema) {
            let mut groups = std::mem::take(&mut self.groups);
            let path = || reads.footprints().next().map_or(Path::Rest, |only| self.path(only));
            let new = groups.insert(bounded, id, reads, path);
            self.groups = groups;
            if let (Some((group, path)), Some(only)) = (new, reads.footprints().next()) {
                self.place(path, only, group);
            }
            return Paths::new(std::iter::once(Path::Group));
        }
        let paths = Paths::new(reads.footprints().map(|footprint| self.path(footprint)));
        for (footprint, path) in reads.footprints().zip(paths.iter()) {
            self.place(path, footprint, id);
        }
        paths
    }

    /// Removes a statement from its group, and the group with the last one.
    fn leave_group(&mut self, reads: &Reads, id: StatementId) {
        let Some(bounded) = reads.bounded(&self.schema) else { return };
        let Some((group, ended)) = self.groups.remove(&bounded, id) else { return };
        if let Some(only) = ended.reads.footprints().next() {
            self.displace(ended.path, only, group);
        }
    }

    /// The hash under which a value is found.
    fn value(&self, key: &ValueKey) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Adds a statement where a footprint is found.
    fn place(&mut self, path: Path, footprint: Footprint<'_>, id: StatementId) {
        let table = self.tables.entry(footprint.table).or_default();
        match path {
            Path::Group => {}
            Path::Rest => table.rest.entry(footprint.read()).or_default().insert(id),
            Path::Column(column) => {
                let index = table.by_value.entry((column, footprint.read())).or_default();
                for hash in hashes(&self.hasher, footprint, column) {
                    index.insert(hash, id, &mut self.lists);
                }
            }
        }
    }

    /// Removes a statement where a footprint was found.
    fn displace(&mut self, path: Path, footprint: Footprint<'_>, id: StatementId) {
        let Some(table) = self.tables.get_mut(&footprint.table) else { return };
        match path {
            Path::Group => {}
            Path::Rest => {
                let Some(ids) = table.rest.get_mut(&footprint.read()) else { return };
                ids.remove(id);
                if ids.is_empty() {
                    table.rest.remove(&footprint.read());
                }
            }
            Path::Column(column) => {
                let place = (column, footprint.read());
                let Some(index) = table.by_value.get_mut(&place) else { return };
                for hash in hashes(&self.hasher, footprint, column) {
                    index.remove(hash, id, &mut self.lists);
                }
                if index.is_empty() {
                    table.by_value.remove(&place);
                }
            }
        }
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
            let count = |key: &ValueKey| Some(index?.count(self.value(key), &self.lists));
            let longest = keys.iter().filter_map(count).max();
            let rank: ColumnKey = columns[usize::from(atom.column)].key;
            Some(((longest.unwrap_or(0), rank, keys.len()), Path::Column(atom.column)))
        });
        paths.min_by(|(one, _), (other, _)| one.cmp(other)).map_or(Path::Rest, |(_, path)| path)
    }
}

/// The hashes of the values that a row must have one of in a column, for a footprint that is found by that column.
/// A value that is not distinct from another is left out: a statement is in each list once.
fn hashes(hasher: &RandomState, footprint: Footprint<'_>, column: u16) -> Vec<u64> {
    let slot = footprint.reads.condition.constants(column);
    let keys = slot.and_then(|slot| slot.of(footprint.operands).keys()).unwrap_or_default();
    let mut hashes: Vec<u64> = keys.iter().map(|key| hasher.hash_one(key)).collect();
    hashes.sort_unstable_by_key(|hash| lists::lower(*hash));
    hashes.dedup_by_key(|hash| lists::lower(*hash));
    hashes
}

/// The key of a statement that the index has.
fn key_at(statements: &[Option<Entry>], id: StatementId) -> u128 {
    statements[id.0 as usize].as_ref().map_or(0, |entry| entry.key)
}

/// A key is a hash already.
#[expect(clippy::cast_possible_truncation, reason = "some bits of a hash are a hash")]
fn hash_of(key: u128) -> u64 {
    key as u64
}
