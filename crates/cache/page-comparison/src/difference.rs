//! The difference of two responses: the places at which tokens were removed or added.
//!
//! A diff aligns the tokens, so that an element more or less does not make all that follows differ. It depends on
//! nothing but the two lists of hashes.

use crate::tokens::{END, PageTokens};
use imara_diff::{Algorithm, Diff, Token};
use std::collections::{BTreeSet, HashMap};

/// Differing tokens that are looked at one by one; with more, the pages have little in common.
pub(crate) const MAX_DIFFERING: usize = 4_096;

/// A token in only one of two responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DifferingToken {
    /// Its place and its number among the words there.
    pub(crate) spot: u64,
    /// The hash of its text.
    pub(crate) value: u64,
    /// Its index among the tokens of its response.
    pub(crate) index: u32,
    /// Whether the second response has it.
    pub(crate) is_added: bool,
}

/// In what two responses differ.
#[derive(Clone, Debug, Default)]
pub struct PageDifference {
    pub(crate) tokens: Vec<DifferingToken>,
    /// The tokens that both have, as a share of the larger response, in percent.
    pub(crate) common_percent: u8,
}

impl PageDifference {
    /// Whether the two responses are equal in all places.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The places of the difference as numbers, each once.
    pub fn spots(&self) -> Vec<u64> {
        let spots: BTreeSet<u64> = self.tokens.iter().map(|token| token.spot).collect();
        spots.into_iter().collect()
    }

    /// Whether the two responses differ at one of these places.
    pub fn is_at(&self, spots: &[u64]) -> bool {
        self.tokens.iter().any(|token| spots.contains(&token.spot))
    }

    /// Whether it has content that is compared by its hash: nothing says in what that differs.
    pub fn has_whole_content(&self, first: &PageTokens, second: &PageTokens) -> bool {
        self.tokens.iter().any(|token| {
            let of = if token.is_added { second } else { first };
            of.whole_content() == Some(token.index)
        })
    }

    /// The part of the difference at places at which another one has none.
    pub fn without(&self, other: &PageDifference) -> PageDifference {
        let spots: BTreeSet<u64> = other.tokens.iter().map(|token| token.spot).collect();
        let tokens = self.tokens.iter().filter(|token| !spots.contains(&token.spot));
        PageDifference { tokens: tokens.copied().collect(), ..*self }
    }

    /// The part of the difference at these places.
    pub fn at(&self, spots: &[u64]) -> PageDifference {
        let tokens = self.tokens.iter().filter(|token| spots.contains(&token.spot));
        PageDifference { tokens: tokens.copied().collect(), ..*self }
    }

    /// The places of the difference as they are shown: at most `most`, without any text of the responses.
    pub fn places(&self, first: &PageTokens, second: &PageTokens, most: usize) -> Vec<String> {
        self.places_by(most, |index, is_added| {
            path(if is_added { second } else { first }, index, None)
        })
    }

    /// The same for a page and a visitor's answer. Names of JSON members that only the answer has may be data, such as
    /// names of users: they are shown as `*`.
    pub fn places_of_visitor(
        &self,
        page: &PageTokens,
        answer: &PageTokens,
        most: usize,
    ) -> Vec<String> {
        self.places_by(most, |index, is_added| {
            if is_added { path(answer, index, Some(page)) } else { path(page, index, None) }
        })
    }

    fn places_by(&self, most: usize, path: impl Fn(u32, bool) -> String) -> Vec<String> {
        let mut shown: Vec<String> = Vec::new();
        for token in &self.tokens {
            let path = path(token.index, token.is_added);
            if !shown.contains(&path) {
                shown.push(path);
            }
            if shown.len() >= most {
                break;
            }
        }
        shown
    }
}

impl PageDifference {
    /// Whether it has text that a visitor of an HTML page reads: no attribute, script, style, comment or field.
    pub(crate) fn has_read_text(&self, first: &PageTokens, second: &PageTokens) -> bool {
        self.tokens.iter().any(|token| {
            let of = if token.is_added { second } else { first };
            let token = of.tokens[token.index as usize];
            !matches!(token.word, 0 | END) && of.places.is_read(token.place)
        })
    }

    /// Whether all of it is in scripts and other elements of HTML that are not shown, or in the data attributes of an
    /// element that has a time and its signature there.
    pub(crate) fn is_hidden(&self, first: &PageTokens, second: &PageTokens) -> bool {
        let of = |token: &DifferingToken| if token.is_added { second } else { first };
        let place = |token: &DifferingToken| of(token).tokens[token.index as usize].place;
        let element = |token: &DifferingToken| of(token).places.element_of_data(place(token));
        let mut signed = BTreeSet::new();
        for token in &self.tokens {
            if of(token).number(token.index).is_none() {
                signed.extend(element(token));
            }
        }
        let is_hidden = |token: &DifferingToken| {
            of(token).places.is_hidden(place(token))
                || element(token).is_some_and(|element| signed.contains(&element))
        };
        !self.is_empty() && self.tokens.iter().all(is_hidden)
    }
}

/// The place of a token as it is shown, with the number of its word. `known`: the response whose member names are shown.
fn path(tokens: &PageTokens, index: u32, known: Option<&PageTokens>) -> String {
    let token = tokens.tokens[index as usize];
    let path = tokens.places.path(token.place, known.map(|known| &known.places));
    if matches!(token.word, 0 | END) { path } else { format!("{path}, word {}", token.word) }
}

/// The place of a token and the number of its word as one number, the same in every response.
pub(crate) fn spot(tokens: &PageTokens, index: u32) -> u64 {
    let token = tokens.tokens[index as usize];
    spot_of_word(tokens, token.place, token.word)
}

/// The same of a word, and of those up to `most` words before and after it in the same place.
pub(crate) fn spots_beside(
    tokens: &PageTokens,
    index: u32,
    most: u32,
) -> impl Iterator<Item = u64> {
    let token = tokens.tokens[index as usize];
    let words = token.word.saturating_sub(most).max(1)..=token.word.saturating_add(most);
    words.map(move |word| spot_of_word(tokens, token.place, word))
}

fn spot_of_word(tokens: &PageTokens, place: u32, word: u32) -> u64 {
    tokens.places.hash(place) ^ u64::from(word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The values of a response at some places, as hashes: to see later whether they are the same.
pub fn values_at(tokens: &PageTokens, spots: &[u64]) -> Vec<u64> {
    let spots: BTreeSet<u64> = spots.iter().copied().collect();
    let indices = 0..tokens.tokens.len() as u32;
    let chosen = indices.filter(|index| spots.contains(&spot(tokens, *index)));
    chosen.map(|index| tokens.tokens[index as usize].value).collect()
}

/// Compares two responses token by token.
pub fn differing(first: &PageTokens, second: &PageTokens) -> PageDifference {
    if first.is_same(second) {
        return PageDifference { tokens: Vec::new(), common_percent: 100 };
    }
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut interned = |tokens: &PageTokens| -> Vec<Token> {
        let number = |value: u64| {
            let next = numbers.len() as u32;
            Token(*numbers.entry(value).or_insert(next))
        };
        tokens.tokens.iter().map(|token| token.value).map(number).collect()
    };
    let (before, after) = (interned(first), interned(second));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Histogram, &before, &after, numbers.len() as u32);
    let mut tokens = Vec::new();
    let mut equal = 0_usize;
    let mut at = |of: &PageTokens, index: usize, is_added: bool| {
        let index = index as u32;
        let value = of.tokens[index as usize].value;
        if tokens.len() < MAX_DIFFERING {
            tokens.push(DifferingToken { spot: spot(of, index), value, index, is_added });
        }
    };
    for index in 0..before.len() {
        if diff.is_removed(index as u32) { at(first, index, false) } else { equal += 1 }
    }
    (0..after.len())
        .filter(|index| diff.is_added(*index as u32))
        .for_each(|index| at(second, index, true));
    let larger = before.len().max(after.len()).max(1);
    PageDifference { tokens, common_percent: (equal * 100 / larger) as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::TokenSecret;
    use proptest::prelude::*;

    fn page(content: &str) -> PageTokens {
        let fields = [("content-type", &b"text/html"[..])];
        PageTokens::of(TokenSecret::of(1), 200, fields, content.as_bytes(), true)
    }

    #[test]
    fn one_element_more_is_one_difference() {
        let (a, b) = (
            page("<body><h1>News</h1><p>One</p><p>Two</p>"),
            page("<body><h1>News</h1><div class=banner>Buy</div><p>One</p><p>Two</p>"),
        );
        let difference = differing(&a, &b);
        assert_eq!(
            difference.places(&a, &b, 9),
            ["body > div", "body > div[class]", "body > div[class], word 1", "body > div, word 1"]
        );
        assert!(difference.common_percent > 50);
        assert!(differing(&a, &a).is_empty());
    }

    #[test]
    fn the_place_of_a_word_and_of_an_attribute_is_shown_and_no_text() {
        let of = |token: &str, name: &str| {
            page(&format!("<form><input type=hidden value='{token}'></form><p>Hello {name}!</p>"))
        };
        let (a, b) = (of("s3cr3t", "Alice"), of("0th3r", "Bob"));
        let places = differing(&a, &b).places(&a, &b, 9);
        assert_eq!(places, ["form > input[value], word 1", "p, word 2"]);
    }

    #[test]
    fn a_member_of_a_visitors_answer_is_named_only_if_the_page_has_it() {
        let of = |content: &str| {
            let fields = [("content-type", &b"application/json"[..])];
            PageTokens::of(TokenSecret::of(1), 200, fields, content.as_bytes(), false)
        };
        let page = of(r#"{"users": {"bob": 1}}"#);
        let answer = of(r#"{"users": {"alice": {"bob": 2}}}"#);
        let difference = differing(&page, &answer);
        let places = difference.places_of_visitor(&page, &answer, 9).join("; ");
        assert!(places.contains("json > users > *") && !places.contains("alice"), "{places}");
        assert!(difference.places(&page, &answer, 9).join("; ").contains("alice"));
    }

    #[test]
    fn content_that_is_compared_by_hash_is_told_from_a_field() {
        let of = |kind: &str, id: &str, content: &str| {
            let fields = [("content-type", kind.as_bytes()), ("x-request-id", id.as_bytes())];
            PageTokens::of(TokenSecret::of(1), 200, fields, content.as_bytes(), true)
        };
        let has_whole = |kind: &str, first: (&str, &str), second: (&str, &str)| {
            let (first, second) = (of(kind, first.0, first.1), of(kind, second.0, second.1));
            differing(&first, &second).has_whole_content(&first, &second)
        };
        assert!(has_whole("application/pdf", ("a", "one"), ("b", "two")));
        assert!(!has_whole("application/pdf", ("a", "one"), ("b", "one")));
        assert!(!has_whole("text/html", ("a", "one"), ("b", "two")));
    }

    #[test]
    fn a_part_of_a_difference_is_chosen_by_its_places() {
        let page = |one: &str, other: &str| page(&format!("<h1>{one}</h1><p>{other}</p>"));
        let (a, b) = (page("1", "x"), page("2", "y"));
        let (both, restless) = (differing(&a, &b), differing(&a, &page("3", "x")));
        let rest = both.without(&restless);
        assert_eq!(rest.places(&a, &b, 9), ["p, word 1"]);
        assert!(rest.without(&both).is_empty());
        let spots = restless.spots();
        assert_eq!((spots.len(), both.spots().len()), (1, 2), "removed and added");
        assert_eq!(both.at(&spots).places(&a, &b, 9), ["h1, word 1"]);
    }

    proptest! {
        #[test]
        fn pages_differ_exactly_if_their_words_do(a in "[ab ]{0,30}", b in "[ab ]{0,30}") {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let difference = differing(&page(&a), &page(&b));
            prop_assert_eq!(difference.is_empty(), words(&a) == words(&b));
        }
    }
}
