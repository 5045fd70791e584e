//! The statements that the rows of one look touch: candidates from the index, each tested without a lock.
//!
//! | step | the lock of the tables |
//! |---|---|
//! | the keys of the row, and the form in which it is remembered | no |
//! | the row is among the recent changes; the numbers of its candidates are copied | yes |
//! | the reads of [`PART`] candidates are copied | yes |
//! | they are tested, within the budget of the row; what is not tested is touched | no |
//! | the join check of those that have partners, when the partners are there ([`Finding::check`]) | no |
//!
//! A look has a budget as well. Once it is spent, each table with a changed row counts as changed as a whole: it is among
//! the recent changes before its statements are copied, under one lock, so that no later row of it needs a search.
//!
//! Not here: the interleavings (`look`), the look-ups.

use super::look::NeighbourCounts;
use super::recent_changes::RecentChange;
use super::{PART, Tables};
use footprint::schema::{SqlSchema, TableId};
use footprint::{
    Affects, Index, MatchBudget, NearestLookup, PartnerRows, Reads, RowEvent, RowInGroup, RowText,
    SqlRow, StatementCandidate, StatementId, TableChange,
};
use std::collections::BTreeSet;
use std::hash::RandomState;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of statements that wait for the join check, over all rows of a look. More count as touched.
const WAITING_MAX: usize = 100_000;

/// The steps of a look: those of comparisons, and [`CANDIDATE_STEPS`] for each statement that is copied. Some 200
/// milliseconds.
pub(super) const LOOK_STEPS: u64 = 256 << 20;
/// The steps for a statement that is copied, sorted and looked up.
const CANDIDATE_STEPS: usize = 64;
/// The steps for a row to be looked up near a changed one.
const NEAREST_STEPS: u64 = 4_096;

/// A look in progress.
pub(super) struct Finding {
    pub(super) number: u64,
    pub(super) generation: u32,
    /// Whether the join check is made.
    checks: bool,
    touched: BTreeSet<StatementId>,
    /// The first row that touched a statement.
    row: Option<RowText>,
    /// The rows that need the join check.
    open: Vec<OpenRow>,
    /// The number of statements that wait in them.
    waiting: usize,
    /// The tables that count as changed as a whole.
    whole: BTreeSet<TableId>,
    /// The steps so far.
    pub(super) steps: u64,
    /// The rows to be looked up near changed rows, each with the place of that row in `open`.
    nearest: Vec<(usize, NearestLookup)>,
    pub(super) neighbours: NeighbourCounts,
    pub(super) is_everything: bool,
}

/// A row that needs the join check, or a look-up of the rows near it.
struct OpenRow {
    event: RowEvent<'static>,
    budget: MatchBudget,
    /// The statements that wait for the join check.
    waiting: Vec<(StatementId, Reads)>,
}

/// A search for the statements that rows touch.
pub(super) struct Search<'s> {
    tables: &'s Mutex<Tables>,
    finding: &'s mut Finding,
    /// The schema of the index, and how it hashes values; `None` if the tables are not known.
    known: Option<(Arc<SqlSchema>, RandomState)>,
}

impl<'s> Search<'s> {
    pub(super) fn new(tables: &'s Mutex<Tables>, finding: &'s mut Finding) -> Search<'s> {
        let known = lock(tables).known.as_ref().map(|known| {
            let index = &known.index;
            (index.schema().clone(), index.hasher().clone())
        });
        Search { tables, finding, known }
    }

    /// Looks for the statements that changes touch.
    pub(super) fn changes(&mut self, changes: &[TableChange]) {
        for change in changes {
            match change {
                TableChange::Row(event) if self.finding.is_spent() => self.table(event.table),
                TableChange::Row(event) => {
                    self.row(event, RecentChange::new(self.finding.number, change));
                }
                TableChange::Table(table) => self.table(*table),
                TableChange::Everything => {
                    let remembered = RecentChange::new(self.finding.number, change);
                    lock(self.tables).recent.push(remembered);
                    self.finding.is_everything |= self.known.is_some();
                }
            }
        }
    }

    /// Every row of a table may have changed.
    fn table(&mut self, table: TableId) {
        if !self.finding.whole.insert(table) {
            return;
        }
        let remembered = RecentChange::new(self.finding.number, &TableChange::Table(table));
        let all = {
            let mut tables = lock(self.tables);
            tables.recent.push(remembered);
            tables.known.as_ref().map(|known| known.index.of_table(table))
        };
        self.finding.touched.extend(all.unwrap_or_default());
    }

    fn row(&mut self, event: &RowEvent<'static>, remembered: RecentChange) {
        let known = self.known.as_ref();
        let keys = known.map(|(schema, hasher)| Index::keys_of(schema, hasher, event));
        let mut candidates = {
            let mut tables = lock(self.tables);
            tables.recent.push(remembered);
            match (&tables.known, &keys) {
                (Some(known), Some(keys)) => known.index.candidates(event, keys),
                _ => return,
            }
        };
        if candidates.is_empty() {
            return;
        }
        candidates.sort_unstable();
        candidates.dedup();
        let budget = MatchBudget::of_row();
        let mut row = OpenRow { event: event.clone(), budget, waiting: Vec::new() };
        let place = self.finding.open.len();
        let nearest = self.finding.nearest.len();
        self.test(&mut row, place, candidates);
        if !row.waiting.is_empty() || self.finding.nearest.len() > nearest {
            self.finding.open.push(row);
        }
    }

    /// Adds the statements of a group that a row touches. `rows` are the result of the look-up.
    pub(super) fn nearest(
        &mut self,
        place: usize,
        lookup: &NearestLookup,
        rows: Option<&[SqlRow<'_>]>,
    ) {
        if self.finding.is_spent() {
            return self.table(self.finding.open[place].event.table);
        }
        let within = {
            let tables = lock(self.tables);
            tables.known.as_ref().map(|known| known.index.within(lookup, rows))
        };
        match rows {
            Some(_) => self.finding.neighbours.used += 1,
            None => self.finding.neighbours.unknown += 1,
        }
        let unused = OpenRow {
            event: self.finding.open[place].event.clone(),
            budget: MatchBudget::new(0),
            waiting: Vec::new(),
        };
        let mut row = mem::replace(&mut self.finding.open[place], unused);
        self.test(&mut row, place, within.unwrap_or_default());
        self.finding.open[place] = row;
    }

    /// Tests candidates, a part at a time.
    fn test(&mut self, row: &mut OpenRow, place: usize, mut candidates: Vec<StatementId>) {
        let Some((schema, _)) = self.known.clone() else { return };
        self.finding.steps += (candidates.len() * CANDIDATE_STEPS) as u64;
        let done = row.budget.done();
        candidates.retain(|id| !self.finding.touched.contains(id));
        while !candidates.is_empty() {
            let part = candidates.split_off(candidates.len().saturating_sub(PART));
            let part: Vec<StatementCandidate> = {
                let tables = lock(self.tables);
                let Some(known) = &tables.known else { return };
                // A statement that is gone has no page.
                part.into_iter().filter_map(|id| known.index.candidate(id)).collect()
            };
            for candidate in part {
                match candidate {
                    StatementCandidate::Statement(id, reads)
                        if reads.touched_within(&row.event, &mut row.budget) =>
                    {
                        self.finding.add(&schema, row, id, reads);
                    }
                    StatementCandidate::Statement(..) => {}
                    StatementCandidate::Group(group) => {
                        for image in row.event.images() {
                            match group.place(&schema, image, &mut row.budget) {
                                RowInGroup::Outside => {}
                                RowInGroup::Unknown => {
                                    let tables = lock(self.tables);
                                    let known = tables.known.as_ref();
                                    let members = known.map(|known| known.index.members(&group));
                                    let members = members.unwrap_or_default();
                                    self.finding.steps += (members.len() * CANDIDATE_STEPS) as u64;
                                    candidates.extend(members);
                                }
                                RowInGroup::Nearest(lookup) => self.add_nearest(place, lookup),
                            }
                        }
                    }
                }
            }
        }
        self.finding.steps += row.budget.done() - done;
    }

    /// Adds a look-up, unless the row before the change has the same.
    fn add_nearest(&mut self, place: usize, lookup: NearestLookup) {
        let has_bounds = {
            let tables = lock(self.tables);
            tables.known.as_ref().is_some_and(|known| known.index.has_bounds(&lookup))
        };
        self.finding.steps += NEAREST_STEPS;
        let nearest = &mut self.finding.nearest;
        let is_same = nearest.last().is_some_and(|last| *last == (place, lookup.clone()));
        if has_bounds && !is_same {
            nearest.push((place, lookup));
        }
    }
}

impl Finding {
    pub(super) fn new(number: u64, generation: u32, checks: bool) -> Finding {
        Finding {
            number,
            generation,
            checks,
            touched: BTreeSet::new(),
            row: None,
            open: Vec::new(),
            waiting: 0,
            whole: BTreeSet::new(),
            steps: 0,
            nearest: Vec::new(),
            neighbours: NeighbourCounts::default(),
            is_everything: false,
        }
    }

    fn is_spent(&self) -> bool {
        self.steps >= LOOK_STEPS
    }

    /// The look-ups near changed rows, which are made once.
    pub(super) fn take_nearest(&mut self) -> Vec<(usize, NearestLookup)> {
        mem::take(&mut self.nearest)
    }

    /// Adds a statement whose condition a row satisfies, or may.
    fn add(&mut self, schema: &SqlSchema, row: &mut OpenRow, id: StatementId, reads: Reads) {
        let waits = self.checks
            && reads.has_partners()
            && !row.budget.is_spent()
            && self.waiting < WAITING_MAX;
        if waits {
            row.waiting.push((id, reads));
            self.waiting += 1;
            return;
        }
        self.row.get_or_insert_with(|| row.event.describe(schema));
        self.touched.insert(id);
    }

    /// Checks the waiting statements, as far as partners are known.
    pub(super) fn check(&mut self, schema: &SqlSchema, partners: &mut PartnerRows<'_>) {
        let (touched, row) = (&mut self.touched, &mut self.row);
        for OpenRow { event, waiting, .. } in &mut self.open {
            waiting.retain(|(id, reads)| {
                if touched.contains(id) {
                    return false;
                }
                match reads.affected_by(event, partners) {
                    Affects::No => false,
                    Affects::Unfinished => true,
                    Affects::Yes => {
                        row.get_or_insert_with(|| event.describe(schema));
                        touched.insert(*id);
                        false
                    }
                }
            });
        }
        self.open.retain(|row| !row.waiting.is_empty());
    }

    /// The touched statements, and the first row that touched one.
    pub(super) fn into_touched(self) -> (BTreeSet<StatementId>, Option<RowText>) {
        // If statements wait still, the tables were redefined meanwhile: that purges every page.
        let waiting = self.open.into_iter().flat_map(|row| row.waiting).map(|(id, _)| id);
        (self.touched.into_iter().chain(waiting).collect(), self.row)
    }
}

fn lock(tables: &Mutex<Tables>) -> MutexGuard<'_, Tables> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}
