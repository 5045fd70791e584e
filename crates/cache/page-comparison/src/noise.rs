//! The noise of one key: the places whose text differs between renders that nothing lies between.
//!
//! It is learned from samples, never from a list: a nonce, a random choice, the time of the render. A place whose
//! value returned after another is random; one whose value is always new is a nonce.
//! Memory: at most 1,024 places of 8 bytes for each key. A page with more has little in common with itself.

use crate::difference::{MAX_DIFFERING, PageDifference};
use std::collections::{BTreeMap, BTreeSet};

/// Places that are remembered for one key.
const MAX_SPOTS: usize = 1_024;
/// Places that are counted for one pattern of paths: more are text that is drawn for each render, and no common nonce.
const MAX_PATTERN_SPOTS: usize = 256;
/// A place that is noise for so many keys of a pattern is noise for all of them.
const KEYS_BEFORE_NOISE: u8 = 5;

/// The places of one key that differ without a cause.
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

/// The places that are noise for several keys of one pattern of paths, for example a nonce in the form of each page.
/// Memory: at most 256 places of 16 bytes.
#[derive(Clone, Debug, Default)]
pub struct PatternNoise {
    /// The number of keys for which a place is noise.
    keys: BTreeMap<u64, u8>,
}

impl PatternNoise {
    /// Counts the places that one key has learned: its noise was `before`, and is `after` now.
    pub fn learn(&mut self, before: &PageNoise, after: &PageNoise) {
        if after.is_random {
            return;
        }
        for spot in after.spots.difference(&before.spots) {
            if self.keys.len() < MAX_PATTERN_SPOTS || self.keys.contains_key(spot) {
                let keys = self.keys.entry(*spot).or_insert(0);
                *keys = keys.saturating_add(1);
            }
        }
    }

    /// Adds the places that are noise for at least five keys to the noise of a key.
    pub fn add_to(&self, noise: &mut PageNoise) {
        let is_common = |(_, keys): &(&u64, &u8)| **keys >= KEYS_BEFORE_NOISE;
        let common = self.keys.iter().filter(is_common).map(|(spot, _)| *spot);
        let room = MAX_SPOTS.saturating_sub(noise.spots.len());
        noise.spots.extend(common.take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(spots: impl IntoIterator<Item = u64>) -> PageNoise {
        let mut noise = PageNoise::default();
        noise.learn(spots);
        noise
    }

    #[test]
    fn a_place_is_noise_for_a_pattern_after_five_keys() {
        let (mut pattern, nothing) = (PatternNoise::default(), PageNoise::default());
        for key in 0..5 {
            let mut other = PageNoise::default();
            pattern.add_to(&mut other);
            assert!(!other.has(7));
            pattern.learn(&nothing, &noise([7, 100 + key]));
        }
        let mut other = noise([9]);
        pattern.add_to(&mut other);
        assert!(other.has(7) && other.has(9) && !other.has(100));
        let known = noise([8]);
        (0..9).for_each(|_| pattern.learn(&known, &known));
        pattern.add_to(&mut other);
        assert!(!other.has(8), "the key knew it before");
    }

    #[test]
    fn the_places_of_a_pattern_are_bounded() {
        let mut pattern = PatternNoise::default();
        let mut all = noise(0..MAX_SPOTS as u64);
        for _ in 0..KEYS_BEFORE_NOISE {
            pattern.learn(&PageNoise::default(), &all);
        }
        assert_eq!(pattern.keys.len(), MAX_PATTERN_SPOTS);
        pattern.add_to(&mut all);
        assert!(all.spots.len() == MAX_SPOTS && !all.is_random());
    }
}
