//! The numbers in a text, by which a clock or an age is recognised.
//!
//! | word | number |
//! |---|---|
//! | `41`, `41:`, `۴۱` | itself: delimiters do not count; digits of several scripts |
//! | `28T18`, `20261128T182841Z` | all of it: day and hour (ISO 8601) |
//! | `41Z`, `41pm`, `28th`, `28現在` | without the mark, or the letters beyond ASCII |
//! | `59m`, `1h5m`, `18h28`, `59分钟前` | in seconds, so that it grows when the unit changes |
//! | `t1764525881` | a Unix time behind letters, in seconds, milliseconds or microseconds |

use crate::word_ends::{letters, marks};
use std::ops::Range;

/// A number has at most so many digits: a time in microseconds.
const MAX_DIGITS: usize = 16;
/// A number with a unit has at most so many.
const MAX_DIGITS_WITH_UNIT: usize = 4;

/// The marks that follow a number of a time or a date: UTC, the half of the day, the ordinal.
const MARKS: [&str; 7] = ["z", "am", "pm", "st", "nd", "rd", "th"];

/// The digits of a Unix time in seconds, and how many more it has in milliseconds and microseconds.
const STAMP_DIGITS: usize = 10;
const STAMP_FRACTIONS: [usize; 3] = [0, 3, 6];
/// The Unix times that are recognised by their value: of the years 2001 to 2065.
const STAMPS: Range<u64> = 1_000_000_000..3_000_000_000;

/// The seconds of an hour and of a minute.
const HOUR: u64 = 3_600;
const MINUTE: u64 = 60;

/// Short units of time, in seconds.
const UNITS: [(&str, u64); 13] = [
    ("s", 1),
    ("sec", 1),
    ("m", MINUTE),
    ("min", MINUTE),
    ("mins", MINUTE),
    ("h", HOUR),
    ("hr", HOUR),
    ("hrs", HOUR),
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
    let (word, delimiters) = word.split_at(letters(word));
    if marks(delimiters) < delimiters.len() {
        return None;
    }
    let (count, value, rest) = digits(word);
    match rest {
        _ if count == 0 => stamp(word),
        _ if count > MAX_DIGITS => None,
        [] => Some(value),
        _ if is_mark(rest) => Some(value),
        [first, ..] if !first.is_ascii() => {
            let seconds = seconds_of(rest).filter(|_| count <= MAX_DIGITS_WITH_UNIT);
            Some(value * seconds.unwrap_or(1))
        }
        _ => duration((count, value), rest).or_else(|| with_time((count, value), rest)),
    }
}

/// The seconds of an age that begins with these digits: "59m", "1h5m"; or of an hour and minute: "18h28".
fn duration(first: (usize, u64), rest: &[u8]) -> Option<u64> {
    let (mut sum, mut last_unit) = (0, 0);
    let ((mut count, mut value), mut rest) = (first, rest);
    while count <= MAX_DIGITS_WITH_UNIT {
        if rest.is_empty() {
            return (last_unit == HOUR && count == 2).then_some(sum + value * MINUTE);
        }
        let (name, after) = rest.split_at(rest.iter().take_while(|byte| is_letter(**byte)).count());
        let is_unit = |(unit, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit.as_bytes());
        last_unit = UNITS.iter().find(is_unit)?.1;
        sum += value * last_unit;
        if after.is_empty() {
            return Some(sum);
        }
        (count, value, rest) = digits(after);
        if count == 0 {
            return None;
        }
    }
    None
}

/// Date and hour, which may have minutes and seconds: two numbers of fixed length.
fn with_time((first_count, first): (usize, u64), rest: &[u8]) -> Option<u64> {
    let (count, second, rest) = digits(rest.strip_prefix(b"T")?);
    let (is_time, places) = match (first_count, count) {
        (2 | 8, 2) => (true, 100),
        (8, 4) => (true, 10_000),
        (8, 6) => (true, 1_000_000),
        _ => (false, 1),
    };
    let is_all = rest.is_empty() || is_mark(rest);
    (is_time && is_all).then(|| first * places + second)
}

/// A Unix time behind letters.
fn stamp(word: &[u8]) -> Option<u64> {
    let before = word.iter().take_while(|byte| is_letter(**byte)).count();
    let (count, value, rest) = digits(&word[before..]);
    let fraction = count.checked_sub(STAMP_DIGITS).filter(|more| STAMP_FRACTIONS.contains(more))?;
    let is_stamp = STAMPS.contains(&(value / 10_u64.pow(fraction as u32)));
    (is_stamp && rest.is_empty()).then_some(value)
}

/// The digits with which a text begins: how many, their value if they are not too many, and the rest.
fn digits(text: &[u8]) -> (usize, u64, &[u8]) {
    let (mut count, mut value, mut rest) = (0, 0_u64, text);
    while let Some((digit, after)) = digit(rest) {
        value = value.wrapping_mul(10).wrapping_add(digit);
        (count, rest) = (count + 1, after);
    }
    (count, value, rest)
}

/// The digit with which a text begins, in ASCII, Arabic, Persian, Devanagari, Bengali or of full width; and the rest.
fn digit(text: &[u8]) -> Option<(u64, &[u8])> {
    let (digit, length) = match *text {
        [byte @ b'0'..=b'9', ..] => (byte - b'0', 1),
        [0xD9, last @ 0xA0..=0xA9, ..] => (last - 0xA0, 2),
        [0xDB, last @ 0xB0..=0xB9, ..] => (last - 0xB0, 2),
        [0xE0, 0xA5 | 0xA7, last @ 0xA6..=0xAF, ..] => (last - 0xA6, 3),
        [0xEF, 0xBC, last @ 0x90..=0x99, ..] => (last - 0x90, 3),
        _ => return None,
    };
    Some((u64::from(digit), &text[length..]))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn is_mark(text: &[u8]) -> bool {
    MARKS.iter().any(|mark| text.eq_ignore_ascii_case(mark.as_bytes()))
}

/// The seconds of the unit of time with which a text without spaces begins.
fn seconds_of(text: &[u8]) -> Option<u64> {
    let begins = |(name, _): &&(&str, u64)| text.starts_with(name.as_bytes());
    WORDS_WITHOUT_SPACE.iter().find(begins).map(|(_, seconds)| *seconds)
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
            ("۴۱", Some(41)),
            ("٤١", Some(41)),
            ("४१", Some(41)),
            ("৪১", Some(41)),
            ("４１", Some(41)),
            ("28T18:", Some(2_818)),
            ("20261128T182841Z", Some(20_261_128_182_841)),
            ("2026T18", None),
            ("5T18446744073709551615", None),
            ("18h28", Some(66_480)),
            ("9h05", Some(32_700)),
            ("18h28m41s", Some(66_521)),
            ("1h5", None),
            ("41pm.", Some(41)),
            ("28th,", Some(28)),
            ("28現在", Some(28)),
            ("59m", Some(3_540)),
            ("1h", Some(3_600)),
            ("1h5m", Some(3_900)),
            ("2d3h", Some(183_600)),
            ("2D", Some(172_800)),
            ("59分钟前", Some(3_540)),
            ("1小时前", Some(3_600)),
            ("20261分", Some(20_261)),
            ("99999y", None),
            ("t1764525881", Some(1_764_525_881)),
            ("v1764525881123", Some(1_764_525_881_123)),
            ("ean4006381333931", None),
            ("t17645258811", None),
            ("1764525881px", None),
            ("12-3", None),
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
            let short = |seconds: u64| match seconds {
                0..60 => format!("{seconds}s"),
                60..3_600 => format!("{}m", seconds / 60),
                3_600..86_400 => format!("{}h", seconds / 3_600),
                86_400..31_536_000 => format!("{}d", seconds / 86_400),
                _ => format!("{}y", seconds / 31_536_000),
            };
            let exact = |seconds: u64| match seconds {
                0..60 => format!("{seconds}s"),
                60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
                3_600..86_400 => format!("{}h{:02}", seconds / 3_600, seconds / 60 % 60),
                _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
            };
            let forms: [fn(u64) -> String; 2] = [short, exact];
            for shown in forms {
                let of = |seconds| number(shown(seconds).as_bytes()).expect("it is an age");
                prop_assert!(of(seconds) <= of(seconds + later));
            }
        }
    }
}
