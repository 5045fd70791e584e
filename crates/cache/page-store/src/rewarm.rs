//! What to render anew first: the keys of the most used among the pages that changes have dropped or marked.
//!
//! A change hands its pages over outside the index lock; the caller takes the keys one by one, the most used
//! first, and asks for them at its own pace. Only keys are kept, each once, no more than
//! [`Limits::rewarm_pages_max`] and than [`bytes_max`] of them; where there is no room, the least used goes.
//! What a page is worth is its count of uses (up to three) and two more if it has stayed through an eviction.
//!
//! A mutex of its own, under which no other is taken. Nothing here decides about freshness: a key that is
//! forgotten, or taken in vain, costs a render when somebody asks.

use crate::budget::{Limits, heap};
use crate::evict::Queue;
use crate::page::{Audience, KeyBuf, Page, Payload};
use crate::places::Place;
use crate::store::Store;
use crate::table::Table;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a page may be worth: from 0 to this.
const WORTH_MAX: usize = 5;
/// What a page of the main queue is worth more.
const STAYED: u8 = 2;

/// A page that a change has touched, and what it is worth.
pub(crate) type Touched<P> = (Page<P>, u8);

/// What is set aside of the budget for each key: half of it for the lists, half for the key.
const KEY_BYTES: usize = 512;
/// What the lists take without keys.
const LISTS_BYTES: usize = 4_096;

/// Bytes that keys waiting to be rendered may take: set aside of the budget, none where it is off.
pub(crate) fn bytes_max(limits: &Limits) -> usize {
    if limits.rewarm_pages_max == 0 {
        return 0;
    }
    let wanted = limits.rewarm_pages_max.saturating_mul(KEY_BYTES).saturating_add(LISTS_BYTES);
    wanted.min(limits.budget_bytes / 32)
}

/// What the page in `place` is worth, if it is worth rendering anew.
pub(crate) fn worth<P>(limits: &Limits, place: &Place<P>) -> Option<u8> {
    if limits.rewarm_pages_max == 0 {
        return None;
    }
    let stayed = if place.queue == Queue::Main { STAYED } else { 0 };
    let worth = place.live().uses() + stayed;
    (worth >= limits.rewarm_uses_min).then_some(worth)
}

/// The keys that wait.
#[derive(Debug)]
pub(crate) struct Rewarm {
    waiting: Mutex<Waiting>,
    pages_max: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Waiting {
    /// By worth; within it, the first to come first.
    keys: [VecDeque<KeyBuf>; WORTH_MAX + 1],
    /// The hashes of all of them.
    known: Table<u64, ()>,
    key_bytes: usize,
}

impl Rewarm {
    pub(crate) fn new(limits: &Limits) -> Self {
        let keys = std::array::from_fn(|_| VecDeque::new());
        let waiting = Waiting { keys, known: Table::new(), key_bytes: 0 };
        let bytes_max = bytes_max(limits);
        let pages_max = bytes_max.saturating_sub(LISTS_BYTES) / KEY_BYTES;
        Self { waiting: Mutex::new(waiting), pages_max, bytes_max }
    }

    /// Takes in what a change has touched. Not under the index lock: it asks the payloads.
    pub(crate) fn add<P: Payload>(&self, touched: &mut Vec<Touched<P>>) {
        for (page, worth) in touched.drain(..) {
            if page.payload().audience() == Audience::Anybody {
                self.lock().add(&page, worth, self.pages_max);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().known.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.lock().heap_bytes()
    }

    /// A torn list costs a render at worst, so a poisoned lock is used all the same.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Panics where the keys and what is known of them disagree.
    pub(crate) fn validate(&self) {
        let waiting = self.lock();
        let keys = || waiting.keys.iter().flatten();
        assert_eq!(keys().count(), waiting.known.len(), "keys that wait");
        assert!(keys().all(|key| waiting.known.get(&key.as_key().hash).is_some()), "unknown key");
        assert_eq!(keys().map(key_bytes).sum::<usize>(), waiting.key_bytes, "bytes of keys");
        assert!(waiting.known.len() <= self.pages_max, "too many keys wait");
        assert!(waiting.heap_bytes() <= self.bytes_max, "keys that wait are over their bytes");
    }
}

impl Waiting {
    fn add<P>(&mut self, page: &Page<P>, worth: u8, pages_max: usize) {
        let key = page.key();
        if self.known.get(&key.hash).is_some() {
            return;
        }
        let worth = usize::from(worth).min(WORTH_MAX);
        let (bytes, bytes_max) = (heap(key.bytes.len()), pages_max * KEY_BYTES / 2);
        while self.known.len() >= pages_max || self.key_bytes + bytes > bytes_max {
            let Some(least) = (0..worth).find(|at| !self.keys[*at].is_empty()) else { return };
            self.take(least, VecDeque::pop_back);
        }
        let key = key.to_buf();
        self.key_bytes += key_bytes(&key);
        self.known.insert(key.as_key().hash, ());
        self.keys[worth].push_back(key);
    }

    fn next(&mut self) -> Option<KeyBuf> {
        let most = (0..=WORTH_MAX).rev().find(|at| !self.keys[*at].is_empty())?;
        self.take(most, VecDeque::pop_front)
    }

    fn take(
        &mut self,
        worth: usize,
        pop: fn(&mut VecDeque<KeyBuf>) -> Option<KeyBuf>,
    ) -> Option<KeyBuf> {
        let key = pop(&mut self.keys[worth])?;
        self.known.remove(&key.as_key().hash);
        self.key_bytes -= key_bytes(&key);
        let list = &mut self.keys[worth];
        if list.len() * 4 < list.capacity() {
            list.shrink_to(list.len() * 2);
        }
        Some(key)
    }

    fn heap_bytes(&self) -> usize {
        let lists = self.keys.iter().map(|list| heap(list.capacity() * size_of::<KeyBuf>()));
        lists.sum::<usize>() + self.key_bytes + self.known.heap_bytes()
    }
}

fn key_bytes(key: &KeyBuf) -> usize {
    heap(key.as_key().bytes.len())
}

impl<P: Payload> Store<P> {
    /// The key of the page that was used most among those which changes have dropped or marked, to be
    /// rendered anew; each is given out once. It may have been rendered meanwhile: look it up first.
    /// Nothing where [`Limits::rewarm_pages_max`] is 0.
    pub fn next_to_rewarm(&self) -> Option<KeyBuf> {
        self.shared.rewarm.lock().next()
    }

    /// How many keys [`next_to_rewarm`](Self::next_to_rewarm) has to give.
    pub fn to_rewarm(&self) -> usize {
        self.shared.rewarm.len()
    }
}
