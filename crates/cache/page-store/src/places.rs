//! The place of a page in the index: the page, its edges, its neighbours in the queue.
//!
//! Guarded by the index lock. Not here: how pages enter and leave (`index_pages.rs`).

use crate::hash::Id;
use crate::page::Page;
use crate::runs::Run;
use crate::tags::Edge;

/// The bytes of an edge at both of its ends.
const EDGE_BYTES: usize = size_of::<Edge>() + size_of::<u32>();

/// Pages that leave. They are freed after the lock is released, because freeing large payloads takes time.
pub(crate) type RemovedPages<P> = Vec<Page<P>>;

/// The place of a page in the index.
#[derive(Debug)]
pub(crate) struct Place<P> {
    /// `None` if the page is dead; then it is in no queue.
    pub(crate) page: Option<Page<P>>,
    pub(crate) edges_at: u32,
    pub(crate) newer: u32,
    pub(crate) older: u32,
    /// The name of the page's URL.
    pub(crate) url: Id,
    pub(crate) edges_length: u16,
    pub(crate) url_is: UrlIs,
    pub(crate) queue: Queue,
}

impl<P> Place<P> {
    /// The edges of the page, sorted by the place of the name. An edge's `back` is the page's position
    /// among the pages of that name. The edge to the URL is missing if the URL is stored in the place
    /// itself.
    pub(crate) fn edges(&self) -> Run {
        Run { at: self.edges_at, length: self.edges_length }
    }

    pub(crate) fn set_edges(&mut self, edges: Run) {
        (self.edges_at, self.edges_length) = (edges.at, edges.length);
    }

    /// The page of a place that is in a queue.
    pub(crate) fn live(&self) -> &Page<P> {
        self.page.as_ref().expect("the dead are in no queue and in no shard")
    }

    /// The bytes of the page and its edges at both ends. A URL in the place itself counts as an edge.
    pub(crate) fn bytes(&self) -> usize {
        let edges = self.edges().length() + usize::from(self.url_is == UrlIs::Here);
        // A run's length is counted only up to this maximum.
        self.live().heap_bytes() + edges.min(u16::MAX.into()) * EDGE_BYTES
    }
}

/// The queue of a page (`evict.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Small,
    Main,
}

/// Where the name of a page's URL is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlIs {
    /// Only in the page's place.
    Here,
    /// Among the tags; the page has an edge to it.
    Tag,
}
