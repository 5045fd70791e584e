//! Patterns of `LIKE`, matched in time that is linear in the pattern and the text.
//!
//! A pattern consists of segments, which `%` separates. The first is at the beginning of a matching text, the last at
//! its end, and each between at the first place behind the one before it: if a match exists, these places are one. So
//! nothing is tried twice. Invariant: an answer that is not [`Match::Maybe`] is the database's.

use crate::budget::MatchBudget;
use crate::compare::Match;
use crate::schema::SqlColumnKind;
use crate::value_text::{ValueText, find, is_plain};
use change_feed::text::fold_constant;

/// The number of runs that a text is searched for before the whole pattern is matched: the longest.
const RUNS_MAX: usize = 4;
/// The part of a run that is searched for, in bytes.
const RUN_BYTES_MAX: usize = 64;

/// A pattern of `LIKE`, with the backslash as its escape character.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    /// A pattern that is read as this one.
    text: Box<str>,
    /// The parts between two `%`; none of a pattern whose texts are not compared by their bytes.
    segments: Box<[Segment]>,
    /// Runs of characters in folded form. Those that may match every text are left out.
    runs: Box<[Box<str>]>,
    is_case_sensitive: bool,
}

/// A part of a pattern without `%`.
#[derive(Debug, Clone, PartialEq, Default)]
struct Segment {
    /// The characters, each a byte; in lower case if case does not count.
    bytes: Vec<u8>,
    /// The positions of `_`, in ascending order.
    any: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Character(char),
    /// `_`
    One,
    /// `%`
    Any,
}

impl Pattern {
    /// Reads a pattern. `None` for a column of a kind that is converted to text first.
    pub fn of(kind: SqlColumnKind, pattern: &str) -> Option<Pattern> {
        let is_case_sensitive = match kind {
            SqlColumnKind::Text { is_case_sensitive } => is_case_sensitive,
            SqlColumnKind::Bytes => true,
            SqlColumnKind::Integer
            | SqlColumnKind::Number
            | SqlColumnKind::Moment
            | SqlColumnKind::Opaque => {
                return None;
            }
        };
        let mut pieces = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let piece = match character {
                '%' => Piece::Any,
                '_' => Piece::One,
                '\\' => Piece::Character(characters.next().unwrap_or('\\')),
                other => Piece::Character(other),
            };
            if piece != Piece::Any || pieces.last() != Some(&Piece::Any) {
                pieces.push(piece);
            }
        }
        let segments =
            if is_plain(pattern) { segments(&pieces, is_case_sensitive) } else { Box::default() };
        Some(Pattern { text: written(&pieces), segments, runs: runs(&pieces), is_case_sensitive })
    }

    /// The text of a pattern that is read as this one.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether `a` and `A` differ.
    pub fn is_case_sensitive(&self) -> bool {
        self.is_case_sensitive
    }

    /// The memory of the pattern beside itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let segment = |segment: &Segment| {
            let any = segment.any.len() * size_of::<usize>();
            size_of::<Segment>() + segment.bytes.len() + any
        };
        let segments: usize = self.segments.iter().map(segment).sum();
        let runs: usize = self.runs.iter().map(|run| size_of::<Box<str>>() + run.len()).sum();
        self.text.len() + segments + runs
    }

    /// Whether the text matches.
    pub fn matches(&self, value: ValueText<'_>, budget: &mut MatchBudget) -> Match {
        if budget.is_spent() {
            return Match::Maybe;
        }
        let is_exact = !self.segments.is_empty() && value.is_plain(budget);
        // A long text has its folded form already, and a word that is not in it is excluded by the word alone.
        if !is_exact || value.is_long() {
            let Some(folded) = value.folded(budget) else { return Match::Maybe };
            if !self.runs.iter().all(|run| folded.contains(run, budget)) {
                return Match::No;
            }
        }
        if !is_exact {
            return Match::Maybe;
        }
        if self.is_case_sensitive {
            return self.matches_plain(value.as_str().as_bytes(), budget);
        }
        self.matches_plain(&value.lower(budget), budget)
    }

    fn matches_plain(&self, text: &[u8], budget: &mut MatchBudget) -> Match {
        let [first, middle @ .., last] = &self.segments[..] else {
            let [only] = &self.segments[..] else { return Match::Maybe };
            return (text.len() == only.bytes.len() && only.is_at(text, 0, budget)).into();
        };
        let ends = first.bytes.len() + last.bytes.len();
        let Some(end) = text.len().checked_sub(last.bytes.len()).filter(|_| ends <= text.len())
        else {
            return Match::No;
        };
        if !first.is_at(text, 0, budget) || !last.is_at(text, end, budget) {
            return Match::No;
        }
        let mut at = first.bytes.len();
        for segment in middle {
            if budget.is_spent() {
                return Match::Maybe;
            }
            match segment.find(&text[at..end], budget) {
                SegmentPlace::At(place) => at += place + segment.bytes.len(),
                SegmentPlace::Nowhere => return Match::No,
                SegmentPlace::Unknown => return Match::Maybe,
            }
        }
        Match::Yes
    }
}

/// The first place of a segment.
enum SegmentPlace {
    At(usize),
    Nowhere,
    /// It takes too much work.
    Unknown,
}

impl Segment {
    /// Whether the text has the segment at this place, which is not too near to its end.
    fn is_at(&self, text: &[u8], at: usize, budget: &mut MatchBudget) -> bool {
        budget.spend(self.bytes.len());
        let text = &text[at..at + self.bytes.len()];
        let mut from = 0;
        for any in self.any.iter().copied().chain([self.bytes.len()]) {
            if text[from..any] != self.bytes[from..any] {
                return false;
            }
            from = any + 1;
        }
        true
    }

    /// The first place where the text has the segment.
    fn find(&self, text: &[u8], budget: &mut MatchBudget) -> SegmentPlace {
        if self.any.is_empty() {
            return find(text, &self.bytes, budget).map_or(SegmentPlace::Nowhere, SegmentPlace::At);
        }
        // With `_`, the places of its longest run are tried.
        let Some(last) = text.len().checked_sub(self.bytes.len()) else {
            return SegmentPlace::Nowhere;
        };
        let run = self.longest_run();
        let mut at = 0;
        while at <= last {
            if budget.is_spent() {
                return SegmentPlace::Unknown;
            }
            let Some(place) =
                find(&text[at + run.start..last + run.end], &self.bytes[run.clone()], budget)
            else {
                return SegmentPlace::Nowhere;
            };
            if self.is_at(text, at + place, budget) {
                return SegmentPlace::At(at + place);
            }
            at += place + 1;
        }
        SegmentPlace::Nowhere
    }

    fn longest_run(&self) -> std::ops::Range<usize> {
        let (mut from, mut longest) = (0, 0..0);
        for any in self.any.iter().copied().chain([self.bytes.len()]) {
            if any - from > longest.len() {
                longest = from..any;
            }
            from = any + 1;
        }
        longest
    }
}

/// The parts between two `%` of a pattern of plain characters.
fn segments(pieces: &[Piece], is_case_sensitive: bool) -> Box<[Segment]> {
    let segment = |pieces: &[Piece]| {
        let mut segment = Segment::default();
        for piece in pieces {
            if *piece == Piece::One {
                segment.any.push(segment.bytes.len());
            }
            // A plain character is a byte.
            let byte = piece.character().and_then(|character| u8::try_from(character).ok());
            segment.bytes.push(byte.unwrap_or_default());
        }
        if !is_case_sensitive {
            segment.bytes.make_ascii_lowercase();
        }
        segment.bytes.shrink_to_fit();
        segment
    };
    pieces.split(|piece| *piece == Piece::Any).map(segment).collect()
}

/// The longest runs of characters, in folded form.
fn runs(pieces: &[Piece]) -> Box<[Box<str>]> {
    let runs = pieces.split(|piece| piece.character().is_none());
    let text = |run: &[Piece]| run.iter().filter_map(|piece| piece.character()).collect::<String>();
    let folded = runs.filter_map(|run| fold_constant(text(run).trim_matches(' ')));
    let mut runs: Vec<String> = folded.filter(|run| !run.is_empty()).collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
    runs.truncate(RUNS_MAX);
    runs.iter().map(|run| run[..run.floor_char_boundary(RUN_BYTES_MAX)].into()).collect()
}

fn written(pieces: &[Piece]) -> Box<str> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Any => text.push('%'),
            Piece::One => text.push('_'),
            Piece::Character(character) => {
                if matches!(character, '%' | '_' | '\\') {
                    text.push('\\');
                }
                text.push(*character);
            }
        }
    }
    text.into()
}

impl Piece {
    fn character(self) -> Option<char> {
        match self {
            Piece::Character(character) => Some(character),
            Piece::One | Piece::Any => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: SqlColumnKind = SqlColumnKind::Text { is_case_sensitive: false };

    fn matches(pattern: &str, text: &str) -> Match {
        let pattern = Pattern::of(TEXT, pattern).expect("text");
        let forms = crate::value_text::RowForms::default();
        pattern.matches(forms.text(1, 0, text), &mut MatchBudget::new(u64::MAX))
    }

    #[test]
    fn a_pattern_matches_as_like_does() {
        for (pattern, text, expected) in [
            ("%lantern%", "a Lantern here", Match::Yes),
            ("%lantern%", "a lamp here", Match::No),
            ("a_c", "abc", Match::Yes),
            ("a_c", "ac", Match::No),
            ("%a_c%", "xxabdabcx", Match::Yes),
            ("%a%b%", "xxaxxbx", Match::Yes),
            ("%ab%abc", "ababxabc", Match::Yes),
            ("ab%ba", "aba", Match::No),
            ("10\\%", "10%", Match::Yes),
            ("10\\%", "100", Match::No),
            ("", "", Match::Yes),
            ("%", "", Match::Yes),
            ("_%", "", Match::No),
            ("%strasse%", "die Straße", Match::Maybe),
            ("%lamp%", "die Straße", Match::No),
            ("%さくら%", "anything ä", Match::Maybe),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert_eq!(Pattern::of(SqlColumnKind::Integer, "1%"), None);
    }

    /// The definition of `LIKE`: for each beginning of the pattern, which beginnings of the text match.
    fn is_like(pattern: &[u8], text: &[u8]) -> bool {
        let mut matching = vec![false; text.len() + 1];
        matching[0] = true;
        for piece in pattern {
            let before = std::mem::replace(&mut matching, vec![false; text.len() + 1]);
            let mut was_any = false;
            for at in 0..=text.len() {
                was_any |= before[at];
                matching[at] = match piece {
                    b'%' => was_any,
                    b'_' => at > 0 && before[at - 1],
                    own => at > 0 && before[at - 1] && text[at - 1] == *own,
                };
            }
        }
        matching[text.len()]
    }

    proptest! {
        #[test]
        fn the_answer_is_that_of_the_definition(pattern in "[ab%_]{0,9}", text in "[ab]{0,12}") {
            let expected = is_like(pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(&pattern, &text), expected.into());
            // In a long text as well, whose forms are made once.
            let long = format!("{}{text}", "ab".repeat(600));
            let expected = is_like(pattern.as_bytes(), long.as_bytes());
            prop_assert_eq!(matches(&pattern, &long), expected.into(), "long");
        }
    }

    /// Visitors choose the texts: of searches, and of comments.
    #[test]
    fn the_work_is_linear_in_the_text_and_the_pattern() {
        let text = "a".repeat(60_000);
        let forms = crate::value_text::RowForms::default();
        let value = forms.text(1, 0, &text);
        let mut budget = MatchBudget::new(u64::MAX);
        for pattern in [
            format!("%{}b%", "a".repeat(1400)),
            format!("%b{}%", "a".repeat(1400)),
            "%a".repeat(700) + "b",
            format!("%{}_b%", "a".repeat(700)),
        ] {
            let pattern = Pattern::of(TEXT, &pattern).expect("text");
            let before = budget.done();
            assert_eq!(pattern.matches(value, &mut budget), Match::No);
            let most = 20 * (text.len() + pattern.text().len()) as u64;
            assert!(budget.done() - before < most, "{}", budget.done() - before);
        }
        // Work that is not linear is not done to its end.
        let mut budget = MatchBudget::new(1 << 20);
        let pattern =
            Pattern::of(TEXT, &format!("%{}_{}b%", "a".repeat(99), "a".repeat(600))).expect("text");
        let text = format!("{text}b");
        let value = ValueText::new(&text);
        assert_ne!(pattern.matches(value, &mut budget), Match::No);
    }
}
