//! Preconditions and ranges, answered from a stored response (RFC 9110 §13, §14, RFC 9111 §4.3.2).
//!
//! Each test covers one section. Other tests cover the use of the answers by the store.

mod exchange;

use exchange::{Lines, request, store_for, stored};
use http::Method;
use http_cache::validators::own_etag;
use http_cache::{Answer, Policy, StoredResponse, answer, not_modified_fields};

const FRESH: (&str, &str) = ("cache-control", "max-age=60");
const MODIFIED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 08:00:00 GMT");
const LATER: &str = "Sun, 06 Nov 1994 08:10:00 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 07:00:00 GMT";

fn get(stored: &StoredResponse, lines: Lines<'_>) -> Answer {
    answer(&request(&Method::GET, lines), stored, Some(100))
}

fn part(answer: Answer) -> Option<(u64, u64)> {
    match answer {
        Answer::Ranges(ranges) => ranges.as_slice().first().map(|range| (range.first, range.last)),
        _ => None,
    }
}

#[test]
fn if_none_match_compares_weakly() {
    // RFC 9110 §13.1.2.
    let stored = stored(&[FRESH, ("etag", "\"1\"")]);
    for line in ["\"1\"", "W/\"1\"", "\"0\", \"1\"", "*", "\"0\",W/\"1\" , \"2\""] {
        assert_eq!(get(&stored, &[("if-none-match", line)]), Answer::NotModified, "{line}");
    }
    for line in ["\"2\"", "1", "", "\"1", "\"1 \""] {
        assert_eq!(get(&stored, &[("if-none-match", line)]), Answer::Whole, "{line}");
    }
    let lines = [("if-none-match", "\"0\""), ("if-none-match", "\"1\"")];
    assert_eq!(get(&stored, &lines), Answer::NotModified);
    let head = answer(&request(&Method::HEAD, &lines), &stored, Some(100));
    assert_eq!(head, Answer::NotModified);
}

#[test]
fn if_none_match_goes_before_if_modified_since() {
    // RFC 9110 §13.2.2.
    let stored = stored(&[FRESH, ("etag", "\"1\""), MODIFIED]);
    let with = |tag| get(&stored, &[("if-none-match", tag), ("if-modified-since", LATER)]);
    assert_eq!(with("\"2\""), Answer::Whole);
    assert_eq!(with("\"1\""), Answer::NotModified);
    let many =
        [[("if-none-match", "\"2\""); 6].as_slice(), &[("if-modified-since", LATER)]].concat();
    assert_eq!(get(&stored, &many), Answer::Whole);
}

#[test]
fn if_modified_since() {
    // RFC 9110 §13.1.3, RFC 9111 §4.3.2.
    let dated = stored(&[FRESH, MODIFIED]);
    for (date, expected) in [
        (MODIFIED.1, Answer::NotModified),
        (LATER, Answer::NotModified),
        ("Sunday, 06-Nov-94 08:10:00 GMT", Answer::NotModified),
        (EARLIER, Answer::Whole),
        ("0", Answer::Whole),
        ("", Answer::Whole),
    ] {
        assert_eq!(get(&dated, &[("if-modified-since", date)]), expected, "{date}");
    }
    let undated = stored(&[FRESH, ("date", MODIFIED.1), ("cache-control", "s-maxage=99999")]);
    assert_eq!(get(&undated, &[("if-modified-since", LATER)]), Answer::NotModified);
    assert_eq!(get(&undated, &[("if-modified-since", MODIFIED.1)]), Answer::Whole);
}

#[test]
fn if_match_compares_strongly_and_goes_first() {
    // RFC 9110 §13.1.1, §13.2.2.
    let strong = stored(&[FRESH, ("etag", "\"1\"")]);
    assert_eq!(get(&strong, &[("if-match", "\"0\", \"1\"")]), Answer::Whole);
    assert_eq!(get(&strong, &[("if-match", "*")]), Answer::Whole);
    assert_eq!(get(&strong, &[("if-match", "W/\"1\"")]), Answer::PreconditionFailed);
    let both = [("if-match", "\"2\""), ("if-none-match", "\"1\"")];
    assert_eq!(get(&strong, &both), Answer::PreconditionFailed);
    let weak = stored(&[FRESH, ("etag", "W/\"1\"")]);
    assert_eq!(get(&weak, &[("if-match", "W/\"1\"")]), Answer::PreconditionFailed);
}

#[test]
fn if_unmodified_since() {
    // RFC 9110 §13.1.4: ignored without Last-Modified.
    let dated = stored(&[FRESH, MODIFIED]);
    assert_eq!(get(&dated, &[("if-unmodified-since", EARLIER)]), Answer::PreconditionFailed);
    assert_eq!(get(&dated, &[("if-unmodified-since", MODIFIED.1)]), Answer::Whole);
    assert_eq!(get(&dated, &[("if-unmodified-since", "x")]), Answer::Whole);
    assert_eq!(get(&stored(&[FRESH]), &[("if-unmodified-since", EARLIER)]), Answer::Whole);
    let lines = [("if-match", "*"), ("if-unmodified-since", EARLIER)];
    assert_eq!(get(&dated, &lines), Answer::Whole);
}

#[test]
fn preconditions_are_ignored_without_success() {
    // RFC 9110 §13.2.1.
    let lines = [FRESH, ("etag", "\"1\"")];
    let missing = store_for(&Method::GET, &[], 404, &lines, &Policy::default()).expect("storable");
    for line in [("if-none-match", "\"1\""), ("if-match", "\"2\""), ("range", "bytes=0-1")] {
        assert_eq!(get(&missing, &[line]), Answer::Whole, "{line:?}");
    }
}

#[test]
fn our_own_tag_gives_a_304_and_a_range() {
    let mut page = stored(&[FRESH]);
    let tag = own_etag(42);
    page.set_own_etag(tag.clone());
    let tag = tag.to_str().expect("ASCII").to_owned();
    assert_eq!(page.headers["etag"], tag.as_str());
    assert_eq!(get(&page, &[("if-none-match", &tag)]), Answer::NotModified);
    let lines = [("range", "bytes=0-1"), ("if-range", tag.as_str())];
    assert_eq!(part(get(&page, &lines)), Some((0, 1)));
    let mut origins = stored(&[FRESH, ("etag", "\"1\"")]);
    origins.set_own_etag(own_etag(42));
    assert_eq!(origins.headers["etag"], "\"1\"");
}

#[test]
fn ranges_of_a_200_to_get() {
    // RFC 9110 §14.2.
    let page = stored(&[FRESH]);
    let lines: Lines<'_> = &[("range", "bytes=10-19")];
    assert_eq!(part(get(&page, lines)), Some((10, 19)));
    assert_eq!(get(&page, &[("range", "bytes=100-")]), Answer::RangeNotSatisfiable);
    assert_eq!(get(&page, &[("range", "lines=1-2")]), Answer::Whole);
    assert_eq!(answer(&request(&Method::HEAD, lines), &page, Some(100)), Answer::Whole);
    assert_eq!(answer(&request(&Method::GET, lines), &page, None), Answer::Whole);
    let other = store_for(&Method::GET, &[], 203, &[FRESH], &Policy::default()).expect("storable");
    assert_eq!(get(&other, lines), Answer::Whole);
    let tagged = stored(&[FRESH, ("etag", "\"1\"")]);
    let both = [("range", "bytes=0-1"), ("if-none-match", "\"1\"")];
    assert_eq!(get(&tagged, &both), Answer::NotModified);
}

#[test]
fn if_range_compares_strongly() {
    // RFC 9110 §13.1.5, §8.8.2.2.
    let page = stored(&[FRESH, ("etag", "\"1\""), MODIFIED]);
    let with = |page: &StoredResponse, condition| {
        part(get(page, &[("range", "bytes=0-1"), ("if-range", condition)])).is_some()
    };
    assert!(with(&page, "\"1\""));
    assert!(with(&page, MODIFIED.1));
    for condition in ["\"2\"", "W/\"1\"", LATER, EARLIER, "1", ""] {
        assert!(!with(&page, condition), "{condition}");
    }
    let weak = stored(&[FRESH, ("etag", "W/\"1\"")]);
    assert!(!with(&weak, "W/\"1\""));
    let young = stored(&[FRESH, ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")]);
    assert!(!with(&young, "Sun, 06 Nov 1994 08:49:37 GMT"));
}

#[test]
fn the_fields_of_a_304() {
    // RFC 9110 §15.4.5.
    let page = stored(&[
        FRESH,
        MODIFIED,
        ("etag", "\"1\""),
        ("content-type", "text/html"),
        ("content-language", "en"),
        ("content-location", "/x"),
        ("content-security-policy", "default-src 'self'"),
        ("expires", LATER),
        ("vary", "accept"),
        ("x-a", "1"),
    ]);
    let mut names: Vec<&str> = not_modified_fields(&page).map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "cache-control",
        "content-location",
        "content-security-policy",
        "date",
        "etag",
        "expires",
        "vary",
        "x-a",
    ];
    assert_eq!(names, expected);
    let dated = stored(&[FRESH, MODIFIED]);
    assert!(not_modified_fields(&dated).any(|(name, _)| name == "last-modified"));
}
