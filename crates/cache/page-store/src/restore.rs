//! Pages that outlive the process: walking through all there are, and putting them in again.
//!
//! Pages of an earlier process are put in as **one render that began when the restoring did**: everything
//! that has changed since the place at which they were exact is applied after that, by the ordinary way, and
//! rule 1 refuses what it touches. One thing differs. A change of *everything* that was open when restoring
//! began (the gate of a database that is not followed yet) concerns renders that may have read too early;
//! pages of before were read long ago. So its settlement does not count against them; any other change of
//! everything does, and while one is open nothing is put in.
//!
//! What is restored displaces nothing: neither a page that is there already nor, for space, any other. All
//! under the index lock; a walk holds it for so many places, and what comes and goes meanwhile may be missed.

use crate::evict::Queue;
use crate::hash::Id;
use crate::index::Index;
use crate::lease::{self, Lease, Number};
use crate::names::{Dependencies, Site, everything};
use crate::page::{Key, Marked, New, Page, Payload};
use crate::places::Place;
use crate::refused::Refused;
use crate::store::{Shared, Store};
use std::fmt;

/// The uses that are counted at most; more in what is restored count as so many.
const USES_MAX: u8 = 3;

/// One part in so many of the budget is left free by what is restored.
const ROOM_LEFT: usize = 32;

/// What a page has earned, to be given back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worth {
    /// How often it was used, counted to three.
    pub uses: u8,
    /// Whether it has stayed through an eviction.
    pub stay: Stay,
}

/// Whether a page has stayed through an eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// It has.
    Proven,
    /// It has not been tried yet.
    Untried,
}

/// A page that was found on a walk.
pub struct Found<P> {
    /// The page.
    pub page: Page<P>,
    /// What it has earned.
    pub worth: Worth,
}

/// How far a walk has come: first through the pages that have been used, then through the others.
#[derive(Debug, Default)]
pub struct Walk {
    round: Round,
    next: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Round {
    #[default]
    Used,
    Unused,
    Over,
}

impl Walk {
    /// Whether there is nothing further.
    pub fn is_over(&self) -> bool {
        self.round == Round::Over
    }

    fn takes<P>(&self, place: &Place<P>) -> bool {
        let page = place.page.as_ref();
        let is_used = page.is_some_and(|page| place.queue == Queue::Main || page.uses() > 0);
        page.is_some() && is_used == (self.round == Round::Used)
    }

    fn go_on(&mut self, next: Option<u32>) {
        self.next = next.unwrap_or(0);
        self.round = match (next, self.round) {
            (Some(_), round) => round,
            (None, Round::Used) => Round::Unused,
            (None, _) => Round::Over,
        };
    }
}

/// Why a page of before was not put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRestored {
    /// It is not what it was: a rule speaks against it.
    Refused(Refused),
    /// There is a page in its place already.
    Known,
    /// It would displace another for space.
    NoRoom,
}

impl NotRestored {
    /// The reason's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused(reason) => reason.as_str(),
            Self::Known => "known",
            Self::NoRoom => "no-room",
        }
    }
}

/// The right to put pages of an earlier process in. While it lives, changes are remembered for them.
pub struct Restoring<P: Payload> {
    store: Store<P>,
    lease: Lease,
}

impl<P: Payload> Store<P> {
    /// Begins to restore pages of `site`. To be called before the first change is applied that they may not
    /// have seen; a change of everything that is open now is taken for a gate.
    ///
    /// # Panics
    /// Where pages are being restored already.
    pub fn restoring(&self, site: Site) -> Restoring<P> {
        let lease = self.lease();
        let everything = everything(site, &self.shared.seeds);
        let number = lease.number();
        let mut index = self.shared.lock();
        assert!(index.restored.is_none(), "pages are being restored already");
        index.restored = Some(Restored { lease: number, everything, settled: number });
        drop(index);
        Restoring { store: self.clone(), lease }
    }

    /// The pages at the next `places` of a walk. The index lock is held for as long as it takes to clone
    /// them; what is stored or taken out between two calls may be missed, or found in both rounds.
    pub fn walk(&self, walk: &mut Walk, places: usize) -> Vec<Found<P>> {
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

fn found<P>(place: &Place<P>) -> Found<P> {
    let page = place.live().clone();
    let stay = if place.queue == Queue::Main { Stay::Proven } else { Stay::Untried };
    Found { worth: Worth { uses: page.uses(), stay }, page }
}

impl<P: Payload> Restoring<P> {
    /// Whether a gate is closed: nothing can be put in before it has opened.
    pub fn is_held_up(&self) -> bool {
        let index = self.store.shared.lock();
        let everything = index.restored.as_ref().map(|restored| restored.everything);
        let at = everything.and_then(|id| index.tags.find(id));
        at.is_some_and(|at| index.tags.changed(at).open > 0)
    }

    /// Puts a page in as [`Store::insert`] does, where it displaces nothing. `marked_at_ms` is the time at
    /// which a soft change had marked it, if one had.
    ///
    /// # Errors
    /// Why not: the page is let go of.
    pub fn restore<'n>(
        &self,
        key: Key<'_>,
        variant: u32,
        dependencies: &Dependencies,
        new: impl Into<New<'n, P>>,
        worth: Worth,
        marked_at_ms: Option<u64>,
    ) -> Result<(), NotRestored> {
        let shared = &self.store.shared;
        let page = Page::new(key, variant, self.lease.number(), new.into());
        page.set_uses(worth.uses.min(USES_MAX));
        if let Some(at_ms) = marked_at_ms {
            page.mark(Marked { at_ms });
        }
        let (mut index, asked) = shared.ask_predicates(&page, dependencies.site());
        let outcome = asked.map_err(NotRestored::Refused);
        let outcome =
            outcome.and_then(|()| shared.readmit(&mut index, &page, dependencies, worth.stay));
        let newcomer = outcome.is_ok().then_some(&page);
        shared.finish(index, newcomer, Vec::new());
        outcome
    }
}

impl<P: Payload> Drop for Restoring<P> {
    fn drop(&mut self) {
        self.store.shared.lock().restored = None;
    }
}

impl<P: Payload> fmt::Debug for Restoring<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restoring").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for Found<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found").field("page", &self.page).field("worth", &self.worth).finish()
    }
}

impl<P: Payload> Shared<P> {
    /// Checks a page of before and puts it in, under the index lock.
    fn readmit(
        &self,
        index: &mut Index<P>,
        page: &Page<P>,
        dependencies: &Dependencies,
        stay: Stay,
    ) -> Result<(), NotRestored> {
        if let Some(reason) = dependencies.refused() {
            return Err(NotRestored::Refused(reason));
        }
        if page.heap_bytes() > self.limits.page_bytes_max {
            return Err(NotRestored::Refused(Refused::TooLarge));
        }
        if lease::is_checked() {
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
        // What is left over is for lists that double.
        let held = index.heap_bytes() + self.shards.heap_bytes() + page.heap_bytes();
        if held > index.limits.budget_bytes - index.limits.budget_bytes / ROOM_LEFT {
            return Err(NotRestored::NoRoom);
        }
        let queue = match stay {
            Stay::Proven => Queue::Main,
            Stay::Untried => Queue::Small,
        };
        index.add(page, dependencies, queue);
        self.shards.put(page, &[]);
        index.counters.restored += 1;
        Ok(())
    }
}

/// What pages of before are checked by.
#[derive(Debug)]
pub(crate) struct Restored {
    /// What changed after it counts against them.
    lease: Number,
    /// The name of everything of their site.
    everything: Id,
    /// The last number of everything that does not count: the settlement of what was open at the lease.
    settled: Number,
}

impl Restored {
    /// A name is settled with the number `now`; `before` is its last number until then.
    pub(crate) fn settled(&mut self, id: Id, before: u64, now: Number) {
        if id == self.everything && before <= self.settled.0 {
            self.settled = now;
        }
    }
}

impl<P> Index<P> {
    /// Rule 1 for pages of before.
    fn check_restored(&self, dependencies: &Dependencies) -> Result<(), Refused> {
        let Some(restored) = &self.restored else { return Err(Refused::LeaseTooOld) };
        if restored.lease < self.floor {
            return Err(Refused::LeaseTooOld);
        }
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.changed(at)) else { continue };
            if tag.open > 0 {
                return Err(Refused::Unsettled);
            }
            let excused =
                if *id == restored.everything { restored.settled } else { restored.lease };
            if tag.last_change > excused.0 {
                return Err(Refused::ChangedSince);
            }
        }
        Ok(())
    }
}
