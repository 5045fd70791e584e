//! Patterns: `*` matches any text within a path segment, `**` matches any text.
//!
//! A pattern is matched in one pass over the text, whatever its wildcards: the set of positions reached in
//! the pattern is a bit set in one integer. No text can therefore make matching slow. A pattern has at most
//! 127 characters apart from its wildcards.

use std::fmt;

/// Whether matching is case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Kept,
    Ignored,
}

/// The text that a single `*` matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Star {
    /// Any text without `/`: for path patterns.
    Segment,
    /// Any text: for patterns of names and values.
    Anything,
}

/// A pattern.
#[derive(Clone)]
pub(crate) struct Glob {
    written: Box<str>,
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    /// Without a wildcard.
    Exact(Case),
    /// With one wildcard at the end that matches any text.
    Prefix(Case),
    Any(Box<Places>),
}

/// Sets of positions. Bit `n` means that the first `n` characters of the pattern were matched.
#[derive(Clone)]
struct Places {
    /// For each byte, the positions from which it leads to the next.
    steps: [u128; 256],
    /// The positions before a wildcard that matches any text.
    anything: u128,
    /// The positions before a wildcard that does not match `/`.
    segment: u128,
    last: u128,
}

impl Glob {
    /// Reads a pattern; the error is a message for the operator.
    pub(crate) fn read(written: &str, star: Star, case: Case) -> Result<Glob, String> {
        let stars = written.matches('*').count();
        let length = written.len() - stars;
        if length > 127 {
            return Err(format!("{written:?} is too long for a pattern: 127 characters at most"));
        }
        let shape = match (stars, star) {
            (0, _) => Shape::Exact(case),
            (1, Star::Anything) if written.ends_with('*') => Shape::Prefix(case),
            _ => Shape::Any(Box::new(Places::of(written.as_bytes(), star, case))),
        };
        Ok(Glob { written: written.into(), shape })
    }

    /// Whether the pattern matches the whole text.
    pub(crate) fn fits(&self, text: &[u8]) -> bool {
        let written = self.written.as_bytes();
        match &self.shape {
            Shape::Exact(case) => same(written, text, *case),
            Shape::Prefix(case) => {
                let start = &written[..written.len() - 1];
                text.get(..start.len()).is_some_and(|text| same(start, text, *case))
            }
            Shape::Any(places) => places.fit(text),
        }
    }

    /// The pattern of a path as a regular expression whose wildcards capture.
    pub(crate) fn capturing(&self) -> String {
        let (mut regex, mut rest) = (String::from("^"), self.as_str());
        while let Some(at) = rest.find('*') {
            regex.push_str(&regex::escape(&rest[..at]));
            let stars = rest[at..].bytes().take_while(|byte| *byte == b'*').count();
            regex.push_str(if stars > 1 { "(.*)" } else { "([^/]*)" });
            rest = &rest[at + stars..];
        }
        regex + &regex::escape(rest) + "$"
    }

    /// The pattern as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

fn same(one: &[u8], other: &[u8], case: Case) -> bool {
    match case {
        Case::Kept => one == other,
        Case::Ignored => one.eq_ignore_ascii_case(other),
    }
}

impl Places {
    fn of(written: &[u8], star: Star, case: Case) -> Places {
        let mut places = Places { steps: [0; 256], anything: 0, segment: 0, last: 0 };
        let mut place = 0;
        let mut rest = written;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                b'*' if behind.first() == Some(&b'*') || star == Star::Anything => {
                    places.anything |= 1 << place;
                }
                b'*' => places.segment |= 1 << place,
                byte => {
                    places.steps[usize::from(*byte)] |= 1 << place;
                    if case == Case::Ignored {
                        places.steps[usize::from(byte.to_ascii_uppercase())] |= 1 << place;
                        places.steps[usize::from(byte.to_ascii_lowercase())] |= 1 << place;
                    }
                    place += 1;
                }
            }
        }
        places.last = 1 << place;
        places
    }

    fn fit(&self, text: &[u8]) -> bool {
        let mut reached: u128 = 1;
        for byte in text {
            let stay = if *byte == b'/' { self.anything } else { self.anything | self.segment };
            reached = ((reached & self.steps[usize::from(*byte)]) << 1) | (reached & stay);
            if reached == 0 {
                return false;
            }
        }
        reached & self.last != 0
    }
}

/// A list of patterns: a text must match one of them, and none of those written with `!`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Globs {
    pub(crate) any: Vec<Glob>,
    pub(crate) none: Vec<Glob>,
}

impl Globs {
    pub(crate) fn read(words: &[String], star: Star, case: Case) -> Result<Globs, String> {
        let mut globs = Globs::default();
        for word in words {
            match word.strip_prefix('!') {
                Some(word) => globs.none.push(Glob::read(word, star, case)?),
                None => globs.any.push(Glob::read(word, star, case)?),
            }
        }
        Ok(globs)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    pub(crate) fn fit(&self, text: &[u8]) -> bool {
        (self.any.is_empty() || self.any.iter().any(|glob| glob.fits(text)))
            && !self.none.iter().any(|glob| glob.fits(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fits(pattern: &str, text: &str) -> bool {
        Glob::read(pattern, Star::Segment, Case::Kept).unwrap().fits(text.as_bytes())
    }

    #[test]
    fn stars_within_and_across_segments() {
        for (pattern, text, right) in [
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/", true),
            ("/a/*", "/a/b/c", false),
            ("/a/**", "/a/b/c", true),
            ("/a/**", "/a", false),
            ("/a**", "/a", true),
            ("/**/edit", "/x/y/edit", true),
            ("/**/edit", "/x/y/edits", false),
            ("/*/c/**z", "/b/c/x/yz", true),
            ("/*/c/**z", "/a/b/c/z", false),
            ("**.php", "/x/y.php", true),
            ("**", "", true),
        ] {
            assert_eq!(fits(pattern, text), right, "{pattern} {text}");
        }
    }

    #[test]
    fn names_in_any_case_and_exceptions() {
        let words = ["wp-*".to_owned(), "*sess*".to_owned(), "!wp-ok".to_owned()];
        let globs = Globs::read(&words, Star::Anything, Case::Ignored).unwrap();
        assert!(globs.fit(b"WP-x/y") && globs.fit(b"MySession") && !globs.fit(b"wp-ok"));
        assert!(!globs.fit(b"other"));
        let only_not = Globs::read(&words[2..], Star::Anything, Case::Ignored).unwrap();
        assert!(only_not.fit(b"other") && !only_not.fit(b"WP-OK"));
    }

    #[test]
    fn long_patterns_are_refused_and_the_longest_work() {
        assert!(Glob::read(&"a".repeat(128), Star::Segment, Case::Kept).is_err());
        let most = format!("{}**", "a".repeat(127));
        assert!(fits(&most, &"a".repeat(130)) && !fits(&most, &"a".repeat(126)));
    }

    /// A simple recursive matcher for short texts, as the reference.
    fn plain(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| plain(rest, &text[at..])),
            [b'*', rest @ ..] => (0..=text.len())
                .take_while(|at| !text[..*at].contains(&b'/'))
                .any(|at| plain(rest, &text[at..])),
            [first, rest @ ..] => text.first() == Some(first) && plain(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_capturing_pattern_matches_the_same(pattern in "[ab/*.]{0,7}", text in "[ab/.]{0,8}") {
            let glob = Glob::read(&pattern, Star::Segment, Case::Kept).unwrap();
            let capturing = crate::regexes::pattern(&glob.capturing()).unwrap();
            prop_assert_eq!(glob.fits(text.as_bytes()), capturing.is_match(text.as_bytes()));
        }

        #[test]
        fn as_defined(pattern in "[ab/*]{0,7}", text in "[ab/]{0,8}") {
            prop_assert_eq!(fits(&pattern, &text), plain(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
