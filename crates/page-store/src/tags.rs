//! The dependency index: for every name of data its pages, its last change, and whether it is open.
//!
//! "Tag" here is any hashed name: a tag, a URL, a path, everything of a site. Edges run both ways, each with
//! its position at the other end, so that taking one page out costs its own edges and nothing is scanned.
//! Guarded by the index lock. Invariants:
//! - a tag is *remembered* (in the list, oldest change first) from its change until every lease out is
//!   newer, or until the floor is raised over it; one that is not has `last_change` <= the floor;
//! - a tag without pages that is neither remembered nor open does not exist;
//! - the tables hold places only, and find out of the tags what is there: most names have one page, and to
//!   keep their hashes twice would cost as much as all else of them.

use crate::budget::heap;
use crate::hash::Id;
use crate::slab::{NONE, Slab};
use hashbrown::HashTable;

const TABLES: usize = 256;
/// A table with more places than this, of which hardly any are taken, gets smaller.
const SHRINK_FROM: usize = 64;

/// One end of a dependency: the place of the other end's owner, and the position among its edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: u32,
    pub(crate) back: u32,
}

/// The pages of a tag. Most names have one page: its URL.
#[derive(Debug)]
enum Pages {
    None,
    One([Edge; 1]),
    /// In a box, so that those with one page are the smaller.
    #[allow(clippy::box_collection, reason = "a third of the size of a vector")]
    Many(Box<Vec<Edge>>),
}

#[derive(Debug)]
pub(crate) struct Tag {
    pub(crate) id: Id,
    /// The number of the last change or settlement that named it; 0 for none.
    pub(crate) last_change: u64,
    pages: Pages,
    older: u32,
    newer: u32,
    /// How many unsettled changes name it.
    pub(crate) open: u32,
    pub(crate) remembered: bool,
    /// Whether a settlement is among its remembered changes.
    pub(crate) settled: bool,
}

impl Tag {
    pub(crate) fn pages(&self) -> &[Edge] {
        match &self.pages {
            Pages::None => &[],
            Pages::One(one) => one,
            Pages::Many(many) => many,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Tags {
    tables: Box<[HashTable<u32>]>,
    slab: Slab<Tag>,
    oldest: u32,
    newest: u32,
    remembered: usize,
    edges: usize,
    edge_bytes: usize,
    table_bytes: usize,
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self {
            tables: (0..TABLES).map(|_| HashTable::new()).collect(),
            slab: Slab::new(),
            oldest: NONE,
            newest: NONE,
            remembered: 0,
            edges: 0,
            edge_bytes: 0,
            table_bytes: heap(TABLES * size_of::<HashTable<u32>>()),
        }
    }

    pub(crate) fn find(&self, id: Id) -> Option<u32> {
        let table = &self.tables[table_of(id)];
        table.find(id.0, |at| self.slab.get(*at).id == id).copied()
    }

    /// The tag's place; makes the tag where there is none.
    pub(crate) fn obtain(&mut self, id: Id) -> u32 {
        if let Some(at) = self.find(id) {
            return at;
        }
        let (pages, older, newer) = (Pages::None, NONE, NONE);
        let tag = Tag {
            id,
            last_change: 0,
            pages,
            older,
            newer,
            open: 0,
            remembered: false,
            settled: false,
        };
        let at = self.slab.insert(tag);
        self.with_table(id, |table, slab| {
            table.insert_unique(id.0, at, |at| slab.get(*at).id.0);
        });
        at
    }

    pub(crate) fn get(&self, at: u32) -> &Tag {
        self.slab.get(at)
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut Tag {
        self.slab.get_mut(at)
    }

    /// Adds an edge to the page at `edge.to`; returns its position among the tag's.
    pub(crate) fn link(&mut self, at: u32, edge: Edge) -> u32 {
        let pages = &mut self.slab.get_mut(at).pages;
        let before = edge_bytes(pages);
        let position = match pages {
            Pages::None => {
                *pages = Pages::One([edge]);
                0
            }
            Pages::One([first]) => {
                *pages = Pages::Many(Box::new(vec![*first, edge]));
                1
            }
            Pages::Many(many) => {
                many.push(edge);
                many.len() - 1
            }
        };
        self.edge_bytes = self.edge_bytes + edge_bytes(pages) - before;
        self.edges += 1;
        u32::try_from(position).expect("a tag has fewer pages than there are places for pages")
    }

    /// Takes the edge at `position` out. Another edge may move there: it is returned, and its page must be
    /// told its new position.
    pub(crate) fn unlink(&mut self, at: u32, position: u32) -> Option<Edge> {
        let pages = &mut self.slab.get_mut(at).pages;
        let before = edge_bytes(pages);
        let moved = match pages {
            Pages::None => unreachable!("an edge has two ends"),
            Pages::One(_) => {
                *pages = Pages::None;
                None
            }
            Pages::Many(many) => {
                many.swap_remove(position as usize);
                let moved = many.get(position as usize).copied();
                shrink(pages);
                moved
            }
        };
        self.edge_bytes = self.edge_bytes + edge_bytes(pages) - before;
        self.edges -= 1;
        moved
    }

    /// Frees the tag if nothing needs it any more.
    pub(crate) fn free_if_idle(&mut self, at: u32) {
        let tag = self.slab.get(at);
        if tag.remembered || tag.open > 0 || !tag.pages().is_empty() {
            return;
        }
        let id = tag.id;
        self.with_table(id, |table, slab| {
            if let Ok(entry) = table.find_entry(id.0, |other| *other == at) {
                entry.remove();
            }
            if table.capacity() > SHRINK_FROM && table.len() * 8 < table.capacity() {
                table.shrink_to(table.len() * 2, |at| slab.get(*at).id.0);
            }
        });
        self.slab.remove(at);
    }

    /// Notes a change: the tag becomes the newest of those remembered.
    pub(crate) fn remember(&mut self, at: u32, number: u64) {
        if self.slab.get(at).remembered {
            self.detach(at);
        }
        let older = std::mem::replace(&mut self.newest, at);
        let tag = self.slab.get_mut(at);
        (tag.older, tag.newer) = (older, NONE);
        (tag.last_change, tag.remembered) = (number, true);
        match older {
            NONE => self.oldest = at,
            older => self.slab.get_mut(older).newer = at,
        }
        self.remembered += 1;
    }

    /// The number of the oldest change remembered.
    pub(crate) fn oldest_remembered(&self) -> Option<u64> {
        (self.oldest != NONE).then(|| self.slab.get(self.oldest).last_change)
    }

    /// Forgets the oldest change remembered; the caller has seen to the floor.
    pub(crate) fn forget_oldest(&mut self) {
        let at = self.oldest;
        self.detach(at);
        self.slab.get_mut(at).settled = false;
        self.free_if_idle(at);
    }

    fn detach(&mut self, at: u32) {
        let tag = self.slab.get_mut(at);
        tag.remembered = false;
        let (older, newer) = (tag.older, tag.newer);
        (tag.older, tag.newer) = (NONE, NONE);
        match older {
            NONE => self.oldest = newer,
            older => self.slab.get_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.slab.get_mut(newer).older = older,
        }
        self.remembered -= 1;
    }

    fn with_table(&mut self, id: Id, f: impl FnOnce(&mut HashTable<u32>, &Slab<Tag>)) {
        let table = &mut self.tables[table_of(id)];
        let before = heap(table.allocation_size());
        f(table, &self.slab);
        self.table_bytes = self.table_bytes + heap(table.allocation_size()) - before;
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn remembered(&self) -> usize {
        self.remembered
    }

    pub(crate) fn edges(&self) -> usize {
        self.edges
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.edge_bytes + self.table_bytes + self.slab.heap_bytes()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Tag)> {
        self.slab.iter()
    }

    /// Panics where the tables, the list or the counts disagree with the tags.
    pub(crate) fn validate(&self, clock: u64, floor: u64) {
        let tables: usize = self.tables.iter().map(HashTable::len).sum();
        assert_eq!(tables, self.len(), "names in the tables");
        let (mut edges, mut bytes, mut remembered) = (0, 0, 0);
        for (at, tag) in self.iter() {
            assert_eq!(self.find(tag.id), Some(at), "a name its table does not know");
            assert!(tag.remembered || tag.open > 0 || !tag.pages().is_empty(), "an idle name");
            assert!(
                tag.remembered || tag.last_change <= floor,
                "a change forgotten over the floor"
            );
            assert!(tag.remembered || !tag.settled, "a settlement that is not remembered");
            assert!(tag.last_change <= clock, "a change ahead of the clock");
            edges += tag.pages().len();
            bytes += edge_bytes(&tag.pages);
            remembered += usize::from(tag.remembered);
        }
        assert_eq!((edges, bytes), (self.edges, self.edge_bytes), "edges");
        assert_eq!(remembered, self.remembered, "names remembered");
        let taken = |table: &HashTable<u32>| heap(table.allocation_size());
        let table_bytes: usize = self.tables.iter().map(taken).sum();
        let array = heap(TABLES * size_of::<HashTable<u32>>());
        assert_eq!(table_bytes + array, self.table_bytes, "bytes of the tables of names");
        self.validate_list();
    }

    fn validate_list(&self) {
        let (mut at, mut older, mut length, mut last) = (self.oldest, NONE, 0, 0);
        while at != NONE {
            let tag = self.get(at);
            assert!(tag.remembered, "a name in the list that is not remembered");
            assert_eq!(tag.older, older, "the list of changes is torn");
            assert!(tag.last_change >= last, "the list of changes is out of order");
            (older, at, last) = (at, tag.newer, tag.last_change);
            length += 1;
        }
        assert_eq!(
            (self.newest, self.remembered),
            (older, length),
            "the end of the list of changes"
        );
    }
}

fn table_of(id: Id) -> usize {
    // The tables themselves use the other half.
    id.1 as usize % TABLES
}

fn edge_bytes(pages: &Pages) -> usize {
    match pages {
        Pages::None | Pages::One(_) => 0,
        Pages::Many(many) => {
            heap(size_of::<Vec<Edge>>()) + heap(many.capacity() * size_of::<Edge>())
        }
    }
}

fn shrink(pages: &mut Pages) {
    let Pages::Many(many) = pages else { return };
    if let [last] = many[..] {
        *pages = Pages::One([last]);
    } else if many.capacity() > 16 && many.len() * 4 < many.capacity() {
        many.shrink_to(many.len() * 2);
    }
}
