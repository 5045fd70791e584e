//! Random numbers from a seed: the same seed makes the same draws, on any machine.
//!
//! The schedule is random: which page, which change, which fault. The exact timing depends on the
//! machine, so a run is not reproducible exactly. The generator is SplitMix64, which is sufficient
//! here, but not for secrets.

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The stream of this number under a seed; streams of different numbers have nothing in common.
    pub fn new(seed: u64, stream: u64) -> Chance {
        let mut chance = Chance(seed ^ stream.wrapping_mul(0xA076_1D64_78BD_642F));
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` − 1; 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let scaled = u128::from(self.next()) * bound as u128;
        usize::try_from(scaled >> 64).unwrap_or(0)
    }

    /// Once in `times` draws.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_every_number_is_drawn() {
        let draw = |seed, stream| {
            let mut chance = Chance::new(seed, stream);
            (0..200).map(|_| chance.below(6)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        let drawn = draw(7, 7);
        assert!((0..6).all(|number| drawn.contains(&number)) && drawn.iter().all(|n| *n < 6));
    }
}
