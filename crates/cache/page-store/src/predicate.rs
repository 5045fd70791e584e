//! Changes by predicate, for targets that have no name: a function of a page, such as a regular expression
//! on its key.
//!
//! Such a change gets its number and is remembered like any other. Then all pages of its site are visited
//! in batches, as in `change.rs`. The predicate runs between two holds of the index lock, never under it. A
//! page whose payload is replaced in between is found again by key, variant and lease. Invariants:
//! - a predicate above the floor is remembered until every outstanding lease is newer; if there are too
//!   many, the floor is raised above the oldest (rule 4);
//! - every remembered predicate of the site that is newer than a render's lease is evaluated for it; the
//!   render enters in a hold of the lock in which none was left (rule 1);
//! - sharing a render does not evaluate predicates: any such change since the lease counts (rule 2).

use crate::change::{AppliedChange, Sweep, next_page};
use crate::hash::Site;
use crate::index::Index;
use crate::lease;
use crate::names::{Strength, everything};
use crate::page::{Page, Payload};
use crate::places::RemovedPages;
use crate::predicates::{PagePredicate, PredicateChange};
use crate::refused::StoreRefusal;
use crate::store::{Store, StoreInner};
use crate::sync::{MutexGuard, yield_now};
use crate::told::{ReportedPage, Reporter};
use std::sync::Arc;

/// The maximum number of rounds in which new predicates are evaluated for a render; after them it is
/// refused.
const ROUNDS_MAX: usize = 4;

impl<P: Payload> Store<P> {
    /// Applies a change to every page of `site` for which `touches` returns true, whatever the page depends
    /// on.
    ///
    /// Returns when no lookup can find such a page from before the change, or only a marked one. It visits
    /// all pages of the site; use [`change`](Self::change) for targets that have a name. `now_ms` is the
    /// time of the change in milliseconds of the caller's clock, for the pages that it marks.
    pub fn change_where(
        &self,
        site: Site,
        touches: &PagePredicate<P>,
        strength: Strength,
        now_ms: u64,
    ) -> AppliedChange {
        self.change_where_by(site, touches, strength, now_ms, Reporter::silent())
    }

    /// [`change_where`](Self::change_where) with an observer of the affected pages.
    pub fn change_where_telling(
        &self,
        site: Site,
        touches: &PagePredicate<P>,
        strength: Strength,
        now_ms: u64,
        tell: &mut dyn FnMut(ReportedPage<'_, P>),
    ) -> AppliedChange {
        self.change_where_by(site, touches, strength, now_ms, Reporter::to(tell))
    }

    pub(crate) fn change_where_by(
        &self,
        site: Site,
        touches: &PagePredicate<P>,
        strength: Strength,
        now_ms: u64,
        teller: Reporter<'_, P>,
    ) -> AppliedChange {
        let shared = &self.shared;
        let mut index = shared.lock();
        let number = shared.next_number(&mut index);
        let touched = PredicateChange { number, site, touches: Arc::clone(touches) };
        index.predicates.list.push_back(touched);
        index.counters.changes += 1;
        index.counters.changes_by_predicate += 1;
        index.prune();
        let sweep = Sweep::new(number, strength, now_ms, teller);
        shared.sweep_where(index, site, touches, sweep)
    }
}

impl<P: Payload> StoreInner<P> {
    /// Evaluates the predicates that are newer than the lease of `page`, and locks the index. If it returns
    /// `Ok`, no predicate is left that was not evaluated.
    pub(crate) fn evaluate_predicates(
        &self,
        page: &Page<P>,
        site: Site,
    ) -> (MutexGuard<'_, Index<P>>, Result<(), StoreRefusal>) {
        let mut index = self.lock();
        if !lease::is_lease_checked() {
            return (index, Ok(()));
        }
        let mut asked = page.lease();
        for _ in 0..ROUNDS_MAX {
            let since = index.predicates.since(site, asked);
            if since.is_empty() {
                return (index, Ok(()));
            }
            asked = index.clock;
            drop(index);
            let touched = since.iter().any(|touches| touches(page));
            index = self.lock();
            if touched {
                return (index, Err(StoreRefusal::ChangedSince));
            }
        }
        (index, Err(StoreRefusal::ChangedSince))
    }

    fn sweep_where<'s>(
        &'s self,
        mut index: MutexGuard<'s, Index<P>>,
        site: Site,
        touches: &PagePredicate<P>,
        mut sweep: Sweep<'_, P>,
    ) -> AppliedChange {
        let all = everything(site, &self.seeds);
        let mut position = usize::MAX;
        let (mut batch, mut leaving) = (Vec::new(), RemovedPages::new());
        while position > 0 {
            for _ in 0..self.limits.sweep_pages {
                let Some(at) = next_page(&index, all, &mut position) else {
                    position = 0;
                    break;
                };
                let page = index.pages.get(at).page.as_ref();
                let before = page.filter(|page| page.lease() < sweep.applied.number);
                batch.extend(before.cloned());
            }
            drop(index);
            sweep.hand_over(&self.rewarm);
            leaving.clear();
            batch.retain(|page: &Page<P>| touches(page));
            yield_now();
            index = self.lock_as_sweeper();
            for page in batch.drain(..) {
                if let Some(at) = self.place_of(&index, &page) {
                    self.touch(&mut index, at, None, &mut sweep, &mut leaving);
                }
                leaving.push(page);
            }
        }
        index.bury(self.limits.bury_pages());
        self.finish(index, None, leaving);
        sweep.hand_over(&self.rewarm);
        sweep.applied
    }

    /// The current place of a page that was seen earlier: the page itself, or one with the same key,
    /// variant and lease.
    fn place_of(&self, index: &Index<P>, page: &Page<P>) -> Option<u32> {
        let in_place = index.pages.find(page.slot()).and_then(|place| place.page.as_ref());
        if in_place.is_some_and(|other| other.is(page)) {
            return Some(page.slot());
        }
        let candidates = self.shards.pages(page.key());
        let same =
            |other: &&Page<P>| other.variant() == page.variant() && other.lease() == page.lease();
        candidates.iter().find(same).map(|other| other.slot())
    }
}
