//! Keys with a note for a while, such as that their last render could not be shared
//! (hit-for-miss).
//!
//! A table of fixed size: sets of four key hashes, each with an expiry time in the caller's milliseconds.
//! In a full set, a new entry replaces the one that expires first. An entry may be lost, and two keys may have
//! the same hash, so nothing but the cost of an answer may depend on it.

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    hash: u64,
    until_ms: u64,
}

/// Hashes of keys, each until its time.
#[derive(Debug)]
pub struct ExpiringKeys {
    sets: Box<[[Entry; 4]]>,
}

impl ExpiringKeys {
    /// Creates a table for this many keys.
    pub fn new(keys_max: usize) -> Self {
        Self { sets: vec![[Entry::default(); 4]; (keys_max / 4).max(1)].into() }
    }

    /// Whether the key was added, and its time has not come.
    pub fn contains(&self, hash: u64, now_ms: u64) -> bool {
        let set = &self.sets[self.set_of(hash)];
        set.iter().any(|entry| entry.hash == hash && entry.until_ms > now_ms)
    }

    /// Adds a key until `until_ms`, or changes its time.
    pub fn add(&mut self, hash: u64, until_ms: u64) {
        let set = self.set_of(hash);
        let set = &mut self.sets[set];
        let same = set.iter().position(|entry| entry.hash == hash);
        let first_to_end = (0..set.len()).min_by_key(|at| set[*at].until_ms);
        if let Some(at) = same.or(first_to_end) {
            set[at] = Entry { hash, until_ms };
        }
    }

    /// Removes a key before its time is up.
    pub fn remove(&mut self, hash: u64) {
        let set = self.set_of(hash);
        for entry in &mut self.sets[set] {
            if entry.hash == hash {
                entry.until_ms = 0;
            }
        }
    }

    fn set_of(&self, hash: u64) -> usize {
        (hash >> 8) as usize % self.sets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_counts_until_its_time() {
        let mut keys = ExpiringKeys::new(64);
        keys.add(7, 100);
        assert!(keys.contains(7, 99));
        assert!(!keys.contains(7, 100));
        assert!(!keys.contains(8, 0));
        keys.add(7, 200);
        assert!(keys.contains(7, 150));
        keys.remove(7);
        assert!(!keys.contains(7, 0));
    }

    #[test]
    fn a_full_set_forgets_the_first_to_end() {
        let mut keys = ExpiringKeys::new(4);
        for hash in 1..=5 {
            keys.add(hash, 100 * hash);
        }
        assert!(!keys.contains(1, 0));
        assert!((2..=5).all(|hash| keys.contains(hash, 0)));
    }
}
