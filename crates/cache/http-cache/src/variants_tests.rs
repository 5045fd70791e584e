//! Tests of `variants`: which stored response a request selects, by RFC 9111 §4.1.
//!
//! Each comparison is made twice, by value and by variant key, and both must agree.

use super::*;
use http::header::HeaderValue;
use proptest::prelude::*;

fn headers(name: &str, lines: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    headers
}

fn same(name: &str, one: &[&str], other: &[&str]) -> bool {
    let vary = headers("vary", &[name]);
    let nominated =
        NominatedFields::of(&vary, &headers(name, one), &at_most(16)).expect("selectable");
    let selected = nominated.is_selected_by(&headers(name, other));
    let equal_keys = nominated.variant_key() == nominated.variant_key_for(&headers(name, other));
    assert_eq!(selected, equal_keys);
    selected
}

fn at_most(nominated_max: usize) -> Policy {
    Policy { nominated_max, ..Policy::default() }
}

#[test]
fn the_star_in_any_position() {
    // RFC 9110 §12.5.5.
    for lines in [&["*"][..], &["a, *"], &["*, a"], &["a", "*"], &[" * "]] {
        let found = NominatedFields::of(&headers("vary", lines), &HeaderMap::new(), &at_most(16));
        assert_eq!(found, Err(NotSelectable::Star), "{lines:?}");
    }
}

#[test]
fn names_are_sorted_once_and_bounded() {
    let vary = headers("vary", &["Foo, BAR", "foo"]);
    let nominated = NominatedFields::of(&vary, &HeaderMap::new(), &at_most(2)).expect("selectable");
    assert_eq!(nominated.names().collect::<Vec<_>>(), ["bar", "foo"]);
    assert_eq!(
        NominatedFields::of(&vary, &HeaderMap::new(), &at_most(1)),
        Err(NotSelectable::TooLong)
    );
    let broken = headers("vary", &["foo bar"]);
    assert_eq!(
        NominatedFields::of(&broken, &HeaderMap::new(), &at_most(9)),
        Err(NotSelectable::Unreadable)
    );
    let none =
        NominatedFields::of(&HeaderMap::new(), &HeaderMap::new(), &at_most(0)).expect("selectable");
    assert!(none.is_empty() && none.variant_key().is_empty());
}

#[test]
fn absent_matches_absent_only() {
    assert!(same("foo", &[], &[]));
    assert!(!same("foo", &[], &[""]));
    assert!(!same("foo", &["1"], &[]));
    assert!(same("foo", &["1"], &["1"]));
    assert!(!same("foo", &["1"], &["2"]));
}

#[test]
fn white_space_and_lines_mean_nothing() {
    assert!(same("foo", &["1, 2"], &["1", "2"]));
    assert!(same("foo", &["1, 2"], &[" 1 ,2 "]));
    assert!(!same("foo", &["1, 2"], &["2, 1"]));
    assert!(!same("foo", &["a"], &["A"]));
    assert!(!same("foo", &["\"1, 2\""], &["\"1,2\""]));
    assert!(same("cookie", &["a=1; b=2"], &["a=1", "b=2"]));
    assert!(!same("user-agent", &["a,b"], &["a, b"]));
}

#[test]
fn weighted_values_in_any_case_and_order() {
    // RFC 9110 §12.5.3, §12.5.4.
    assert!(same("accept-encoding", &["gzip, BR"], &["br,gzip"]));
    assert!(same("accept-encoding", &["gzip;q=0.50"], &["gzip ; Q=0.5"]));
    assert!(!same("accept-encoding", &["gzip;q=0.5"], &["gzip"]));
    assert!(same("accept-language", &["EN-us, de;q=0.5"], &["de;q=0.5,en-US;q=1.0"]));
    assert!(!same("accept-language", &["en, de"], &["de, en"]));
    assert!(same("accept", &["text/html, */*;q=0.1"], &["*/*;q=0.1,TEXT/html"]));
    assert!(!same("accept", &["a/b;p=\"A\""], &["a/b;p=\"a\""]));
    assert!(!same("accept", &["a/b;q=2"], &["a/b"]));
}

proptest! {
    #[test]
    fn stable_under_spacing_case_and_combination(
        values in proptest::collection::vec("[a-z]{1,8}(-[A-Z]{2})?(;q=0\\.[0-9]{1,3})?", 1..6),
        spaces in "[ \t]{0,3}",
    ) {
        let name = "accept-language";
        let plain: Vec<&str> = values.iter().map(String::as_str).collect();
        let combined = values.join(&format!("{spaces},{spaces}")).to_uppercase();
        prop_assert!(same(name, &plain, &[&combined]));
    }

    #[test]
    fn never_panics(name in "accept|accept-language|foo|cookie", one in "[ -~]{0,40}", other in "[ -~]{0,40}") {
        same(&name, &[&one], &[&other]);
        prop_assert!(same(&name, &[&one], &[&one]));
    }

    #[test]
    fn different_values_of_a_plain_field_stay_apart(one in "[!-+.-~]{1,20}", other in "[!-+.-~]{1,20}") {
        let quoted = one.contains('"') || other.contains('"');
        prop_assert!(quoted || same("foo", &[&one], &[&other]) == (one == other));
    }
}

#[test]
fn an_unusual_accept_and_origin_select_only_pages_that_vary_by_them() {
    let plain = NominatedFields::of(&HeaderMap::new(), &HeaderMap::new(), &at_most(16));
    let plain = plain.expect("selectable");
    for line in BROWSERS_ACCEPT {
        assert!(is_usual_accept(line));
        let lines: &[(&[u8], &[u8])] = &[(b"accept", line)];
        assert!(plain.is_selected_by(&lines));
    }
    for (name, value) in [
        ("accept", "application/activity+json"),
        ("accept", "text/html, application/json;q=0.9"),
        ("origin", "https://a.test"),
    ] {
        let request = headers(name, &[value]);
        assert!(!plain.is_selected_by(&request), "{name}: {value}");
        let own = NominatedFields::of(&HeaderMap::new(), &request, &at_most(16));
        let own = own.expect("selectable");
        assert!(own.is_selected_by(&request) && !own.is_selected_by(&HeaderMap::new()));
        assert!(!own.is_selected_by(&headers(name, &["another/type"])));
    }
}
