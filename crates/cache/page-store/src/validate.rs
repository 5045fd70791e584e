//! Walks all structures of the store and checks that they agree. For tests: every test of the store calls
//! it.
//!
//! It holds the index lock throughout, so it sees a state between two steps. It panics at the first
//! inconsistency with a message that names it.

use crate::index::Index;
use crate::page::{Page, Payload};
use crate::store::{Store, StoreInner};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

impl<P: Payload> Store<P> {
    /// Checks every invariant of the store.
    ///
    /// # Panics
    /// Panics if one does not hold.
    pub fn validate(&self) {
        let index = self.shared.lock();
        assert_eq!(index.clock.0, self.shared.number.load(Ordering::Acquire), "the clock's mirror");
        assert!(index.floor <= index.clock, "a floor ahead of the clock");
        index.leases.validate(index.clock);
        index.tags.validate(index.clock.0, index.floor.0);
        index.predicates.validate(index.clock, index.limits.predicates_max);
        self.shared.rewarm.validate();
        index.queues.validate(&index.pages);
        validate_edges(&index);
        index.validate_urls();
        validate_limits(&index);
        validate_map(&index, &self.shared);
    }
}

fn validate_edges<P>(index: &Index<P>) {
    let (mut page_bytes, mut edges) = (0, 0);
    for (at, place) in index.pages.iter() {
        let run = index.runs.get(place.edges());
        assert!(run.is_sorted_by(|one, other| one.to < other.to), "edges out of order");
        for edge in run {
            let other = index.tags.pages(edge.to)[edge.back as usize];
            assert_eq!(other, at, "an edge with one end");
        }
        edges += run.len();
        let Some(page) = &place.page else { continue };
        assert_eq!(page.slot(), at, "a page that does not know its place");
        assert!(page.lease() <= index.clock, "a page ahead of the clock");
        page_bytes += page.heap_bytes();
    }
    let dead: HashSet<u32> = index.dead.iter().copied().collect();
    assert_eq!(dead.len(), index.dead.len(), "a page that died twice");
    let is_dead = |at: &u32| index.pages.find(*at).is_some_and(|place| place.page.is_none());
    assert!(dead.iter().all(is_dead), "a living page among the dead");
    assert_eq!(edges, index.tags.edges(), "edges of pages and of names");
    assert_eq!(page_bytes, index.page_bytes, "bytes of pages");
}

fn validate_limits<P>(index: &Index<P>) {
    let opens = index.tags.opens();
    assert_eq!(opens, index.opens, "open names");
    for (id, times) in &index.abandoned {
        let at = index.tags.find(*id).expect("an open name exists");
        assert!(index.tags.changed(at).open >= *times, "abandoned more often than opened");
    }
    assert!(index.tags.remembered() <= index.limits.changes_remembered_max, "too many changes");
}

fn validate_map<P: Payload>(index: &Index<P>, shared: &StoreInner<P>) {
    let stored = shared.shards.validate();
    assert_eq!(
        stored.len(),
        index.pages.len() - index.dead.len(),
        "pages of the map and of the index"
    );
    let mut variants = HashSet::new();
    for page in &stored {
        let page: &Page<P> = page;
        let place = index.pages.find(page.slot()).expect("a page of the map is in the index");
        assert!(place.live().is(page), "two pages claim one place");
        assert!(variants.insert((page.key().bytes, page.variant())), "a variant twice");
    }
    let bytes = index.heap_bytes() + shared.shards.heap_bytes();
    let over = bytes > shared.limits.budget_bytes;
    assert!(!over || stored.len() <= 1, "over the budget with {} pages", stored.len());
}
