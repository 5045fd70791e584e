//! A random number for seeds, identifiers and samples.
//!
//! The standard library gives each hash map a seed from the system's source of randomness. The number is a hash under
//! such a seed, so that no dependency and no system call is needed. Not here: keys of cryptography.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a random number. A client that has seen others cannot predict it.
#[must_use]
pub fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_differ_in_each_half_and_between_threads() {
        let numbers = || (0..1_000).map(|_| random_number()).collect::<Vec<u64>>();
        let other = std::thread::spawn(numbers).join().expect("no panic");
        let all: Vec<u64> = numbers().into_iter().chain(other).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 2_000);
        for shift in [0, 32] {
            let halves: HashSet<u32> = all.iter().map(|number| (number >> shift) as u32).collect();
            assert!(halves.len() > 1_990, "{}", halves.len());
        }
    }
}
