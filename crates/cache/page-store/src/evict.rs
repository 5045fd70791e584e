//! Eviction: S3-FIFO (Yang et al., SOSP 2023) over bytes, adapted to pages taken out from the middle.
//!
//! New pages enter the *small* queue, a tenth of the budget. Its oldest leaves: to the *main* queue if it
//! was used twice since it came, out of the store otherwise, and its hash to the *ghost* table. A page
//! whose hash is there enters the main queue at once. The main queue's oldest leaves unless it was used:
//! then it goes round again, with one use fewer. So a scan passes through the small queue and never reaches
//! what is asked for. A page that a change drops after it had earned its place leaves its hash as well.
//!
//! Guarded by the index lock. Choosing a victim gives at most [`SECOND_CHANCES_MAX`] second chances, then
//! takes whichever is next: an insertion never waits for a walk through all pages.

use crate::budget::heap;
use crate::places::Place;
use crate::slab::{NONE, Slab};

const SECOND_CHANCES_MAX: usize = 1_000;
const USES_TO_STAY: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Small,
    Main,
}

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

    /// The queue that a new page enters.
    pub(crate) fn enter(&mut self, key_hash: u64) -> Queue {
        if self.ghost.take(key_hash) { Queue::Main } else { Queue::Small }
    }

    /// Puts the page at `at` in as the newest of its queue.
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

    /// Takes the page at `at` out of its queue.
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

    /// A page of this queue has another size now, and keeps its turn.
    pub(crate) fn resize(&mut self, queue: Queue, before: usize, after: usize) {
        let fifo = self.fifo(queue);
        fifo.bytes = fifo.bytes - before + after;
    }

    /// Remembers a page that leaves though it had earned its place.
    pub(crate) fn remember_worth<P>(&mut self, place: &Place<P>) {
        if place.queue == Queue::Main || place.live().uses() >= USES_TO_STAY {
            self.ghost.add(place.live().hash());
        }
    }

    /// The page to evict next, or `None` where there is none but `keep`. It stays in its queue.
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

    /// The oldest page, but `keep`, of the queue whose turn it is; of the other where there is none.
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

    /// Panics where a queue is torn or miscounted.
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

/// The hashes of keys that left, in a table of fixed size: sets of eight, first in, first out.
#[derive(Debug)]
struct Ghost {
    sets: Box<[[u32; 8]]>,
}

impl Ghost {
    /// One entry for every 2 KB of the budget: 0.2 % of it.
    fn new(budget_bytes: usize) -> Self {
        let sets = (budget_bytes / 2_048 / 8).clamp(8, 1 << 20).next_power_of_two();
        Self { sets: vec![[0; 8]; sets].into() }
    }

    fn add(&mut self, hash: u64) {
        let (set, print) = self.place(hash);
        let set = &mut self.sets[set];
        if !set.contains(&print) {
            set.rotate_right(1);
            set[0] = print;
        }
    }

    /// Whether the hash was there; it is not afterwards.
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
