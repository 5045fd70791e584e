//! The differences of visitors' answers from their pages that nothing has explained, by pattern of paths and key.
//!
//! | found later for the key | explains |
//! |---|---|
//! | the page itself is wrong, drawn at each render, or newer than what the application answers | the difference of each visitor |
//! | a part of one visitor's request makes a difference (`loses`) | differences at the same places, unless their cause was searched for in vain |
//! | places are noise | differences at these places only |
//! | another visitor's answer equals the page | nothing |
//!
//! Memory: at most 1,024 keys with 128 places of 8 bytes each, and one more key for each of 4,096 patterns. Beyond, a
//! difference stays in the report until the record ends.

use page_comparison::{DifferenceClass, PageDifference, PageNoise};
use std::collections::HashMap;

/// Keys with places.
const KEYS_MAX: usize = 1_024;
/// Keys of one pattern with places.
const KEYS_OF_PATTERN_MAX: usize = 64;
/// Stands for all further keys of a pattern.
const FURTHER_KEYS: u64 = 0;
const PATTERNS_MAX: usize = 4_096;
/// Places of one difference.
const PLACES_MAX: usize = 128;

/// The places of a difference as numbers; none if they are too many, or not known.
pub(crate) type DifferingPlaces = Option<Vec<u64>>;

/// The places of a difference.
pub(crate) fn places_of(difference: &PageDifference) -> DifferingPlaces {
    Some(difference.spots()).filter(|places| places.len() <= PLACES_MAX)
}

/// A difference that was not explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnexplainedDifference {
    pub(crate) places: DifferingPlaces,
    /// Whether its cause was searched for in vain.
    pub(crate) was_searched: bool,
}

impl UnexplainedDifference {
    /// Adds another one of the same key.
    fn add(&mut self, other: UnexplainedDifference) {
        self.was_searched |= other.was_searched;
        let both = self.places.take().zip(other.places);
        self.places = both.map(|(mut places, others)| {
            places.extend(others);
            places.sort_unstable();
            places.dedup();
            places
        });
        self.places = self.places.take().filter(|places| places.len() <= PLACES_MAX);
    }
}

/// A fact that was found out about a key.
#[derive(Clone, Copy)]
pub(crate) enum Explanation<'a> {
    /// Each visitor may get another answer than the page.
    Page,
    /// One visitor gets another answer, at these places.
    Visitor(&'a [u64]),
    /// No more than its noise.
    Noise,
}

/// Whether a difference of this class is the page's own: then each visitor may get another answer.
pub(crate) fn is_of_page(class: DifferenceClass) -> bool {
    class.is_wrong() || matches!(class, DifferenceClass::Random | DifferenceClass::OldApplication)
}

impl Explanation<'_> {
    fn explains(self, difference: &UnexplainedDifference, noise: &PageNoise) -> bool {
        let known: &[u64] = match self {
            Explanation::Page => return true,
            Explanation::Visitor(places) if !difference.was_searched => places,
            Explanation::Visitor(_) | Explanation::Noise => &[],
        };
        difference.places.as_ref().is_some_and(|places| are_known(places, known, noise))
    }
}

/// Whether each of these places is one of the known ones, or noise.
fn are_known(places: &[u64], known: &[u64], noise: &PageNoise) -> bool {
    let others: Vec<u64> = places.iter().copied().filter(|one| !known.contains(one)).collect();
    noise.has_all(&others)
}

/// The differences that nothing has explained.
#[derive(Default)]
pub(crate) struct UnexplainedDifferences {
    by_pattern: HashMap<u64, HashMap<u64, UnexplainedDifference>>,
    /// Whether there was no room for one.
    is_incomplete: bool,
}

impl UnexplainedDifferences {
    /// Notes a difference of a key.
    pub(crate) fn add(&mut self, (pattern, key): (u64, u64), difference: UnexplainedDifference) {
        let all: usize = self.by_pattern.values().map(HashMap::len).sum();
        if self.by_pattern.len() >= PATTERNS_MAX && !self.by_pattern.contains_key(&pattern) {
            self.is_incomplete = true;
            return;
        }
        let keys = self.by_pattern.entry(pattern).or_default();
        let has_room = keys.len() < KEYS_OF_PATTERN_MAX && all < KEYS_MAX;
        let (key, difference) = if has_room || keys.contains_key(&key) {
            (key, difference)
        } else {
            (FURTHER_KEYS, UnexplainedDifference { places: None, ..difference })
        };
        match keys.get_mut(&key) {
            Some(known) => known.add(difference),
            None => drop(keys.insert(key, difference)),
        }
    }

    /// Whether nothing is left to be explained.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_pattern.is_empty() && !self.is_incomplete
    }

    /// Ends the difference of a key if it is explained. Returns whether it was the last of its pattern. Further keys end
    /// with the last that is known, unless a search for their cause was in vain.
    pub(crate) fn explain(
        &mut self,
        (pattern, key): (u64, u64),
        (by, noise): (Explanation<'_>, &PageNoise),
    ) -> bool {
        let Some(keys) = self.by_pattern.get_mut(&pattern) else { return false };
        if !keys.get(&key).is_some_and(|difference| by.explains(difference, noise)) {
            return false;
        }
        keys.remove(&key);
        let is_last = keys.iter().all(|(key, left)| *key == FURTHER_KEYS && !left.was_searched);
        if is_last {
            self.by_pattern.remove(&pattern);
        }
        is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use page_comparison::{
        Circumstances, Inquiry, PageDependence, PageSample, PageTokens, TokenSecret, differing,
    };

    const WRONG: Explanation<'static> = Explanation::Page;

    fn at(places: &[u64]) -> UnexplainedDifference {
        UnexplainedDifference { places: Some(places.to_vec()), was_searched: false }
    }

    fn searched(places: &[u64]) -> UnexplainedDifference {
        UnexplainedDifference { was_searched: true, ..at(places) }
    }

    /// Whether a key with these differences is explained.
    fn is_explained(differences: &[UnexplainedDifference], by: Explanation<'_>) -> bool {
        let mut all = UnexplainedDifferences::default();
        differences.iter().for_each(|one| all.add((1, 7), one.clone()));
        all.explain((1, 7), (by, &PageNoise::default()))
    }

    #[test]
    fn an_equal_answer_and_the_part_of_another_visitor_explain_no_difference_beside_them() {
        let dnt = [4, 5];
        let of_visitor = Explanation::Visitor(&dnt);
        for (difference, is_by_dnt) in [
            (at(&[4, 5]), true),
            (at(&[5]), true),
            (at(&[5, 6]), false),
            (searched(&[5]), false),
            (UnexplainedDifference { places: None, was_searched: false }, false),
        ] {
            let all = [difference];
            assert_eq!(is_explained(&all, of_visitor), is_by_dnt, "{all:?}");
            assert!(!is_explained(&all, Explanation::Noise), "{all:?}");
            assert!(is_explained(&all, WRONG), "{all:?}");
        }
        assert!(is_explained(&[at(&[5]), at(&[4])], of_visitor));
        assert!(!is_explained(&[at(&[5]), at(&[6])], of_visitor), "two visitors");
        assert!(!is_explained(&[at(&[5]), searched(&[5])], of_visitor));
        let many: Vec<u64> = (0..=PLACES_MAX as u64).collect();
        let (some, others) = many.split_at(2);
        let of_many = Explanation::Visitor(&many);
        assert!(is_explained(&[at(some), at(some)], of_many));
        assert!(!is_explained(&[at(some), at(others)], of_many), "they are too many");
    }

    #[test]
    fn a_notice_about_one_visitor_is_no_difference_of_the_page() {
        use DifferenceClass::{Loses, Noise, RefusedButSame};
        let of_page = DifferenceClass::ALL.into_iter().filter(|class| !is_of_page(*class));
        assert_eq!(of_page.collect::<Vec<_>>(), [Loses, Noise, RefusedButSame]);
    }

    #[test]
    fn noise_explains_the_differences_that_have_nothing_beside_it() {
        let page = |nonce: &str| {
            let fields = [("content-type", &b"text/html"[..])];
            let content = format!("<p>more text beside it</p><input value={nonce}>");
            PageTokens::of(TokenSecret::of(1), 200, fields, content.as_bytes(), true)
        };
        let mut inquiry = Inquiry::new(page("qa"), 0);
        for (begun, nonce) in (1..).zip(["wb", "ec", "rd", "tf", "yg"]) {
            inquiry.add(PageSample { begun, tokens: page(nonce) });
        }
        let mut noise = PageNoise::default();
        inquiry.conclude(&mut noise, &Circumstances::of(PageDependence::LifetimeOnly));
        let nonce = places_of(&differing(&page("qa"), &page("uh"))).expect("it is one place");
        let both = [&nonce[..], &[4][..]].concat();
        for (difference, is_noise) in [
            (at(&nonce), true),
            (searched(&nonce), true),
            (at(&both), false),
            (UnexplainedDifference { places: None, was_searched: false }, false),
        ] {
            let mut all = UnexplainedDifferences::default();
            all.add((1, 7), difference);
            assert_eq!(all.explain((1, 7), (Explanation::Noise, &noise)), is_noise);
        }
    }

    #[test]
    fn a_pattern_is_explained_with_the_last_of_its_keys() {
        let (mut all, noise) = (UnexplainedDifferences::default(), PageNoise::default());
        all.add((1, 7), at(&[4]));
        all.add((1, 8), at(&[4]));
        assert!(!all.explain((1, 9), (WRONG, &noise)), "it was none");
        assert!(!all.explain((1, 7), (WRONG, &noise)) && all.explain((1, 8), (WRONG, &noise)));
        assert!(!all.explain((1, 8), (WRONG, &noise)));
        let last = KEYS_OF_PATTERN_MAX as u64;
        for (pattern, further) in [(2, at(&[4])), (3, searched(&[4]))] {
            (1..=last).for_each(|key| all.add((pattern, key), at(&[4])));
            (1..=last).for_each(|key| all.add((pattern, last + key), further.clone()));
            let keys = 1..=2 * last;
            let explained = keys.filter(|key| all.explain((pattern, *key), (WRONG, &noise)));
            let explained: Vec<u64> = explained.collect();
            let expected = if further.was_searched { vec![] } else { vec![last] };
            assert_eq!(explained, expected, "further keys end with the last, unless searched");
        }
    }

    #[test]
    fn the_differences_are_bounded() {
        let (mut all, noise) = (UnexplainedDifferences::default(), PageNoise::default());
        (0..3 * PATTERNS_MAX as u64).for_each(|pattern| all.add((pattern, 7), at(&[4])));
        assert_eq!(all.by_pattern.len(), PATTERNS_MAX);
        assert!(!all.is_empty() && UnexplainedDifferences::default().is_empty());
        let places = all.by_pattern.values().flat_map(HashMap::values);
        assert_eq!(places.filter(|one| one.places.is_some()).count(), KEYS_MAX);
        let last = PATTERNS_MAX as u64 - 1;
        assert!(all.explain((0, 7), (WRONG, &noise)) && !all.explain((last, 7), (WRONG, &noise)));
    }
}
