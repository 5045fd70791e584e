//! Changes (rule 3): a change gets a number, is remembered, drops or marks all dependent pages, and
//! returns.
//!
//! Settling is for changes that renders may not see yet. A name is *open* from [`Store::open`] until its
//! last open change is settled; meanwhile no page that depends on it is stored.
//!
//! A large sweep releases the index lock between batches, and once before the first, to run [aside](Aside).
//! That is safe: every name is remembered, and opened where required, before the first release. From then
//! on no older render can enter. Pages that enter during the sweep belong to newer renders and stay; the
//! sweep recognises them by their lease. It walks a name's pages from last to first. New pages are appended
//! and a removed page is replaced by the last one, so all pages not yet visited lie before the position.
//! Lookups wait only while a page is removed from their own shard.

use crate::hash::{Id, Site};
use crate::index::Index;
use crate::lease::{Number, Registry};
use crate::names::{Change, ChangeTarget, Strength, everything};
use crate::page::{Payload, SoftMark};
use crate::places::RemovedPages;
use crate::rewarm::{self, AffectedPage, Rewarm};
use crate::store::{Store, StoreInner};
use crate::sync::{MutexGuard, yield_now};
use crate::told::{DependencyName, ReportedPage, Reporter};
use std::fmt;
use std::sync::Arc;

/// The result of a change. Once it is returned, the change may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedChange {
    /// The number of the change.
    pub number: Number,
    /// The number of pages dropped.
    pub dropped: u64,
    /// The number of pages marked that were not marked before.
    pub marked: u64,
}

/// A change that was applied and is not settled. Until it is settled, no page that depends on it is stored
/// or shared.
///
/// Dropping it does not settle it, because a render could then store data from before the change. Its names
/// stay open until [`Store::settle_abandoned`] is called, when all changes are known to be visible.
#[must_use = "the names stay open until the change is settled"]
pub struct OpenChange {
    applied: AppliedChange,
    ids: Vec<Id>,
    registry: Arc<dyn Registry>,
}

impl OpenChange {
    /// The result of the change when it was opened.
    pub fn applied(&self) -> AppliedChange {
        self.applied
    }
}

impl<P: Payload> Store<P> {
    /// Applies a change. Returns when no lookup can find an affected page any more, or only a marked one.
    pub fn change(&self, change: &Change<'_>, strength: Strength) -> AppliedChange {
        self.change_at(change, strength, 0)
    }

    /// Applies a change with its time, in milliseconds of the caller's clock. Pages that it marks return
    /// that time from [`Page::marked`](crate::Page::marked).
    pub fn change_at(&self, change: &Change<'_>, strength: Strength, now_ms: u64) -> AppliedChange {
        self.change_by(change, Keys::All, (strength, now_ms), Reporter::silent(), &|sweep| sweep())
    }

    /// The names that a change of `target` affects.
    pub fn names(&self, site: Site, target: &ChangeTarget<'_>) -> Vec<DependencyName> {
        let mut ids = Vec::new();
        target.ids(site, &self.shared.seeds, &mut ids);
        ids.into_iter().map(DependencyName).collect()
    }

    /// [`change_at`](Self::change_at) for pages with these keys, with an observer of the affected pages. A
    /// change of many pages runs through `aside`.
    pub fn change_telling(
        &self,
        change: &Change<'_>,
        keys: Keys<'_>,
        (strength, now_ms): (Strength, u64),
        tell: &mut dyn FnMut(ReportedPage<'_, P>),
        aside: Aside<'_>,
    ) -> AppliedChange {
        self.change_by(change, keys, (strength, now_ms), Reporter::to(tell), aside)
    }

    /// [`open`](Self::open) with an observer of the affected pages. A change of many pages runs through
    /// `aside`.
    pub fn open_telling(
        &self,
        change: &Change<'_>,
        strength: Strength,
        tell: &mut dyn FnMut(ReportedPage<'_, P>),
        aside: Aside<'_>,
    ) -> OpenChange {
        self.open_by(change, strength, Reporter::to(tell), aside)
    }

    pub(crate) fn change_by<'t>(
        &self,
        change: &Change<'_>,
        keys: Keys<'t>,
        (strength, now_ms): (Strength, u64),
        teller: Reporter<'t, P>,
        aside: Aside<'_>,
    ) -> AppliedChange {
        let ids = change.ids(&self.shared.seeds);
        let mut index = self.shared.lock();
        let number = self.shared.note(&mut index, &ids);
        let sweep = Sweep { keys, ..Sweep::new(number, strength, now_ms, teller) };
        self.shared.apply(index, &ids, sweep, aside)
    }

    /// Applies a change that may not be visible yet to renders that begin now, and keeps it open. Call
    /// [`settle`](Self::settle) once it is known to be visible.
    pub fn open(&self, change: &Change<'_>, strength: Strength) -> OpenChange {
        self.open_by(change, strength, Reporter::silent(), &|sweep| sweep())
    }

    pub(crate) fn open_by(
        &self,
        change: &Change<'_>,
        strength: Strength,
        teller: Reporter<'_, P>,
        aside: Aside<'_>,
    ) -> OpenChange {
        let ids = change.ids(&self.shared.seeds);
        let mut index = self.shared.lock();
        let number = self.shared.note(&mut index, &ids);
        let open_ids = if index.opens + ids.len() > self.shared.limits.opens_max {
            index.counters.opened_whole_site += 1;
            vec![everything(change.site, &self.shared.seeds)]
        } else {
            ids.clone()
        };
        index.open(&open_ids);
        let sweep = Sweep::new(number, strength, 0, teller);
        let applied = self.shared.apply(index, &ids, sweep, aside);
        let registry = Arc::clone(&self.shared) as Arc<dyn Registry>;
        OpenChange { applied, ids: open_ids, registry }
    }

    /// Settles an open change: renders that begin from now on see it. Returns the number of the settlement.
    pub fn settle(&self, mut opened: OpenChange) -> Number {
        let ids = std::mem::take(&mut opened.ids);
        opened.registry.settle(&ids)
    }

    /// Settles the open changes that were dropped unsettled. Call it only when every change opened so far
    /// is known to be visible: after a sufficient pause, or after the stream was resumed and its position
    /// was seen. Returns the number of the settlement.
    pub fn settle_abandoned(&self) -> Number {
        let mut index = self.shared.lock();
        let number = self.shared.next_number(&mut index);
        for (id, times) in std::mem::take(&mut index.abandoned) {
            index.settle(id, times);
        }
        self.shared.finish(index, None, RemovedPages::new());
        number
    }
}

/// Where the caller runs a sweep that takes more than one batch. The function calls its argument once
/// before it returns. It is called under no lock.
pub type Aside<'a> = &'a dyn Fn(&mut dyn FnMut());

/// Restricts a change to some of the pages that depend on it. It does not restrict renders: a running
/// render that depends on the change is not stored, whatever its key.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    /// All of them.
    All,
    /// Pages whose key begins with one of these byte strings.
    Beginning(&'a [&'a [u8]]),
}

impl Keys<'_> {
    fn have(&self, key: &[u8]) -> bool {
        match self {
            Keys::All => true,
            Keys::Beginning(beginnings) => beginnings.iter().any(|begin| key.starts_with(begin)),
        }
    }
}

/// The progress of a change through the pages that it affects.
pub(crate) struct Sweep<'t, P> {
    pub(crate) applied: AppliedChange,
    keys: Keys<'t>,
    strength: Strength,
    now_ms: u64,
    /// The pages of the current batch that are candidates for cache warming.
    worth: Vec<AffectedPage<P>>,
    teller: Reporter<'t, P>,
}

impl<'t, P: Payload> Sweep<'t, P> {
    pub(crate) fn new(
        number: Number,
        strength: Strength,
        now_ms: u64,
        teller: Reporter<'t, P>,
    ) -> Self {
        let applied = AppliedChange { number, dropped: 0, marked: 0 };
        Self { applied, keys: Keys::All, strength, now_ms, worth: Vec::new(), teller }
    }

    /// Passes on the pages touched so far: to cache warming and to the observer. Not under the index lock.
    pub(crate) fn hand_over(&mut self, rewarm: &Rewarm) {
        rewarm.add(&mut self.worth);
        self.teller.tell(self.applied.number);
    }
}

impl<P: Payload> StoreInner<P> {
    /// Gives a change its number and remembers it for each of its names.
    fn note(&self, index: &mut Index<P>, ids: &[Id]) -> Number {
        let number = self.next_number(index);
        for id in ids {
            index.remember(*id);
        }
        index.counters.changes += 1;
        number
    }

    /// Drops or marks every page that depends on one of `ids` and is older than the change. Runs the sweep
    /// through `aside` if it takes more than one batch.
    fn apply<'s>(
        &'s self,
        index: MutexGuard<'s, Index<P>>,
        ids: &[Id],
        mut sweep: Sweep<'_, P>,
        aside: Aside<'_>,
    ) -> AppliedChange {
        if index.reach(ids) <= self.limits.sweep_pages {
            self.sweep(index, ids, &mut sweep);
            return sweep.applied;
        }
        drop(index);
        let mut is_swept = false;
        let mut go_on = || {
            self.sweep(self.lock_as_sweeper(), ids, &mut sweep);
            is_swept = true;
        };
        aside(&mut go_on);
        // The change must be applied on return, even if `aside` has not called the function.
        if !is_swept {
            self.sweep(self.lock_as_sweeper(), ids, &mut sweep);
        }
        sweep.applied
    }

    fn sweep<'s>(
        &'s self,
        mut index: MutexGuard<'s, Index<P>>,
        ids: &[Id],
        sweep: &mut Sweep<'_, P>,
    ) {
        let mut leaving = RemovedPages::new();
        let mut looked_at = 0;
        for id in ids {
            let mut position = usize::MAX;
            // The position is looked up again each time, because the name may be freed and created while
            // the lock is released.
            while let Some(at) = next_page(&index, *id, &mut position) {
                if looked_at == self.limits.sweep_pages {
                    looked_at = 0;
                    position += 1;
                    drop(index);
                    sweep.hand_over(&self.rewarm);
                    leaving.clear();
                    yield_now();
                    index = self.lock_as_sweeper();
                    continue;
                }
                looked_at += 1;
                self.touch(&mut index, at, Some(*id), sweep, &mut leaving);
            }
        }
        // A small change removes the edges of its pages at once; a large change is acknowledged first
        // (`index_pages.rs`).
        index.bury(self.limits.bury_pages());
        self.finish(index, None, leaving);
        sweep.hand_over(&self.rewarm);
    }

    /// Drops or marks the page at `at`, if there is one and it is older than the change. `name` is the name
    /// by which the page was found.
    pub(crate) fn touch(
        &self,
        index: &mut Index<P>,
        at: u32,
        name: Option<Id>,
        sweep: &mut Sweep<'_, P>,
        leaving: &mut RemovedPages<P>,
    ) {
        let place = index.pages.get(at);
        let Some(page) = &place.page else { return };
        if page.lease() >= sweep.applied.number || !sweep.keys.have(page.key().bytes()) {
            return;
        }
        if sweep.strength == Strength::Drop || !page.is_marked() {
            let worth = rewarm::worth(&self.limits, place);
            sweep.worth.extend(worth.map(|worth| (page.clone(), worth)));
            sweep.teller.note(page, name);
        }
        match sweep.strength {
            Strength::Drop => {
                index.drop_changed(at, &self.shards, leaving);
                sweep.applied.dropped += 1;
            }
            Strength::Mark if !page.is_marked() => {
                page.mark(SoftMark { at_ms: sweep.now_ms });
                index.counters.marked += 1;
                sweep.applied.marked += 1;
            }
            Strength::Mark => {}
        }
    }
}

impl<P> Index<P> {
    /// The number of pages that a change of `ids` visits. A page that depends on several of them counts for
    /// each.
    fn reach(&self, ids: &[Id]) -> usize {
        ids.iter().map(|id| self.pages_of(*id).len()).sum()
    }

    fn open(&mut self, ids: &[Id]) {
        for id in ids {
            let at = self.obtain(*id);
            self.tags.open(at);
        }
        self.opens += ids.len();
        self.counters.opened += 1;
    }

    /// Settles `times` open changes of one name at the clock's number. Only renders that begin at that
    /// number or later may be stored.
    pub(crate) fn settle(&mut self, id: Id, times: u32) {
        let before = self.tags.find(id).map_or(0, |at| self.tags.changed(at).last_change);
        let at = self.remember(id);
        if let Some(restored) = &mut self.restored {
            restored.settled(id, before, self.clock);
        }
        self.tags.settle(at, times);
        self.opens -= times as usize;
    }
}

/// Moves `position` to the previous page among those of `id`, and returns the place of that page.
pub(crate) fn next_page<P>(index: &Index<P>, id: Id, position: &mut usize) -> Option<u32> {
    let pages = index.pages_of(id);
    *position = (*position).min(pages.len()).checked_sub(1)?;
    Some(pages[*position])
}

impl Drop for OpenChange {
    fn drop(&mut self) {
        if !self.ids.is_empty() {
            self.registry.abandon(std::mem::take(&mut self.ids));
        }
    }
}

impl fmt::Debug for OpenChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened").field("applied", &self.applied).finish_non_exhaustive()
    }
}
