//! The URLs of pages, for the usual case: the URL has one page and no change record. The name then lies in
//! the page's place and needs neither an edge nor a place of its own.
//!
//! Any other URL is a name like others (`tags.rs`). It becomes one when it gets a second page or a change
//! record, and stops being one when it has neither. Guarded by the index lock. Invariants: a name is here
//! or among the tags, never both; the tables hold the places of exactly those pages, living or dead, whose
//! [`Place::url_is`] is `Here`.

use crate::budget::heap;
use crate::hash::Id;
use crate::index::Index;
use crate::places::Place;
use crate::slab::Slab;
use crate::table::shrink_rarely;
use crate::tags::{Edge, TABLES, table_of};
use hashbrown::HashTable;

/// Where the name of a page's URL is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlIs {
    /// Only in the page's place.
    Here,
    /// Among the tags; the page has an edge to it.
    Tag,
}

/// The places of pages, by the URLs stored there.
#[derive(Debug)]
pub(crate) struct Urls {
    tables: Box<[HashTable<u32>]>,
    len: usize,
    table_bytes: usize,
}

impl Urls {
    pub(crate) fn new() -> Self {
        let tables = (0..TABLES).map(|_| HashTable::new()).collect();
        Self { tables, len: 0, table_bytes: heap(TABLES * size_of::<HashTable<u32>>()) }
    }

    /// The place of the page with this URL.
    pub(crate) fn find<P>(&self, id: Id, pages: &Slab<Place<P>>) -> Option<&u32> {
        self.tables[table_of(id)].find(id.bits(), |at| pages.get(*at).url == id)
    }

    /// Adds the page at `at`, the only one with this URL.
    fn insert<P>(&mut self, id: Id, at: u32, pages: &Slab<Place<P>>) {
        self.len += 1;
        self.with_table(id, |table| {
            table.insert_unique(id.bits(), at, |at| pages.get(*at).url.bits());
        });
    }

    fn remove<P>(&mut self, id: Id, at: u32, pages: &Slab<Place<P>>) {
        self.len -= 1;
        self.with_table(id, |table| {
            let entry = table.find_entry(id.bits(), |other| *other == at);
            entry.expect("a URL that is in a page's place is in its table").remove();
            shrink_rarely(table, |at| pages.get(*at).url.bits());
        });
    }

    fn with_table(&mut self, id: Id, f: impl FnOnce(&mut HashTable<u32>)) {
        let table = &mut self.tables[table_of(id)];
        let before = heap(table.allocation_size());
        f(table);
        self.table_bytes = self.table_bytes + heap(table.allocation_size()) - before;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.table_bytes
    }

    /// Panics if a table is inconsistent with the counts.
    fn validate(&self) {
        let held: usize = self.tables.iter().map(HashTable::len).sum();
        assert_eq!(held, self.len, "URLs in the tables");
        let taken = |table: &HashTable<u32>| heap(table.allocation_size());
        let array = heap(TABLES * size_of::<HashTable<u32>>());
        let bytes = self.tables.iter().map(taken).sum::<usize>() + array;
        assert_eq!(bytes, self.table_bytes, "bytes of the tables of URLs");
    }
}

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
