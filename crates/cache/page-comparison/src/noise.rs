//! The noise of one key: the places whose text differs between renders that nothing lies between.
//!
//! It is learned from samples, never from a list: a nonce, a random choice, the time of the render. A place whose
//! value returned after another is random; one whose value is always new is a nonce.
//! Memory: at most 1,024 places of 8 bytes for each key. A page with more has little in common with itself.

use crate::difference::{MAX_DIFFERING, PageDifference, spot};
use crate::tokens::PageTokens;
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
    /// Whether some text of it is drawn at each render.
    is_drawn: bool,
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

    /// Remembers that some text is drawn at each render.
    pub(crate) fn learn_draw(&mut self) {
        self.is_drawn = true;
    }

    /// Whether some text is drawn at each render. The words beside it may be in another place each time.
    pub fn is_drawn(&self) -> bool {
        self.is_drawn
    }

    /// Whether the page as a whole is another at each render: nothing can be judged by its content.
    pub fn is_random(&self) -> bool {
        self.is_random
    }

    /// Whether there is no place at which a difference says nothing.
    pub fn is_empty(&self) -> bool {
        !self.is_random && self.spots.is_empty()
    }

    /// The bytes of memory that the places occupy, about.
    pub fn bytes(&self) -> usize {
        // A tree is half full at the least.
        size_of::<PageNoise>() + self.spots.len() * 2 * size_of::<u64>()
    }

    /// The hashes of all tokens at other places, as bytes: the same for two responses that differ in noise only. Their
    /// tokens have one secret.
    pub fn comparable_bytes(&self, tokens: &PageTokens) -> Vec<u8> {
        let all = (0_u32..).zip(&tokens.tokens);
        let compared = all.filter(|(index, _)| !self.has(spot(tokens, *index)));
        compared.flat_map(|(_, token)| token.value.to_le_bytes()).collect()
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
    /// The number of keys with text that is drawn.
    drawn: u8,
}

impl PatternNoise {
    /// Counts the places that one key has learned: its noise was `before`, and is `after` now.
    pub fn learn(&mut self, before: &PageNoise, after: &PageNoise) {
        if after.is_random {
            return;
        }
        self.drawn = self.drawn.saturating_add(u8::from(after.is_drawn && !before.is_drawn));
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
        noise.is_drawn |= self.drawn >= KEYS_BEFORE_NOISE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::differing;
    use crate::tokens::TokenSecret;

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
            assert!(!other.has(7) && !other.is_drawn());
            let mut drawn = noise([7, 100 + key]);
            drawn.learn_draw();
            pattern.learn(&nothing, &drawn);
        }
        let mut other = noise([9]);
        pattern.add_to(&mut other);
        assert!(other.has(7) && other.has(9) && !other.has(100) && other.is_drawn());
        assert_eq!(other.bytes() - nothing.bytes(), 2 * 16, "two places");
        let known = noise([8]);
        (0..9).for_each(|_| pattern.learn(&known, &known));
        pattern.add_to(&mut other);
        assert!(!other.has(8), "the key knew it before");
    }

    #[test]
    fn two_responses_that_differ_in_noise_only_have_the_same_comparable_bytes() {
        let page = |nonce: &str, word: &str| {
            let content = format!("<input value=\"{nonce}\"><p>{word}</p>");
            let fields = [("content-type", &b"text/html"[..])];
            PageTokens::of(TokenSecret::of(1), 200, fields, content.as_bytes(), false)
        };
        let (one, other, changed) = (page("a1", "x"), page("b2", "x"), page("b2", "y"));
        let nothing = PageNoise::default();
        assert!(nothing.is_empty());
        assert_ne!(nothing.comparable_bytes(&one), nothing.comparable_bytes(&other));
        let nonce = noise(differing(&one, &other).tokens.iter().map(|token| token.spot));
        assert!(!nonce.is_empty());
        assert_eq!(nonce.comparable_bytes(&one), nonce.comparable_bytes(&other));
        assert_ne!(nonce.comparable_bytes(&one), nonce.comparable_bytes(&changed));
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
