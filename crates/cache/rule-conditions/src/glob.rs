//! Patterns: `*` matches any text within a path segment, `**` matches any text.
//!
//! A pattern is matched in one pass over the text, whatever its wildcards: the set of positions reached in
//! the pattern is a bit set in one integer. No text can therefore make matching slow. With one wildcard, the text before
//! it and after it is compared. A pattern has at most 127 characters apart from its wildcards. The names of files are
//! matched as in a shell ([`fits_name`]).

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

/// A pattern with wildcards.
#[derive(Clone)]
pub struct Glob {
    written: Box<str>,
    shape: Shape,
}

#[derive(Clone)]
enum Shape {
    /// Without a wildcard.
    Exact(Case),
    /// With one wildcard at the end that matches any text.
    Prefix(Case),
    /// With one other wildcard.
    One(Wildcard),
    Any(Box<Places>),
}

/// The only wildcard of a pattern.
#[derive(Clone, Copy)]
struct Wildcard {
    /// Where it begins and ends in the pattern, in bytes.
    begin: usize,
    end: usize,
    /// Whether it matches slashes.
    crosses: bool,
    case: Case,
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
    /// Reads a pattern of names or values, in any case: a wildcard matches any text.
    ///
    /// # Errors
    /// It is too long; the text is a message for the operator.
    pub fn of_name(written: &str) -> Result<Glob, String> {
        Glob::read(written, Star::Anything, Case::Ignored)
    }

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
            _ => match Wildcard::of(written, star, case) {
                Some(only) => Shape::One(only),
                None => Shape::Any(Box::new(Places::of(written.as_bytes(), star, case))),
            },
        };
        Ok(Glob { written: written.into(), shape })
    }

    /// Whether the pattern matches the whole text.
    #[inline]
    pub fn fits(&self, text: &[u8]) -> bool {
        let written = self.written.as_bytes();
        match &self.shape {
            Shape::Exact(case) => same(written, text, *case),
            Shape::Prefix(case) => {
                let start = &written[..written.len() - 1];
                text.get(..start.len()).is_some_and(|text| same(start, text, *case))
            }
            Shape::One(only) => only.captured(written, text).is_some(),
            Shape::Any(places) => places.fit(text),
        }
    }

    /// Whether the pattern of a path has one wildcard.
    pub fn has_one_wildcard(&self) -> bool {
        matches!(self.shape, Shape::One(_))
    }

    /// The text that the only wildcard matches, if the pattern of a path has only one and matches the whole path.
    pub fn captured<'t>(&self, path: &'t [u8]) -> Option<&'t [u8]> {
        match &self.shape {
            Shape::One(only) => only.captured(self.written.as_bytes(), path),
            Shape::Exact(_) | Shape::Prefix(_) | Shape::Any(_) => None,
        }
    }

    /// The pattern of a path as a regular expression whose wildcards capture.
    pub fn capturing(&self) -> String {
        let (mut regex, mut rest) = (String::from("^"), self.as_str());
        while let Some(at) = rest.find('*') {
            regex.push_str(&regex::escape(&rest[..at]));
            let stars = rest[at..].bytes().take_while(|byte| *byte == b'*').count();
            regex.push_str(if stars > 1 { "(.*)" } else { "([^/]*)" });
            rest = &rest[at + stars..];
        }
        regex + &regex::escape(rest) + "$"
    }

    /// Whether this pattern provably matches all that another pattern of the same condition matches. It is compared with
    /// that pattern as with a text, in which a wildcard is matched by one wildcard.
    pub(crate) fn covers(&self, other: &Glob) -> bool {
        let start = self.written.split('*').next().unwrap_or_default().as_bytes();
        let others_start = other.written.as_bytes().get(..start.len());
        if !others_start.is_some_and(|other| other.eq_ignore_ascii_case(start)) {
            return false;
        }
        let (own, others) = (self.places(), other.places());
        let literals = other.written.bytes().filter(|byte| *byte != b'*');
        let mut reached: u128 = 1;
        for (place, byte) in literals.map(Some).chain([None]).enumerate() {
            if others.anything & 1 << place != 0 {
                reached &= own.anything;
            } else if others.segment & 1 << place != 0 {
                reached &= own.anything | own.segment;
            }
            if let Some(byte) = byte {
                reached = own.after(reached, byte);
            }
        }
        reached & own.last != 0
    }

    fn places(&self) -> Places {
        let of = |star, case| Places::of(self.written.as_bytes(), star, case);
        match &self.shape {
            Shape::Exact(case) | Shape::Prefix(case) => of(Star::Anything, *case),
            Shape::One(only) if only.crosses => of(Star::Anything, only.case),
            Shape::One(only) => of(Star::Segment, only.case),
            Shape::Any(places) => Places::clone(places),
        }
    }

    /// The pattern as it was written.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.written)
    }
}

#[inline]
fn same(one: &[u8], other: &[u8], case: Case) -> bool {
    match case {
        Case::Kept => one == other,
        Case::Ignored => one.eq_ignore_ascii_case(other),
    }
}

impl Wildcard {
    /// The wildcard of a pattern that has only one.
    fn of(written: &str, star: Star, case: Case) -> Option<Wildcard> {
        let begin = written.find('*')?;
        let end = written.rfind('*')? + 1;
        let is_one = written[begin..end].bytes().all(|byte| byte == b'*');
        let crosses = star == Star::Anything || end - begin > 1;
        is_one.then_some(Wildcard { begin, end, crosses, case })
    }

    /// The text that the wildcard of this pattern matches, if the pattern matches the whole text.
    fn captured<'t>(&self, written: &[u8], text: &'t [u8]) -> Option<&'t [u8]> {
        let (before, after) = (&written[..self.begin], &written[self.end..]);
        let end = text.len().checked_sub(after.len()).filter(|end| *end >= before.len())?;
        let captured = &text[before.len()..end];
        let fits = same(before, &text[..before.len()], self.case)
            && same(after, &text[end..], self.case)
            && (self.crosses || !captured.contains(&b'/'));
        fits.then_some(captured)
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
            reached = self.after(reached, *byte);
            if reached == 0 {
                return false;
            }
        }
        reached & self.last != 0
    }

    /// The positions that a byte leads to, from these.
    #[inline]
    fn after(&self, reached: u128, byte: u8) -> u128 {
        let stay = if byte == b'/' { self.anything } else { self.anything | self.segment };
        ((reached & self.steps[usize::from(byte)]) << 1) | (reached & stay)
    }
}

/// A pattern of paths, in the language of the rules: `*` matches any text within a segment, `**` matches any text.
#[derive(Clone)]
pub struct PathGlob(Glob);

impl PathGlob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is too long; the text is a message for the operator.
    pub fn read(written: &str) -> Result<PathGlob, String> {
        Glob::read(written, Star::Segment, Case::Kept).map(PathGlob)
    }

    /// Whether it matches the whole path.
    #[inline]
    pub fn fits(&self, path: &[u8]) -> bool {
        self.0.fits(path)
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Debug for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for PathGlob {
    fn eq(&self, other: &PathGlob) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for PathGlob {}

/// A list of patterns: a text must match one of them, and none of those written with `!`.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    /// The patterns without `!`: one must match, if there are any.
    pub any: Vec<Glob>,
    /// The patterns written with `!`.
    pub none: Vec<Glob>,
}

impl Globs {
    /// Reads patterns of names, in any case: a wildcard matches any text.
    pub(crate) fn of_names(words: &[String]) -> Result<Globs, String> {
        Globs::read(words, Star::Anything, Case::Ignored)
    }

    /// Reads patterns of paths: `*` matches any text within a segment, `**` matches any text.
    ///
    /// # Errors
    /// One is too long; the text is a message for the operator.
    pub fn of_paths(words: &[String]) -> Result<Globs, String> {
        Globs::read(words, Star::Segment, Case::Kept)
    }

    fn read(words: &[String], star: Star, case: Case) -> Result<Globs, String> {
        let mut globs = Globs::default();
        for word in words {
            match word.strip_prefix('!') {
                Some(word) => globs.none.push(Glob::read(word, star, case)?),
                None => globs.any.push(Glob::read(word, star, case)?),
            }
        }
        Ok(globs)
    }

    /// Whether there are no patterns, so that every text fits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.any.is_empty() && self.none.is_empty()
    }

    /// Whether a text matches one of the patterns, and none of those written with `!`.
    #[inline]
    pub fn fit(&self, text: &[u8]) -> bool {
        (self.any.is_empty() || self.any.iter().any(|glob| glob.fits(text)))
            && !self.none.iter().any(|glob| glob.fits(text))
    }
}

/// Whether the name of a file fits a pattern in which `*` stands for any text and `?` for one byte; in time of the product
/// of their lengths.
pub fn fits_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    // After the last `*`, and the end of the text that it stands for.
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        match pattern.get(of) {
            Some(b'*') => {
                star = Some((of + 1, at));
                of += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[at] => {
                (at, of) = (at + 1, of + 1);
            }
            _ => {
                let Some((after, end)) = star else { return false };
                star = Some((after, end + 1));
                (of, at) = (after, end + 1);
            }
        }
    }
    pattern[of..].iter().all(|byte| *byte == b'*')
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
    fn a_pattern_covers_narrower_ones() {
        let covers = |wide: &str, narrow: &str, star, case| {
            let read = |written| Glob::read(written, star, case).unwrap();
            read(wide).covers(&read(narrow))
        };
        for (wide, narrow, right) in [
            ("/**", "/admin/**", true),
            ("/admin/**", "/**", false),
            ("/a", "/a", true),
            ("/a", "/a/", false),
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/b/c", false),
            ("/a/*", "/a/**", false),
            ("/a/**", "/a/*/b/**", true),
            ("/**.php", "/wp-admin/*.php", true),
            ("/*.php", "/wp-admin/*.php", false),
            ("**", "/a", true),
            ("/a**", "/a", true),
            ("/*/b/**", "/a/b/*", true),
            ("/*/b/**", "/a*/c/*", false),
            ("/A", "/a", false),
        ] {
            assert_eq!(covers(wide, narrow, Star::Segment, Case::Kept), right, "{wide} {narrow}");
        }
        for (wide, narrow, right) in [
            ("*.example.org", "WWW.Example.org", true),
            ("*.example.org", "example.org", false),
            ("a*", "A/b*", true),
        ] {
            let covers = covers(wide, narrow, Star::Anything, Case::Ignored);
            assert_eq!(covers, right, "{wide} {narrow}");
        }
    }

    #[test]
    fn names_of_files_fit_as_in_a_shell() {
        for (name, pattern, right) in [
            ("a.conf", "*.conf", true),
            ("a.conf.bak", "*.conf", false),
            ("a.conf", "*", true),
            (".hidden", "*", true),
            ("a.conf", "?.conf", true),
            ("ab.conf", "?.conf", false),
            ("php82", "php*", true),
            ("a1b2c", "a*b*c", true),
            ("acb", "a*b*c", false),
            ("10-a-b.conf", "*-a*.c*f", true),
            ("10-a-b.con", "*-a*.c*f", false),
            ("aaab", "*a*ab", true),
            ("", "*", true),
            ("a", "", false),
        ] {
            assert_eq!(fits_name(pattern.as_bytes(), name.as_bytes()), right, "{name} {pattern}");
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
            let found = capturing.captures(text.as_bytes());
            prop_assert_eq!(glob.fits(text.as_bytes()), found.is_some());
            if glob.has_one_wildcard() {
                let right = found.and_then(|found| found.get(1)).map(|one| one.as_bytes());
                prop_assert_eq!(glob.captured(text.as_bytes()), right);
            }
        }

        /// Its two implementations agree, in any case.
        #[test]
        fn one_wildcard_is_as_several(pattern in "[aB/]{0,3}\\*{1,2}[aB/]{0,3}", text in "[abAB/]{0,8}") {
            for star in [Star::Segment, Star::Anything] {
                for case in [Case::Kept, Case::Ignored] {
                    let places = Places::of(pattern.as_bytes(), star, case);
                    let glob = Glob::read(&pattern, star, case).unwrap();
                    prop_assert_eq!(glob.fits(text.as_bytes()), places.fit(text.as_bytes()));
                }
            }
        }

        /// No pattern covers another that matches more.
        #[test]
        fn a_covered_pattern_matches_no_more(
            wide in "[aB/*]{0,6}",
            narrow in "[aB/*]{0,6}",
            text in "[abAB/]{0,8}",
        ) {
            for star in [Star::Segment, Star::Anything] {
                for case in [Case::Kept, Case::Ignored] {
                    let read = |written: &str| Glob::read(written, star, case).unwrap();
                    let (wide, narrow) = (read(&wide), read(&narrow));
                    let is_wrong = wide.covers(&narrow)
                        && narrow.fits(text.as_bytes())
                        && !wide.fits(text.as_bytes());
                    prop_assert!(!is_wrong, "{:?} {:?}", wide, narrow);
                    prop_assert!(wide.covers(&wide));
                }
            }
        }

        #[test]
        fn as_defined(pattern in "[ab/*]{0,7}", text in "[ab/]{0,8}") {
            prop_assert_eq!(fits(&pattern, &text), plain(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
