//! The URLs of pages, where a URL has one page and nothing is known of its changes: that is nearly all of
//! them, and then the name is in the page's place and takes neither an edge nor a place of its own.
//!
//! Any other URL is a name like others (`tags.rs`). It becomes one with its second page, or when something
//! has to be known of its changes, and stops being one when neither is so any more. Guarded by the index
//! lock. Invariants: a name is here or among the tags, never both; the tables hold the places of the pages
//! whose [`Place::url_is`] says so, living or dead, and no others.

use crate::budget::heap;
use crate::hash::Id;
use crate::index::Index;
use crate::places::Place;
use crate::slab::Slab;
use crate::table::shrink_rarely;
use crate::tags::{Edge, TABLES, table_of};
use hashbrown::HashTable;

/// Where the name of a page's URL is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UrlIs {
    /// In the page's place alone.
    Here,
    /// Among the tags; the page has an edge to it.
    Tag,
}

/// Places of pages, found by the URLs that stand there.
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

    /// The page at `at` has this URL, and no other has.
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

    /// Panics where a table holds what it should not, or is miscounted.
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

    /// The tag of a name, made where there is none.
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

    /// Notes the URL of the page at `at`, whose edges are `edges` so far.
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

    /// The page at `at` is about to leave its place.
    pub(crate) fn forget_url(&mut self, at: u32) {
        let place = self.pages.get(at);
        if place.url_is == UrlIs::Here {
            self.urls.remove(place.url, at, &self.pages);
        }
    }

    /// Where the tag at `tag` is the URL of its only page, and nothing is known of its changes: it is kept in
    /// the page's place alone.
    pub(crate) fn fold(&mut self, tag: u32) {
        let Some((id, page)) = self.tags.lone(tag) else { return };
        if self.pages.get(page).url != id {
            return;
        }
        self.rewrite_edges(page, UrlIs::Here, |edges| edges.retain(|edge| edge.to != tag));
        // The only page of a tag is its first.
        self.tags.unlink(tag, 0);
        self.tags.free_if_idle(tag);
        self.urls.insert(id, page, &self.pages);
    }

    /// Changes the edges of the page at `at`, of which one is that of its URL or is not any more.
    fn rewrite_edges(&mut self, at: u32, url_is: UrlIs, change: impl FnOnce(&mut Vec<Edge>)) {
        let place = self.pages.get_mut(at);
        let mut edges = self.runs.get(place.edges()).to_vec();
        change(&mut edges);
        edges.sort_unstable_by_key(|edge| edge.to);
        self.runs.remove(place.edges());
        place.set_edges(self.runs.insert(&edges));
        place.url_is = url_is;
    }

    /// Panics where a URL is kept twice, or not at all, or where another way than it should be.
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
