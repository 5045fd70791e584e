//! A hash table whose keys are already hashes and which reports its heap bytes.
//!
//! The map of `std` does not report its number of buckets while some are tombstones. The table therefore
//! keeps the largest capacity seen: the count may be too high for a while, never too low. A table that is
//! nearly empty shrinks. Tables are used in hundreds, selected by hash, so that the growth of one never
//! stops other threads for long.

use crate::budget::table_bytes;
use crate::hash::BuildIdentity;
use hashbrown::HashTable;
use std::collections::HashMap;
use std::hash::Hash;

const SHRINK_FROM: usize = 64;

#[derive(Debug)]
pub(crate) struct Table<K, V> {
    map: HashMap<K, V, BuildIdentity>,
    capacity_seen: usize,
}

impl<K: Hash + Eq, V> Table<K, V> {
    pub(crate) fn new() -> Self {
        Self { map: HashMap::default(), capacity_seen: 0 }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let old = self.map.insert(key, value);
        self.capacity_seen = self.capacity_seen.max(self.map.capacity());
        old
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let old = self.map.remove(key);
        if self.capacity_seen > SHRINK_FROM && self.map.len() * 8 < self.capacity_seen {
            self.map.shrink_to(self.map.len() * 2);
            self.capacity_seen = self.map.capacity();
        }
        old
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        table_bytes(self.capacity_seen, size_of::<(K, V)>())
    }
}

/// Shrinks a table that is nearly empty. `hash` returns the hash of an entry.
pub(crate) fn shrink_rarely<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    if table.capacity() > SHRINK_FROM && table.len() * 8 < table.capacity() {
        table.shrink_to(table.len() * 2, hash);
    }
}
