//! Statements across a restart: those of all pages for a snapshot, and those of an earlier process for its pages.
//!
//! | state | until | next |
//! |---|---|---|
//! | expected: the bytes of the statements | the tables are defined | held, if the tables are the same; else none |
//! | held: each statement is in the index, with a user of its own | all pages are restored, or the tables change | none |
//!
//! Invariant: a held statement was in the index before the first row was looked for that its pages may have missed.
//! So each such row has changed the tag of the statement, and the store refuses the page. A statement that entered
//! the index later is not held, also if it has the same key. Not here: the file (`page-snapshot`), the pages.

use super::look::RECENT_MS;
use super::page_reads::Statements;
use super::{Footprints, PageReads, STATEMENT_BYTES, STATEMENTS_MAX, StatementRoom, Tables};
use footprint::{Index, Reads, ReadsLoader, StatementId};
use std::collections::HashMap;
use std::mem;
use std::time::Duration;

/// The places of the index that are saved under one lock.
const PLACES: usize = 256;
/// The memory for a statement that is expected, in bytes: beside its bytes, its place in the list.
const EXPECTED_BYTES: usize = 40;
/// Statements that are expected may use this many times the memory of those in the index: there are no pages yet.
const EXPECTED_SHARE: usize = 2;

/// The statements of an earlier process, as they were saved.
#[derive(Debug)]
pub struct EarlierStatements {
    /// The hash of the tables that they read.
    tables: u128,
    statements: Vec<(u128, Box<[u8]>)>,
    room_bytes: usize,
}

impl EarlierStatements {
    /// Adds a statement. It is left out if there are too many; its pages are not restored then.
    pub fn add(&mut self, key: u128, bytes: &[u8]) {
        let bytes_all = bytes.len() + EXPECTED_BYTES;
        if bytes_all <= self.room_bytes {
            self.room_bytes -= bytes_all;
            self.statements.push((key, bytes.into()));
        }
    }

    /// Adds the statements to an index of these tables, up to the first that cannot be read.
    pub(super) fn hold_in(self, index: &mut Index, room: StatementRoom) -> HeldStatements {
        let mut held = HashMap::new();
        if index.schema().print() != self.tables {
            return held;
        }
        let mut loader = ReadsLoader::new(index.schema().clone());
        for (key, bytes) in self.statements {
            let Ok(reads) = loader.read(&bytes) else { break };
            if !room.has(index, reads.heap_bytes()) {
                break;
            }
            held.entry(key).or_insert_with(|| index.acquire(key, || reads));
        }
        held
    }
}

/// Statements of an earlier process, by their keys.
type HeldStatements = HashMap<u128, StatementId>;

/// The statements of an earlier process, as far as there are any.
#[derive(Debug, Default)]
pub(super) enum Restoration {
    /// Nothing, or no longer.
    #[default]
    None,
    /// The tables are not defined yet.
    Expected(EarlierStatements),
    /// The tables are being defined.
    Begun,
    /// Pages can be restored.
    Held(HeldStatements),
}

/// The progress of saving the statements of one definition of the tables.
#[derive(Debug)]
pub struct StatementWalk {
    generation: u32,
    tables: u128,
    next: usize,
}

impl StatementWalk {
    /// The hash of the tables that the statements read.
    pub fn tables(&self) -> u128 {
        self.tables
    }
}

impl Footprints {
    /// An empty list for the statements of an earlier process, which read tables with this hash.
    pub fn earlier(&self, tables: u128) -> EarlierStatements {
        let room_bytes = self.room.statements * STATEMENT_BYTES * EXPECTED_SHARE;
        EarlierStatements { tables, statements: Vec::new(), room_bytes }
    }

    /// Lets the statements of an earlier process enter the index with the first definition of the tables. Call it before
    /// the database is followed, and [`Footprints::end_restoring`] when all pages are restored.
    pub fn expect(&self, earlier: EarlierStatements) {
        let mut tables = self.tables();
        if tables.known.is_none() {
            tables.restoration = Restoration::Expected(earlier);
        }
    }

    /// The reads of a page of an earlier process. `None` if a statement is not held.
    pub fn restore(&self, keys: &[u128], is_timed: bool) -> Option<PageReads> {
        self.forget();
        let mut tables = self.tables();
        let generation = tables.generation;
        let Tables { known: Some(known), restoration: Restoration::Held(held), .. } = &mut *tables
        else {
            return None;
        };
        if keys.len() > STATEMENTS_MAX {
            return None;
        }
        let ids: Option<Vec<StatementId>> = keys.iter().map(|key| held.get(key).copied()).collect();
        let mut reads = PageReads::new(generation, self.released.clone());
        for (id, key) in ids?.into_iter().zip(keys) {
            known.index.acquire(*key, Reads::default);
            reads.add(id, 0);
        }
        reads.is_timed = is_timed;
        reads.finish();
        Some(reads)
    }

    /// Releases the statements of an earlier process that no page uses. `now` is the time as for [`Footprints::look`].
    pub fn end_restoring(&self, now: Duration) {
        let (generation, restoration) = {
            let mut tables = self.tables();
            tables.rows_kept_until = now + Duration::from_millis(RECENT_MS);
            (tables.generation, mem::take(&mut tables.restoration))
        };
        if let Restoration::Held(held) = restoration {
            self.release_held(generation, held);
        }
    }

    /// Releases held statements, a part at a time.
    pub(super) fn release_held(&self, generation: u32, held: HeldStatements) {
        self.released.put(Statements { generation, ids: held.into_values().collect() });
        self.forget();
    }

    /// Begins to save the statements of all pages. `None` if there are none.
    pub fn begin_walk(&self) -> Option<StatementWalk> {
        let tables = self.tables();
        let known = tables.known.as_ref()?;
        let (generation, schema) = (tables.generation, known.index.schema().clone());
        drop(tables);
        Some(StatementWalk { generation, tables: schema.print(), next: 0 })
    }

    /// The next statements with their keys, as bytes; `None` after the last one, or if the tables have been redefined.
    pub fn walk(&self, walk: &mut StatementWalk) -> Option<Vec<(u128, Vec<u8>)>> {
        let part: Vec<(u128, Reads)> = {
            let tables = self.tables();
            let known = tables.known.as_ref().filter(|_| tables.generation == walk.generation)?;
            let part = known.index.part(walk.next, PLACES)?;
            part.map(|(key, reads)| (key, reads.clone())).collect()
        };
        walk.next += PLACES;
        let saved = part.into_iter().filter_map(|(key, reads)| Some((key, reads.save()?)));
        Some(saved.collect())
    }

    /// The keys of a page's statements, if they are of the definition of the tables that was walked.
    pub fn keys(&self, reads: &PageReads, walk: &StatementWalk) -> Option<Vec<u128>> {
        let tables = self.tables();
        let is_same = tables.generation == walk.generation && reads.is_of(walk.generation);
        let known = tables.known.as_ref().filter(|_| is_same)?;
        reads.ids().map(|id| known.index.key(id)).collect()
    }
}

impl Tables {
    /// Takes what is expected, when the tables are defined. Statements of an earlier definition are gone.
    pub(super) fn begin_restoration(&mut self) -> Option<EarlierStatements> {
        match mem::take(&mut self.restoration) {
            Restoration::Expected(earlier) => {
                self.restoration = Restoration::Begun;
                Some(earlier)
            }
            Restoration::None | Restoration::Begun | Restoration::Held(_) => None,
        }
    }

    /// Holds statements that are in the index now. Returns them if restoring has ended.
    pub(super) fn hold(&mut self, held: HeldStatements) -> HeldStatements {
        match self.restoration {
            Restoration::Begun => {
                self.restoration = Restoration::Held(held);
                HeldStatements::default()
            }
            Restoration::None | Restoration::Expected(_) | Restoration::Held(_) => held,
        }
    }

    /// Whether no row before a change is forgotten for its age. Rows that were missed while no process ran are looked
    /// for much later than they changed: a partner may be gone whose deletion follows in the stream. That change
    /// finds the earlier row as its partner, however long it takes until it is looked for. After restoring, the
    /// stream has caught up, and look-ups are soon after the changes again.
    pub(super) fn keeps_rows(&self, now: Duration) -> bool {
        !matches!(self.restoration, Restoration::None) || now < self.rows_kept_until
    }
}
