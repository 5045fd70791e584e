//! The page map, which lookups read.
//!
//! There are 256 shards by key hash. Each is an `RwLock` over a table of pages by key hash. A lookup locks
//! one shard for reading, clones a handle, unlocks, and compares the whole key. Only the holder of the
//! index lock writes (lock order: index, then one shard), so its reads remain valid until it writes.
//!
//! The entry of a key with one page, the usual case, is only a pointer to the page. The hash is in the
//! page, which a hit reads anyway. Keys with several variants have a table of their own.
//!
//! Invariants: all pages under one hash have the same key; a second key with that hash displaces the first.
//! A hash is in one of the two tables only.

use crate::budget::heap;
use crate::page::{Candidates, Key, Page};
use crate::sync::{RwLock, read, write};
use crate::table::{Table, shrink_rarely};
use hashbrown::HashTable;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(feature = "loom"))]
const SHARDS: usize = 256;
#[cfg(feature = "loom")]
const SHARDS: usize = 2;

/// The variants of a key, oldest first.
type Variants<P> = Arc<Box<[Page<P>]>>;

/// The pages of one shard.
#[derive(Debug)]
struct Shard<P> {
    /// The pages of keys with one page.
    one: HashTable<Page<P>>,
    /// The pages of keys with several variants.
    many: Table<u64, Variants<P>>,
}

impl<P> Shard<P> {
    fn new() -> Self {
        Self { one: HashTable::new(), many: Table::new() }
    }

    fn get(&self, hash: u64) -> Candidates<P> {
        match self.one.find(hash, |page| page.hash() == hash) {
            Some(page) => Candidates::One(page.clone()),
            None if self.many.len() == 0 => Candidates::None,
            None => {
                let many = self.many.get(&hash);
                many.map_or(Candidates::None, |pages| Candidates::Many(Arc::clone(pages)))
            }
        }
    }

    /// Replaces the entry of `hash` and returns the old one.
    fn set(&mut self, hash: u64, new: Candidates<P>) -> Candidates<P> {
        if let Candidates::One(new) = &new
            && let Some(page) = self.one.find_mut(hash, |page| page.hash() == hash)
        {
            return Candidates::One(std::mem::replace(page, new.clone()));
        }
        if let Candidates::Many(new) = new {
            return match self.many.insert(hash, new) {
                Some(old) => Candidates::Many(old),
                None => self.take_one(|page| page.hash() == hash, hash),
            };
        }
        let old = match self.many.remove(&hash) {
            Some(old) => Candidates::Many(old),
            None => self.take_one(|page| page.hash() == hash, hash),
        };
        if let Candidates::One(new) = new {
            self.one.insert_unique(hash, new, |page| page.hash());
        }
        old
    }

    /// Removes the only page of a key, if it is `wanted`.
    fn take_one(&mut self, wanted: impl Fn(&Page<P>) -> bool, hash: u64) -> Candidates<P> {
        let Ok(entry) = self.one.find_entry(hash, wanted) else { return Candidates::None };
        let (page, _) = entry.remove();
        shrink_rarely(&mut self.one, |page| page.hash());
        Candidates::One(page)
    }

    fn heap_bytes(&self) -> usize {
        heap(self.one.allocation_size()) + self.many.heap_bytes()
    }
}

#[derive(Debug)]
pub(crate) struct Shards<P> {
    shards: Box<[RwLock<Shard<P>>]>,
    /// Written under the index lock only.
    heap_bytes: AtomicUsize,
}

impl<P> Shards<P> {
    pub(crate) fn new() -> Self {
        let shards: Box<[RwLock<Shard<P>>]> =
            (0..SHARDS).map(|_| RwLock::new(Shard::new())).collect();
        let heap_bytes = AtomicUsize::new(heap(size_of_val(&*shards)));
        Self { shards, heap_bytes }
    }

    /// The pages stored under `key`, each counted as used. This is the whole store part of a hit.
    pub(crate) fn hit(&self, key: Key<'_>) -> Candidates<P> {
        let found = self.pages(key);
        for page in &found {
            page.used();
        }
        found
    }

    /// The pages stored under `key`, without counting a use.
    pub(crate) fn pages(&self, key: Key<'_>) -> Candidates<P> {
        let found = self.same_hash(key.hash);
        match found.as_slice().first() {
            Some(page) if page.key().bytes == key.bytes => found,
            _ => Candidates::None,
        }
    }

    /// The pages stored under any key with this hash.
    pub(crate) fn same_hash(&self, hash: u64) -> Candidates<P> {
        read(self.shard(hash)).get(hash)
    }

    /// Adds `page` and removes `replaced`, in one step for all readers.
    pub(crate) fn put(&self, page: &Page<P>, replaced: &[Page<P>]) {
        self.rewrite(page.hash(), replaced, Some(page));
    }

    /// Removes `page`.
    pub(crate) fn take(&self, page: &Page<P>) {
        // The usual case needs one lock.
        let hash = page.hash();
        let mut shard = write(self.shard(hash));
        let before = shard.heap_bytes();
        // The dropped handle is not the last one: `page` is another.
        if let Candidates::One(_) = shard.take_one(|only| only.is(page), hash) {
            let freed = before - shard.heap_bytes();
            self.heap_bytes.store(self.heap_bytes() - freed, Ordering::Relaxed);
            return;
        }
        drop(shard);
        self.rewrite(page.hash(), std::slice::from_ref(page), None);
    }

    /// Replaces `old` by `new` among the candidates, in one step for all readers.
    pub(crate) fn swap(&self, old: &Page<P>, new: &Page<P>) {
        let hash = new.hash();
        let replaced = |page: &Page<P>| if page.is(old) { new } else { page }.clone();
        let pages = self.same_hash(hash).iter().map(replaced).collect();
        let mut shard = write(self.shard(hash));
        // The number of candidates is the same, so the table and the slice keep their size.
        let before = shard.set(hash, Candidates::from_vec(pages));
        drop(shard);
        drop(before);
    }

    fn rewrite(&self, hash: u64, without: &[Page<P>], with: Option<&Page<P>>) {
        let old = self.same_hash(hash);
        let keeps = |page: &&Page<P>| !without.iter().any(|other| page.is(other));
        let pages: Vec<_> = old.iter().filter(keeps).chain(with).cloned().collect();
        let new = Candidates::from_vec(pages);
        let slices = [slice_bytes(&old), slice_bytes(&new)];
        let mut shard = write(self.shard(hash));
        let before = shard.heap_bytes();
        let replaced = shard.set(hash, new);
        let after = shard.heap_bytes();
        drop(shard);
        drop(replaced);
        let bytes = self.heap_bytes.load(Ordering::Relaxed) + after + slices[1];
        self.heap_bytes.store(bytes - before - slices[0], Ordering::Relaxed);
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes.load(Ordering::Relaxed)
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard<P>> {
        // The tables use the lowest and the highest bits of the hash.
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    /// Panics if keys are mixed, an entry is empty, or bytes are miscounted. Returns all pages.
    pub(crate) fn validate(&self) -> Vec<Page<P>> {
        let mut all = Vec::new();
        let mut bytes = heap(size_of_val(&*self.shards));
        for (at, lock) in self.shards.iter().enumerate() {
            let shard = read(lock);
            bytes += shard.heap_bytes();
            let hashes = shard.one.iter().map(|page| page.hash());
            for hash in hashes.chain(shard.many.iter().map(|(hash, _)| *hash)) {
                let candidates = shard.get(hash);
                let pages = candidates.as_slice();
                let first = pages.first().expect("an entry of the page map is never empty");
                assert!(pages.iter().all(|page| page.key() == first.key()), "keys are mixed");
                assert_eq!(first.hash(), hash, "a page under a foreign hash");
                assert_eq!((hash >> 40) as usize % SHARDS, at, "a page in a foreign shard");
                bytes += slice_bytes(&candidates);
                all.extend(pages.iter().cloned());
            }
        }
        assert_eq!(bytes, self.heap_bytes(), "bytes of the page map");
        all
    }
}

fn slice_bytes<P>(candidates: &Candidates<P>) -> usize {
    match candidates {
        Candidates::Many(pages) => {
            heap(4 * size_of::<usize>()) + heap(size_of_val::<[Page<P>]>(pages))
        }
        Candidates::None | Candidates::One(_) => 0,
    }
}
