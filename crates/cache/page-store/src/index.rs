//! The state that the index lock guards, and the checks made under it.
//!
//! It consists of the clock, the outstanding leases, the pages with their queues, the dependency index, the
//! remembered changes and the byte counts. Nothing here takes a lock: the caller holds the index lock.
//! `places.rs` adds and removes pages.
//!
//! [`Index::check`] is rule 1, [`Index::prune`] is rule 4. Every change with a number above the floor is
//! remembered. A lease below the floor is refused; for any other lease the check sees every later change.

use crate::budget::{Limits, heap};
use crate::evict::Queues;
use crate::hash::Id;
use crate::lease::{Leases, Number};
use crate::names::Dependencies;
use crate::places::Place;
use crate::predicate::Predicates;
use crate::refused::StoreRefusal;
use crate::restore::RestoreCheck;
use crate::runs::Runs;
use crate::slab::Slab;
use crate::stats::Counters;
use crate::tags::Tags;
use crate::urls::Urls;
use std::collections::BTreeMap;

/// The maximum number of changes forgotten in one step; the rest follows in the next steps.
const PRUNE_STEP: usize = 256;

#[derive(Debug)]
pub(crate) struct Index<P> {
    pub(crate) limits: Limits,
    /// The number of the last change.
    pub(crate) clock: Number,
    /// The highest number of a forgotten change.
    pub(crate) floor: Number,
    pub(crate) leases: Leases,
    pub(crate) pages: Slab<Place<P>>,
    /// The edges from pages to names.
    pub(crate) runs: Runs,
    pub(crate) tags: Tags,
    /// The URLs that are stored in their page's place instead of among the tags.
    pub(crate) urls: Urls,
    pub(crate) predicates: Predicates<P>,
    pub(crate) queues: Queues,
    /// Places of removed pages whose edges still exist (`places.rs`).
    pub(crate) dead: Vec<u32>,
    pub(crate) page_bytes: usize,
    /// The sum of the open counts of all names.
    pub(crate) opens: usize,
    /// The names of open changes that were dropped unsettled, each with its number of such changes.
    pub(crate) abandoned: BTreeMap<Id, u32>,
    /// The state for checking restored pages, while pages of an earlier process are being restored.
    pub(crate) restored: Option<RestoreCheck>,
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
    pub(crate) fn check(
        &self,
        dependencies: &Dependencies,
        lease: Number,
    ) -> Result<(), StoreRefusal> {
        if lease < self.floor {
            return Err(StoreRefusal::LeaseTooOld);
        }
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.changed(at)) else { continue };
            if tag.open > 0 {
                return Err(StoreRefusal::Unsettled);
            }
            if tag.last_change > lease.0 {
                return Err(StoreRefusal::ChangedSince);
            }
        }
        Ok(())
    }

    /// Rule 2: whether a request that arrived at `arrival` may share a render with this lease.
    ///
    /// Only the last change of each name is known. If the request arrived after the render began, any
    /// change since then refuses the render. The last change may be later than the arrival and no other may
    /// have happened; the refusal then costs a render, never a wrong response.
    ///
    /// If the request did not arrive after the lease, later changes do not count, because none was
    /// acknowledged before its arrival. A name that was open during the render is refused nevertheless: the
    /// render may have read it before the change was visible.
    pub(crate) fn check_shared(
        &self,
        dependencies: &Dependencies,
        lease: Number,
        arrival: Number,
    ) -> Result<(), StoreRefusal> {
        if let Some(reason) = dependencies.refused() {
            return Err(reason);
        }
        if lease < self.floor {
            return Err(StoreRefusal::LeaseTooOld);
        }
        // The predicates are not evaluated here: each counts as if it touched the page.
        if self.predicates.any_between(dependencies.site(), lease, arrival) {
            return Err(StoreRefusal::ChangedSince);
        }
        let places = dependencies.places().into_iter().flatten();
        let answered = places.map(|place| self.last_answer(place)).max();
        if answered.is_some_and(|answered| answered > lease.0) && arrival > lease {
            return Err(StoreRefusal::Superseded);
        }
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.changed(at)) else { continue };
            if tag.open > 0 {
                return Err(StoreRefusal::Unsettled);
            }
            if tag.last_change <= lease.0 {
                continue;
            }
            if arrival > lease {
                return Err(StoreRefusal::ChangedSince);
            }
            if tag.settled {
                return Err(StoreRefusal::Unsettled);
            }
        }
        Ok(())
    }

    /// Records a change of the name `id` at the clock's number. Returns the place of its tag.
    pub(crate) fn remember(&mut self, id: Id) -> u32 {
        let at = self.obtain(id);
        self.tags.remember(at, self.clock.0);
        at
    }

    /// Rule 4: forgets changes that are older than every outstanding lease, a few at a time. If more
    /// changes are remembered than the limit allows, it also forgets the oldest of them.
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

    /// Rule 4 for changes by predicate.
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

    /// The heap bytes of everything that the index holds.
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
