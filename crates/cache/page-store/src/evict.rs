//! Eviction: S3-FIFO (Yang et al., SOSP 2023) by bytes, adapted to pages that are removed from the middle.
//!
//! New pages enter the *small* queue, a tenth of the budget. Its oldest page moves to the *main* queue if
//! it was used twice since it was stored. Otherwise it is evicted, and the hash of its key enters the
//! *ghost* table. A page whose hash is in the ghost table enters the main queue directly. The oldest page
//! of the main queue is evicted unless it was used; in that case it goes round again with one use fewer. A
//! scan of many URLs therefore passes only through the small queue. If a change drops a page of the main
//! queue or with two uses, its hash enters the ghost table too.
//!
//! Guarded by the index lock. The choice of a victim gives at most [`SECOND_CHANCES_MAX`] second chances
//! and then takes the next page. An insertion therefore never waits for a walk through all pages.

use crate::budget::heap;
use crate::places::{Place, Queue};
use crate::slab::{NONE, Slab};

const SECOND_CHANCES_MAX: usize = 1_000;
const USES_TO_STAY: u8 = 2;

#[derive(Debug)]
struct Fifo {
    newest: u32,
    oldest: u32,
    bytes: usize,
    len: usize,
}

#[derive(Debug)]
pub(crate) struct Queues {
    small: Fifo,
    main: Fifo,
    ghost: Ghost,
    small_bytes_max: usize,
}

impl Queues {
    pub(crate) fn new(budget_bytes: usize) -> Self {
        let empty = || Fifo { newest: NONE, oldest: NONE, bytes: 0, len: 0 };
        let ghost = Ghost::new(budget_bytes);
        Self { small: empty(), main: empty(), ghost, small_bytes_max: budget_bytes / 10 }
    }

    /// The queue that a new page with this key hash enters.
    pub(crate) fn enter(&mut self, key_hash: u64) -> Queue {
        if self.ghost.take(key_hash) { Queue::Main } else { Queue::Small }
    }

    /// Adds the page at `at` as the newest of its queue.
    pub(crate) fn push<P>(&mut self, pages: &mut Slab<Place<P>>, at: u32) {
        let place = pages.get_mut(at);
        let fifo = self.fifo(place.queue);
        let older = std::mem::replace(&mut fifo.newest, at);
        (place.newer, place.older) = (NONE, older);
        fifo.bytes += place.bytes();
        fifo.len += 1;
        match older {
            NONE => fifo.oldest = at,
            older => pages.get_mut(older).newer = at,
        }
    }

    /// Removes the page at `at` from its queue.
    pub(crate) fn remove<P>(&mut self, pages: &mut Slab<Place<P>>, at: u32) {
        let place = pages.get(at);
        let (newer, older) = (place.newer, place.older);
        let fifo = self.fifo(place.queue);
        fifo.bytes -= place.bytes();
        fifo.len -= 1;
        match newer {
            NONE => fifo.newest = older,
            newer => pages.get_mut(newer).older = older,
        }
        match older {
            NONE => fifo.oldest = newer,
            older => pages.get_mut(older).newer = newer,
        }
    }

    /// Adjusts the byte count of a queue when the size of a page has changed. The page keeps its position.
    pub(crate) fn resize(&mut self, queue: Queue, before: usize, after: usize) {
        let fifo = self.fifo(queue);
        fifo.bytes = fifo.bytes - before + after;
    }

    /// Adds a page that leaves to the ghost table, if it was in the main queue or used often enough for it.
    pub(crate) fn remember_worth<P>(&mut self, place: &Place<P>) {
        if place.queue == Queue::Main || place.live().uses() >= USES_TO_STAY {
            self.ghost.add(place.live().hash());
        }
    }

    /// The next page to evict; `None` if there is no page except `keep`. The page stays in its queue.
    pub(crate) fn victim<P>(&mut self, pages: &mut Slab<Place<P>>, keep: u32) -> Option<u32> {
        for _ in 0..SECOND_CHANCES_MAX {
            let at = self.next(pages, keep)?;
            let place = pages.get(at);
            let (queue, uses) = (place.queue, place.live().uses());
            match queue {
                Queue::Small if uses >= USES_TO_STAY => self.go_round(pages, at, 0),
                Queue::Main if uses > 0 => self.go_round(pages, at, uses - 1),
                Queue::Small => {
                    self.ghost.add(place.live().hash());
                    return Some(at);
                }
                Queue::Main => return Some(at),
            }
        }
        self.next(pages, keep)
    }

    /// Up to `count` pages that are `wanted`: the oldest of each queue that are not used, else the oldest. Looks at a
    /// bounded number of pages.
    pub(crate) fn least_used<P>(
        &self,
        pages: &Slab<Place<P>>,
        count: usize,
        wanted: impl Fn(&Place<P>) -> bool,
    ) -> Vec<u32> {
        let (mut unused, mut used) = (Vec::new(), Vec::new());
        for (oldest, uses_to_stay) in [(self.small.oldest, USES_TO_STAY), (self.main.oldest, 1)] {
            let mut at = oldest;
            for _ in 0..SECOND_CHANCES_MAX {
                let Some(place) = pages.find(at).filter(|_| unused.len() < count) else { break };
                if wanted(place) {
                    let is_used = place.live().uses() >= uses_to_stay;
                    if is_used { used.push(at) } else { unused.push(at) }
                }
                at = place.newer;
            }
        }
        let missing = count - unused.len();
        unused.extend(used.into_iter().take(missing));
        unused
    }

    /// The oldest page except `keep` of the queue that is due, or of the other queue if that one has none.
    fn next<P>(&self, pages: &Slab<Place<P>>, keep: u32) -> Option<u32> {
        let oldest = |fifo: &Fifo| {
            let at = if fifo.oldest == keep { newer(pages, keep) } else { fifo.oldest };
            (at != NONE).then_some(at)
        };
        let (small, main) = (oldest(&self.small), oldest(&self.main));
        if self.small.bytes > self.small_bytes_max { small.or(main) } else { main.or(small) }
    }

    fn go_round<P>(&mut self, pages: &mut Slab<Place<P>>, at: u32, uses: u8) {
        self.remove(pages, at);
        let place = pages.get_mut(at);
        place.live().set_uses(uses);
        place.queue = Queue::Main;
        self.push(pages, at);
    }

    fn fifo(&mut self, queue: Queue) -> &mut Fifo {
        match queue {
            Queue::Small => &mut self.small,
            Queue::Main => &mut self.main,
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        heap(size_of_val(&*self.ghost.sets))
    }

    /// The bytes of the ghost table that were never written: the system has not allocated memory for them.
    pub(crate) fn untouched_bytes(&self) -> usize {
        self.heap_bytes().saturating_sub(self.ghost.touched_bytes)
    }

    /// Panics if a queue is inconsistent.
    pub(crate) fn validate<P>(&self, pages: &Slab<Place<P>>) {
        for (queue, fifo) in [(Queue::Small, &self.small), (Queue::Main, &self.main)] {
            let (mut at, mut newer, mut bytes, mut len) = (fifo.newest, NONE, 0, 0);
            while at != NONE {
                let place = pages.get(at);
                assert_eq!((place.queue, place.newer), (queue, newer), "a queue is torn");
                bytes += place.bytes();
                len += 1;
                (newer, at) = (at, place.older);
            }
            assert_eq!((fifo.oldest, fifo.bytes, fifo.len), (newer, bytes, len), "a queue's end");
        }
        let live = pages.iter().filter(|(_, place)| place.page.is_some()).count();
        assert_eq!(self.small.len + self.main.len, live, "pages in the queues");
    }
}

fn newer<P>(pages: &Slab<Place<P>>, at: u32) -> u32 {
    pages.find(at).map_or(NONE, |place| place.newer)
}

/// The hashes of keys whose pages left, in a table of fixed size: sets of eight, first in, first out.
#[derive(Debug)]
struct Ghost {
    sets: Box<[[u32; 8]]>,
    /// A bit for each memory page of the sets that was written, and the bytes of all of these pages.
    touched: Box<[u64]>,
    touched_bytes: usize,
}

/// The usual size of a memory page in bytes, and the sets in it.
const MEMORY_PAGE: usize = 4_096;
const SETS_OF_PAGE: usize = MEMORY_PAGE / size_of::<[u32; 8]>();

impl Ghost {
    /// One entry for every 2 KB of the budget: 0.2 % of it.
    fn new(budget_bytes: usize) -> Self {
        let sets = (budget_bytes / 2_048 / 8).clamp(8, 1 << 20).next_power_of_two();
        let words = sets.div_ceil(SETS_OF_PAGE * u64::BITS as usize);
        Self { sets: vec![[0; 8]; sets].into(), touched: vec![0; words].into(), touched_bytes: 0 }
    }

    fn add(&mut self, hash: u64) {
        let (set, print) = self.place(hash);
        self.touch(set);
        let set = &mut self.sets[set];
        if !set.contains(&print) {
            set.rotate_right(1);
            set[0] = print;
        }
    }

    fn touch(&mut self, set: usize) {
        let page = set / SETS_OF_PAGE;
        let word = &mut self.touched[page / u64::BITS as usize];
        let bit = 1 << (page % u64::BITS as usize);
        if *word & bit == 0 {
            *word |= bit;
            self.touched_bytes += MEMORY_PAGE;
        }
    }

    /// Removes the hash; returns whether it was in the table.
    fn take(&mut self, hash: u64) -> bool {
        let (set, print) = self.place(hash);
        match self.sets[set].iter_mut().find(|other| **other == print) {
            Some(found) => {
                *found = 0;
                true
            }
            None => false,
        }
    }

    fn place(&self, hash: u64) -> (usize, u32) {
        let print = ((hash >> 32) as u32).max(1);
        (hash as usize & (self.sets.len() - 1), print)
    }
}
