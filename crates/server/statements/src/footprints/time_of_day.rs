//! Whether a statement contains the present time as a constant, as an application writes it that
//! compares with "now". The result then depends on the time of day.
//!
//! Two forms are found: seconds since 1970, and `2026-11-26 09:30:00` in any time zone. A day near the present one is
//! found as well, as `2026-11-26`, or as its first or last second: an application that asks for today's rows asks for
//! others tomorrow. A constant that is near the present time by chance only shortens the lifetime of a page.

use http_cache::Timestamp;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How far a constant may be from the time of the render, in seconds: clocks differ.
const NEAR: i64 = 10;
/// Time zones differ by a multiple of this, in seconds.
const ZONE_STEP: i64 = 15 * 60;
/// The largest difference of a time zone, in seconds.
const ZONE_MAX: i64 = 15 * 60 * 60;
/// How far a day may be from the present one, in seconds: yesterday and tomorrow, in any time zone.
const DAYS_NEAR: i64 = 50 * 60 * 60;
/// The length of a date, `2026-11-26`.
const DATE_BYTES: usize = 10;
/// The length of a date and time, `2026-11-26 09:30:00`.
const MOMENT_BYTES: usize = 19;

/// A constant by which the result of a statement depends on the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeConstant {
    /// The present time.
    Now,
    /// A day near the present one. The time until the next day may begin.
    Day(Duration),
}

/// The constant of a text by which its result depends on the time of day, if there is one. `made` are the times at which
/// the render began and ended.
pub(super) fn constant(text: &[u8], made: (Timestamp, Timestamp)) -> Option<TimeConstant> {
    let seconds = |time: Timestamp| i64::try_from(time.seconds()).unwrap_or(i64::MAX);
    let now = seconds(made.0) - NEAR..=seconds(made.1) + NEAR;
    let days = seconds(made.0) - DAYS_NEAR..=seconds(made.1) + DAYS_NEAR;
    let (mut at, mut has_day) = (0, false);
    while at < text.len() {
        if !text[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if is_now(&text[at..], digits, &now) {
            return Some(TimeConstant::Now);
        }
        has_day |= is_day(&text[at..], digits, &days);
        at += digits;
    }
    has_day.then(|| TimeConstant::Day(until_day(made)))
}

/// The time until a day may end somewhere: midnight of each time zone is a multiple of [`ZONE_STEP`].
fn until_day((began, ended): (Timestamp, Timestamp)) -> Duration {
    let step_ms = ZONE_STEP.unsigned_abs() * 1_000;
    let end_ms = (began.0 / step_ms + 1) * step_ms;
    Duration::from_millis(end_ms.saturating_sub(ended.0)).max(Duration::from_secs(1))
}

/// Whether the digits begin a day near the present one, as a date, as its first or last second, or as the seconds since
/// 1970 of one of these.
fn is_day(text: &[u8], digits: usize, days: &RangeInclusive<i64>) -> bool {
    let is_edge = |seconds: i64| seconds % ZONE_STEP == 0 || (seconds + 1) % ZONE_STEP == 0;
    match digits {
        10 => number(&text[..10]).is_some_and(|at| days.contains(&at) && is_edge(at)),
        4 => {
            let Some(date) = text.get(..DATE_BYTES) else { return false };
            let time = text.get(DATE_BYTES..MOMENT_BYTES);
            let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
            let is_edge = match text.get(DATE_BYTES) {
                Some(b' ' | b'T') if is_digit(DATE_BYTES + 1) => {
                    time.is_some_and(|time| matches!(&time[1..], b"00:00:00" | b"23:59:59"))
                }
                Some(_) | None => !is_digit(DATE_BYTES),
            };
            let noon = [date, b" 12:00:00".as_slice()].concat();
            is_edge && moment(&noon).is_some_and(|noon| days.contains(&noon))
        }
        _ => false,
    }
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
            let found = constant(text.as_bytes(), (now, now));
            assert_eq!(found == Some(TimeConstant::Now), expected, "{text}");
        }
    }

    #[test]
    fn a_day_near_the_present_one_lasts_until_midnight_somewhere() {
        // 2026-11-26 09:33:05 UTC: the next midnight of a time zone may be at 09:45.
        let now = Timestamp(1_795_685_585_000);
        let quarter = Some(TimeConstant::Day(Duration::from_secs(715)));
        for (text, expected) in [
            ("SELECT a FROM t WHERE day = '2026-11-26'", quarter),
            ("SELECT a FROM t WHERE at >= '2026-11-26 00:00:00'", quarter),
            ("SELECT a FROM t WHERE at <= '2026-11-27T23:59:59'", quarter),
            ("SELECT a FROM t WHERE at < '2026-11-25'", quarter),
            ("SELECT a FROM t WHERE at < 1795651200", quarter),
            ("SELECT a FROM t WHERE at <= 1795737599", quarter),
            ("2026-11-26", quarter),
            ("SELECT a FROM t WHERE day = '2026-11-30'", None),
            ("SELECT a FROM t WHERE day = '2025-11-26'", None),
            ("SELECT a FROM t WHERE at = '2026-11-26 03:17:41'", None),
            ("SELECT a FROM t WHERE at < 1795651201", None),
            (
                "SELECT a FROM t WHERE day = '2026-11-26' AND at < 1795685585",
                Some(TimeConstant::Now),
            ),
            ("SELECT 2026", None),
        ] {
            assert_eq!(constant(text.as_bytes(), (now, now)), expected, "{text}");
        }
        // The quarter of an hour has passed while the page was made.
        let late = Timestamp(now.0 + 1_000_000);
        let found = constant(b"SELECT a FROM t WHERE day = '2026-11-26'", (now, late));
        assert_eq!(found, Some(TimeConstant::Day(Duration::from_secs(1))));
    }
}
