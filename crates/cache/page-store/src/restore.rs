//! Warm restart: walking through all pages to save them, and restoring the pages of an earlier process.
//!
//! All restored pages count as **one render that began when the restoring did**. Every change since the
//! position of the snapshot is applied after that in the ordinary way, and rule 1 refuses the pages that it
//! affects. One thing differs. A change of *everything* that is open when restoring begins (the gate of a
//! database that is not followed yet) is aimed at renders that may read too early; restored pages were
//! rendered long before. Its settlement therefore does not count against them. Any other change of
//! everything does, and while one is open no page is restored.
//!
//! A restored page displaces nothing: neither a page under its key nor, for space, any other page. All of
//! this happens under the index lock. A walk holds it for one part at a time and may miss pages that enter
//! or leave in between.

use crate::hash::Site;
use crate::index::{Index, RestoreCheck};
use crate::lease::{self, Lease};
use crate::names::{Dependencies, everything};
use crate::page::{Key, Page, PageInput, Payload, SoftMark};
use crate::places::{Place, Queue};
use crate::refused::StoreRefusal;
use crate::store::{Store, StoreInner};
use std::fmt;

/// The maximum of the use count; larger values of restored pages are reduced to it.
const USES_MAX: u8 = 3;

/// The inverse of the share of the budget that restored pages leave free.
const ROOM_LEFT: usize = 32;

/// The standing of a page for eviction, which a restored page gets back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worth {
    /// The number of uses, counted up to three.
    pub uses: u8,
    /// Whether the page has survived an eviction scan.
    pub is_proven: bool,
}

/// A page that a walk returned.
pub struct WalkedPage<P> {
    /// The page to be restored.
    pub page: Page<P>,
    /// The standing of the page for eviction.
    pub worth: Worth,
}

/// The progress of a walk: first through the pages that have been used, then through the others.
#[derive(Debug, Default)]
pub struct Walk {
    round: Pass,
    next: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pass {
    #[default]
    Used,
    Unused,
    Over,
}

impl Walk {
    /// Whether the walk is complete.
    pub fn is_over(&self) -> bool {
        self.round == Pass::Over
    }

    fn takes<P>(&self, place: &Place<P>) -> bool {
        let page = place.page.as_ref();
        let is_used = page.is_some_and(|page| place.queue == Queue::Main || page.uses() > 0);
        page.is_some() && is_used == (self.round == Pass::Used)
    }

    fn go_on(&mut self, next: Option<u32>) {
        self.next = next.unwrap_or(0);
        self.round = match (next, self.round) {
            (Some(_), round) => round,
            (None, Pass::Used) => Pass::Unused,
            (None, _) => Pass::Over,
        };
    }
}

/// The reason why a page of an earlier process was not restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// A rule refuses it, for example because a dependency has changed.
    Refused(StoreRefusal),
    /// There is a page in its place already.
    Known,
    /// It would displace another page for space.
    NoRoom,
}

impl NotRestored {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused(reason) => reason.as_str(),
            Self::Known => "known",
            Self::NoRoom => "no-room",
        }
    }
}

/// The right to restore pages of an earlier process. While it exists, changes are remembered for them.
pub struct RestoreSession<P: Payload> {
    store: Store<P>,
    lease: Lease,
}

impl<P: Payload> Store<P> {
    /// Begins to restore pages of `site`. Call it before the first change is applied that the pages may
    /// have missed. A change of everything that is open now is treated as a gate.
    ///
    /// # Panics
    /// Panics if pages are being restored already.
    pub fn restoring(&self, site: Site) -> RestoreSession<P> {
        let lease = self.lease();
        let everything = everything(site, &self.shared.seeds);
        let number = lease.number();
        let mut index = self.shared.lock();
        assert!(index.restored.is_none(), "pages are being restored already");
        index.restored = Some(RestoreCheck { lease: number, everything, settled: number });
        drop(index);
        RestoreSession { store: self.clone(), lease }
    }

    /// The pages at the next `places` places of a walk. The index lock is held while they are cloned. Pages
    /// that enter or leave between two calls may be missed, or found in both passes.
    pub fn walk(&self, walk: &mut Walk, places: usize) -> Vec<WalkedPage<P>> {
        if walk.is_over() {
            return Vec::new();
        }
        let index = self.shared.lock();
        let (part, next) = index.pages.part(walk.next, places.max(1));
        let found = part.filter(|place| walk.takes(place)).map(found).collect();
        drop(index);
        walk.go_on(next);
        found
    }
}

fn found<P>(place: &Place<P>) -> WalkedPage<P> {
    let page = place.live().clone();
    let is_proven = place.queue == Queue::Main;
    WalkedPage { worth: Worth { uses: page.uses(), is_proven }, page }
}

impl<P: Payload> RestoreSession<P> {
    /// Whether a gate is closed: no page can be restored before it has opened.
    pub fn is_held_up(&self) -> bool {
        let index = self.store.shared.lock();
        let everything = index.restored.as_ref().map(|restored| restored.everything);
        let at = everything.and_then(|id| index.tags.find(id));
        at.is_some_and(|at| index.tags.changed(at).open > 0)
    }

    /// Restores a page in the way of [`Store::insert`], if it displaces nothing. `marked_at_ms` is the time
    /// at which a soft invalidation had marked the page, in milliseconds of the caller's clock.
    ///
    /// # Errors
    /// The reason why the page was not restored. The page is freed.
    pub fn restore<'n>(
        &self,
        key: Key<'_>,
        variant: u32,
        dependencies: &Dependencies,
        new: impl Into<PageInput<'n, P>>,
        worth: Worth,
        marked_at_ms: Option<u64>,
    ) -> Result<(), NotRestored> {
        let shared = &self.store.shared;
        let page = Page::new(key, variant, self.lease.number(), new.into());
        page.set_uses(worth.uses.min(USES_MAX));
        if let Some(at_ms) = marked_at_ms {
            page.mark(SoftMark { at_ms });
        }
        let (mut index, asked) = shared.evaluate_predicates(&page, dependencies.site());
        let outcome = asked.map_err(NotRestored::Refused);
        let outcome =
            outcome.and_then(|()| shared.readmit(&mut index, &page, dependencies, worth.is_proven));
        let newcomer = outcome.is_ok().then_some(&page);
        shared.finish(index, newcomer, Vec::new());
        outcome
    }
}

impl<P: Payload> Drop for RestoreSession<P> {
    fn drop(&mut self) {
        self.store.shared.lock().restored = None;
    }
}

impl<P: Payload> fmt::Debug for RestoreSession<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restoring").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for WalkedPage<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").field("page", &self.page).field("worth", &self.worth).finish()
    }
}

impl<P: Payload> StoreInner<P> {
    /// Checks a page of an earlier process and adds it, under the index lock.
    fn readmit(
        &self,
        index: &mut Index<P>,
        page: &Page<P>,
        dependencies: &Dependencies,
        is_proven: bool,
    ) -> Result<(), NotRestored> {
        if let Some(reason) = dependencies.refused() {
            return Err(NotRestored::Refused(reason));
        }
        if page.heap_bytes() > self.limits.page_bytes_max {
            return Err(NotRestored::Refused(StoreRefusal::TooLarge));
        }
        if lease::is_lease_checked() {
            index.check_restored(dependencies).map_err(NotRestored::Refused)?;
            self.check_key(index, page).map_err(NotRestored::Refused)?;
        }
        let stored = self.shards.same_hash(page.hash());
        let others = stored.as_slice();
        let stands_in_the_way =
            |other: &Page<P>| other.key() != page.key() || other.variant() == page.variant();
        if others.iter().any(stands_in_the_way) || others.len() >= self.limits.variants_max {
            return Err(NotRestored::Known);
        }
        // The rest of the budget is left for growing tables.
        let held = index.heap_bytes() + self.shards.heap_bytes() + page.heap_bytes();
        if held > index.limits.budget_bytes - index.limits.budget_bytes / ROOM_LEFT {
            return Err(NotRestored::NoRoom);
        }
        let queue = if is_proven { Queue::Main } else { Queue::Small };
        index.add(page, dependencies, queue);
        self.shards.put(page, &[]);
        index.counters.restored += 1;
        Ok(())
    }
}

impl<P> Index<P> {
    /// Rule 1 for restored pages.
    fn check_restored(&self, dependencies: &Dependencies) -> Result<(), StoreRefusal> {
        let Some(restored) = &self.restored else { return Err(StoreRefusal::LeaseTooOld) };
        if restored.lease < self.floor {
            return Err(StoreRefusal::LeaseTooOld);
        }
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.changed(at)) else { continue };
            if tag.open > 0 {
                return Err(StoreRefusal::Unsettled);
            }
            let excused =
                if *id == restored.everything { restored.settled } else { restored.lease };
            if tag.last_change > excused.0 {
                return Err(StoreRefusal::ChangedSince);
            }
        }
        Ok(())
    }
}
