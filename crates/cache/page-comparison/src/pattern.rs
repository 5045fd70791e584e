//! Paths and URLs as they may be shown: patterns, and examples without values.
//!
//! A pattern is the literal path, with segments replaced that are numbers (`:n`), very long (`:long`) or look like a
//! secret (`:token`). Where one script has all pages of a site, the names of the parameters follow:
//! `/index.php?action=&title=`. There are at most 1,000 patterns; further paths count for `(other)`.

use std::collections::BTreeSet;

/// Patterns that are counted apart: a site with more sections than this has them in its paths as data.
const MAX_PATTERNS: usize = 1_000;
/// A longer segment is data: titles in slugs have up to 60 letters.
const MAX_SEGMENT: usize = 80;
/// Segments of a pattern; the rest is cut.
const MAX_SEGMENTS: usize = 12;
/// Parameters that an example names.
const MAX_PARAMETERS: usize = 12;
/// Parameters that a pattern names: applications choose the page by fewer.
const MAX_NAMED: usize = 4;
/// Stands for more parameters than these.
const MANY: &str = "…";
/// The script that has all pages of a site. At the top of a site it may be left out.
const FRONT_CONTROLLER: &str = "/index.php";
/// The pattern of all paths beyond the bound.
pub const OTHER_PATHS: &str = "(other)";

/// The pattern of a path with its query. A pattern is the pattern of itself.
pub fn path_pattern(path_and_query: &str) -> String {
    let whole = path_and_query.split('#').next().unwrap_or_default();
    let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
    let mut segments = path.split('/').skip(usize::from(path.starts_with('/')));
    let mut pattern = String::new();
    for segment in segments.by_ref().take(MAX_SEGMENTS) {
        pattern.push('/');
        pattern.push_str(&shown_segment(segment));
    }
    if segments.next().is_some() {
        pattern.push_str("/…");
    }
    if path == "/" || path.ends_with(FRONT_CONTROLLER) {
        pattern.push_str(&named_parameters(query));
    }
    pattern
}

/// The names of the parameters in a query, in one order and without their values; nothing without parameters.
fn named_parameters(query: &str) -> String {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let names: BTreeSet<String> = pairs.map(|pair| parameter_name(pair) + "=").collect();
    match names.len() {
        0 => String::new(),
        1..=MAX_NAMED if query != MANY => {
            format!("?{}", names.into_iter().collect::<Vec<_>>().join("&"))
        }
        _ => format!("?{MANY}"),
    }
}

fn shown_segment(segment: &str) -> String {
    if !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit()) {
        return ":n".into();
    }
    if segment.len() > MAX_SEGMENT {
        return ":long".into();
    }
    if is_token_like(segment) {
        return ":token".into();
    }
    segment.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// A URL as an example: its path without what looks like a secret, its parameters without values. Numbers in the path
/// stay, so that the page can be found.
pub fn example_url(path_and_query: &str) -> String {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let is_number =
        |segment: &str| segment.len() <= 12 && segment.bytes().all(|byte| byte.is_ascii_digit());
    let shown = |segment: &str| {
        if is_number(segment) { segment.to_owned() } else { shown_segment(segment) }
    };
    let mut url = path.split('/').take(MAX_SEGMENTS).map(shown).collect::<Vec<_>>().join("/");
    let names = query.split('&').filter(|pair| !pair.is_empty()).take(MAX_PARAMETERS);
    let names: Vec<String> = names.map(|pair| parameter_name(pair) + "=").collect();
    if !names.is_empty() {
        url = format!("{url}?{}", names.join("&"));
    }
    url
}

/// The name of a parameter, if it is a name and not a value without one.
pub(crate) fn parameter_name(pair: &str) -> String {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let has_value = pair.contains('=') && !value.is_empty();
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-[].%".contains(&byte));
    // `?alice` may be a value; so may `?8f3a…=`.
    let is_shown =
        is_plain && name.len() <= 40 && !is_token_like(name) && (has_value || pair.ends_with('='));
    if is_shown { name.to_owned() } else { "*".into() }
}

/// Whether a text looks like a secret or like personal data rather than like a name: an address with `@`, hexadecimal
/// digits, digits among letters, or a very long word. In doubt it does.
pub fn is_token_like(text: &str) -> bool {
    if text.contains('@') || text.to_ascii_lowercase().contains("%40") {
        return true;
    }
    text.split(|letter: char| !letter.is_alphanumeric()).any(|word| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
        let is_hex = word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let turns = word
            .as_bytes()
            .windows(2)
            .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
        let is_mixed = word.bytes().any(|byte| byte.is_ascii_uppercase())
            && word.bytes().any(|byte| byte.is_ascii_lowercase());
        let many_turns = turns.count() >= 2;
        word.len() > 28
            || (is_hex && word.len() >= 8 && digits > 0 && letters > 0)
            || (word.len() >= 8 && digits > 0 && letters > 0 && many_turns)
            || (word.len() >= 10 && digits > 0 && letters > 0 && is_mixed)
            || (digits >= 13 && letters == 0)
    })
}

/// The patterns that a record counts apart.
#[derive(Clone, Debug, Default)]
pub struct PathPatterns {
    known: BTreeSet<String>,
}

impl PathPatterns {
    /// The pattern of a path, which is counted apart from now on; [`OTHER_PATHS`] if there are too many.
    pub fn of(&mut self, path: &str) -> String {
        let pattern = self.known(path);
        if pattern != OTHER_PATHS {
            self.known.insert(pattern.clone());
        }
        pattern
    }

    /// The same for a path for which nothing is counted: its pattern takes no room.
    pub fn known(&self, path: &str) -> String {
        let pattern = path_pattern(path);
        let has_room = self.known.len() < MAX_PATTERNS || self.known.contains(&pattern);
        if has_room { pattern } else { OTHER_PATHS.into() }
    }

    /// The memory of the patterns, in bytes.
    pub fn bytes(&self) -> usize {
        self.known.iter().map(|pattern| size_of::<String>() + pattern.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn segments_that_are_data_are_replaced() {
        for (path, pattern) in [
            ("/", "/"),
            ("/news/42", "/news/:n"),
            ("/news/42/", "/news/:n/"),
            ("/top-10-reasons-to-visit-paris", "/top-10-reasons-to-visit-paris"),
            ("/2024/05/caf%C3%A9", "/:n/:n/caf%C3%A9"),
            ("/reset/8f3a9c2b77d1", "/reset/:token"),
            ("/u/alice@example.com", "/u/:token"),
            ("/dl/Zm9vYmFyMTIzNDU2", "/dl/:token"),
            ("/wp-content/style", "/wp-content/style"),
        ] {
            assert_eq!(path_pattern(path), pattern);
        }
        assert_eq!(path_pattern(&format!("/{}", "a".repeat(200))), "/:long");
    }

    #[test]
    fn pages_of_one_script_are_told_apart_by_the_names_of_their_parameters() {
        for (path, pattern) in [
            ("/index.php", "/index.php"),
            ("/index.php?title=Ferry", "/index.php?title="),
            ("/index.php?title=Ferry&action=history", "/index.php?action=&title="),
            ("/wiki/index.php?action=raw&title=A&title=B", "/wiki/index.php?action=&title="),
            ("/index.php/Ferry?action=history", "/index.php/Ferry"),
            ("/?p=12", "/?p="),
            ("/?alice&8f3a9c2b77d1=x", "/?*="),
            ("/?", "/"),
            ("/?a=1&b=1&c=1&d=1&e=1&f=1", "/?…"),
            ("/shop/?orderby=price", "/shop/"),
            ("/news.php?id=4", "/news.php"),
        ] {
            assert_eq!(path_pattern(path), pattern);
            assert_eq!(path_pattern(pattern), pattern);
        }
    }

    #[test]
    fn an_example_has_no_values() {
        assert_eq!(
            example_url("/p/7?utm_source=mail&q=alice&8f3a9c2b77d1&bob"),
            "/p/7?utm_source=&q=&*=&*="
        );
        assert_eq!(example_url("/reset/8f3a9c2b77d1"), "/reset/:token");
        assert_eq!(example_url("/p"), "/p");
    }

    #[test]
    fn the_number_of_patterns_is_bounded() {
        let mut patterns = PathPatterns::default();
        let letter = |digit: u8| char::from(digit - b'0' + b'a');
        let path = |n: usize| format!("/{}", n.to_string().bytes().map(letter).collect::<String>());
        assert!((0..1_100).all(|n| patterns.known(&path(n)) == path(n)), "none takes room");
        let all: BTreeSet<String> = (0..1_100).map(|n| patterns.of(&path(n))).collect();
        assert!(all.len() <= MAX_PATTERNS + 1 && all.contains(OTHER_PATHS));
        assert_eq!((patterns.of(&path(0)), patterns.known(&path(0))), (path(0), path(0)));
        assert_eq!(patterns.known(&path(1_050)), OTHER_PATHS);
    }

    proptest! {
        #[test]
        fn no_value_of_a_parameter_is_shown(value in "[a-z]{6,12}") {
            let url = example_url(&format!("/search?qq={value}&page={value}"));
            prop_assert!(!url.contains(&value));
        }

        #[test]
        fn every_text_has_a_bounded_pattern(path in ".{0,400}") {
            let longest = MAX_SEGMENTS * (MAX_SEGMENT + 1) + MAX_NAMED * 42 + 8;
            prop_assert!(path_pattern(&path).len() <= longest);
            example_url(&path);
        }
    }
}
