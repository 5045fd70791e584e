//! The recent changes of rows, which a page is tested against when it is stored.
//!
//! Invariant: a change that the render of a page may not have seen is here, or the page is refused.
//! A change is forgotten only for lack of room; then pages whose render began before it settled are
//! refused.

use footprint::{MatchBudget, Reads, StatementId, TableChange};
use page_store::Number;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The maximum number of changes.
const CHANGES_MAX: usize = 8_192;
/// The maximum memory for changes, in bytes.
const BYTES_MAX: usize = 8 << 20;
/// The longest text of a row that is remembered, in bytes. A longer one counts as unknown.
const TEXT_BYTES_MAX: usize = 1_024;

/// Stands for the look of rows that are held back; the numbers of looks begin at 1.
const HELD: u64 = 0;

/// The recent changes, oldest first.
#[derive(Default)]
pub(super) struct RecentChanges {
    changes: VecDeque<RecentChange>,
    bytes: usize,
    /// The looks of forgotten changes that were not settled when they were forgotten.
    unsettled: BTreeSet<u64>,
    /// A render that began before this number may not have seen a forgotten change.
    reaches_back: Option<Number>,
    /// Whether no page is stored, because the tables are being redefined.
    is_closed: bool,
}

/// A change as it is remembered.
pub(super) struct RecentChange {
    look: u64,
    /// Shared with the pages that are tested against it without a lock.
    change: Arc<TableChange>,
    bytes: usize,
    /// The clock's value when every reader saw it; `None`: not yet.
    settled: Option<Number>,
}

/// The changes that the render of a page may not have seen, each with the number of its look.
pub(super) struct UnseenChanges(Option<Vec<(u64, Arc<TableChange>)>>);

/// One of the changes touches a statement of the page, or may: they are too many, or are not all known.
#[derive(Debug)]
pub(super) struct TouchedStatement;

impl RecentChange {
    /// A change with the number of its look. Made without a lock, since a row may be long.
    pub(super) fn new(look: u64, change: &TableChange) -> RecentChange {
        let change = match change {
            TableChange::Row(event) => TableChange::Row(event.without_long_texts(TEXT_BYTES_MAX)),
            TableChange::Table(_) | TableChange::Everything => change.clone(),
        };
        let images = match &change {
            TableChange::Row(event) => event.images().map(|row| row.heap_bytes()).sum(),
            TableChange::Table(_) | TableChange::Everything => 0,
        };
        let bytes = size_of::<RecentChange>() + size_of::<TableChange>() + images;
        RecentChange { look, change: Arc::new(change), bytes, settled: None }
    }

    /// A row that is held back: a page that is made meanwhile may have seen that it is gone.
    pub(super) fn held(change: &TableChange) -> RecentChange {
        RecentChange::new(HELD, change)
    }
}

impl RecentChanges {
    /// Adds a change.
    pub(super) fn push(&mut self, change: RecentChange) {
        self.bytes += change.bytes;
        self.changes.push_back(change);
        while self.changes.len() > CHANGES_MAX || self.bytes > BYTES_MAX {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.changes.pop_front() else { return };
        self.bytes -= oldest.bytes;
        match oldest.settled {
            Some(number) => self.reaches_back = self.reaches_back.max(Some(number)),
            None => drop(self.unsettled.insert(oldest.look)),
        }
    }

    /// Lets the rows that were held back settle with this look: none is held any more.
    pub(super) fn settle_held_with(&mut self, look: u64) {
        if self.unsettled.remove(&HELD) {
            self.unsettled.insert(look);
        }
        let held = self.changes.iter_mut().filter(|change| change.look == HELD);
        held.for_each(|change| change.look = look);
    }

    /// Records that the changes of a look are settled, at this value of the clock.
    pub(super) fn settle(&mut self, look: u64, number: Number) {
        if self.unsettled.remove(&look) {
            self.reaches_back = self.reaches_back.max(Some(number));
        }
        // Looks settle in their order, or nearly: the changes of this one are among the last.
        let of_look = self.changes.iter_mut().rev().filter(|change| change.look == look);
        of_look.for_each(|change| change.settled = Some(number));
    }

    /// Refuses all pages until [`RecentChanges::open`], and forgets the changes.
    pub(super) fn close(&mut self) {
        self.changes.clear();
        self.bytes = 0;
        self.is_closed = true;
    }

    /// Accepts pages again whose render begins at this value of the clock or later.
    pub(super) fn open(&mut self, number: Number) {
        self.is_closed = false;
        self.reaches_back = self.reaches_back.max(Some(number));
    }

    /// The changes that a render with this lease may not have seen.
    pub(super) fn unseen(&self, since: Number) -> UnseenChanges {
        if !page_store::is_lease_checked() {
            return UnseenChanges(Some(Vec::new()));
        }
        if self.is_closed || !self.unsettled.is_empty() || Some(since) < self.reaches_back {
            return UnseenChanges(None);
        }
        let unseen = self.changes.iter().filter(|own| own.settled.is_none_or(|at| at > since));
        UnseenChanges(Some(unseen.map(|own| (own.look, own.change.clone())).collect()))
    }
}

impl UnseenChanges {
    /// Tests the statements of a page, with their reads. Calls `is_own` with the place of a statement that a row touches
    /// and the number of the look; the row does not count if it returns true.
    ///
    /// # Errors
    /// A change touches a statement, or may.
    pub(super) fn test(
        &self,
        reads: &[(StatementId, Reads)],
        mut is_own: impl FnMut(StatementId, u64) -> bool,
    ) -> Result<(), TouchedStatement> {
        let Some(unseen) = &self.0 else { return Err(TouchedStatement) };
        let mut budget = MatchBudget::of_row();
        for (look, change) in unseen {
            for (id, own) in reads {
                let is_touched = match &**change {
                    TableChange::Row(event) => {
                        let may_touch = budget.is_spent() || own.touched_within(event, &mut budget);
                        may_touch && !is_own(*id, *look)
                    }
                    TableChange::Table(table) => {
                        own.footprints().any(|footprint| footprint.table == *table)
                    }
                    TableChange::Everything => true,
                };
                if is_touched {
                    return Err(TouchedStatement);
                }
            }
        }
        Ok(())
    }
}
