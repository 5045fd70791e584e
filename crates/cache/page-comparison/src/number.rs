//! The numbers in a text, by which a clock or an age is recognised.
//!
//! | word | number |
//! |---|---|
//! | `41`, `41:` | itself: delimiters do not count |
//! | `28T18`, `20261128T182841Z`, `18h28` | all of it: day and hour, or hour and minute (ISO 8601) |
//! | `41Z`, `41pm`, `28th` | without the mark |
//! | `59m`, `1h`, `59分钟前` | in seconds, so that it grows when the unit changes |

use crate::tokens::is_delimiter;

/// A number has at most so many digits: a time in microseconds.
const MAX_DIGITS: usize = 16;
/// A number with a unit has at most so many.
const MAX_DIGITS_WITH_UNIT: usize = 4;

/// The marks that follow a number of a time or a date: UTC, the half of the day, the ordinal.
const MARKS: [&str; 7] = ["z", "am", "pm", "st", "nd", "rd", "th"];

/// Short units of time, in seconds.
const UNITS: [(&str, u64); 13] = [
    ("s", 1),
    ("sec", 1),
    ("m", 60),
    ("min", 60),
    ("mins", 60),
    ("h", 3_600),
    ("hr", 3_600),
    ("hrs", 3_600),
    ("d", 86_400),
    ("w", 604_800),
    ("mo", 2_592_000),
    ("y", 31_536_000),
    ("yr", 31_536_000),
];

/// The same in writing without spaces, in seconds: how the text after the number begins.
const WORDS_WITHOUT_SPACE: [(&str, u64); 17] = [
    ("秒", 1),
    ("초", 1),
    ("分", 60),
    ("분", 60),
    ("小时", 3_600),
    ("小時", 3_600),
    ("時間", 3_600),
    ("시간", 3_600),
    ("天", 86_400),
    ("日", 86_400),
    ("일", 86_400),
    ("周", 604_800),
    ("週", 604_800),
    ("个月", 2_592_000),
    ("個月", 2_592_000),
    ("年", 31_536_000),
    ("년", 31_536_000),
];

/// The number that a word is, as the table says; none if it is another word.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    let end = word.iter().rposition(|byte| !is_delimiter(*byte))? + 1;
    let (digits, rest) = digits(&word[..end]);
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return None;
    }
    let value = value(digits);
    if rest.is_empty() || is_mark(rest) {
        return Some(value);
    }
    if let Some(seconds) = unit(rest).filter(|_| digits.len() <= MAX_DIGITS_WITH_UNIT) {
        return Some(value * seconds);
    }
    with_time(digits, rest)
}

/// Date and hour, or hour and minute: two numbers of fixed length.
fn with_time(first: &[u8], rest: &[u8]) -> Option<u64> {
    let (second, rest) = digits(rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b"h"))?);
    let is_time = matches!((first.len(), second.len()), (2, 2) | (8, 2 | 4 | 6));
    let is_all = rest.is_empty() || is_mark(rest);
    (is_time && is_all).then(|| value(&[first, second].concat()))
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn value(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'))
}

fn is_mark(text: &[u8]) -> bool {
    MARKS.iter().any(|mark| text.eq_ignore_ascii_case(mark.as_bytes()))
}

/// The seconds of a unit of time.
fn unit(text: &[u8]) -> Option<u64> {
    let is_unit = |(name, _): &&(&str, u64)| text.eq_ignore_ascii_case(name.as_bytes());
    let begins = |(name, _): &&(&str, u64)| text.starts_with(name.as_bytes());
    let found = UNITS.iter().find(is_unit);
    found.or_else(|| WORDS_WITHOUT_SPACE.iter().find(begins)).map(|(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_number_is_read_with_its_mark_and_its_unit() {
        for (word, expected) in [
            ("41", Some(41)),
            ("041:</", Some(41)),
            ("1764525881123456", Some(1_764_525_881_123_456)),
            ("17645258811234567", None),
            ("41Z</", Some(41)),
            ("41z", Some(41)),
            ("28T18:", Some(2_818)),
            ("20261128T182841Z", Some(20_261_128_182_841)),
            ("2026T18", None),
            ("18h28", Some(1_828)),
            ("1h5", None),
            ("41pm.", Some(41)),
            ("28th,", Some(28)),
            ("59m", Some(3_540)),
            ("1h", Some(3_600)),
            ("2D", Some(172_800)),
            ("59分钟前", Some(3_540)),
            ("1小时前", Some(3_600)),
            ("99999y", None),
            ("3px", None),
            ("7f", None),
            ("x7", None),
            ("</", None),
            ("", None),
        ] {
            assert_eq!(number(word.as_bytes()), expected, "{word}");
        }
    }

    proptest! {
        #[test]
        fn every_word_is_read(word in prop::collection::vec(any::<u8>(), 0..40)) {
            number(&word);
        }

        #[test]
        fn an_age_never_falls(seconds in 0..400_000_000u64, later in 0..400_000_000u64) {
            let shown = |seconds: u64| match seconds {
                0..60 => format!("{seconds}s"),
                60..3_600 => format!("{}m", seconds / 60),
                3_600..86_400 => format!("{}h", seconds / 3_600),
                86_400..31_536_000 => format!("{}d", seconds / 86_400),
                _ => format!("{}y", seconds / 31_536_000),
            };
            let of = |seconds| number(shown(seconds).as_bytes()).expect("it is an age");
            prop_assert!(of(seconds) <= of(seconds + later));
        }
    }
}
