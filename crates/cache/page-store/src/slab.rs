//! Numbered places for pages and names: stable 32-bit indices, allocated in chunks that never move.
//!
//! A growing vector would copy a million entries while the index lock is held; here growth costs one chunk.
//! The chunks are freed when the slab is empty. Freed places are reused, so code that keeps an index while
//! the lock is released must look the entry up again.

use crate::budget::heap;

/// No place; the end of a list.
pub(crate) const NONE: u32 = u32::MAX;

const CHUNK: usize = 256;

#[derive(Debug)]
enum Place<T> {
    Free { next: u32 },
    Used(T),
}

#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Place<T>>>,
    free: u32,
    len: usize,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, len: 0 }
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        let place = &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK];
        let Place::Free { next } = place else { unreachable!("the free list holds free places") };
        self.free = *next;
        *place = Place::Used(value);
        self.len += 1;
        at
    }

    pub(crate) fn remove(&mut self, at: u32) -> T {
        let place = &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK];
        let freed = std::mem::replace(place, Place::Free { next: self.free });
        let Place::Used(value) = freed else { unreachable!("only used places are freed") };
        self.free = at;
        self.len -= 1;
        if self.len == 0 {
            *self = Self::new();
        }
        value
    }

    pub(crate) fn get(&self, at: u32) -> &T {
        match &self.chunks[at as usize / CHUNK][at as usize % CHUNK] {
            Place::Used(value) => value,
            Place::Free { .. } => unreachable!("an index into the slab outlived its entry"),
        }
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> &mut T {
        match &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK] {
            Place::Used(value) => value,
            Place::Free { .. } => unreachable!("an index into the slab outlived its entry"),
        }
    }

    /// The entry at a place that may be free or not exist.
    pub(crate) fn find(&self, at: u32) -> Option<&T> {
        match self.chunks.get(at as usize / CHUNK)?.get(at as usize % CHUNK)? {
            Place::Used(value) => Some(value),
            Place::Free { .. } => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        heap(self.chunks.capacity() * size_of::<Vec<Place<T>>>())
            + self.chunks.len() * heap(CHUNK * size_of::<Place<T>>())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let places = self.chunks.iter().flatten();
        (0u32..).zip(places).filter_map(|(at, place)| match place {
            Place::Used(value) => Some((at, value)),
            Place::Free { .. } => None,
        })
    }

    /// The entries at `count` places from `from`, without free places, and the next position; `None` at the
    /// end.
    pub(crate) fn part(&self, from: u32, count: usize) -> (impl Iterator<Item = &T>, Option<u32>) {
        let all = self.chunks.len() * CHUNK;
        let end = (from as usize).saturating_add(count).min(all);
        let next = (end < all).then_some(end as u32);
        ((from..end as u32).filter_map(|at| self.find(at)), next)
    }

    fn grow(&mut self) {
        let first = self.chunks.len() * CHUNK;
        let end = u32::try_from(first + CHUNK).expect("memory ends before 2^32 pages or names");
        let places = (first as u32..end)
            .map(|at| Place::Free { next: if at + 1 == end { NONE } else { at + 1 } });
        self.chunks.push(places.collect());
        self.free = first as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_stable_reused_and_given_back() {
        let mut slab = Slab::new();
        let places: Vec<u32> = (0..1_000).map(|n| slab.insert(n)).collect();
        assert!(places.iter().enumerate().all(|(n, at)| *slab.get(*at) == n));
        assert_eq!(slab.remove(places[10]), 10);
        assert!(slab.find(places[10]).is_none());
        assert!(slab.find(NONE).is_none());
        assert_eq!(slab.insert(7), places[10]);
        assert_eq!((slab.len(), slab.iter().count()), (1_000, 1_000));
        for at in places {
            slab.remove(at);
        }
        assert_eq!((slab.len(), slab.heap_bytes()), (0, 0));
    }
}
