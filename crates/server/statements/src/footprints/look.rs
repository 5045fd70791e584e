//! Finds the statements that changed rows touch: the profile, the index, the join check.
//!
//! One look at a time, in the order of the database's stream. The lock of the tables is released between two rows of
//! a look, and between two parts of a row's candidates (`search`). Only the look itself defines tables or releases
//! held rows (`applying`), so pages are all that changes between.
//!
//! | a page's statement is added and its page tested | found by |
//! |---|---|
//! | before the row is among the recent changes | the candidates, which are copied under the same lock: the tag is opened after the look, and the store refuses the page, or purges it |
//! | after that, between two rows or two parts | the recent changes, which have the row; a later row of the look is as in the line above |
//! | added before, tested after | both |
//!
//! A statement that is released between may have its number given to another, which then counts as touched or is
//! tested in its place: it was added after the row, so it has the other proof. Not here: the comparisons (`footprint`).

use super::page_reads::{StatementTag, tag};
use super::recent_changes::RecentChange;
use super::search::{Finding, Search};
use super::{Applying, Footprints};
use footprint::profile::Filter;
use footprint::schema::SqlSchema;
use footprint::{Lookup, NearestLookup, PartnerRows, RowText, SqlRow, TableChange};
use page_store::Number;
use std::pin::Pin;
use std::time::Duration;
use telemetry::runtime::off_the_way;

/// How long the row before a change is remembered for the join check, in milliseconds. A look-up is
/// never later than this, except when pages of an earlier process are restored (`Tables::keeps_rows`).
pub(super) const RECENT_MS: u64 = 30_000;
/// A look with more changed rows does no join check: all partners count as present.
const CHECKED_ROWS_MAX: usize = 1_000;

/// A look with more rows to look up near the changed ones looks up none: the statements count as touched.
const NEAREST_MAX: usize = 32;

/// The rows that look-ups found; `None` for those that are not known.
pub type NearestRows = Vec<Option<Vec<SqlRow<'static>>>>;

/// Looks up rows in the database, for the join check, and for statements that return the rows nearest to a bound.
pub trait FindPartners: Send {
    /// The rows of a table that have a value in a column, with all their columns in order. `None` if
    /// they are not known: there are too many, the database did not answer, or it took too long.
    fn find<'a>(
        &'a mut self,
        schema: &'a SqlSchema,
        lookup: &'a Lookup,
    ) -> Pin<Box<dyn Future<Output = Option<Vec<SqlRow<'static>>>> + Send + 'a>>;

    /// The rows of each look-up, in order. All of them were there right after the transaction that is looked for; if that
    /// is not certain, the rows of a look-up are not known.
    fn find_nearest<'a>(
        &'a mut self,
        schema: &'a SqlSchema,
        lookups: &'a [NearestLookup],
    ) -> Pin<Box<dyn Future<Output = NearestRows> + Send + 'a>>;
}

/// Which of the held rows are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Those that were held for long enough.
    Due,
    /// All of them.
    All,
}

/// The statements that changes touch. Pass it to [`Footprints::settled`] when the changes are visible
/// to every reader. If it is dropped instead, pages that read these rows are not stored any more.
#[must_use = "it is settled when its changes are"]
#[derive(Debug)]
pub struct StatementLook {
    number: u64,
    tags: Vec<StatementTag>,
    is_everything: bool,
    /// The first row that touched a statement, in words.
    pub row: Option<RowText>,
    /// The number of look-ups in the database.
    pub lookups: usize,
    /// The number of look-ups of rows near the changed ones.
    pub neighbours: NeighbourCounts,
    /// The steps that the comparisons took.
    pub steps: u64,
}

/// The look-ups of the rows near changed rows, by their result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NeighbourCounts {
    /// Those whose rows were known, so that only the statements next to the changed row are touched.
    pub used: u64,
    /// Those whose rows were not known, so that all statements are touched whose condition the row satisfies.
    pub unknown: u64,
}

/// The changed rows of a transaction.
#[derive(Debug)]
pub struct TransactionRows {
    /// The identifier of the transaction in the database's log (GTID), if it has one.
    pub id: Option<Box<str>>,
    /// The changes of its rows, in order.
    pub rows: Vec<TableChange>,
}

impl From<Vec<TableChange>> for TransactionRows {
    fn from(rows: Vec<TableChange>) -> TransactionRows {
        TransactionRows { id: None, rows }
    }
}

impl StatementLook {
    /// The tags of the touched statements.
    pub fn tags(&self) -> impl Iterator<Item = &[u8]> {
        self.tags.iter().map(|tag| &tag[..])
    }

    /// Whether any row of any table may have changed.
    pub fn is_everything(&self) -> bool {
        self.is_everything
    }
}

impl Footprints {
    /// Looks for the statements that changes touch. `now` is the time since any moment, the same for
    /// all calls; some rows are held back (see `footprint::profile`).
    pub async fn look(
        &self,
        changes: impl Into<TransactionRows>,
        partners: &mut dyn FindPartners,
        now: Duration,
    ) -> StatementLook {
        let TransactionRows { id, rows } = changes.into();
        let mut applying = self.applying.lock().await;
        // A row of another transaction that is released with these counts as nobody's own.
        let id = id.filter(|_| applying.filter.held() == 0);
        let (mut shown, mut held) = (Vec::with_capacity(rows.len()), Vec::new());
        for change in rows {
            match change {
                TableChange::Row(event) => {
                    let filter = &mut applying.filter;
                    let before = filter.held();
                    filter.take(event, now, |event| shown.push(TableChange::Row(event)));
                    if filter.held() > before
                        && let Some(event) = filter.newest_held()
                    {
                        held.push(TableChange::Row(event.clone()));
                    }
                }
                TableChange::Table(_) | TableChange::Everything => shown.push(change),
            }
        }
        self.look_for(&mut applying, (shown, held, id), partners, now).await
    }

    /// Looks for the statements that held rows touch. `None` if no row is released.
    pub async fn release(
        &self,
        which: Release,
        partners: &mut dyn FindPartners,
        now: Duration,
    ) -> Option<StatementLook> {
        let mut applying = self.applying.lock().await;
        let until = match which {
            Release::Due => now,
            Release::All => Duration::MAX,
        };
        let mut shown = Vec::new();
        applying.filter.release(until, |event| shown.push(TableChange::Row(event)));
        if shown.is_empty() {
            return None;
        }
        Some(self.look_for(&mut applying, (shown, Vec::new(), None), partners, now).await)
    }

    /// The time at which [`Footprints::release`] has something to release.
    pub async fn next_release(&self) -> Option<Duration> {
        self.applying.lock().await.filter.next_release()
    }

    /// Records that every reader sees the changes of a look. `number` is the store's clock after that.
    pub fn settled(&self, look: StatementLook, number: Number) {
        self.tables().recent.settle(look.number, number);
    }

    async fn look_for(
        &self,
        applying: &mut Applying,
        (changes, held, transaction): (Vec<TableChange>, Vec<TableChange>, Option<Box<str>>),
        partners: &mut dyn FindPartners,
        now: Duration,
    ) -> StatementLook {
        // Not 0, which means that no row was forgotten.
        let position = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let remembered_ms = if self.tables().keeps_rows(now) { u64::MAX } else { RECENT_MS };
        let oldest = position.saturating_sub(remembered_ms);
        applying.recent.forget_up_to(oldest);
        for change in &changes {
            if let TableChange::Row(event) = change {
                applying.recent.push(position, event);
            }
        }
        let checks = self.looks_up()
            && changes.len() <= CHECKED_ROWS_MAX
            && applying.recent.is_complete_after(oldest);
        self.forget();
        // Copied without the lock, since a row may be long.
        let held: Vec<RecentChange> = held.iter().map(RecentChange::held).collect();
        let (number, generation) = {
            let mut tables = self.tables();
            tables.looks += 1;
            let number = tables.looks;
            tables.transactions.note(transaction, number);
            held.into_iter().for_each(|change| tables.recent.push(change));
            if applying.filter.held() == 0 {
                tables.recent.settle_held_with(number);
            }
            (number, tables.generation)
        };
        let mut finding = Finding::new(number, generation, checks);
        off_the_way(&mut || Search::new(&self.tables, &mut finding).changes(&changes));
        self.find_nearest(&mut finding, checks, &applying.filter, partners).await;
        let schema = self.tables().known.as_ref().map(|known| known.index.schema().clone());
        let Some(schema) = schema else { return finding.end(0) };
        let mut found = PartnerRows::new(&applying.recent);
        let (mut lookups, mut answers) = (0, Vec::new());
        loop {
            off_the_way(&mut || {
                answers.drain(..).for_each(|(lookup, rows)| found.found(lookup, rows));
                finding.check(&schema, &mut found);
            });
            let missing = found.take_missing();
            if missing.is_empty() {
                break;
            }
            for lookup in missing {
                lookups += 1;
                let rows = partners.find(&schema, &lookup).await;
                answers.push((lookup, rows));
            }
        }
        finding.end(lookups)
    }

    /// Looks the rows near the changed ones up, and adds the statements of groups that are touched.
    async fn find_nearest(
        &self,
        finding: &mut Finding,
        checks: bool,
        filter: &Filter,
        partners: &mut dyn FindPartners,
    ) {
        let nearest = finding.take_nearest();
        if nearest.is_empty() {
            return;
        }
        let (places, lookups): (Vec<usize>, Vec<NearestLookup>) = nearest.into_iter().unzip();
        // Where changes are left out, a row may be there that pages do not know of.
        let is_whole =
            |lookup: &NearestLookup| !filter.may_leave_out(lookup.table, lookup.columns());
        let is_asked = checks && lookups.len() <= NEAREST_MAX && lookups.iter().all(is_whole);
        let schema = self.tables().known.as_ref().map(|known| known.index.schema().clone());
        let mut rows = match schema {
            Some(schema) if is_asked => partners.find_nearest(&schema, &lookups).await,
            _ => Vec::new(),
        };
        rows.resize(lookups.len(), None);
        off_the_way(&mut || {
            let mut search = Search::new(&self.tables, finding);
            for ((place, lookup), rows) in places.iter().zip(&lookups).zip(&rows) {
                search.nearest(*place, lookup, rows.as_deref());
            }
        });
    }
}

impl Finding {
    fn end(self, lookups: usize) -> StatementLook {
        let Finding { number, generation, neighbours, is_everything, steps, .. } = self;
        let (touched, row) = self.into_touched();
        let tags = touched.into_iter().map(|id| tag(generation, id)).collect();
        StatementLook { number, tags, is_everything, row, lookups, neighbours, steps }
    }
}
