//! Inactive pages: pages without a request for a given time are dropped by periodic scans, if the caller
//! runs them.
//!
//! The age of a page is the number of scans since its last request. It shares a byte with the use count
//! (`page.rs`). A lookup resets it in the store instruction that counts the use, and writes nothing if the
//! byte would not change. A scan increases the age of each page by one; a page of age [`INACTIVE`] leaves.
//! With a scan every eighth of a period, a page stays for the period after its last request, and for an
//! eighth longer at most. The caller times the scans.
//!
//! A scan visits the places in parts, under the index lock, and returns the inactive pages. A separate step
//! removes those that are still inactive: they are dead, as after a change (`index_pages.rs`), and buried later.
//! Leases, names and remembered changes are not affected.

use crate::page::{AgeStep, INACTIVE, Page, Payload};
use crate::places::RemovedPages;
use crate::store::Store;

/// The progress of a scan.
#[derive(Debug)]
pub struct IdleScan {
    older: AgeStep,
    next: Option<u32>,
}

impl IdleScan {
    /// A scan from the beginning.
    pub fn new(older: AgeStep) -> Self {
        Self { older, next: Some(0) }
    }

    /// Whether the scan is complete.
    pub fn is_over(&self) -> bool {
        self.next.is_none()
    }
}

impl<P: Payload> Store<P> {
    /// Runs the next part of a scan: increases the age of its pages and returns those without a request in
    /// eight scans. The caller chooses which of them leave: see [`Store::remove_inactive`].
    pub fn grow_older(&self, round: &mut IdleScan) -> Vec<Page<P>> {
        let Some(from) = round.next else { return Vec::new() };
        let index = self.shared.lock_as_sweeper();
        let (part, next) = index.pages.part(from, self.shared.limits.round_pages());
        let pages = part.filter_map(|place| place.page.as_ref());
        let inactive =
            pages.filter(|page| page.grow_older(round.older) >= INACTIVE).cloned().collect();
        drop(index);
        round.next = next;
        inactive
    }

    /// Drops those of `inactive` that are still stored and had no request in between. Returns their number.
    /// The edges of these pages are left for [`Store::tidy`].
    pub fn remove_inactive(&self, inactive: &[Page<P>]) -> u64 {
        let mut dropped = 0;
        for part in inactive.chunks(self.shared.limits.round_pages()) {
            let mut leaving = RemovedPages::new();
            let mut index = self.shared.lock_as_sweeper();
            for page in part.iter().filter(|page| page.age() >= INACTIVE) {
                let place = index.pages.find(page.slot());
                let stored = place.and_then(|place| place.page.as_ref());
                if stored.is_some_and(|stored| stored.is(page)) {
                    index.retire(page.slot(), &self.shared.shards, &mut leaving);
                    index.counters.inactive += 1;
                    dropped += 1;
                }
            }
            self.shared.finish(index, None, leaving);
        }
        dropped
    }
}
