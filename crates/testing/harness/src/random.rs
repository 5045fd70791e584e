//! Random cases from a seed: the same for the same seed, everywhere.
//!
//! For tests that want so many cases in a second that it matters what one costs. Not for secrets: whoever has seen
//! a few knows all that follow.

/// xorshift64*.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Begins at a seed; of two neighbours only the odd one is used, for nought would stay nought.
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// A number below `bound`, which is not nought.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// True once in so many times.
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}
