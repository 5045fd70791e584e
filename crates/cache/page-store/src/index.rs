//! All that the index lock guards, and the steps that are taken under it.
//!
//! The clock, the leases out, the pages with their queues, the dependency index, the memory of changes, the
//! count of bytes. Nothing here locks anything: the caller holds the index lock. How pages come and go is
//! in `places.rs`.
//!
//! Rule 1 is [`Index::check`] and rule 4 [`Index::prune`]: a change with a number over the floor is
//! remembered, so a lease below the floor is refused and for any other the check sees every change.

use crate::budget::{Limits, heap};
use crate::evict::Queues;
use crate::hash::Id;
use crate::lease::{Leases, Number};
use crate::names::Dependencies;
use crate::places::Place;
use crate::predicate::Predicates;
use crate::refused::Refused;
use crate::restore::Restored;
use crate::runs::Runs;
use crate::slab::Slab;
use crate::stats::Counters;
use crate::tags::Tags;
use crate::urls::Urls;
use std::collections::BTreeMap;

/// Changes forgotten in one step; more are forgotten in the next.
const PRUNE_STEP: usize = 256;

#[derive(Debug)]
pub(crate) struct Index<P> {
    pub(crate) limits: Limits,
    /// The number of the last change.
    pub(crate) clock: Number,
    /// The highest number of a change that was forgotten.
    pub(crate) floor: Number,
    pub(crate) leases: Leases,
    pub(crate) pages: Slab<Place<P>>,
    /// The pages' edges to names.
    pub(crate) runs: Runs,
    pub(crate) tags: Tags,
    /// The names that are in pages' places.
    pub(crate) urls: Urls,
    pub(crate) predicates: Predicates<P>,
    pub(crate) queues: Queues,
    /// Places of pages that are gone but whose edges are still there (`places.rs`).
    pub(crate) dead: Vec<u32>,
    pub(crate) page_bytes: usize,
    /// How many times names are open, all together.
    pub(crate) opens: usize,
    /// The names of open changes that nobody will settle one by one, and how many times.
    pub(crate) abandoned: BTreeMap<Id, u32>,
    /// What pages of an earlier process are checked by, while some are put in.
    pub(crate) restored: Option<Restored>,
    pub(crate) counters: Counters,
}

impl<P> Index<P> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            clock: Number(0),
            floor: Number(0),
            leases: Leases::default(),
            pages: Slab::new(),
            dead: Vec::new(),
            runs: Runs::new(),
            tags: Tags::new(),
            urls: Urls::new(),
            predicates: Predicates::new(),
            queues: Queues::new(limits.budget_bytes),
            page_bytes: 0,
            opens: 0,
            abandoned: BTreeMap::new(),
            restored: None,
            counters: Counters::default(),
            limits,
        }
    }

    /// Rule 1: whether a render with this lease may be stored.
    pub(crate) fn check(&self, dependencies: &Dependencies, lease: Number) -> Result<(), Refused> {
        if lease < self.floor {
            return Err(Refused::LeaseTooOld);
        }
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.changed(at)) else { continue };
            if tag.open > 0 {
                return Err(Refused::Unsettled);
            }
            if tag.last_change > lease.0 {
                return Err(Refused::ChangedSince);
            }
        }
        Ok(())
    }

    /// Rule 2: whether a request that arrived at `arrival` may share a render with this lease.
    ///
    /// Only the last change of a name is kept. Where the request came after the render began, any change
    /// since then refuses, although the last one may have come after the arrival and an earlier one not at
    /// all: that costs a render, never a wrong answer. Where the arrival is not after the lease, changes
    /// since do not count, for none had been acknowledged when the request came; but a name that was open
    /// while the render read it may have been read before it was visible.
    pub(crate) fn check_shared(
        &self,
        dependencies: &Dependencies,
        lease: Number,
        arrival: Number,
    ) -> Result<(), Refused> {
        if let Some(reason) = dependencies.refused() {
            return Err(reason);
        }
        if lease < self.floor {
            return Err(Refused::LeaseTooOld);
        }
        // Nobody asks the predicates here: each counts as if it touched the page.
        if self.predicates.any_between(dependencies.site(), lease, arrival) {
            return Err(Refused::ChangedSince);
        }
        let places = dependencies.places().into_iter().flatten();
        let answered = places.map(|place| self.last_answer(place)).max();
        if answered.is_some_and(|answered| answered > lease.0) && arrival > lease {
            return Err(Refused::Superseded);
        }
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.changed(at)) else { continue };
            if tag.open > 0 {
                return Err(Refused::Unsettled);
            }
            if tag.last_change <= lease.0 {
                continue;
            }
            if arrival > lease {
                return Err(Refused::ChangedSince);
            }
            if tag.settled {
                return Err(Refused::Unsettled);
            }
        }
        Ok(())
    }

    /// Notes a change of `id` with the clock's number.
    pub(crate) fn remember(&mut self, id: Id) -> u32 {
        let at = self.obtain(id);
        self.tags.remember(at, self.clock.0);
        at
    }

    /// Rule 4: forgets changes that every lease out is newer than, a few at a time, and as many as it takes
    /// where more are remembered than may be.
    pub(crate) fn prune(&mut self) {
        let oldest = self.leases.oldest().unwrap_or(self.clock);
        for _ in 0..PRUNE_STEP {
            match self.tags.oldest_remembered() {
                Some(number) if number <= oldest.0 => self.forget(number),
                _ => break,
            }
        }
        while self.tags.remembered() > self.limits.changes_remembered_max {
            let Some(number) = self.tags.oldest_remembered() else { break };
            if number > oldest.0 && number > self.floor.0 {
                self.counters.floor_raised += 1;
            }
            self.forget(number);
        }
        self.prune_predicates(oldest);
    }

    /// The same for changes by predicate.
    fn prune_predicates(&mut self, oldest: Number) {
        while let Some(number) = self.predicates.oldest() {
            let needed = number > oldest;
            if needed && self.predicates.len() <= self.limits.predicates_max {
                break;
            }
            if needed && number > self.floor {
                self.counters.floor_raised += 1;
            }
            self.floor = self.floor.max(number);
            self.predicates.forget_oldest();
        }
    }

    fn forget(&mut self, number: u64) {
        self.floor = self.floor.max(Number(number));
        if let Some(tag) = self.tags.forget_oldest() {
            self.fold(tag);
        }
    }

    /// All that the index holds, in bytes of heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.page_bytes
            + self.runs.heap_bytes()
            + self.pages.heap_bytes()
            + self.tags.heap_bytes()
            + self.urls.heap_bytes()
            + self.queues.heap_bytes()
            + heap(self.dead.capacity() * size_of::<u32>())
            + self.predicates.heap_bytes()
            + self.abandoned.len() * heap(2 * size_of::<(Id, u32)>())
    }
}
