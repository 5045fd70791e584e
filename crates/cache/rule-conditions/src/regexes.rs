//! Regular expressions for paths (`path_regex`): compared with the bytes of a path in linear time.
//!
//! Invariants: `.` matches every byte, so that a line feed or a byte that is no UTF-8 evades no pattern. A pattern
//! is anchored only as it is written, and its compiled form has at most 1 MiB. Each request is compared with all patterns,
//! so most comparisons are made without a search (`pattern_shapes`).
//!
//! Not here: globs (`glob`).

use crate::alternatives::lists_cover;
use crate::pattern_shapes::{PathEnds, RunBetween};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use std::fmt;

/// The maximum size of a compiled pattern in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// The maximum size of the memory that a search may use for its states, in bytes.
const STATES_BYTES_MAX: usize = 1 << 18;
/// The number of captures that a target can name: `$1` to `$9`.
const CAPTURES_MAX: usize = 9;

/// The texts of captures, `$1` first; empty where a pattern has none.
pub type CapturedTexts<'p> = [&'p [u8]; CAPTURES_MAX];

/// A pattern for paths.
#[derive(Clone)]
pub struct PathRegex {
    regex: Regex,
    ends: PathEnds,
    /// The whole pattern, if it is so simple.
    run: Option<RunBetween>,
}

impl PathRegex {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is no regular expression, or too large; the text is a message for the operator.
    pub fn read(written: &str) -> Result<PathRegex, String> {
        let regex = pattern(written)?;
        let mut parser = ParserBuilder::new();
        parser.unicode(false).utf8(false).dot_matches_new_line(true);
        let hir = parser.build().parse(written).ok();
        let ends = hir.as_ref().map(PathEnds::of).unwrap_or_default();
        Ok(PathRegex { regex, ends, run: hir.as_ref().and_then(RunBetween::of) })
    }

    /// Whether the pattern matches a path.
    #[inline]
    pub fn is_match(&self, path: &[u8]) -> bool {
        match &self.run {
            Some(run) => run.find(path).is_some(),
            None => self.ends.allow(path) && self.regex.is_match(path),
        }
    }

    /// The captures, if the pattern matches.
    pub fn captures<'p>(&self, path: &'p [u8]) -> Option<CapturedTexts<'p>> {
        let mut texts = CapturedTexts::default();
        if let Some(run) = &self.run {
            texts[0] = run.find(path)?;
            return Some(texts);
        }
        if !self.ends.allow(path) {
            return None;
        }
        let mut places = self.regex.capture_locations();
        self.regex.captures_read(&mut places, path)?;
        for (text, number) in texts.iter_mut().zip(1..places.len()) {
            if let Some((begin, end)) = places.get(number) {
                *text = &path[begin..end];
            }
        }
        Some(texts)
    }

    /// Whether this is the same pattern.
    fn is(&self, other: &PathRegex) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }

    /// The number of its captures.
    pub fn captures_count(&self) -> usize {
        self.regex.captures_len() - 1
    }
}

impl fmt::Debug for PathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.regex.fmt(f)
    }
}

/// A list of patterns: a path must match one of them, and none of those written with `!`.
#[derive(Clone, Debug, Default)]
pub struct Regexes {
    /// The patterns without `!`: one must match, if there are any.
    pub any: Vec<PathRegex>,
    /// The patterns written with `!`.
    pub none: Vec<PathRegex>,
}

impl Regexes {
    /// Reads the patterns; the error is a message for the operator.
    pub(crate) fn read(words: &[String]) -> Result<Regexes, String> {
        let mut all = Regexes::default();
        for word in words {
            match word.strip_prefix('!') {
                Some(word) => all.none.push(PathRegex::read(word)?),
                None => all.any.push(PathRegex::read(word)?),
            }
        }
        Ok(all)
    }

    /// Whether there are no patterns, so that every path fits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    /// Whether a path matches one of the patterns, and none of those written with `!`.
    #[inline]
    pub fn fit(&self, text: &[u8]) -> bool {
        (self.any.is_empty() || self.any.iter().any(|regex| regex.is_match(text)))
            && !self.exclude(text)
    }

    /// Whether all paths that fit `other` fit these: patterns are equal only if they are written alike.
    pub(crate) fn cover(&self, other: &Regexes) -> bool {
        lists_cover((&self.any, &self.none), (&other.any, &other.none), PathRegex::is)
    }

    /// Whether a pattern written with `!` matches.
    #[inline]
    pub fn exclude(&self, text: &[u8]) -> bool {
        self.none.iter().any(|regex| regex.is_match(text))
    }
}

/// Compiles a pattern; the error is a message for the operator.
pub(crate) fn pattern(written: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(written)
        .unicode(false)
        .dot_matches_new_line(true)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(STATES_BYTES_MAX)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            format!("{written:?} is too large: 1 MiB at most when it is compiled")
        }
        error => {
            let text = error.to_string();
            let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("{written:?}: {why}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(words: &[&str]) -> Result<Regexes, String> {
        Regexes::read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_byte_is_matched_and_patterns_are_bounded() {
        let admin = read(&["^/admin.*$"]).unwrap();
        assert!(admin.fit(b"/admin\nx") && admin.fit(b"/admin\xff") && !admin.fit(b"/x/admin"));
        let but = read(&["^/a", "!\\.css$"]).unwrap();
        assert!(but.fit(b"/a/b") && !but.fit(b"/a/b.css") && !but.fit(b"/b"));
        assert!(read(&["(a{1000}){1000}"]).unwrap_err().contains("1 MiB"));
        assert!(read(&["("]).unwrap_err().contains("unclosed group"));
        // Exponential for a backtracking matcher.
        let slow = read(&["^(/a+)+b$"]).unwrap();
        assert!(!slow.fit("/aaaaaaaa".repeat(8_000).as_bytes()));
    }

    proptest! {
        /// The comparison without a search says the same as a search.
        #[test]
        fn no_match_is_lost_or_added(
            written in "\\^?(a|b|/|\\.|\\(a\\|b\\)|\\[ab\\]|\\(\\?i:a\\)|\\||\\(\\^a\\)|\\(b\\$\\)|\\(\\[\\^/\\]\\+\\)){0,4}([*+?]|\\{1,2\\})?(a|/|\\|)?\\$?",
            path in "[abA/.]{0,5}",
        ) {
            no_match_differs(&written, path.as_bytes())?;
        }

        #[test]
        fn no_match_of_a_run_differs(
            written in "\\^(/|/a)?\\(?([ab]|\\[ab\\]|\\[\\^/\\]|\\.|\\\\w)(\\*|\\+|\\?|\\{2\\}|\\{1,2\\}|\\+\\?)?\\)?[*+]?(b|/)?\\$",
            path in "/?[ab/_]{0,5}",
        ) {
            no_match_differs(&written, path.as_bytes())?;
        }
    }

    fn no_match_differs(written: &str, path: &[u8]) -> Result<(), TestCaseError> {
        let Ok(regex) = PathRegex::read(written) else { return Ok(()) };
        prop_assert_eq!(regex.is_match(path), regex.regex.is_match(path), "{}", written);
        let right = regex.regex.captures(path).map(|all| {
            let text = |number| all.get(number).map_or(&b""[..], |one| one.as_bytes());
            std::array::from_fn(|at| text(at + 1))
        });
        // Without a group, nobody asks for its text.
        let found = regex.captures(path).map(|mut texts| {
            texts[regex.captures_count()..].fill(b"");
            texts
        });
        prop_assert_eq!(found, right, "{}", written);
        Ok(())
    }
}
