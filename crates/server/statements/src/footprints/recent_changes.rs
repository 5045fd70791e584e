//! The recent changes of rows, which a page is tested against when it is stored.
//!
//! Invariant: a change that the render of a page may not have seen is here, or the page is refused.
//! A change is forgotten only for lack of room; then pages whose render began before it settled are
//! refused.

use footprint::{Reads, TableChange};
use page_store::Number;
use std::collections::{BTreeSet, VecDeque};

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

struct RecentChange {
    look: u64,
    change: TableChange,
    bytes: usize,
    /// The clock's value when every reader saw it; `None`: not yet.
    settled: Option<Number>,
}

impl RecentChanges {
    /// Adds a change, with the number of its look.
    pub(super) fn push(&mut self, look: u64, change: &TableChange) {
        let change = match change {
            TableChange::Row(event) => TableChange::Row(event.without_long_texts(TEXT_BYTES_MAX)),
            TableChange::Table(_) | TableChange::Everything => change.clone(),
        };
        let images = match &change {
            TableChange::Row(event) => event.images().map(|row| row.heap_bytes()).sum(),
            TableChange::Table(_) | TableChange::Everything => 0,
        };
        let bytes = size_of::<RecentChange>() + images;
        self.bytes += bytes;
        self.changes.push_back(RecentChange { look, change, bytes, settled: None });
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

    /// Adds a row that is held back: a page that is made meanwhile may have seen that it is gone.
    pub(super) fn push_held(&mut self, change: &TableChange) {
        self.push(HELD, change);
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

    /// Whether a change touches one of these statements that a render with this lease may not have
    /// seen.
    pub(super) fn touch_any(&self, reads: &[&Reads], since: Number) -> bool {
        if !page_store::is_lease_checked() {
            return false;
        }
        if self.is_closed || !self.unsettled.is_empty() || Some(since) < self.reaches_back {
            return true;
        }
        let mut unseen =
            self.changes.iter().filter(|change| change.settled.is_none_or(|at| at > since));
        unseen.any(|change| match &change.change {
            TableChange::Row(event) => reads.iter().any(|own| own.touched_by(event)),
            TableChange::Table(table) => {
                reads.iter().any(|own| own.footprints().any(|footprint| footprint.table == *table))
            }
            TableChange::Everything => true,
        })
    }
}
