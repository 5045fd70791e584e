//! The words of a response at the places of a difference, for an operator who asks for them.
//!
//! Tokens have no text, so the response is cut into tokens once more, and the wanted ones are kept. Names of elements,
//! attributes, fields and members are no words. A text that has a value of the URL's query is not shown: it may be what a
//! visitor has searched for. Which responses may be shown is not decided here.

use crate::cause::decoded;
use crate::difference::PageDifference;
use crate::kept_words::KeptWords;
use crate::tokens::{END, PageTokens, TokenSecret, TokenWriter, write_response};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The longest text that is shown, in characters.
const SHOWN_CHARS: usize = 200;
/// Numbers with as many digits are written with separators in some languages.
const SEPARATED_DIGITS: usize = 4;

/// The words in which a stored page and a render differ, as far as they may be shown; at most 200 characters each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingText {
    /// The words of the stored page.
    pub stored: Option<String>,
    /// The words of a render for a visitor of whom nothing is known.
    pub render: Option<String>,
}

impl DifferingText {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.stored.is_none() && self.render.is_none()
    }

    /// The memory of the text, in bytes.
    pub fn bytes(&self) -> usize {
        let texts = [&self.stored, &self.render].into_iter().flatten();
        size_of::<DifferingText>() + texts.map(String::len).sum::<usize>()
    }
}

/// The words that only one of two responses has, with control characters escaped; none if there are none, if content is
/// compared by its hash, or if a word is a value in the query of `page`, its path and query. `is_added`: the words of the
/// second response; `tokens` are those of this response, made of the same status, header lines and content.
pub fn differing_words<'a>(
    difference: &PageDifference,
    is_added: bool,
    (tokens, page): (&PageTokens, &str),
    (status, fields, content): (u16, impl IntoIterator<Item = (&'a str, &'a [u8])>, &[u8]),
) -> Option<String> {
    if tokens.is_by_hash {
        return None;
    }
    let is_word = |index: &u32| !matches!(tokens.tokens[*index as usize].word, 0 | END);
    let differing = difference.tokens.iter().filter(|token| token.is_added == is_added);
    let wanted: BTreeSet<u32> = differing.map(|token| token.index).filter(is_word).collect();
    let mut writer = TokenWriter::new(TokenSecret::of(0), false);
    writer.kept = Some(KeptWords::of(wanted));
    let is_cut = write_response(&mut writer, status, fields, content);
    let text = writer.kept.take().filter(|_| !is_cut)?.text();
    (!text.is_empty() && !has_value_of(&text, page)).then(|| shown(&text))
}

/// Whether a word of a text is a word of a value in a query, or one of them has the other: some scripts have no spaces.
/// Numbers are compared without separators, too.
fn has_value_of(text: &str, page: &str) -> bool {
    let text = text.to_lowercase();
    let (shown, joined) = (words_of(&text), words_of(&text).concat());
    let is_shown = |word: &str| shown.iter().any(|other| are_alike(word, other));
    let is_number = |word: &str| {
        let is_long = word.len() >= SEPARATED_DIGITS;
        is_long && word.bytes().all(|byte| byte.is_ascii_digit()) && joined.contains(word)
    };
    let query = page.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| {
        let value = decoded(pair.split_once('=').map_or(pair, |(_, value)| value)).to_lowercase();
        let words = words_of(&value);
        words.iter().any(|word| is_shown(word) || is_number(word)) || is_number(&words.concat())
    })
}

fn words_of(text: &str) -> Vec<&str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).collect()
}

/// Whether two words are equal; with letters beyond ASCII, whether one has the other.
fn are_alike(one: &str, other: &str) -> bool {
    let are_ascii = one.is_ascii() && other.is_ascii();
    one == other || !are_ascii && (one.contains(other) || other.contains(one))
}

/// A text as it is shown: cut, and without characters that change what a terminal shows.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(SHOWN_CHARS) {
        if letter.is_control() || is_invisible(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    if text.chars().count() > SHOWN_CHARS {
        shown.push('…');
    }
    shown
}

/// Whether a character has no form of its own, or changes the direction of others (Unicode, category Cf, and the ends of
/// lines).
fn is_invisible(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::differing;
    use proptest::prelude::*;

    const HTML: [(&str, &[u8]); 1] = [("content-type", b"text/html")];

    fn tokens(content: &str) -> PageTokens {
        PageTokens::of(TokenSecret::of(9), 200, HTML, content.as_bytes(), true)
    }

    /// The words of two pages that differ.
    fn words(first: &str, second: &str, page: &str) -> (Option<String>, Option<String>) {
        let (a, b) = (tokens(first), tokens(second));
        let difference = differing(&a, &b);
        let of = |is_added, tokens, content: &str| {
            differing_words(&difference, is_added, (tokens, page), (200, HTML, content.as_bytes()))
        };
        (of(false, &a, first), of(true, &b, second))
    }

    fn both(first: &str, second: &str) -> (Option<String>, Option<String>) {
        (Some(first.into()), Some(second.into()))
    }

    #[test]
    fn the_differing_words_are_shown_as_they_are_written() {
        let page = |text: &str| format!("<body class=x><h1>News</h1><p>{text}</p><p>for all</p>");
        let of = |a: &str, b: &str| words(&page(a), &page(b), "/a");
        assert_eq!(of("old", "new"), both("old", "new"));
        assert_eq!(
            of("on 2026-11-28 at sea", "on 2027-10-29 at sea"),
            both("2026-11-28", "2027-10-29")
        );
        assert_eq!(of("10 of 12 left", "9 of 11 left"), both("10 … 12", "9 … 11"));
        assert_eq!(of("one", "one two three"), (None, Some("two three".into())));
        assert_eq!(of("<i>a</i>", "<b>a</b>"), (None, None), "names of elements are no words");
        assert_eq!(of("a", "a"), (None, None));
    }

    #[test]
    fn a_text_is_cut_and_control_characters_are_escaped() {
        let long = "word ".repeat(500);
        let (_, shown) = words("<p>", &format!("<p>{long}"), "/");
        let shown = shown.expect("words");
        assert!(shown.chars().count() == SHOWN_CHARS + 1 && shown.ends_with('…'), "{shown}");
        let (_, shown) = words("<p>", "<p>\u{1b}[2Jred\u{202e}\u{7f}é", "/");
        assert_eq!(shown.as_deref(), Some("\\u{1b}[2Jred\\u{202e}\\u{7f}é"));
    }

    #[test]
    fn a_text_with_a_value_of_the_query_is_not_shown() {
        for page in ["/?q=alice", "/?a=1&q=Alice+Smith", "/?q=%61lice", "/?alice"] {
            assert_eq!(words("<p>no", "<p>Results for alice", page), (Some("no".into()), None));
        }
        assert_eq!(words("<p>no", "<p>malice", "/?q=alice"), both("no", "malice"));
        for (text, page) in [
            ("東京の検索結果", "/?q=%E6%9D%B1%E4%BA%AC"),
            ("東京", "/?q=東京タワー"),
            ("Tokyoの検索結果", "/?q=tokyo"),
            ("Suche nach MÜLLER", "/?q=müller"),
            ("1,234 of 9", "/?n=1234"),
            ("CHF 1'234.50", "/?n=1234"),
            ("Nr. 1234", "/?n=1.234"),
        ] {
            let shown = words("<p>no", &format!("<p>{text}"), page);
            assert_eq!(shown, (Some("no".into()), None), "{text}");
        }
        assert_eq!(
            words("<p>no", "<p>大阪 1,235", "/?q=東京&n=1234&m=12"),
            both("no", "大阪 1,235")
        );
    }

    #[test]
    fn content_that_is_compared_by_its_hash_has_no_words() {
        let large = |letter: &str| format!("<p>{}", letter.repeat(crate::MAX_COMPARED_BYTES));
        assert_eq!(words(&large("a"), &large("b"), "/"), (None, None));
    }

    proptest! {
        #[test]
        fn every_text_is_bounded(a in ".{0,300}", b in ".{0,300}") {
            let (_, shown) = words(&a, &b, "/");
            prop_assert!(shown.unwrap_or_default().chars().count() <= 10 * SHOWN_CHARS + 1);
        }
    }
}
