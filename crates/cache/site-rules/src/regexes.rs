//! Regular expressions for paths (`path_regex`): compared with the bytes of a path in linear time.
//!
//! Invariants: `.` matches every byte, so that a line feed or a byte that is no UTF-8 evades no pattern. A pattern
//! is anchored only as it is written, and its compiled form has at most 1 MiB. Not here: globs (`glob`).

use regex::bytes::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// The maximum size of the memory that a search may use for its states, in bytes.
const STATES_BYTES_MAX: usize = 1 << 18;

/// A list of patterns: a path must match one of them, and none of those written with `!`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regexes {
    pub(crate) any: Vec<Regex>,
    pub(crate) none: Vec<Regex>,
}

impl Regexes {
    /// Reads the patterns; the error is a message for the operator.
    pub(crate) fn read(words: &[String]) -> Result<Regexes, String> {
        let mut all = Regexes::default();
        for word in words {
            match word.strip_prefix('!') {
                Some(word) => all.none.push(pattern(word)?),
                None => all.any.push(pattern(word)?),
            }
        }
        Ok(all)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    pub(crate) fn fit(&self, text: &[u8]) -> bool {
        (self.any.is_empty() || self.any.iter().any(|regex| regex.is_match(text)))
            && !self.none.iter().any(|regex| regex.is_match(text))
    }
}

/// Reads a pattern; the error is a message for the operator.
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
}
