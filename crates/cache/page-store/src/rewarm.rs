//! Cache warming: the keys of the most used pages that changes have dropped or marked.
//!
//! A change passes its pages on outside the index lock. The caller takes the keys one by one, the most used
//! first, and requests them at its own pace. Only keys are stored, each once, up to
//! [`Limits::rewarm_pages_max`] keys and [`bytes_max`] bytes. A new key displaces keys of a lower worth.
//! The worth of a page is its use count (up to three), plus two if it has survived an eviction scan.
//!
//! It has its own mutex, under which no other lock is taken. Nothing here decides about freshness: a lost
//! key or a needless one costs only a render.

use crate::budget::{Limits, heap};
use crate::page::{Audience, KeyBuf, Page, Payload};
use crate::places::{Place, Queue};
use crate::table::Table;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum worth of a page.
const WORTH_MAX: usize = 5;
/// The additional worth of a page in the main queue.
const STAYED: u8 = 2;

/// A page that a change has affected, and its worth.
pub(crate) type AffectedPage<P> = (Page<P>, u8);

/// The part of the budget reserved for each key, in bytes: half of it for the lists, half for the key.
const KEY_BYTES: usize = 512;
/// The bytes of the lists without keys.
const LISTS_BYTES: usize = 4_096;

/// The bytes reserved from the budget for waiting keys; 0 if cache warming is off.
pub(crate) fn bytes_max(limits: &Limits) -> usize {
    if limits.rewarm_pages_max == 0 {
        return 0;
    }
    let wanted = limits.rewarm_pages_max.saturating_mul(KEY_BYTES).saturating_add(LISTS_BYTES);
    wanted.min(limits.budget_bytes / 32)
}

/// The worth of the page in `place`; `None` if it is too low for cache warming.
pub(crate) fn worth<P>(limits: &Limits, place: &Place<P>) -> Option<u8> {
    if limits.rewarm_pages_max == 0 {
        return None;
    }
    let stayed = if place.queue == Queue::Main { STAYED } else { 0 };
    let worth = place.live().uses() + stayed;
    (worth >= limits.rewarm_uses_min).then_some(worth)
}

/// The waiting keys.
#[derive(Debug)]
pub(crate) struct Rewarm {
    waiting: Mutex<Waiting>,
    pages_max: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Waiting {
    /// By worth; keys of the same worth in order of arrival.
    keys: [VecDeque<KeyBuf>; WORTH_MAX + 1],
    /// The hashes of all waiting keys.
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

    /// Adds the pages that a change has affected. Not under the index lock, because it calls the payloads.
    pub(crate) fn add<P: Payload>(&self, touched: &mut Vec<AffectedPage<P>>) {
        for (page, worth) in touched.drain(..) {
            if page.payload().audience() == Audience::Anybody {
                self.lock().add(&page, worth, self.pages_max);
            }
        }
    }

    /// The key of the most used page that waits; it waits no more.
    pub(crate) fn next(&self) -> Option<KeyBuf> {
        self.lock().next()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().known.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.lock().heap_bytes()
    }

    /// An inconsistent list costs a render at worst, so a poisoned lock is used nevertheless.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Panics if the lists and the counts disagree.
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
