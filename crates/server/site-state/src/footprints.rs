//! Automatic dependencies of a site: the statements that its pages depend on, and the changed rows
//! that touch them ([0087](../../../../docs/decisions/0087-statements-as-tags.md)).
//!
//! A statement is a tag of the store, so leases, settling, gaps and joins hold for it as for any other
//! tag. Invariant: a page is stored only if no changed row that its render may not have seen touches
//! a statement of the page.
//!
//! | a row is looked for ... | the page's statement is ... | found by |
//! |---|---|---|
//! | after the statement was added | in the index | its tag is open: the store refuses the page, or purges it |
//! | before that, and was not settled when the render began | not in the index yet | the recent changes, tested when the page is stored |
//! | before that, and was settled when the render began | | nothing: the render has seen the row |
//!
//! Locks: `tables` is never held while the store is locked, nor across an `await`; under it only the
//! queue of released statements is locked. `applying` orders the changes, and is held during look-ups.

mod earlier;
mod look;
mod page_reads;
mod recent_changes;
mod time_of_day;

pub use earlier::{EarlierStatements, StatementWalk};
pub use look::{FindPartners, Release, StatementLook};
pub use page_reads::{PageReads, is_statement};

use crate::terms::SearchedPages;
use config::{Automatic, PartnerLookups};
use earlier::Restoration;
use footprint::profile::{Filter, SqlProfile};
use footprint::schema::{SqlSchema, TableId};
use footprint::{
    Index, Narrowing, Reads, RecentRows, RowEvent, SqlMode, StatementId, StatementReader,
    UnknownReads,
};
use http_cache::Timestamp;
use page_reads::{ReleaseQueue, Statements};
use page_store::{ChangeTarget, Number};
use recent_changes::RecentChanges;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::Xxh3;

/// The maximum number of statements of a page.
const STATEMENTS_MAX: usize = 900;
/// The maximum number of rows before changes that are remembered for the join check.
const RECENT_ROWS_MAX: usize = 8_192;
/// The memory that a statement is counted with, in bytes: its constants, its places in the index.
const STATEMENT_BYTES: usize = 600;
/// The statements may use this fraction (1/`MEMORY_SHARE`) of the page budget.
const MEMORY_SHARE: usize = 8;

/// The automatic dependencies of a site.
pub struct Footprints {
    /// `None`: pages depend on what they declare.
    settings: Option<Automatic>,
    statements_max: usize,
    tables: Mutex<Tables>,
    applying: tokio::sync::Mutex<Applying>,
    /// The statements of pages that are gone.
    released: Arc<ReleaseQueue>,
}

/// The statements by the rows that touch them, for the tables as they are now.
struct Tables {
    /// Counts the definitions of the tables. Statements of an earlier one are gone.
    generation: u32,
    /// `None` until the tables are known.
    known: Option<KnownTables>,
    recent: RecentChanges,
    /// The number of looks so far.
    looks: u64,
    restoration: Restoration,
    /// Until this time, no row before a change is forgotten for its age.
    rows_kept_until: Duration,
}

struct KnownTables {
    reader: StatementReader,
    index: Index,
    /// The tables of options: the name, and the column of the options' names.
    options: Vec<(String, TableId, u16)>,
}

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
}

impl ReadsRefused {
    /// The name of the reason, as `Cache-Status` and the log show it.
    pub fn as_str(&self) -> &'static str {
        match self {
            ReadsRefused::NoTables | ReadsRefused::Unknown(..) => "reads-unknown",
            ReadsRefused::Changed => "reads-changed",
            ReadsRefused::TooMany => "reads-too-many",
        }
    }
}

impl fmt::Display for ReadsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadsRefused::NoTables => f.write_str("the tables of the database are not known yet"),
            ReadsRefused::Unknown(why, text) => write!(f, "{why}, in: {text}"),
            ReadsRefused::Changed => f.write_str("a row that the page shows changed meanwhile"),
            ReadsRefused::TooMany => f.write_str("too many statements"),
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
            looks: 0,
            restoration: Restoration::default(),
            rows_kept_until: Duration::ZERO,
        };
        let filter = SqlProfile::default().for_schema(&none, "");
        let recent = RecentRows::new(RECENT_ROWS_MAX);
        Footprints {
            settings,
            statements_max: memory_bytes / MEMORY_SHARE / STATEMENT_BYTES,
            tables: Mutex::new(tables),
            applying: tokio::sync::Mutex::new(Applying { filter, recent }),
            released: Arc::default(),
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

    /// Sets the tables of the database, as they are now. If they differ from before, every page is
    /// purged, and no render that is in progress is stored.
    pub async fn define(&self, schema: SqlSchema, pages: &(dyn SearchedPages + Sync)) {
        let Some(settings) = &self.settings else { return };
        let mut applying = self.applying.lock().await;
        let prefix = &settings.table_prefix;
        let (schema, is_new, earlier) = {
            let mut tables = self.tables();
            let before = tables.known.as_ref().map(|known| known.reader.schema().clone());
            if before.as_deref() == Some(&schema) {
                return;
            }
            let schema = Arc::new(schema);
            tables.generation += 1;
            tables.recent.close();
            tables.known = None;
            (schema, before.is_none(), tables.begin_restoration())
        };
        if !is_new {
            pages.drop_pages(&[ChangeTarget::Everything]);
        }
        applying.filter = settings.profile.for_schema(&schema, prefix);
        applying.recent = RecentRows::new(RECENT_ROWS_MAX);
        let options = settings.profile.option_tables(&schema, prefix);
        let options =
            options.map(|(id, column)| (schema.table(id).name.clone(), id, column)).collect();
        let reader = StatementReader::new(schema.clone());
        let mut index = Index::new(schema);
        // No row is looked for before this returns, so none is missed for these statements.
        let held = earlier.map(|earlier| earlier.hold_in(&mut index, self.statements_max));
        let mut tables = self.tables();
        tables.known = Some(KnownTables { reader, index, options });
        tables.hold(held.unwrap_or_default());
        tables.recent.open(pages.number());
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
        let declared = self.settings.iter().flat_map(|settings| &settings.profile.statements);
        let texts = statements.texts.iter().map(|text| (&**text, statements.mode));
        let declared = declared.map(|text| (text.as_bytes(), SqlMode::default()));
        let generation = self.tables().generation;
        let mut reads = PageReads::new(generation, self.released.clone());
        for (text, mode) in texts.chain(declared) {
            let mut tables = self.tables();
            tables.forget(&self.released);
            let is_current = reads.is_of(tables.generation);
            // A page that is being made when the tables are redefined is not stored.
            let known = match &mut tables.known {
                Some(known) if is_current => known,
                Some(_) => return Err(ReadsRefused::Changed),
                None => return Err(ReadsRefused::NoTables),
            };
            let Some(id) = known.acquire(text, mode, statements.options)? else { continue };
            let is_timed =
                known.index.reads(id).is_some_and(|own| own.uses_clock() || own.is_random());
            reads.add(id);
            reads.is_timed |= is_timed || time_of_day::is_in(text, made);
            if reads.len() > STATEMENTS_MAX || known.index.len() > self.statements_max {
                return Err(ReadsRefused::TooMany);
            }
        }
        let tables = self.tables();
        match &tables.known {
            Some(known) if reads.is_of(tables.generation) => {
                let all: Vec<_> = reads.ids().filter_map(|id| known.index.reads(id)).collect();
                if tables.recent.touch_any(&all, since) {
                    return Err(ReadsRefused::Changed);
                }
            }
            _ => return Err(ReadsRefused::Changed),
        }
        drop(tables);
        reads.finish();
        Ok(reads)
    }

    /// The reads of a page in words, a line for each table of a statement: for `explain`.
    pub fn describe(&self, reads: &PageReads) -> Vec<String> {
        let tables = self.tables();
        let Some(known) = tables.known.as_ref().filter(|_| reads.is_of(tables.generation)) else {
            return Vec::new();
        };
        let schema = known.index.schema();
        let all = reads.ids().filter_map(|id| known.index.reads(id));
        let mut lines: Vec<String> = all
            .flat_map(|reads| {
                reads.footprints().map(|own| own.describe(schema)).collect::<Vec<_>>()
            })
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// The number of statements on which pages depend.
    pub fn statements(&self) -> usize {
        let mut tables = self.tables();
        tables.forget(&self.released);
        tables.known.as_ref().map_or(0, |known| known.index.len())
    }

    /// Whether partners of changed rows are looked up.
    fn looks_up(&self) -> bool {
        self.settings.as_ref().is_some_and(|settings| settings.partners == PartnerLookups::Made)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// Removes the statements of pages that are gone.
    fn forget(&mut self, released: &ReleaseQueue) {
        for Statements { generation, ids } in released.take() {
            if let Some(known) = self.known.as_mut().filter(|_| generation == self.generation) {
                ids.iter().for_each(|id| known.index.release(*id));
            }
        }
    }
}

impl KnownTables {
    /// Adds a user of a statement; `None` if it reads no rows.
    fn acquire(
        &mut self,
        text: &[u8],
        mode: SqlMode,
        options: Option<&[String]>,
    ) -> Result<Option<StatementId>, ReadsRefused> {
        let names: &[(String, TableId, u16)] = if options.is_some() { &self.options } else { &[] };
        let has = |name: &str| memchr::memmem::find(text, name.as_bytes()).is_some();
        let of_options: Vec<_> = names.iter().filter(|(name, ..)| has(name)).collect();
        let mut hash = Xxh3::new();
        hash.update(&mode_key(mode));
        hash.update(text);
        let by_text = hash.digest128();
        for name in options.filter(|_| !of_options.is_empty()).unwrap_or_default() {
            hash.update(&[0]);
            hash.update(name.as_bytes());
        }
        let by_options = hash.digest128();
        for key in [by_text, by_options] {
            if self.index.find(key).is_some() {
                return Ok(Some(self.index.acquire(key, Reads::default)));
            }
        }
        let read = self.reader.read(text, mode);
        let mut reads = read.map_err(|why| ReadsRefused::Unknown(why, shortened(text)))?;
        if reads.is_empty() && !reads.uses_clock() && !reads.is_random() {
            return Ok(None);
        }
        let mut key = by_text;
        for (_, table, column) in of_options {
            let asked: Vec<&str> = options.unwrap_or_default().iter().map(String::as_str).collect();
            match self.reader.narrow(&mut reads, *table, *column, &asked) {
                Narrowing::Done => key = by_options,
                Narrowing::Nothing => {}
            }
        }
        Ok(Some(self.index.acquire(key, || reads)))
    }

    /// The statements that a changed row touches, before the join check.
    fn touched(&self, event: &RowEvent<'_>) -> impl Iterator<Item = StatementId> + use<> {
        self.index.touched(event).into_iter()
    }
}

/// Bytes that differ for each mode: a text in another mode is another statement.
fn mode_key(mode: SqlMode) -> [u8; 4] {
    let SqlMode { has_ansi_quotes, has_plain_backslashes, has_other_meanings, is_utf8 } = mode;
    [has_ansi_quotes, has_plain_backslashes, has_other_meanings, is_utf8].map(u8::from)
}

/// The beginning of a statement, for a message.
fn shortened(text: &[u8]) -> String {
    const BYTES_MAX: usize = 120;
    let text = String::from_utf8_lossy(&text[..text.len().min(BYTES_MAX)]);
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
#[path = "footprints_tests.rs"]
mod tests;
