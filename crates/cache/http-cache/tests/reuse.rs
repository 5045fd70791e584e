//! The verdict on a request, row by row of the table at `decide` (RFC 9111 §4, RFC 5861).
//!
//! The use of stale responses after a failure of the origin is tested here as well.

mod exchange;

use exchange::{Lines, NOW, after, headers, honouring, request, reuse, store_for, stored};
use http::{Method, StatusCode};
use http_cache::{
    Answer, Candidate, Failure, FailureSet, ForwardReason, NoStaleUse, Policy, Reuse, StaleBecause,
    StaleUse, StoredResponse, Timestamp, UnusableBecause, Verdict, decide, may_use_stale_on,
};

const HIT: Verdict = Verdict::Reuse { candidate: 0, state: Reuse::Fresh, answer: Answer::Whole };

fn plain(stored: &StoredResponse, seconds: u64) -> Verdict {
    reuse(stored, &[], seconds, &Policy::default())
}

fn why(verdict: Verdict) -> Option<ForwardReason> {
    match verdict {
        Verdict::Forward { why, .. } => Some(why),
        _ => None,
    }
}

fn is_stale_because(verdict: Verdict, expected: StaleBecause) -> bool {
    matches!(verdict, Verdict::Reuse { state: Reuse::Stale(because), .. } if because == expected)
}

#[test]
fn a_fresh_response_is_reused_for_get_and_head_only() {
    let stored = stored(&[("cache-control", "max-age=60")]);
    for method in [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS, Method::DELETE] {
        let facts = request(&method, &[]);
        let candidates = [Candidate { stored: &stored, marked: None }].into_iter();
        let verdict = decide(&facts, &headers(&[]), candidates, &Policy::default(), NOW);
        if matches!(method, Method::GET | Method::HEAD) {
            assert_eq!(verdict, HIT, "{method}");
        } else {
            assert_eq!(why(verdict), Some(ForwardReason::Method), "{method}");
        }
    }
}

#[test]
fn misses() {
    let none = || std::iter::empty::<Candidate<'_>>();
    let facts = request(&Method::GET, &[]);
    let verdict = decide(&facts, &headers(&[]), none(), &Policy::default(), NOW);
    assert_eq!(
        verdict,
        Verdict::Forward { why: ForwardReason::UriMiss, validate: None, fallback: None }
    );
    let response = [("cache-control", "max-age=60"), ("vary", "foo")];
    let one = store_for(&Method::GET, &[("foo", "1")], 200, &response, &Policy::default());
    let one = one.expect("storable");
    let verdict = reuse(&one, &[("foo", "2")], 0, &Policy::default());
    assert_eq!(why(verdict), Some(ForwardReason::VaryMiss));
    assert_eq!(reuse(&one, &[("foo", " 1")], 0, &Policy::default()), HIT);
}

#[test]
fn the_most_recent_of_the_selected_is_used() {
    // §4.1.
    let policy = Policy::default();
    let make = |date, foo| {
        let lines = [("cache-control", "max-age=600"), ("vary", "foo"), ("date", date)];
        store_for(&Method::GET, &[("foo", foo)], 200, &lines, &policy).expect("storable")
    };
    let all = [
        make("Sun, 06 Nov 1994 08:49:30 GMT", "1"),
        make("Sun, 06 Nov 1994 08:49:37 GMT", "2"),
        make("Sun, 06 Nov 1994 08:49:35 GMT", "1"),
        make("Sun, 06 Nov 1994 08:49:33 GMT", "1"),
    ];
    let lines: Lines<'_> = &[("foo", "1")];
    let candidates = all.iter().map(|stored| Candidate { stored, marked: None });
    let verdict = decide(&request(&Method::GET, lines), &headers(lines), candidates, &policy, NOW);
    assert!(matches!(verdict, Verdict::Reuse { candidate: 2, .. }));
}

#[test]
fn stale_is_validated_where_it_can_be() {
    let with = stored(&[("cache-control", "max-age=60"), ("etag", "\"1\"")]);
    let stale = ForwardReason::Stale;
    assert_eq!(
        plain(&with, 60),
        Verdict::Forward { why: stale, validate: Some(0), fallback: Some(0) }
    );
    let without = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(
        plain(&without, 60),
        Verdict::Forward { why: stale, validate: None, fallback: Some(0) }
    );
    let mut own = without.clone();
    own.set_own_etag(http_cache::validators::own_etag(7));
    assert!(matches!(plain(&own, 60), Verdict::Forward { validate: None, .. }));
}

#[test]
fn no_cache_is_validated_each_time() {
    // §5.2.2.4.
    let stored = stored(&[("cache-control", "max-age=60, no-cache"), ("etag", "\"1\"")]);
    let verdict = plain(&stored, 0);
    assert_eq!(
        verdict,
        Verdict::Forward { why: ForwardReason::Stale, validate: Some(0), fallback: Some(0) }
    );
}

#[test]
fn a_request_with_authorization_needs_a_response_storable_with_it() {
    let lines: Lines<'_> = &[("authorization", "Basic eA==")];
    let policy = Policy::default();
    let private = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(reuse(&private, lines, 0, &policy), Verdict::Bypass(UnusableBecause::Authorization));
    let public = stored(&[("cache-control", "max-age=60, public")]);
    assert_eq!(reuse(&public, lines, 0, &policy), HIT);
}

#[test]
fn a_reload_causes_no_origin_request_unless_the_site_wants_it() {
    // §5.2.1, §5.4.
    let stored = stored(&[("cache-control", "max-age=60"), ("etag", "\"1\"")]);
    for line in [
        ("cache-control", "no-cache"),
        ("cache-control", "max-age=0"),
        ("cache-control", "max-age=5"),
        ("cache-control", "max-age=5, max-stale=60"),
        ("cache-control", "min-fresh=55"),
        ("pragma", "no-cache"),
    ] {
        assert_eq!(reuse(&stored, &[line], 10, &Policy::default()), HIT, "{line:?}");
        let verdict = reuse(&stored, &[line], 10, &honouring());
        assert_eq!(why(verdict), Some(ForwardReason::Request), "{line:?}");
    }
    for line in [("cache-control", "max-age=10"), ("cache-control", "min-fresh=50")] {
        assert_eq!(reuse(&stored, &[line], 10, &honouring()), HIT, "{line:?}");
    }
}

#[test]
fn max_stale_by_choice() {
    // §5.2.1.2, §4.2.4.
    let lines: Lines<'_> = &[("cache-control", "max-stale=10")];
    let stale = stored(&[("cache-control", "max-age=60")]);
    assert!(is_stale_because(reuse(&stale, lines, 70, &honouring()), StaleBecause::MaxStale));
    assert_eq!(why(reuse(&stale, lines, 71, &honouring())), Some(ForwardReason::Stale));
    assert_eq!(why(reuse(&stale, lines, 65, &Policy::default())), Some(ForwardReason::Stale));
    let any: Lines<'_> = &[("cache-control", "max-stale")];
    assert!(is_stale_because(reuse(&stale, any, 9_000, &honouring()), StaleBecause::MaxStale));
    for line in ["max-age=60, must-revalidate", "max-age=60, proxy-revalidate", "s-maxage=60"] {
        let bound = stored(&[("cache-control", line)]);
        assert_eq!(why(reuse(&bound, any, 65, &honouring())), Some(ForwardReason::Stale), "{line}");
    }
}

#[test]
fn only_if_cached() {
    // §5.2.1.7, under any policy.
    let lines: Lines<'_> = &[("cache-control", "only-if-cached")];
    let stored = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(reuse(&stored, lines, 0, &Policy::default()), HIT);
    assert_eq!(reuse(&stored, lines, 60, &Policy::default()), Verdict::Unsatisfied);
    let none = std::iter::empty::<Candidate<'_>>();
    let facts = request(&Method::GET, lines);
    let verdict = decide(&facts, &headers(lines), none, &Policy::default(), NOW);
    assert_eq!(verdict, Verdict::Unsatisfied);
}

#[test]
fn stale_while_revalidate() {
    // RFC 5861 §3.
    let policy = Policy::default();
    let declared = stored(&[("cache-control", "max-age=60, stale-while-revalidate=10")]);
    assert_eq!(plain(&declared, 59), HIT);
    assert!(is_stale_because(plain(&declared, 60), StaleBecause::WhileRevalidate));
    assert!(is_stale_because(plain(&declared, 70), StaleBecause::WhileRevalidate));
    assert_eq!(why(plain(&declared, 71)), Some(ForwardReason::Stale));
    let shared = stored(&[("cache-control", "s-maxage=60, stale-while-revalidate=10")]);
    assert!(is_stale_because(reuse(&shared, &[], 65, &policy), StaleBecause::WhileRevalidate));
    for line in ["must-revalidate", "proxy-revalidate", "no-cache"] {
        let line = format!("max-age=60, stale-while-revalidate=10, {line}");
        let bound = stored(&[("cache-control", &line), ("etag", "\"1\"")]);
        assert_eq!(why(plain(&bound, 65)), Some(ForwardReason::Stale), "{line}");
    }
}

#[test]
fn stale_while_revalidate_by_rule() {
    let policy = Policy { stale_while_revalidate_seconds: 10, ..Policy::default() };
    let silent = stored(&[("cache-control", "max-age=60")]);
    assert!(is_stale_because(reuse(&silent, &[], 65, &policy), StaleBecause::WhileRevalidate));
    for line in
        ["max-age=60, stale-while-revalidate=0", "s-maxage=60", "max-age=60, must-revalidate"]
    {
        let bound = stored(&[("cache-control", line)]);
        assert_eq!(why(reuse(&bound, &[], 65, &policy)), Some(ForwardReason::Stale), "{line}");
    }
}

#[test]
fn a_marked_response_counts_as_stale() {
    let verdict = |stored: &StoredResponse, lines, policy: &Policy| {
        let candidates = [Candidate { stored, marked: Some(NOW) }].into_iter();
        decide(&request(&Method::GET, lines), &headers(lines), candidates, policy, NOW)
    };
    let silent = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(why(verdict(&silent, &[], &Policy::default())), Some(ForwardReason::Stale));
    let any: Lines<'_> = &[("cache-control", "max-stale")];
    assert_eq!(why(verdict(&silent, any, &honouring())), Some(ForwardReason::Stale));
    let allowed = stored(&[("cache-control", "max-age=60, stale-while-revalidate=10")]);
    let found = verdict(&allowed, &[], &Policy::default());
    assert!(is_stale_because(found, StaleBecause::WhileRevalidate));
}

/// It counts as stale from its mark, however young it is, and not for as long as it would have been fresh.
#[test]
fn a_marked_response_is_used_for_so_long_from_its_mark() {
    let verdict = |line: &str, policy: &Policy, seconds| {
        let stored = stored(&[("cache-control", line), ("etag", "\"1\"")]);
        let candidates = [Candidate { stored: &stored, marked: Some(after(10)) }].into_iter();
        let asks = request(&Method::GET, &[]);
        let verdict = decide(&asks, &headers(&[]), candidates, policy, after(seconds));
        is_stale_because(verdict, StaleBecause::WhileRevalidate)
    };
    let silent = Policy::default();
    let declared = "max-age=600, stale-while-revalidate=30";
    assert!(verdict(declared, &silent, 40));
    assert!(!verdict(declared, &silent, 41));
    let soft = Policy { soft_seconds: 5, ..Policy::default() };
    for line in ["max-age=600", "s-maxage=600"] {
        assert!(verdict(line, &soft, 15), "{line}");
        assert!(!verdict(line, &soft, 16), "{line}");
        assert!(!verdict(line, &silent, 10), "{line}");
    }
    // The longer of both applies, but never longer than the response's own lifetime.
    assert!(verdict(declared, &soft, 40));
    assert!(verdict("max-age=13", &soft, 12));
    assert!(!verdict("max-age=13", &soft, 13));
    for line in ["max-age=600, no-cache", "max-age=600, must-revalidate"] {
        assert!(!verdict(line, &soft, 11), "{line}");
    }
}

#[test]
fn stale_if_error_counts_from_the_mark() {
    let declared = stored(&[("cache-control", "max-age=600, stale-if-error=30")]);
    let silent = stored(&[("cache-control", "max-age=600")]);
    let facts = request(&Method::GET, &[]);
    let policy = Policy::default();
    let ask = |seconds| {
        let marked = Some(after(10));
        may_use_stale_on(Failure::Refused, &declared, marked, &facts, &policy, after(seconds))
    };
    assert_eq!(ask(40), Ok(StaleUse::ByResponse));
    assert_eq!(ask(41), Err(NoStaleUse::TooStale));
    // It has not merely expired: it is known to be outdated.
    let marked = Some(after(10));
    let outdated = may_use_stale_on(Failure::Refused, &silent, marked, &facts, &policy, after(11));
    assert_eq!(outdated, Err(NoStaleUse::NotAllowed));
}

fn on_failure(
    stored: &StoredResponse,
    failure: Failure,
    seconds: u64,
    policy: &Policy,
) -> Result<StaleUse, NoStaleUse> {
    may_use_stale_on(failure, stored, None, &request(&Method::GET, &[]), policy, after(seconds))
}

#[test]
fn stale_if_error() {
    // RFC 5861 §4.
    let declared = stored(&[("cache-control", "max-age=60, stale-if-error=10")]);
    let policy = Policy::default();
    for failure in Failure::ALL {
        assert_eq!(on_failure(&declared, failure, 70, &policy), Ok(StaleUse::ByResponse));
        assert_eq!(on_failure(&declared, failure, 71, &policy), Err(NoStaleUse::TooStale));
    }
    let gone = Failure::Status(StatusCode::NOT_FOUND);
    assert_eq!(on_failure(&declared, gone, 65, &policy), Err(NoStaleUse::CauseNotChosen));
}

#[test]
fn stale_when_disconnected() {
    // RFC 9111 §4.2.4: a disconnected cache may, unless a directive forbids it.
    let policy = Policy::default();
    let silent = stored(&[("cache-control", "max-age=60")]);
    for failure in Failure::ALL {
        let expected = if failure.is_disconnection() {
            Ok(StaleUse::Disconnected)
        } else {
            Err(NoStaleUse::NotAllowed)
        };
        assert_eq!(on_failure(&silent, failure, 60 + 3600, &policy), expected, "{failure:?}");
    }
    let late = on_failure(&silent, Failure::Refused, 61 + 3600, &policy);
    assert_eq!(late, Err(NoStaleUse::TooStale));
    let zero = stored(&[("cache-control", "max-age=0"), ("etag", "\"1\"")]);
    assert_eq!(on_failure(&zero, Failure::Refused, 1, &policy), Err(NoStaleUse::NotAllowed));
    let refuses = stored(&[("cache-control", "max-age=60, stale-if-error=0")]);
    assert_eq!(on_failure(&refuses, Failure::Refused, 61, &policy), Err(NoStaleUse::NotAllowed));
    let off = Policy { stale_if_disconnected_seconds: 0, ..policy };
    assert_eq!(on_failure(&silent, Failure::Refused, 61, &off), Err(NoStaleUse::NotAllowed));
    for line in ["max-age=60, must-revalidate", "max-age=60, proxy-revalidate", "s-maxage=60"] {
        let bound = stored(&[("cache-control", line)]);
        let policy = Policy::default();
        assert_eq!(on_failure(&bound, Failure::Refused, 65, &policy), Err(NoStaleUse::Forbidden));
    }
}

#[test]
fn stale_if_error_by_rule_and_by_cause() {
    let causes = FailureSet::NONE.with(Failure::Refused);
    let policy =
        Policy { stale_if_error_seconds: 10, stale_if_error_causes: causes, ..Policy::default() };
    let silent = stored(&[("cache-control", "max-age=60")]);
    assert_eq!(on_failure(&silent, Failure::Refused, 65, &policy), Ok(StaleUse::ByPolicy));
    assert_eq!(
        on_failure(&silent, Failure::TimedOut, 65, &policy),
        Err(NoStaleUse::CauseNotChosen)
    );
    for line in ["max-age=60, must-revalidate", "max-age=60, proxy-revalidate", "s-maxage=60"] {
        let bound = stored(&[("cache-control", line)]);
        assert_eq!(on_failure(&bound, Failure::Refused, 65, &policy), Err(NoStaleUse::Forbidden));
    }
    let bound = stored(&[("cache-control", "max-age=60, must-revalidate, stale-if-error=99")]);
    assert_eq!(on_failure(&bound, Failure::Refused, 65, &policy), Err(NoStaleUse::Forbidden));
}

#[test]
fn stale_if_error_by_request() {
    let silent = stored(&[("cache-control", "max-age=60")]);
    let facts = request(&Method::GET, &[("cache-control", "stale-if-error=10")]);
    let ask = |policy: &Policy| {
        may_use_stale_on(Failure::Refused, &silent, None, &facts, policy, after(65))
    };
    assert_eq!(ask(&honouring()), Ok(StaleUse::ByRequest));
    assert_eq!(ask(&Policy::default()), Ok(StaleUse::Disconnected));
}

#[test]
fn a_rule_s_half_second() {
    let policy = Policy { default_lifetime_ms: Some(500), ..Policy::default() };
    let made = store_for(&Method::GET, &[], 200, &[], &policy).expect("storable");
    let at = |ms| {
        let candidates = [Candidate { stored: &made, marked: None }].into_iter();
        decide(
            &request(&Method::GET, &[]),
            &headers(&[]),
            candidates,
            &policy,
            Timestamp(NOW.0 + ms),
        )
    };
    assert_eq!(at(499), HIT);
    assert_eq!(why(at(500)), Some(ForwardReason::Stale));
}
