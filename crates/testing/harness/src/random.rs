//! Random numbers from a seed: the same seed always gives the same numbers.
//!
//! For tests that need many cases per second. Not for secrets: a few numbers reveal all later ones.

/// A random number generator of the type xorshift64*.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed. Even seeds are changed to odd ones, because a seed of zero would only give
    /// zeros.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number from 0 to `bound` - 1. `bound` must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    /// A random element of `of`.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// True with a probability of 1 in `one_in`.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}
