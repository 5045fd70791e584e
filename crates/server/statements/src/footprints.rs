//! Automatic dependencies of a site: the statements that its pages depend on, and the changed rows that touch them
//! ([0087](../../../../docs/decisions/automatic-dependencies.md)).
//!
//! A statement is a tag of the store, so its rules hold for it. Invariant: a page is stored only if no changed row that
//! its render may not have seen touches a statement of the page.
//!
//! | a row is looked for ... | the page's statement is ... | found by |
//! |---|---|---|
//! | after the statement was added | in the index | its tag is open: the store refuses the page, or purges it |
//! | before that, and was not settled when the render began | not in the index yet | the recent changes, tested when the page is stored |
//! | before that, and was settled when the render began | | nothing: the render has seen the row |
//!
//! Visitors choose the texts of statements and rows, so `tables` is held to copy references, for one row or [`PART`]
//! statements at a time. Comparisons are bounded (`MatchBudget`), on a thread that answers no request (`runtime`).
//!
//! Locks: no other is taken under `tables`, and it is not held across an `await`. `reader` may be held when `tables` is
//! locked, never the reverse. `applying` orders the changes, and is held during looks and look-ups.

mod capture_health;
mod earlier;
mod look;
mod own_writes;
mod page_properties;
mod page_reads;
mod recent_changes;
mod refused_pages;
mod search;
mod statement_text;
mod time_of_day;

pub use capture_health::{CaptureHealth, ScriptHash};
pub use earlier::{EarlierStatements, StatementWalk};
pub use look::{
    FindPartners, NearestRows, NeighbourCounts, Release, StatementLook, TransactionRows,
};
pub use page_properties::{PageNames, PageProperty, RenderProperties};
pub use page_reads::{PageReads, is_statement};
pub use refused_pages::RefusedPages;

use crate::terms::SearchedPages;
use config::{Automatic, PartnerLookups};
use earlier::Restoration;
use footprint::profile::{Filter, SqlProfile};
use footprint::schema::{SqlSchema, TableId};
use footprint::{
    Footprint, Index, OwnTransaction, Reads, RecentRows, SqlMode, StatementId, StatementReader,
    UnknownReads,
};
use http_cache::Timestamp;
use own_writes::{OwnReads, RecentTransactions};
use page_reads::{ReleaseQueue, Statements};
use page_store::{ChangeTarget, Number};
use reasons::Reason;
use recent_changes::{RecentChanges, TouchedStatement};
use statement_text::{TextWithOptions, machine_seed, shape};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::runtime::off_the_way;
use time_of_day::TimeConstant;

/// The maximum number of statements of a page.
const STATEMENTS_MAX: usize = 900;
/// The maximum number of rows before changes that are remembered for the join check.
const RECENT_ROWS_MAX: usize = 8_192;
/// The memory that a statement is counted with, in bytes: its constants, its places in the index.
const STATEMENT_BYTES: usize = 320;
/// The number of statements that are copied or released under one lock.
const PART: usize = 256;
/// The maximum number of lines in the description of a page's reads.
const DESCRIBED_MAX: usize = 2_000;
/// The statements may use this fraction (1/`MEMORY_SHARE`) of the page budget.
const MEMORY_SHARE: usize = 8;
/// Before a page is stored, this fraction (1/`PAGE_SHARE`) of that room is freed.
const PAGE_SHARE: usize = 16;

/// The room for the statements of all pages.
#[derive(Clone, Copy)]
struct StatementRoom {
    statements: usize,
    bytes: usize,
}

impl StatementRoom {
    fn of(memory_bytes: usize) -> StatementRoom {
        let bytes = memory_bytes / MEMORY_SHARE;
        StatementRoom { statements: bytes / STATEMENT_BYTES, bytes }
    }

    /// Whether a statement that needs this memory has room.
    fn has(&self, index: &Index, bytes: usize) -> bool {
        index.len() < self.statements && index.heap_bytes() + bytes <= self.bytes
    }

    /// Whether there is room for a page with many statements.
    fn has_for_page(&self, index: &Index) -> bool {
        let (statements, bytes) = (self.statements / PAGE_SHARE, self.bytes / PAGE_SHARE);
        index.len() + statements.min(STATEMENTS_MAX) <= self.statements
            && index.heap_bytes() + bytes <= self.bytes
    }
}

/// The automatic dependencies of a site.
pub struct Footprints {
    /// `None`: pages depend on what they declare.
    settings: Option<Automatic>,
    room: StatementRoom,
    tables: Mutex<Tables>,
    /// The identifier of the server that is followed; empty until it is known. Held for a comparison.
    server: Mutex<Arc<str>>,
    /// Reads the statements of `tables`; locked alone, since a long statement takes a while.
    reader: Mutex<Option<StatementReader>>,
    /// The seed of the statements' hashes, so that no visitor can choose texts with equal ones.
    seed: u64,
    applying: tokio::sync::Mutex<Applying>,
    /// The statements of pages that are gone.
    released: Arc<ReleaseQueue>,
    /// Whether renders are captured.
    pub health: CaptureHealth,
    /// The properties that the last renders of pages have shown.
    pub pages: RenderProperties,
    /// The pages that were refused last, for `explain`.
    pub refused_pages: RefusedPages,
}

/// The statements by the rows that touch them, for the tables as they are now.
struct Tables {
    /// Counts the definitions of the tables. Statements of an earlier one are gone.
    generation: u32,
    /// `None` until the tables are known.
    known: Option<KnownTables>,
    recent: RecentChanges,
    transactions: RecentTransactions,
    /// The number of looks so far.
    looks: u64,
    restoration: Restoration,
    /// Until this time, no row before a change is forgotten for its age.
    rows_kept_until: Duration,
}

struct KnownTables {
    index: Index,
    options: Arc<OptionTables>,
}

/// The tables of options: the name, and the column of the options' names.
type OptionTables = [(String, TableId, u16)];

/// The stations of a change before the index.
struct Applying {
    filter: Filter,
    recent: RecentRows,
}

/// The statements that the render of a page has run.
#[derive(Clone, Copy)]
pub struct RenderStatements<'r> {
    /// The statements, in any order.
    pub texts: &'r [Box<[u8]>],
    /// The names of all options that the render asked for; `None` if they are not known.
    pub options: Option<&'r [String]>,
    /// The mode of the session in which they were sent.
    pub mode: SqlMode,
    /// The transactions that the render itself has committed, in order; `texts` are in order then.
    pub own: &'r [OwnTransaction],
    /// The tables whose changes the tags of the page tell: a statement that reads no other is left out.
    pub tagged: &'r [String],
}

/// The reason why the reads of a page do not become its dependencies.
#[derive(Debug)]
pub enum ReadsRefused {
    /// The tables of the database are not known yet.
    NoTables,
    /// A statement may read what no changed row tells.
    Unknown(UnknownReads, String),
    /// A row that the page shows changed while it was made.
    Changed,
    /// The page, or all pages together, have too many statements.
    TooMany,
    /// The page was read from a server with this identifier, and the followed one has the other: a
    /// replica, say, that may be behind.
    OtherServer(String, String),
}

impl ReadsRefused {
    /// The reason not to store the page.
    pub fn reason(&self) -> Reason {
        match self {
            ReadsRefused::NoTables | ReadsRefused::Unknown(..) | ReadsRefused::OtherServer(..) => {
                Reason::ReadsUnknown
            }
            ReadsRefused::Changed => Reason::ReadsChanged,
            ReadsRefused::TooMany => Reason::ReadsTooMany,
        }
    }
}

impl fmt::Display for ReadsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadsRefused::NoTables => f.write_str("the tables of the database are not known yet"),
            ReadsRefused::Unknown(why, text) => write!(f, "{why}, in: {text}"),
            ReadsRefused::Changed => {
                f.write_str("a row that the page reads, or the tables, changed meanwhile")
            }
            ReadsRefused::TooMany => f.write_str("too many statements"),
            ReadsRefused::OtherServer(read, followed) => write!(
                f,
                "the page was read from the server {read}, and [[database]] names the server {followed}"
            ),
        }
    }
}

impl Footprints {
    /// The state for a site with these settings; `memory_bytes` is its page budget.
    pub fn new(settings: Option<Automatic>, memory_bytes: usize) -> Footprints {
        let none = SqlSchema::default();
        let tables = Tables {
            generation: 0,
            known: None,
            recent: RecentChanges::default(),
            transactions: RecentTransactions::default(),
            looks: 0,
            restoration: Restoration::default(),
            rows_kept_until: Duration::ZERO,
        };
        let filter = SqlProfile::default().for_schema(&none, "");
        let recent = RecentRows::new(RECENT_ROWS_MAX);
        Footprints {
            settings,
            room: StatementRoom::of(memory_bytes),
            tables: Mutex::new(tables),
            server: Mutex::new("".into()),
            reader: Mutex::default(),
            seed: machine_seed(),
            applying: tokio::sync::Mutex::new(Applying { filter, recent }),
            released: Arc::default(),
            health: CaptureHealth::default(),
            pages: RenderProperties::default(),
            refused_pages: RefusedPages::default(),
        }
    }

    /// The settings; `None`: pages depend on what they declare.
    pub fn settings(&self) -> Option<&Automatic> {
        self.settings.as_ref()
    }

    /// Whether pages depend on rows of this database, by its name in the configuration.
    pub fn follows(&self, database: &str) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.database == database)
    }

    /// Sets the identifier of the server that is followed (`@@server_id` of MariaDB, `@@server_uuid` of
    /// MySQL).
    pub fn follow_server(&self, id: &Arc<str>) {
        self.server.lock().unwrap_or_else(PoisonError::into_inner).clone_from(id);
    }

    /// Checks that a page was read from the server that is followed. `read` is its identifier; empty if
    /// the statements went there for sure.
    ///
    /// # Errors
    /// The page was read from another server.
    pub fn check_server(&self, read: &str) -> Result<(), ReadsRefused> {
        let followed = self.server.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if read.is_empty() || *followed == *read {
            return Ok(());
        }
        Err(ReadsRefused::OtherServer(read.to_owned(), followed.to_string()))
    }

    /// Sets the tables of the database, as they are now. If they differ from before, every page is
    /// purged, and no render that is in progress is stored.
    pub async fn define(&self, schema: SqlSchema, pages: &(dyn SearchedPages + Sync)) {
        let Some(settings) = &self.settings else { return };
        let mut applying = self.applying.lock().await;
        let prefix = &settings.table_prefix;
        // The index of before is dropped after the lock is released.
        let (schema, before, earlier) = {
            let mut tables = self.tables();
            let before = tables.known.as_ref().map(|known| known.index.schema().clone());
            if before.as_deref() == Some(&schema) {
                return;
            }
            let schema = Arc::new(schema);
            tables.generation += 1;
            tables.recent.close();
            (schema, tables.known.take(), tables.begin_restoration())
        };
        if before.is_some() {
            pages.drop_pages(&[ChangeTarget::Everything]);
        }
        applying.filter = settings.profile.for_schema(&schema, prefix);
        applying.recent = RecentRows::new(RECENT_ROWS_MAX);
        let options = settings.profile.option_tables(&schema, prefix);
        let options = options.map(|(id, column)| (schema.table(id).name.clone(), id, column));
        let options: Arc<OptionTables> = options.collect();
        *self.reader() = Some(StatementReader::new(schema.clone()));
        let mut index = Index::new(schema);
        // No row is looked for before this returns, so none is missed for these statements.
        let held = earlier.map(|earlier| earlier.hold_in(&mut index, self.room));
        let (generation, unused) = {
            let mut tables = self.tables();
            tables.known = Some(KnownTables { index, options });
            let unused = tables.hold(held.unwrap_or_default());
            tables.recent.open(pages.number());
            (tables.generation, unused)
        };
        self.release_held(generation, unused);
    }

    /// The dependencies of a page whose render has run these statements. `since` is the number of its
    /// lease, and `made` the times at which the render began and at which it is complete.
    ///
    /// # Errors
    /// The reads are not known, or a row that they touch has changed since.
    pub fn depend(
        &self,
        statements: RenderStatements<'_>,
        since: Number,
        made: (Timestamp, Timestamp),
    ) -> Result<PageReads, ReadsRefused> {
        let mut result = Err(ReadsRefused::NoTables);
        off_the_way(&mut || result = self.depend_here(statements, since, made));
        result
    }

    /// Every statement of the page is in the index before the recent changes are copied. So a row that the copy lacks
    /// is looked for later, among these statements too.
    fn depend_here(
        &self,
        statements: RenderStatements<'_>,
        since: Number,
        made: (Timestamp, Timestamp),
    ) -> Result<PageReads, ReadsRefused> {
        let declared = self.settings.iter().flat_map(|settings| &settings.profile.statements);
        let texts = statements.texts.iter().map(|text| (&**text, statements.mode));
        let declared = declared.map(|text| (text.as_bytes(), SqlMode::default()));
        self.forget();
        let (generation, options) = {
            let tables = self.tables();
            let known = tables.known.as_ref().ok_or(ReadsRefused::NoTables)?;
            (tables.generation, known.options.clone())
        };
        let mut reads = PageReads::new(generation, self.released.clone());
        let (mut own, all_texts) = (OwnReads::default(), statements.texts.len());
        for (place, (text, mode)) in texts.chain(declared).enumerate() {
            let statement = TextWithOptions { text, mode, options: statements.options };
            let Some((id, new_bytes)) = self.acquire(&statement, &options, &reads)? else {
                continue;
            };
            reads.add(id, new_bytes);
            // A declared statement stands for reads that nobody has seen.
            own.ran(id, if place < all_texts { place } else { 0 });
            match time_of_day::constant(text, made) {
                Some(TimeConstant::Now) => reads.is_timed = true,
                Some(TimeConstant::Day(lasts)) => reads.day_lasts = Some(lasts),
                None => {}
            }
            if reads.len() > STATEMENTS_MAX {
                return Err(ReadsRefused::TooMany);
            }
        }
        // Those that are not used are released at the end.
        let mut spare = PageReads::new(generation, self.released.clone());
        for (id, transaction) in own.after(statements.own) {
            if let Some((own_id, bytes)) = self.acquire_own(id, transaction, &reads)? {
                spare.add(own_id, bytes);
                own.add_own(id, own_id);
            }
        }
        let (mut all, unseen, looks, tagged) = {
            let mut tables = self.tables();
            let looks = tables.transactions.looks_of(statements.own);
            let known = tables.known_for(&reads)?;
            let with_reads = |id| Some((id, known.index.reads(id).cloned()?));
            let all: Vec<(StatementId, Reads)> = reads.ids().filter_map(with_reads).collect();
            let tagged = statements.tagged.iter();
            let tagged = tagged.filter_map(|name| known.index.schema().table_id(name));
            let tagged: Vec<TableId> = tagged.collect();
            (all, tables.recent.unseen(since), looks, tagged)
        };
        reads.is_timed |= all.iter().any(|(_, own)| own.uses_clock() || own.is_random());
        all.retain(|(id, own)| !(own.are_within(&tagged) && reads.remove(*id)));
        let mut exchanged = BTreeMap::new();
        let tested = unseen.test(&all, |id, look| {
            let own = own.own_of(id, look, &looks);
            exchanged.extend(own.map(|own| (id, own)));
            own.is_some()
        });
        tested.map_err(|TouchedStatement| ReadsRefused::Changed)?;
        exchanged.into_iter().for_each(|(id, own)| reads.exchange(&mut spare, id, own));
        reads.finish();
        Ok(reads)
    }

    /// Adds a user of a statement, for the page with these reads. Returns it with the memory that it
    /// needs if it is new, in bytes; `None` if it reads no rows.
    fn acquire(
        &self,
        statement: &TextWithOptions<'_>,
        options: &OptionTables,
        page: &PageReads,
    ) -> Result<Option<(StatementId, usize)>, ReadsRefused> {
        let of_options = statement.options_in(options);
        let keys = statement.keys(self.seed, !of_options.is_empty());
        let schema = {
            let mut tables = self.tables();
            let known = tables.known_for(page)?;
            if let Some(key) = known.key_of(keys, &of_options) {
                return Ok(Some((known.index.acquire(key, Reads::default), 0)));
            }
            known.index.schema().clone()
        };
        let mut reader = self.reader();
        let reader = reader.as_mut().filter(|reader| Arc::ptr_eq(reader.schema(), &schema));
        let reader = reader.ok_or(ReadsRefused::Changed)?;
        let read = reader.read(statement.text, statement.mode);
        let mut reads = read.map_err(|why| ReadsRefused::Unknown(why, shape(statement.text)))?;
        if reads.is_empty() && !reads.uses_clock() && !reads.is_random() {
            return Ok(None);
        }
        let [mut key, by_options] = keys;
        if !of_options.is_empty() {
            let asked = statement.options.unwrap_or_default().iter();
            let asked: Vec<&str> = asked.map(String::as_str).collect();
            for (table, column) in of_options {
                if reader.narrow(&mut reads, table, column, &asked) {
                    key = by_options;
                }
            }
        }
        let mut tables = self.tables();
        let known = tables.known_for(page)?;
        let bytes = reads.heap_bytes();
        if !self.room.has(&known.index, bytes) {
            return Err(ReadsRefused::TooMany);
        }
        Ok(Some((known.index.acquire(key, || reads), bytes)))
    }

    /// Adds a user of a statement that is in the index, under a number that only one page has. Returns it with its memory;
    /// `None` if there is no room.
    fn acquire_own(
        &self,
        id: StatementId,
        transaction: &OwnTransaction,
        page: &PageReads,
    ) -> Result<Option<(StatementId, usize)>, ReadsRefused> {
        let mut tables = self.tables();
        let known = tables.known_for(page)?;
        let Some(reads) = known.index.reads(id).cloned() else { return Ok(None) };
        let bytes = reads.heap_bytes();
        if !self.room.has(&known.index, bytes) {
            return Ok(None);
        }
        let key = own_writes::key(self.seed, id, transaction);
        Ok(Some((known.index.acquire(key, || reads), bytes)))
    }

    /// The reads of a page in words, a line for each table of a statement: for `explain`.
    pub fn describe(&self, reads: &PageReads) -> Vec<String> {
        self.of_footprints(reads, |own, schema| own.describe(schema))
    }

    /// The names of the tables that a page reads.
    pub fn tables_of(&self, reads: &PageReads) -> Vec<String> {
        self.of_footprints(reads, |own, schema| schema.table(own.table).name.clone())
    }

    /// A text for each table of a statement, in order and each once.
    fn of_footprints(
        &self,
        reads: &PageReads,
        text: impl Fn(&Footprint<'_>, &SqlSchema) -> String,
    ) -> Vec<String> {
        let (all, schema) = {
            let tables = self.tables();
            let known = tables.known.as_ref().filter(|_| reads.is_of(tables.generation));
            let Some(known) = known else { return Vec::new() };
            let all = reads.ids().filter_map(|id| known.index.reads(id).cloned());
            (all.collect::<Vec<Reads>>(), known.index.schema().clone())
        };
        let footprints = all.iter().flat_map(Reads::footprints).take(DESCRIBED_MAX);
        let schema: &SqlSchema = &schema;
        let mut lines: Vec<String> = footprints.map(|own| text(&own, schema)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// The number of statements on which pages depend.
    pub fn statements(&self) -> usize {
        self.forget();
        self.tables().known.as_ref().map_or(0, |known| known.index.len())
    }

    /// Whether there is room for the statements of one more page. If not, evict pages with statements.
    pub fn has_room(&self) -> bool {
        self.forget();
        self.tables().known.as_ref().is_none_or(|known| self.room.has_for_page(&known.index))
    }

    /// Removes the statements of pages that are gone.
    fn forget(&self) {
        while let Some(Statements { generation, ids }) = self.released.take_one() {
            for part in ids.chunks(PART) {
                let mut tables = self.tables();
                if generation != tables.generation {
                    break;
                }
                if let Some(known) = &mut tables.known {
                    part.iter().for_each(|id| known.index.release(*id));
                }
            }
        }
    }

    /// Whether partners of changed rows are looked up.
    fn looks_up(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.partners == PartnerLookups::Made)
    }

    fn reader(&self) -> MutexGuard<'_, Option<StatementReader>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// The tables for a page that is being made. If they are redefined meanwhile, the page is not
    /// stored.
    fn known_for(&mut self, page: &PageReads) -> Result<&mut KnownTables, ReadsRefused> {
        let is_current = page.is_of(self.generation);
        match &mut self.known {
            Some(known) if is_current => Ok(known),
            Some(_) => Err(ReadsRefused::Changed),
            None => Err(ReadsRefused::NoTables),
        }
    }
}

impl KnownTables {
    /// The key by which the index has a statement: narrowed to options, or as it stands, if it would
    /// not be narrowed.
    fn key_of(&self, keys: [u128; 2], of_options: &[(TableId, u16)]) -> Option<u128> {
        let [by_text, by_options] = keys;
        if self.index.find(by_options).is_some() {
            return Some(by_options);
        }
        let reads = self.index.reads(self.index.find(by_text)?)?;
        let schema = self.index.schema();
        let is_wide =
            |(table, column): &(TableId, u16)| reads.can_be_narrowed(schema, *table, *column);
        (!of_options.iter().any(is_wide)).then_some(by_text)
    }
}

#[cfg(test)]
#[path = "footprints_tests.rs"]
mod tests;
