//! The URLs of pages, for the usual case: the URL has one page and no change record. The name then lies in
//! the page's place and needs neither an edge nor a place of its own.
//!
//! Any other URL is a name like others (`tags.rs`). It becomes one when it gets a second page or a change
//! record, and stops being one when it has neither. Guarded by the index lock. Invariants: a name is here
//! or among the tags, never both; the tables hold the places of exactly those pages, living or dead, whose
//! [`Place::url_is`] is `Here`. Not here: when a name changes its place (`index.rs`).

use crate::budget::heap;
use crate::hash::Id;
use crate::places::Place;
use crate::slab::Slab;
use crate::table::shrink_rarely;
use crate::tags::{TABLES, table_of};
use hashbrown::HashTable;

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
    pub(crate) fn insert<P>(&mut self, id: Id, at: u32, pages: &Slab<Place<P>>) {
        self.len += 1;
        self.with_table(id, |table| {
            table.insert_unique(id.bits(), at, |at| pages.get(*at).url.bits());
        });
    }

    pub(crate) fn remove<P>(&mut self, id: Id, at: u32, pages: &Slab<Place<P>>) {
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
    pub(crate) fn validate(&self) {
        let held: usize = self.tables.iter().map(HashTable::len).sum();
        assert_eq!(held, self.len, "URLs in the tables");
        let taken = |table: &HashTable<u32>| heap(table.allocation_size());
        let array = heap(TABLES * size_of::<HashTable<u32>>());
        let bytes = self.tables.iter().map(taken).sum::<usize>() + array;
        assert_eq!(bytes, self.table_bytes, "bytes of the tables of URLs");
    }
}
