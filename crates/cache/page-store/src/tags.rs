//! The dependency index: for each name its pages, its last change, and whether it is open.
//!
//! "Tag" here means any hashed name: a tag, a path, everything of a site, a URL (most URLs are in
//! `urls.rs`). Edges run both ways. A page knows its position among the pages of a name, so removing a page
//! costs its own edges and no scan. Guarded by the index lock. Invariants:
//! - a tag is *remembered* (in the list, oldest change first) from its change until every outstanding lease
//!   is newer, or until the floor is raised above it. Its last change is known while it is remembered or
//!   open; otherwise it is at most the floor and does not affect an accepted lease;
//! - a tag without pages that is neither remembered nor open does not exist;
//! - the tables hold only places and read the tag for the rest. Most names have one page and no recent
//!   change, so lists of pages and change records are stored separately and only if needed.

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
    /// The place of its change record, if it is remembered or open.
    changed: u32,
}

/// The change record of a tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagRecord {
    /// The number of its last change or settlement; 0 if none affects an accepted lease.
    pub(crate) last_change: u64,
    /// The tags before and after it in the list of remembered changes.
    older: u32,
    newer: u32,
    /// The number of its unsettled changes.
    pub(crate) open: u32,
    remembered: bool,
    /// Whether a settlement is among its remembered changes.
    pub(crate) settled: bool,
}

impl TagRecord {
    const NOTHING: TagRecord = TagRecord {
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
    changed: Slab<TagRecord>,
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

    /// The place of the tag, which is created if it does not exist.
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

    /// The places of the tag's pages.
    pub(crate) fn pages(&self, at: u32) -> &[u32] {
        match &self.slab.get(at).pages {
            Pages::None => &[],
            Pages::One(one) => one,
            Pages::Many(list) => self.lists.get(*list),
        }
    }

    /// The change record of the tag; empty if no accepted lease could be older than its changes.
    pub(crate) fn changed(&self, at: u32) -> TagRecord {
        let changed = self.slab.get(at).changed;
        self.changed.find(changed).copied().unwrap_or(TagRecord::NOTHING)
    }

    fn changed_mut(&mut self, at: u32) -> &mut TagRecord {
        let tag = self.slab.get_mut(at);
        if tag.changed == NONE {
            tag.changed = self.changed.insert(TagRecord::NOTHING);
        }
        self.changed.get_mut(tag.changed)
    }

    /// Counts one more unsettled change of the tag.
    pub(crate) fn open(&mut self, at: u32) {
        self.changed_mut(at).open += 1;
    }

    /// Counts `times` unsettled changes of the tag as settled. The caller remembers the settlement.
    pub(crate) fn settle(&mut self, at: u32, times: u32) {
        let changed = self.changed_mut(at);
        changed.open -= times;
        changed.settled = true;
    }

    /// Adds the page at `page`; returns its position among the tag's pages.
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

    /// Removes the page at `position`. If another page takes that position, returns its place; the caller
    /// must update its edge.
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

    /// Frees the tag if it has neither pages nor a change record.
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

    /// Records a change: the tag becomes the newest in the list of remembered changes.
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

    /// The number of the oldest remembered change.
    pub(crate) fn oldest_remembered(&self) -> Option<u64> {
        (self.oldest != NONE).then(|| self.changed(self.oldest).last_change)
    }

    /// Forgets the oldest remembered change; the caller has raised the floor. Returns the place of its tag,
    /// if the tag still exists.
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

    /// The name and the page of a tag that has one page and no change record.
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

    /// The sum of the open counts of all names.
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

    /// Panics if the tables, the lists or the counts disagree with the tags.
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

/// The table that contains a name. The tables themselves use the lowest and the highest bits.
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
