//! Tests of `freshness`: lifetimes and ages, by section of RFC 9111.
//!
//! All exchanges take place at the time of RFC 9110's date examples.

use super::*;
use crate::headers_tests::headers;
use crate::policy::Heuristic;
use crate::targeted::declared;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_seconds(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn at_once() -> Times {
    Times { request: NOW, response: NOW }
}

fn of(status: u16, lines: &[(&str, &str)], policy: &Policy) -> Option<(u64, LifetimeSource)> {
    let headers = headers(lines);
    let declared = declared(&headers, policy, NOW);
    let status = StatusCode::from_u16(status).expect("a status");
    lifetime(status, &headers, &declared, initial_age_ms(&headers, at_once()), at_once(), policy)
}

/// A policy with heuristic freshness.
fn guessing() -> Policy {
    Policy { heuristic: Some(Heuristic::default()), ..Policy::default() }
}

fn lifetime_of(lines: &[(&str, &str)]) -> Option<(u64, LifetimeSource)> {
    of(200, lines, &Policy::default())
}

#[test]
fn s_maxage_over_max_age_over_expires() {
    // §4.2.1.
    let expires = ("expires", "Sun, 06 Nov 1994 08:49:47 GMT");
    let date = ("date", DATE);
    let all = [("cache-control", "max-age=20, s-maxage=30"), expires, date];
    assert_eq!(lifetime_of(&all), Some((30_000, LifetimeSource::SMaxage)));
    let two = [("cache-control", "max-age=20"), expires, date];
    assert_eq!(lifetime_of(&two), Some((20_000, LifetimeSource::MaxAge)));
    assert_eq!(lifetime_of(&[expires, date]), Some((10_000, LifetimeSource::Expires)));
    assert_eq!(lifetime_of(&[date]), None);
}

#[test]
fn expires_counts_from_date_and_an_unreadable_one_is_past() {
    // §5.3.
    let expires = "Sun, 06 Nov 1994 08:49:47 GMT";
    let later = ("date", "Sun, 06 Nov 1994 08:49:40 GMT");
    assert_eq!(lifetime_of(&[("expires", expires), later]), Some((7_000, LifetimeSource::Expires)));
    for date in [&[][..], &[("date", "nonsense")]] {
        let lines = [&[("expires", expires)], date].concat();
        assert_eq!(lifetime_of(&lines), Some((10_000, LifetimeSource::Expires)));
    }
    for past in ["0", "-1", "", "Sun, 06 Nov 1994 08:49:47 UTC", DATE] {
        let lines = [("expires", past), ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT")];
        assert_eq!(lifetime_of(&lines), Some((0, LifetimeSource::Expires)), "{past}");
    }
    let twice = [("expires", expires), ("expires", "0")];
    assert_eq!(lifetime_of(&twice), Some((10_000, LifetimeSource::Expires)));
}

#[test]
fn a_targeted_field_overrides_expires() {
    // RFC 9213 §2.2.
    let lines = [("cdn-cache-control", "public"), ("expires", "Mon, 07 Nov 1994 08:49:37 GMT")];
    assert_eq!(lifetime_of(&lines), None);
    let lines = [("cdn-cache-control", "max-age=5"), ("cache-control", "max-age=9")];
    assert_eq!(lifetime_of(&lines), Some((5_000, LifetimeSource::Targeted)));
}

#[test]
fn heuristics_for_listed_statuses_with_a_date_only() {
    // §4.2.2: ten percent of the 1,000 seconds since the last modification.
    let modified = ("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT");
    let expected = Some((100_000, LifetimeSource::Heuristic));
    for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
        assert_eq!(of(status, &[modified], &guessing()), expected, "{status}");
    }
    for status in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599] {
        assert_eq!(of(status, &[modified], &guessing()), None, "{status}");
    }
    assert_eq!(of(200, &[], &guessing()), None);
    assert_eq!(of(200, &[("last-modified", "yesterday")], &guessing()), None);
    assert_eq!(lifetime_of(&[modified]), None, "off by default");
    let old = ("last-modified", "Sun, 06 Nov 1983 08:49:37 GMT");
    assert_eq!(of(200, &[old], &guessing()), Some((600_000, LifetimeSource::Heuristic)));
}

#[test]
fn heuristics_for_public_responses_unless_disabled() {
    let heuristic = Heuristic { applies_to_public: false, ..Default::default() };
    let listed = Policy { heuristic: Some(heuristic), ..Policy::default() };
    let lines = [("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT"), ("cache-control", "public")];
    let guessed = Some((100_000, LifetimeSource::Heuristic));
    assert_eq!(of(599, &lines, &guessing()), guessed);
    assert_eq!(of(599, &lines, &listed), None);
    assert_eq!(of(200, &lines, &listed), guessed);
    assert_eq!(of(599, &lines[..1], &guessing()), None);
    assert_eq!(of(200, &lines, &Policy::default()), None);
}

#[test]
fn a_rule_gives_a_lifetime_to_undeclared_responses() {
    let policy = Policy { default_lifetime_ms: Some(500), ..Policy::default() };
    let rule = |status, lines: &[(&str, &str)]| of(status, lines, &policy);
    assert_eq!(rule(200, &[]), Some((500, LifetimeSource::Rule)));
    assert_eq!(rule(302, &[]), Some((500, LifetimeSource::Rule)));
    assert_eq!(rule(500, &[]), None);
    assert_eq!(rule(501, &[]), None);
    assert_eq!(rule(200, &[("age", "10")]), Some((10_500, LifetimeSource::Rule)));
    let declared = rule(200, &[("cache-control", "max-age=3")]);
    assert_eq!(declared, Some((3_000, LifetimeSource::MaxAge)));
}

#[test]
fn reads_give_a_lifetime_to_undeclared_responses_that_are_no_temporary_redirects() {
    let policy = Policy { reads_lifetime_ms: Some(500), ..Policy::default() };
    for status in [200, 301, 308, 404, 410] {
        assert_eq!(of(status, &[], &policy), Some((500, LifetimeSource::Reads)), "{status}");
    }
    for status in [302, 303, 307, 500, 501] {
        assert_eq!(of(status, &[], &policy), None, "{status}");
    }
}

#[test]
fn age_is_the_first_member_of_the_first_line() {
    // §5.1.
    let cases: [(&[&str], u32); 12] = [
        (&["7"], 7),
        (&[" 0007 "], 7),
        (&["7, 9"], 7),
        (&["7", "9"], 7),
        (&["7;a=b"], 0),
        (&["-7"], 0),
        (&["7.0"], 0),
        (&["\"7\""], 0),
        (&["x, 7"], 0),
        (&[", 7"], 0),
        (&["2147483649"], SECONDS_MAX),
        (&["99999999999999999999999999"], SECONDS_MAX),
    ];
    for (lines, expected) in cases {
        let lines: Vec<_> = lines.iter().map(|value| ("age", *value)).collect();
        assert_eq!(age_value(&headers(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn initial_age_is_the_greater_of_apparent_and_corrected() {
    // §4.2.3.
    let times = Times { request: Timestamp(NOW.0 - 3_000), response: Timestamp(NOW.0 + 900) };
    let age = |lines: &[(&str, &str)]| initial_age_ms(&headers(lines), times);
    assert_eq!(age(&[]), 3_900);
    assert_eq!(age(&[("age", "10")]), 13_900);
    assert_eq!(age(&[("date", "Sun, 06 Nov 1994 08:49:27 GMT")]), 10_000);
    assert_eq!(age(&[("date", "Sun, 06 Nov 1994 08:49:27 GMT"), ("age", "10")]), 13_900);
    assert_eq!(age(&[("date", "Sun, 06 Nov 2044 08:49:27 GMT")]), 3_900);
    assert_eq!(age(&[("date", "x")]), 3_900);
}

#[test]
fn the_resolution_of_date_ages_nothing() {
    let times = Times { request: NOW, response: Timestamp(NOW.0 + 10) };
    let aged = headers(&[("date", "Sun, 06 Nov 1994 08:49:36 GMT")]);
    assert_eq!(initial_age_ms(&aged, times), 10);
}

proptest! {
    #[test]
    fn lifetimes_and_ages_are_bounded(
        cache_control in "[ -~]{0,60}",
        age in "[ -~]{0,30}",
        expires in "[ -~]{0,30}",
        seconds in any::<u64>(),
    ) {
        let declares = format!("max-age={seconds}");
        for line in [&cache_control, &declares] {
            let lines = headers(&[("cache-control", line), ("age", &age), ("expires", &expires)]);
            let policy = Policy { default_lifetime_ms: Some(seconds), ..Policy::default() };
            let declared = declared(&lines, &policy, NOW);
            let age = initial_age_ms(&lines, at_once());
            let most = milliseconds(SECONDS_MAX);
            prop_assert!(age <= most);
            let status = StatusCode::OK;
            let lifetime = lifetime(status, &lines, &declared, age, at_once(), &policy);
            prop_assert!(lifetime.is_none_or(|(lifetime, _)| lifetime <= most));
        }
    }
}
