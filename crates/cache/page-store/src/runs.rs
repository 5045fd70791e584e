//! The edges of pages, packed: the edges of each page form one run. A separate list for each page would
//! cost an allocation with its overhead and a word for the length.
//!
//! Short runs of the same length share chunks that never move. Freed runs are reused, and the chunks of a
//! length are freed when no run of it is left. Long runs have an allocation of their own. A run must not be
//! looked up after it was removed.

use crate::budget::heap;
use crate::slab::{NONE, Slab};
use crate::tags::Edge;

/// The maximum length of a run in a chunk: a URL, some directories, some tags.
const SHORT_MAX: usize = 12;
/// The number of runs in a chunk.
const CHUNK: usize = 64;

/// The location of a page's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) at: u32,
    /// The number of edges, up to 65,535. For longer runs it is the maximum.
    pub(crate) length: u16,
}

impl Run {
    /// A run without edges.
    pub(crate) const EMPTY: Run = Run { at: NONE, length: 0 };

    /// The number of edges, counted up to 65,535.
    pub(crate) fn length(self) -> usize {
        usize::from(self.length)
    }
}

#[derive(Debug)]
pub(crate) struct Runs {
    /// The runs of length 1, 2 and so on.
    short: [Short; SHORT_MAX],
    long: Slab<Box<[Edge]>>,
    long_bytes: usize,
}

impl Runs {
    pub(crate) fn new() -> Self {
        let short = std::array::from_fn(|before| Short::new(before + 1));
        Self { short, long: Slab::new(), long_bytes: 0 }
    }

    pub(crate) fn insert(&mut self, edges: &[Edge]) -> Run {
        let length = u16::try_from(edges.len()).unwrap_or(u16::MAX);
        let at = match edges.len() {
            0 => return Run::EMPTY,
            1..=SHORT_MAX => self.short[edges.len() - 1].insert(edges),
            _ => {
                self.long_bytes += heap(size_of_val(edges));
                self.long.insert(edges.into())
            }
        };
        Run { at, length }
    }

    pub(crate) fn get(&self, run: Run) -> &[Edge] {
        match run.length() {
            0 => &[],
            length @ 1..=SHORT_MAX => self.short[length - 1].get(run.at),
            _ => self.long.get(run.at),
        }
    }

    pub(crate) fn get_mut(&mut self, run: Run) -> &mut [Edge] {
        match run.length() {
            0 => &mut [],
            length @ 1..=SHORT_MAX => self.short[length - 1].get_mut(run.at),
            _ => self.long.get_mut(run.at),
        }
    }

    pub(crate) fn remove(&mut self, run: Run) {
        match run.length() {
            0 => {}
            length @ 1..=SHORT_MAX => self.short[length - 1].remove(run.at),
            _ => {
                let edges = self.long.remove(run.at);
                self.long_bytes -= heap(size_of_val(&*edges));
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let short: usize = self.short.iter().map(Short::heap_bytes).sum();
        short + self.long.heap_bytes() + self.long_bytes
    }
}

/// The runs of one length. The first edge of a free run points to the next free run.
#[derive(Debug)]
struct Short {
    length: usize,
    chunks: Vec<Box<[Edge]>>,
    free: u32,
    used: usize,
}

impl Short {
    fn new(length: usize) -> Self {
        Self { length, chunks: Vec::new(), free: NONE, used: 0 }
    }

    fn insert(&mut self, edges: &[Edge]) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        let run = self.get_mut(at);
        let next = run[0].to;
        run.copy_from_slice(edges);
        self.free = next;
        self.used += 1;
        at
    }

    fn remove(&mut self, at: u32) {
        self.get_mut(at)[0].to = self.free;
        self.free = at;
        self.used -= 1;
        if self.used == 0 {
            *self = Self::new(self.length);
        }
    }

    fn get(&self, at: u32) -> &[Edge] {
        let from = at as usize % CHUNK * self.length;
        &self.chunks[at as usize / CHUNK][from..from + self.length]
    }

    fn get_mut(&mut self, at: u32) -> &mut [Edge] {
        let from = at as usize % CHUNK * self.length;
        &mut self.chunks[at as usize / CHUNK][from..from + self.length]
    }

    fn grow(&mut self) {
        let first = self.chunks.len() * CHUNK;
        let end = u32::try_from(first + CHUNK).expect("memory ends before 2^32 pages");
        self.chunks.push(vec![Edge { to: NONE, back: 0 }; CHUNK * self.length].into());
        for at in first as u32..end - 1 {
            self.get_mut(at)[0].to = at + 1;
        }
        self.free = first as u32;
    }

    fn heap_bytes(&self) -> usize {
        heap(self.chunks.capacity() * size_of::<Box<[Edge]>>())
            + self.chunks.len() * heap(CHUNK * self.length * size_of::<Edge>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(count: u32) -> Vec<Edge> {
        (0..count).map(|to| Edge { to, back: count }).collect()
    }

    #[test]
    fn runs_of_every_length_are_kept_reused_and_given_back() {
        let mut runs = Runs::new();
        let lengths = (0..=40).cycle().take(41 * 70);
        let all: Vec<_> = lengths.map(|count| (count, runs.insert(&edges(count)))).collect();
        assert!(all.iter().all(|(count, run)| runs.get(*run) == edges(*count)));
        let (_, three) = all[3];
        runs.get_mut(three)[1].back = 7;
        assert_eq!(runs.get(three)[1], Edge { to: 1, back: 7 });
        runs.remove(three);
        assert_eq!(runs.insert(&edges(3)), three);
        let held = runs.heap_bytes();
        assert!(held > 70 * 41 * 20 * size_of::<Edge>());
        all.iter().for_each(|(_, run)| runs.remove(*run));
        assert_eq!((runs.get(Run::EMPTY), runs.heap_bytes()), (&[][..], 0));
    }

    #[test]
    fn more_than_can_be_counted_are_all_kept() {
        let mut runs = Runs::new();
        let run = runs.insert(&edges(100_000));
        assert_eq!((run.length(), runs.get(run).len()), (65_535, 100_000));
        runs.remove(run);
        assert_eq!(runs.heap_bytes(), 0);
    }
}
