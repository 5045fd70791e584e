//! The remembered changes by predicate: numbers, sites and functions, oldest first.
//!
//! Guarded by the index lock. Not here: how pages and renders are checked (`predicate.rs`), and how long a
//! change is remembered (`index.rs`).

use crate::budget::heap;
use crate::hash::Site;
use crate::lease::Number;
use crate::page::Page;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Whether a change affects a page. It must not panic or call the store, and must return the same for every
/// form of the page's payload.
pub type PagePredicate<P> = Arc<dyn Fn(&Page<P>) -> bool + Send + Sync>;

/// A change by predicate that is remembered.
pub(crate) struct PredicateChange<P> {
    pub(crate) number: Number,
    pub(crate) site: Site,
    pub(crate) touches: PagePredicate<P>,
}

/// The remembered changes by predicate, oldest first.
#[derive(Debug)]
pub(crate) struct Predicates<P> {
    pub(crate) list: VecDeque<PredicateChange<P>>,
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
    pub(crate) fn since(&self, site: Site, after: Number) -> Vec<PagePredicate<P>> {
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

impl<P> fmt::Debug for PredicateChange<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Remembered");
        out.field("number", &self.number).field("site", &self.site).finish_non_exhaustive()
    }
}
