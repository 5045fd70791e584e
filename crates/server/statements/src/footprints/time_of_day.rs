//! Whether a statement contains the present time as a constant, as an application writes it that
//! compares with "now". The result then depends on the time of day.
//!
//! Two forms are found: seconds since 1970, and `2026-11-26 09:30:00` in any time zone. A constant that
//! is near the present time by chance only shortens the lifetime of a page.

use http_cache::Timestamp;
use std::ops::RangeInclusive;

/// How far a constant may be from the time of the render, in seconds: clocks differ.
const NEAR: i64 = 10;
/// Time zones differ by a multiple of this, in seconds.
const ZONE_STEP: i64 = 15 * 60;
/// The largest difference of a time zone, in seconds.
const ZONE_MAX: i64 = 15 * 60 * 60;
/// The length of a date and time, `2026-11-26 09:30:00`.
const MOMENT_BYTES: usize = 19;

/// Whether a text contains the present time: one between these two.
pub(super) fn is_in(text: &[u8], made: (Timestamp, Timestamp)) -> bool {
    let seconds = |time: Timestamp| i64::try_from(time.seconds()).unwrap_or(i64::MAX);
    let now = seconds(made.0) - NEAR..=seconds(made.1) + NEAR;
    let mut at = 0;
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if is_now(&text[at..], digits, &now) {
            return true;
        }
        at += digits;
    }
    false
}

fn is_now(text: &[u8], digits: usize, now: &RangeInclusive<i64>) -> bool {
    match digits {
        10 => number(&text[..10]).is_some_and(|seconds| now.contains(&seconds)),
        4 => text.get(..MOMENT_BYTES).and_then(moment).is_some_and(|seconds| {
            let mut zones = (-ZONE_MAX..=ZONE_MAX).step_by(ZONE_STEP as usize);
            zones.any(|zone| now.contains(&(seconds - zone)))
        }),
        _ => false,
    }
}

/// The seconds since 1970 of a date and time.
fn moment(text: &[u8]) -> Option<i64> {
    let is_separated =
        [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|(at, byte)| text[*at] == *byte);
    if !is_separated || !matches!(text[10], b' ' | b'T') {
        return None;
    }
    let part = |from: usize, to: usize| number(&text[from..to]);
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    // Days from the civil calendar: the year begins in March, so that a leap day is its last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_time_is_found_in_any_time_zone() {
        // 2026-11-26 09:30:05 UTC.
        let now = Timestamp(1_795_685_405_000);
        for (text, expected) in [
            ("SELECT a FROM t WHERE at < 1795685405", true),
            ("SELECT a FROM t WHERE at < 1795685399 AND b = 1", true),
            ("SELECT a FROM t WHERE at < 1795685305", false),
            ("SELECT a FROM t WHERE at < 17956854050", false),
            ("SELECT a FROM t WHERE at < '2026-11-26 09:30:00'", true),
            ("SELECT a FROM t WHERE at < '2026-11-26T15:15:02'", true),
            ("SELECT a FROM t WHERE at < '2026-11-25 23:30:01'", true),
            ("SELECT a FROM t WHERE at < '2026-11-26 09:31:00'", false),
            ("SELECT a FROM t WHERE at < '2026-11-28 09:30:00'", false),
            ("SELECT a FROM t WHERE id IN (2026, 11, 26) AND c = '2026-11-26'", false),
            ("SELECT 1795", false),
            ("", false),
        ] {
            assert_eq!(is_in(text.as_bytes(), (now, now)), expected, "{text}");
        }
    }
}
