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

use crate::budget::heap;
use crate::change::{AppliedChange, Sweep, next_page};
use crate::index::Index;
use crate::lease::{self, Number};
use crate::names::{Site, Strength, everything};
use crate::page::{Page, Payload};
use crate::places::RemovedPages;
use crate::refused::StoreRefusal;
use crate::store::{Store, StoreInner};
use crate::sync::{MutexGuard, yield_now};
use crate::told::Reporter;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Whether a change affects a page. It must not panic or call the store, and must return the same for every
/// form of the page's payload.
pub type PagePredicate<P> = Arc<dyn Fn(&Page<P>) -> bool + Send + Sync>;

/// The maximum number of rounds in which new predicates are evaluated for a render; after them it is
/// refused.
const ROUNDS_MAX: usize = 4;

/// A change by predicate that is remembered.
struct PredicateChange<P> {
    number: Number,
    site: Site,
    touches: PagePredicate<P>,
}

/// The remembered changes by predicate, oldest first.
#[derive(Debug)]
pub(crate) struct Predicates<P> {
    list: VecDeque<PredicateChange<P>>,
}

impl<P> Predicates<P> {
    pub(crate) fn new() -> Self {
        Self { list: VecDeque::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn oldest(&self) -> Option<Number> {
        self.list.front().map(|change| change.number)
    }

    pub(crate) fn forget_oldest(&mut self) {
        self.list.pop_front();
        if self.list.is_empty() {
            self.list = VecDeque::new();
        }
    }

    /// Whether there is a predicate of `site` with a number above `after` and at most `until`.
    pub(crate) fn any_between(&self, site: Site, after: Number, until: Number) -> bool {
        let between = |number: Number| number > after && number <= until;
        self.list.iter().any(|change| change.site == site && between(change.number))
    }

    /// The predicates of `site` with a number above `after`. It does not allocate if there are none.
    fn since(&self, site: Site, after: Number) -> Vec<PagePredicate<P>> {
        let of_site = self.list.iter().filter(|change| change.site == site);
        let since = of_site.filter(|change| change.number > after);
        since.map(|change| Arc::clone(&change.touches)).collect()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        heap(self.list.capacity() * size_of::<PredicateChange<P>>())
    }

    /// Panics if the list is out of order or over its limit.
    pub(crate) fn validate(&self, clock: Number, max: usize) {
        let numbers: Vec<Number> = self.list.iter().map(|change| change.number).collect();
        assert!(numbers.is_sorted(), "predicates out of order");
        assert!(numbers.last().is_none_or(|number| *number <= clock), "a predicate ahead");
        assert!(numbers.len() <= max, "too many predicates");
    }
}

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

impl<P> fmt::Debug for PredicateChange<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Remembered");
        out.field("number", &self.number).field("site", &self.site).finish_non_exhaustive()
    }
}
