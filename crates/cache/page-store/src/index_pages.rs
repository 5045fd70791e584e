//! How pages enter the index and leave it.
//!
//! A page that leaves is at once invisible to lookups. Removing its edges touches every name that it
//! depended on, most of them far apart in memory. A change does not wait for that: it *kills* its pages,
//! that is, removes them from the page map and the queues and frees their content. Dead pages keep their
//! place and edges until they are *buried*: a few in every later step, all if room is needed, and as many
//! as the caller chooses through [`Store::tidy`](crate::Store::tidy). A dead page cannot be served: lookups
//! read the page map, not the index.
//!
//! Guarded by the index lock; the shards of the page map are locked one at a time, after it.

use crate::index::Index;
use crate::names::Dependencies;
use crate::page::{NOWHERE, Page};
use crate::places::{Place, Queue, RemovedPages, UrlIs};
use crate::runs::Run;
use crate::shards::Shards;
use crate::slab::NONE;
use crate::tags::Edge;

/// The number of dead pages buried in one step of another purpose.
const BURY_STEP: usize = 16;

impl<P> Index<P> {
    /// Adds a page that was checked, with edges to all its dependencies.
    pub(crate) fn add(&mut self, page: &Page<P>, dependencies: &Dependencies, queue: Queue) {
        let at = self.pages.insert(Place {
            page: Some(page.clone()),
            edges_at: Run::EMPTY.at,
            edges_length: Run::EMPTY.length,
            newer: NONE,
            older: NONE,
            url: dependencies.url(),
            url_is: UrlIs::Here,
            queue,
        });
        let mut edges = Vec::with_capacity(dependencies.ids().len());
        self.note_url(at, &mut edges);
        for id in dependencies.ids().iter().filter(|id| **id != dependencies.url()) {
            let to = self.obtain(*id);
            edges.push(Edge { to, back: self.tags.link(to, at) });
        }
        edges.sort_unstable_by_key(|edge| edge.to);
        let edges = self.runs.insert(&edges);
        self.pages.get_mut(at).set_edges(edges);
        page.set_slot(at);
        self.page_bytes += page.heap_bytes();
        self.queues.push(&mut self.pages, at);
    }

    /// Puts `new` in the place of the stored page `old`, with the same edges, queue and position in it.
    pub(crate) fn swap(&mut self, old: &Page<P>, new: &Page<P>) {
        let at = old.slot();
        let place = self.pages.get_mut(at);
        let (queue, before) = (place.queue, place.bytes());
        place.page = Some(new.clone());
        let after = place.bytes();
        self.queues.resize(queue, before, after);
        self.page_bytes = self.page_bytes - old.heap_bytes() + new.heap_bytes();
        new.set_slot(at);
        old.set_slot(NOWHERE);
        self.counters.swapped += 1;
    }

    /// Removes the page at `at` from the index. The caller removes it from the page map.
    pub(crate) fn take_out(&mut self, at: u32) -> Page<P> {
        let page = self.kill(at);
        self.unlink(at);
        page
    }

    /// Drops the page at `at` because of a change: it is dead and will be buried.
    pub(crate) fn drop_changed(
        &mut self,
        at: u32,
        shards: &Shards<P>,
        leaving: &mut RemovedPages<P>,
    ) {
        self.queues.remember_worth(self.pages.get(at));
        self.retire(at, shards, leaving);
        self.counters.dropped += 1;
    }

    /// Makes the page at `at` invisible to all lookups: it is dead and will be buried.
    pub(crate) fn retire(&mut self, at: u32, shards: &Shards<P>, leaving: &mut RemovedPages<P>) {
        let page = self.kill(at);
        shards.take(&page);
        leaving.push(page);
        self.dead.push(at);
    }

    /// Buries a few dead pages.
    pub(crate) fn bury_some(&mut self) {
        self.bury(BURY_STEP);
    }

    /// Buries up to `count` dead pages. Returns whether there are more.
    pub(crate) fn bury(&mut self, count: usize) -> bool {
        for _ in 0..count {
            let Some(at) = self.dead.pop() else { break };
            self.unlink(at);
        }
        if !self.dead.is_empty() {
            return true;
        }
        self.dead = Vec::new();
        false
    }

    /// Makes room by burying and then by evicting, `keep` last, until everything fits the budget. It stops
    /// after a batch, so that the lock can be released, and returns whether there is more to do.
    pub(crate) fn evict(
        &mut self,
        shards: &Shards<P>,
        keep: u32,
        leaving: &mut RemovedPages<P>,
    ) -> bool {
        for _ in 0..self.limits.sweep_pages {
            if self.heap_bytes() + shards.heap_bytes() <= self.limits.budget_bytes {
                return false;
            }
            if !self.dead.is_empty() {
                self.bury(1);
                continue;
            }
            let Some(at) = self.queues.victim(&mut self.pages, keep) else {
                return false;
            };
            let page = self.take_out(at);
            shards.take(&page);
            leaving.push(page);
            self.counters.evicted += 1;
        }
        true
    }

    /// Evicts up to `count` pages, `wanted` ones if there are any among the least used. Returns their number.
    pub(crate) fn evict_some(
        &mut self,
        shards: &Shards<P>,
        count: usize,
        wanted: impl Fn(&P) -> bool,
        leaving: &mut RemovedPages<P>,
    ) -> usize {
        let mut found =
            self.queues.least_used(&self.pages, count, |place| wanted(place.live().payload()));
        if found.is_empty() {
            found.extend(self.queues.victim(&mut self.pages, NOWHERE));
        }
        for at in &found {
            self.retire(*at, shards, leaving);
            self.counters.evicted += 1;
        }
        found.len()
    }

    /// Removes the page from its queue and its place.
    fn kill(&mut self, at: u32) -> Page<P> {
        self.queues.remove(&mut self.pages, at);
        let page = self.pages.get_mut(at).page.take().expect("a page in a queue is not dead");
        page.set_slot(NOWHERE);
        self.page_bytes -= page.heap_bytes();
        page
    }

    /// Removes the edges and the place.
    fn unlink(&mut self, at: u32) {
        self.forget_url(at);
        let run = self.pages.remove(at).edges();
        let count = self.runs.get(run).len();
        for edge in 0..count {
            let edge = self.runs.get(run)[edge];
            if let Some(moved) = self.tags.unlink(edge.to, edge.back) {
                // `moved` is another page, because a page has only one edge to a name.
                let edges = self.runs.get_mut(self.pages.get(moved).edges());
                let other = edges.binary_search_by_key(&edge.to, |other| other.to);
                edges[other.expect("an edge has two ends")].back = edge.back;
            }
            self.tags.free_if_idle(edge.to);
            self.fold(edge.to);
        }
        self.runs.remove(run);
    }
}
