//! The noise of one key: the places whose text differs between renders that nothing lies between.
//!
//! It is learned from samples, never from a list: a nonce, a random choice, the time of the render. A place whose
//! value returned after another is random; one whose value is always new is a nonce.
//! Memory: at most 1,024 places of 8 bytes for each key. A page with more has little in common with itself.

use crate::difference::{MAX_DIFFERING, PageDifference};
use std::collections::BTreeSet;

/// Places that are remembered for one key.
const MAX_SPOTS: usize = 1_024;

/// The places of one key, or of one pattern of paths, that differ without a cause.
#[derive(Clone, Debug, Default)]
pub struct PageNoise {
    spots: BTreeSet<u64>,
    is_random: bool,
}

impl PageNoise {
    /// Remembers places that differed between two samples of the same data.
    pub(crate) fn learn(&mut self, spots: impl IntoIterator<Item = u64>) {
        for spot in spots {
            if self.spots.len() >= MAX_SPOTS {
                self.is_random = true;
                return;
            }
            self.spots.insert(spot);
        }
    }

    /// Remembers that two samples had little in common.
    pub(crate) fn learn_random(&mut self) {
        self.is_random = true;
    }

    /// Whether the page as a whole is another at each render: nothing can be judged by its content.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// Whether a difference at this place says nothing.
    pub(crate) fn has(&self, spot: u64) -> bool {
        self.is_random || self.spots.contains(&spot)
    }

    /// Whether differences at all of these places say nothing.
    pub fn has_all(&self, spots: &[u64]) -> bool {
        spots.iter().all(|spot| self.has(*spot))
    }

    /// Adds what was learned for another key of the same pattern.
    pub fn merge(&mut self, other: &PageNoise) {
        self.learn(other.spots.iter().copied());
        self.is_random |= other.is_random;
    }

    /// The rest of a difference without the noise.
    pub fn without_noise(&self, difference: &PageDifference) -> PageDifference {
        let tokens = if self.is_random && difference.tokens.len() >= MAX_DIFFERING {
            Vec::new()
        } else {
            difference.tokens.iter().filter(|token| !self.has(token.spot)).copied().collect()
        };
        PageDifference { tokens, common_percent: difference.common_percent }
    }
}
