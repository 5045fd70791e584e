//! The state that the index lock guards, and the checks made under it.
//!
//! It consists of the clock, the outstanding leases, the pages with their queues, the dependency index, the
//! remembered changes and the byte counts. Nothing here takes a lock: the caller holds the index lock.
//! `index_pages.rs` adds and removes pages.
//!
//! [`Index::check`] is rule 1, [`Index::prune`] is rule 4. Every change with a number above the floor is
//! remembered. A lease below the floor is refused; for any other lease the check sees every later change.

use crate::budget::{Limits, heap};
use crate::evict::Queues;
use crate::hash::Id;
use crate::lease::{Leases, Number};
use crate::names::Dependencies;
use crate::places::{Place, UrlIs};
use crate::predicates::Predicates;
use crate::refused::StoreRefusal;
use crate::runs::Runs;
use crate::slab::Slab;
use crate::stats::Counters;
use crate::tags::{Edge, Tags};
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
    /// Places of removed pages whose edges still exist (`index_pages.rs`).
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

/// The state for checking restored pages.
#[derive(Debug)]
pub(crate) struct RestoreCheck {
    /// Changes after this number count against the pages.
    pub(crate) lease: Number,
    /// The name of everything of their site.
    pub(crate) everything: Id,
    /// Changes of everything up to this number do not count: it is the settlement of those open at the
    /// lease.
    pub(crate) settled: Number,
}

impl RestoreCheck {
    /// Records that a name was settled with the number `now`. `before` is its last number until then.
    pub(crate) fn settled(&mut self, id: Id, before: u64, now: Number) {
        if id == self.everything && before <= self.settled.0 {
            self.settled = now;
        }
    }
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

/// The names of URLs, which are in the places of pages or among the tags (`urls.rs`).
impl<P> Index<P> {
    /// The places of the pages that depend on a name.
    pub(crate) fn pages_of(&self, id: Id) -> &[u32] {
        match self.tags.find(id) {
            Some(at) => self.tags.pages(at),
            None => self.urls.find(id, &self.pages).map_or(&[], std::slice::from_ref),
        }
    }

    /// The place of the tag of a name, which is created if it does not exist.
    pub(crate) fn obtain(&mut self, id: Id) -> u32 {
        let Some(page) = self.urls.find(id, &self.pages).copied() else {
            return self.tags.obtain(id);
        };
        self.urls.remove(id, page, &self.pages);
        let to = self.tags.obtain(id);
        let edge = Edge { to, back: self.tags.link(to, page) };
        self.rewrite_edges(page, UrlIs::Tag, |edges| edges.push(edge));
        to
    }

    /// Records the URL of the new page at `at`, whose edges so far are `edges`.
    pub(crate) fn note_url(&mut self, at: u32, edges: &mut Vec<Edge>) {
        let id = self.pages.get(at).url;
        let other = self.urls.find(id, &self.pages).is_some();
        if other || self.tags.find(id).is_some() {
            let to = self.obtain(id);
            edges.push(Edge { to, back: self.tags.link(to, at) });
            self.pages.get_mut(at).url_is = UrlIs::Tag;
        } else {
            self.urls.insert(id, at, &self.pages);
        }
    }

    /// Removes the URL of the page at `at`, which is about to leave its place.
    pub(crate) fn forget_url(&mut self, at: u32) {
        let place = self.pages.get(at);
        if place.url_is == UrlIs::Here {
            self.urls.remove(place.url, at, &self.pages);
        }
    }

    /// Moves a name from the tags into a page's place, if the name is the URL of its only page and has no
    /// change record.
    pub(crate) fn fold(&mut self, tag: u32) {
        let Some((id, page)) = self.tags.lone(tag) else { return };
        if self.pages.get(page).url != id {
            return;
        }
        self.rewrite_edges(page, UrlIs::Here, |edges| edges.retain(|edge| edge.to != tag));
        // The only page of a tag is at position 0.
        self.tags.unlink(tag, 0);
        self.tags.free_if_idle(tag);
        self.urls.insert(id, page, &self.pages);
    }

    /// Changes the edges of the page at `at`, to add or remove that of its URL.
    fn rewrite_edges(&mut self, at: u32, url_is: UrlIs, change: impl FnOnce(&mut Vec<Edge>)) {
        let place = self.pages.get_mut(at);
        let mut edges = self.runs.get(place.edges()).to_vec();
        change(&mut edges);
        edges.sort_unstable_by_key(|edge| edge.to);
        self.runs.remove(place.edges());
        place.set_edges(self.runs.insert(&edges));
        place.url_is = url_is;
    }

    /// Panics if a URL is stored twice, not at all, or in the wrong form.
    pub(crate) fn validate_urls(&self) {
        self.urls.validate();
        let mut here = 0;
        for (at, place) in self.pages.iter() {
            let tag = self.tags.find(place.url);
            match place.url_is {
                UrlIs::Here => {
                    assert_eq!(
                        self.urls.find(place.url, &self.pages),
                        Some(&at),
                        "a URL not found"
                    );
                    assert_eq!(tag, None, "a URL kept twice");
                    here += 1;
                }
                UrlIs::Tag => {
                    let tag = tag.expect("a URL that is not in its page's place is a tag");
                    assert!(self.tags.pages(tag).contains(&at), "a page without its URL");
                    assert_eq!(self.tags.lone(tag), None, "a URL of one page that is not folded");
                }
            }
        }
        assert_eq!(here, self.urls.len(), "URLs in their pages' places");
    }
}
