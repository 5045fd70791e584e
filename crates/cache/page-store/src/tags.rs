//! The dependency index: for every name of data its pages, its last change, and whether it is open.
//!
//! "Tag" here is any hashed name: a tag, a path, everything of a site, a URL (most of these are in `urls.rs`).
//! Edges run both ways; a page knows its position among a name's pages, so that taking one page out costs its
//! own edges and nothing is scanned. Guarded by the index lock. Invariants:
//! - a tag is *remembered* (in the list, oldest change first) from its change until every lease out is
//!   newer, or until the floor is raised over it; its last change is known while it is remembered or open,
//!   and otherwise it is <= the floor, which speaks against no lease that is let through;
//! - a tag without pages that is neither remembered nor open does not exist;
//! - the tables hold places only, and find out of the tags what is there: most names have one page and have
//!   not changed lately, so both a list of pages and what is known of a change are kept apart, where there
//!   are any.

use crate::budget::heap;
use crate::hash::Id;
use crate::slab::{NONE, Slab};
use crate::table::shrink_rarely;
use hashbrown::HashTable;

pub(crate) const TABLES: usize = 256;

/// A page's end of a dependency: the place of the name, and the page's position among the name's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: u32,
    pub(crate) back: u32,
}

/// The places of a tag's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    None,
    One([u32; 1]),
    /// The place of the list.
    Many(u32),
}

#[derive(Debug)]
struct Tag {
    id: Id,
    pages: Pages,
    /// The place of what is known of its changes, if it is remembered or open.
    changed: u32,
}

/// What is known of the changes of a tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    /// The number of the last change or settlement that named it; 0 for none that matters.
    pub(crate) last_change: u64,
    /// The tags before and after it in the list.
    older: u32,
    newer: u32,
    /// How many unsettled changes name it.
    pub(crate) open: u32,
    remembered: bool,
    /// Whether a settlement is among its remembered changes.
    pub(crate) settled: bool,
}

impl Changed {
    const NOTHING: Changed = Changed {
        last_change: 0,
        older: NONE,
        newer: NONE,
        open: 0,
        remembered: false,
        settled: false,
    };
}

#[derive(Debug)]
pub(crate) struct Tags {
    tables: Box<[HashTable<u32>]>,
    slab: Slab<Tag>,
    lists: Slab<Vec<u32>>,
    changed: Slab<Changed>,
    oldest: u32,
    newest: u32,
    remembered: usize,
    edges: usize,
    list_bytes: usize,
    table_bytes: usize,
}

impl Tags {
    pub(crate) fn new() -> Self {
        Self {
            tables: (0..TABLES).map(|_| HashTable::new()).collect(),
            slab: Slab::new(),
            lists: Slab::new(),
            changed: Slab::new(),
            oldest: NONE,
            newest: NONE,
            remembered: 0,
            edges: 0,
            list_bytes: 0,
            table_bytes: heap(TABLES * size_of::<HashTable<u32>>()),
        }
    }

    pub(crate) fn find(&self, id: Id) -> Option<u32> {
        let table = &self.tables[table_of(id)];
        table.find(id.bits(), |at| self.slab.get(*at).id == id).copied()
    }

    /// The tag's place; makes the tag where there is none.
    pub(crate) fn obtain(&mut self, id: Id) -> u32 {
        if let Some(at) = self.find(id) {
            return at;
        }
        let at = self.slab.insert(Tag { id, pages: Pages::None, changed: NONE });
        self.with_table(id, |table, slab| {
            table.insert_unique(id.bits(), at, |at| slab.get(*at).id.bits());
        });
        at
    }

    /// The places of its pages.
    pub(crate) fn pages(&self, at: u32) -> &[u32] {
        match &self.slab.get(at).pages {
            Pages::None => &[],
            Pages::One(one) => one,
            Pages::Many(list) => self.lists.get(*list),
        }
    }

    /// What is known of its changes; nothing where no lease that is let through could be older.
    pub(crate) fn changed(&self, at: u32) -> Changed {
        let changed = self.slab.get(at).changed;
        self.changed.find(changed).copied().unwrap_or(Changed::NOTHING)
    }

    fn changed_mut(&mut self, at: u32) -> &mut Changed {
        let tag = self.slab.get_mut(at);
        if tag.changed == NONE {
            tag.changed = self.changed.insert(Changed::NOTHING);
        }
        self.changed.get_mut(tag.changed)
    }

    /// One more unsettled change names it.
    pub(crate) fn open(&mut self, at: u32) {
        self.changed_mut(at).open += 1;
    }

    /// So many unsettled changes that name it are settled, of which the last is remembered.
    pub(crate) fn settle(&mut self, at: u32, times: u32) {
        let changed = self.changed_mut(at);
        changed.open -= times;
        changed.settled = true;
    }

    /// Adds the page at `page`; returns its position among the tag's.
    pub(crate) fn link(&mut self, at: u32, page: u32) -> u32 {
        let tag = self.slab.get_mut(at);
        self.edges += 1;
        let list = match tag.pages {
            Pages::None => {
                tag.pages = Pages::One([page]);
                return 0;
            }
            Pages::One([first]) => {
                let list = self.lists.insert(vec![first]);
                self.list_bytes += list_bytes(self.lists.get(list));
                tag.pages = Pages::Many(list);
                list
            }
            Pages::Many(list) => list,
        };
        let list = self.lists.get_mut(list);
        let before = list_bytes(list);
        list.push(page);
        self.list_bytes = self.list_bytes + list_bytes(list) - before;
        u32::try_from(list.len() - 1)
            .expect("a tag has fewer pages than there are places for pages")
    }

    /// Takes the page at `position` out. Another page may move there: it is returned, and must be told its
    /// new position.
    pub(crate) fn unlink(&mut self, at: u32, position: u32) -> Option<u32> {
        let tag = self.slab.get_mut(at);
        self.edges -= 1;
        let list = match tag.pages {
            Pages::None => unreachable!("an edge has two ends"),
            Pages::One(_) => {
                tag.pages = Pages::None;
                return None;
            }
            Pages::Many(list) => list,
        };
        let pages = self.lists.get_mut(list);
        let before = list_bytes(pages);
        pages.swap_remove(position as usize);
        let moved = pages.get(position as usize).copied();
        if let [last] = pages[..] {
            tag.pages = Pages::One([last]);
            self.lists.remove(list);
            self.list_bytes -= before;
        } else {
            shrink(pages);
            self.list_bytes = self.list_bytes + list_bytes(pages) - before;
        }
        moved
    }

    /// Frees the tag if nothing needs it any more.
    pub(crate) fn free_if_idle(&mut self, at: u32) {
        let tag = self.slab.get(at);
        if tag.changed != NONE || tag.pages != Pages::None {
            return;
        }
        let id = tag.id;
        self.with_table(id, |table, slab| {
            if let Ok(entry) = table.find_entry(id.bits(), |other| *other == at) {
                entry.remove();
            }
            shrink_rarely(table, |at| slab.get(*at).id.bits());
        });
        self.slab.remove(at);
    }

    /// Notes a change: the tag becomes the newest of those remembered.
    pub(crate) fn remember(&mut self, at: u32, number: u64) {
        if self.changed(at).remembered {
            self.detach(at);
        }
        let older = std::mem::replace(&mut self.newest, at);
        let changed = self.changed_mut(at);
        (changed.older, changed.newer) = (older, NONE);
        (changed.last_change, changed.remembered) = (number, true);
        match older {
            NONE => self.oldest = at,
            older => self.changed_mut(older).newer = at,
        }
        self.remembered += 1;
    }

    /// The number of the oldest change remembered.
    pub(crate) fn oldest_remembered(&self) -> Option<u64> {
        (self.oldest != NONE).then(|| self.changed(self.oldest).last_change)
    }

    /// Forgets the oldest change remembered; the caller has seen to the floor. Returns whose it was, where that
    /// is still there.
    pub(crate) fn forget_oldest(&mut self) -> Option<u32> {
        let at = self.oldest;
        self.detach(at);
        let changed = self.changed_mut(at);
        changed.settled = false;
        if changed.open == 0 {
            let tag = self.slab.get_mut(at);
            self.changed.remove(std::mem::replace(&mut tag.changed, NONE));
        }
        self.free_if_idle(at);
        self.slab.find(at).is_some().then_some(at)
    }

    /// Where nothing is known of its changes and it has one page: the name, and the place of the page.
    pub(crate) fn lone(&self, at: u32) -> Option<(Id, u32)> {
        match self.slab.find(at)? {
            Tag { id, pages: Pages::One([page]), changed: NONE } => Some((*id, *page)),
            _ => None,
        }
    }

    fn detach(&mut self, at: u32) {
        let changed = self.changed_mut(at);
        changed.remembered = false;
        let (older, newer) = (changed.older, changed.newer);
        (changed.older, changed.newer) = (NONE, NONE);
        match older {
            NONE => self.oldest = newer,
            older => self.changed_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.changed_mut(newer).older = older,
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

    /// How many times names are open, all together.
    pub(crate) fn opens(&self) -> usize {
        self.changed.iter().map(|(_, changed)| changed.open as usize).sum()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.list_bytes
            + self.lists.heap_bytes()
            + self.changed.heap_bytes()
            + self.table_bytes
            + self.slab.heap_bytes()
    }

    /// Panics where the tables, the lists or the counts disagree with the tags.
    pub(crate) fn validate(&self, clock: u64, floor: u64) {
        let tables: usize = self.tables.iter().map(HashTable::len).sum();
        assert_eq!(tables, self.len(), "names in the tables");
        let (mut edges, mut lists, mut known, mut remembered) = (0, 0, 0, 0);
        for (at, tag) in self.slab.iter() {
            assert_eq!(self.find(tag.id), Some(at), "a name its table does not know");
            let (changed, pages) = (self.changed(at), self.pages(at));
            let is_known = changed.remembered || changed.open > 0;
            assert_eq!(tag.changed != NONE, is_known, "what is known of changes");
            assert!(is_known || !pages.is_empty(), "an idle name");
            assert!(
                changed.remembered || changed.last_change <= floor,
                "a change forgotten over the floor"
            );
            assert!(changed.remembered || !changed.settled, "a settlement that is not remembered");
            assert!(changed.last_change <= clock, "a change ahead of the clock");
            edges += pages.len();
            lists += usize::from(matches!(tag.pages, Pages::Many(_)));
            known += usize::from(is_known);
            remembered += usize::from(changed.remembered);
        }
        assert_eq!((edges, remembered), (self.edges, self.remembered), "edges, names remembered");
        assert_eq!((lists, known), (self.lists.len(), self.changed.len()), "lists, known changes");
        let list_bytes: usize = self.lists.iter().map(|(_, list)| list_bytes(list)).sum();
        assert_eq!(list_bytes, self.list_bytes, "bytes of the lists of pages");
        let taken = |table: &HashTable<u32>| heap(table.allocation_size());
        let table_bytes: usize = self.tables.iter().map(taken).sum();
        let array = heap(TABLES * size_of::<HashTable<u32>>());
        assert_eq!(table_bytes + array, self.table_bytes, "bytes of the tables of names");
        self.validate_list();
    }

    fn validate_list(&self) {
        let (mut at, mut older, mut length, mut last) = (self.oldest, NONE, 0, 0);
        while at != NONE {
            let changed = self.changed(at);
            assert!(changed.remembered, "a name in the list that is not remembered");
            assert_eq!(changed.older, older, "the list of changes is torn");
            assert!(changed.last_change >= last, "the list of changes is out of order");
            (older, at, last) = (at, changed.newer, changed.last_change);
            length += 1;
        }
        assert_eq!(
            (self.newest, self.remembered),
            (older, length),
            "the end of the list of changes"
        );
    }
}

/// Which of the tables a name is in; the tables themselves use the lowest and the highest bits.
pub(crate) fn table_of(id: Id) -> usize {
    (id.bits() >> 40) as usize % TABLES
}

fn list_bytes(list: &Vec<u32>) -> usize {
    heap(list.capacity() * size_of::<u32>())
}

fn shrink(list: &mut Vec<u32>) {
    if list.capacity() > 16 && list.len() * 4 < list.capacity() {
        list.shrink_to(list.len() * 2);
    }
}
