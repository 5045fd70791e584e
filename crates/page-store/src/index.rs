//! All that the index lock guards, and the steps that are taken under it.
//!
//! The clock, the leases out, the pages with their queues, the dependency index, the memory of changes, the
//! count of bytes. Nothing here locks anything: the caller holds the index lock and passes the page map,
//! whose shards are locked one at a time, after the index, never before.
//!
//! Rule 1 is [`Index::check`] and rule 4 [`Index::prune`]: a change with a number over the floor is
//! remembered, so a lease below the floor is refused and for any other the check sees every change.

use crate::budget::{Limits, heap};
use crate::evict::{Place, Queue, Queues};
use crate::hash::Id;
use crate::lease::{Leases, Number};
use crate::names::Dependencies;
use crate::page::{NOWHERE, Page};
use crate::refused::Refused;
use crate::shards::Shards;
use crate::slab::{NONE, Slab};
use crate::stats::Counters;
use crate::tags::{Edge, Tags};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes forgotten in one step; more are forgotten in the next.
const PRUNE_STEP: usize = 256;

/// Pages on their way out: freed after the lock is released, for freeing large payloads takes time.
pub(crate) type Leaving<P> = Vec<Arc<Page<P>>>;

/// Whether an eviction came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evicted {
    Enough,
    MoreToGo,
}

#[derive(Debug)]
pub(crate) struct Index<P> {
    pub(crate) limits: Limits,
    /// The number of the last change.
    pub(crate) clock: Number,
    /// The highest number of a change that was forgotten.
    pub(crate) floor: Number,
    pub(crate) leases: Leases,
    pub(crate) pages: Slab<Place<P>>,
    pub(crate) tags: Tags,
    pub(crate) queues: Queues,
    pub(crate) page_bytes: usize,
    pub(crate) edge_bytes: usize,
    /// How many times names are open, all together.
    pub(crate) opens: usize,
    /// The names of open changes that nobody will settle one by one, and how many times.
    pub(crate) abandoned: BTreeMap<Id, u32>,
    pub(crate) counters: Counters,
}

impl<P> Index<P> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            clock: Number(0),
            floor: Number(0),
            leases: Leases::default(),
            pages: Slab::new(),
            tags: Tags::new(),
            queues: Queues::new(limits.budget_bytes),
            page_bytes: 0,
            edge_bytes: 0,
            opens: 0,
            abandoned: BTreeMap::new(),
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
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.get(at)) else { continue };
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
        for id in dependencies.ids() {
            let Some(tag) = self.tags.find(*id).map(|at| self.tags.get(at)) else { continue };
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

    /// Puts a page in, which was checked, with edges to all it depends on.
    pub(crate) fn add(
        &mut self,
        page: &Arc<Page<P>>,
        dependencies: &Dependencies,
        queue: Queue,
    ) -> u32 {
        let edges = Box::default();
        let place = Place { page: Arc::clone(page), edges, queue, newer: NONE, older: NONE };
        let at = self.pages.insert(place);
        let mut edges = Vec::with_capacity(dependencies.ids().len());
        for (back, id) in (0u32..).zip(dependencies.ids()) {
            let tag = self.tags.obtain(*id);
            let position = self.tags.link(tag, Edge { to: at, back });
            edges.push(Edge { to: tag, back: position });
        }
        self.pages.get_mut(at).edges = edges.into();
        page.set_slot(at);
        self.page_bytes += page.heap_bytes();
        self.edge_bytes += heap(size_of_val(&*self.pages.get(at).edges));
        self.queues.push(&mut self.pages, at);
        at
    }

    /// Takes the page at `at` out of the index; the page map is the caller's to tell.
    pub(crate) fn take_out(&mut self, at: u32) -> Arc<Page<P>> {
        self.queues.remove(&mut self.pages, at);
        let place = self.pages.remove(at);
        for edge in &place.edges {
            if let Some(moved) = self.tags.unlink(edge.to, edge.back) {
                // `moved` may not be of this page: a page has one edge to a tag.
                let other = self.pages.get_mut(moved.to);
                other.edges[moved.back as usize].back = edge.back;
            }
            self.tags.free_if_idle(edge.to);
        }
        place.page.set_slot(NOWHERE);
        self.page_bytes -= place.page.heap_bytes();
        self.edge_bytes -= heap(size_of_val(&*place.edges));
        place.page
    }

    /// Drops the page at `at` because of a change.
    pub(crate) fn drop_changed(&mut self, at: u32, shards: &Shards<P>, leaving: &mut Leaving<P>) {
        self.queues.remember_worth(self.pages.get(at));
        let page = self.take_out(at);
        shards.take(&page);
        leaving.push(page);
        self.counters.dropped += 1;
    }

    /// Evicts, `keep` last, until all that is held fits the budget or it is time to let go of the lock.
    pub(crate) fn evict(
        &mut self,
        shards: &Shards<P>,
        keep: u32,
        leaving: &mut Leaving<P>,
    ) -> Evicted {
        for _ in 0..self.limits.sweep_pages {
            if self.heap_bytes() + shards.heap_bytes() <= self.limits.budget_bytes {
                return Evicted::Enough;
            }
            let Some(at) = self.queues.victim(&mut self.pages, keep) else {
                return Evicted::Enough;
            };
            let page = self.take_out(at);
            shards.take(&page);
            leaving.push(page);
            self.counters.evicted += 1;
        }
        Evicted::MoreToGo
    }

    /// Notes a change of `id` with the clock's number.
    pub(crate) fn remember(&mut self, id: Id) -> u32 {
        let at = self.tags.obtain(id);
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
    }

    fn forget(&mut self, number: u64) {
        self.floor = self.floor.max(Number(number));
        self.tags.forget_oldest();
    }

    /// All that the index holds, in bytes of heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.page_bytes
            + self.edge_bytes
            + self.pages.heap_bytes()
            + self.tags.heap_bytes()
            + self.queues.heap_bytes()
            + self.abandoned.len() * heap(2 * size_of::<(Id, u32)>())
    }
}
