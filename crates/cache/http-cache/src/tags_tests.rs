//! Tests of reading tags: the separator of each field, joining, limits, refused lists.
//!
//! The input comes from applications, so the last test reads arbitrary bytes.

use super::*;
use crate::headers_tests::headers;
use proptest::prelude::*;

fn list(tags: &Tags) -> Vec<String> {
    tags.iter().map(|tag| String::from_utf8_lossy(tag).into_owned()).collect()
}

#[test]
fn both_fields_joined_and_each_tag_once() {
    let tags = read_tags(&headers(&[
        ("surrogate-key", "news  news:4\tauthor:2"),
        ("surrogate-key", "news"),
        ("cache-groups", "\"news:4\", \"a \\\"b\\\", c\";x=1"),
    ]));
    let tags = tags.expect("readable");
    assert_eq!(list(&tags), ["news:4", "a \"b\", c", "news", "author:2"]);
    assert_eq!(tags.len(), 4);
    assert!(read_tags(&HeaderMap::new()).expect("none").is_empty());
}

#[test]
fn groups_that_are_no_list_of_strings_are_refused() {
    // RFC 9875 §2, RFC 9651 §4.2.
    for value in ["news", "\"news", "\"a\" \"b\"", "(\"a\")", "1", "\"\u{e9}\""] {
        let found = read_tags(&headers(&[("cache-groups", value)]));
        assert_eq!(found, Err(TagsRefused::Unreadable), "{value}");
    }
    assert!(read_tags(&headers(&[("cache-groups", "")])).expect("empty").is_empty());
}

#[test]
fn every_dialect_by_its_own_separator() {
    for (field, value) in [
        ("cache-tag", "node:1, user 2,,news"),
        ("edge-cache-tag", "node:1,user 2,news"),
        ("x-cache-tags", "node:1,user 2 ,news"),
        ("x-magento-tags", "node:1,user 2,news"),
        ("x-litespeed-tag", "public, node:1,user 2,public:news"),
        ("x-litespeed-tag", "node:1,user 2,news"),
    ] {
        let tags = read_tags(&headers(&[(field, value)])).expect("readable");
        assert_eq!(list(&tags), ["node:1", "user 2", "news"], "{field}");
    }
    for field in ["cache-tags", "purge-cache-tags", "surrogate-key"] {
        let tags = read_tags(&headers(&[(field, "node:1 user_2  a.b")])).expect("readable");
        assert_eq!(list(&tags), ["node:1", "user_2", "a.b"], "{field}");
    }
    for field in ["xkey", "x-hashtwo"] {
        let tags = read_tags(&headers(&[(field, "node:1, user_2"), (field, "a.b\tc")]));
        assert_eq!(list(&tags.expect("readable")), ["node:1", "user_2", "a.b", "c"], "{field}");
    }
}

#[test]
fn every_field_of_tags_but_the_standard_one_stays_here() {
    let policy = crate::Policy::default();
    for dialect in &DIALECTS[1..] {
        let is_internal = policy.internal_fields.iter().any(|name| name == dialect.field);
        assert!(is_internal, "{}", dialect.field);
    }
    assert!(!policy.internal_fields.iter().any(|name| name == "cache-groups"));
}

#[test]
fn limits() {
    let read = |value: &str| read_tags(&headers(&[("surrogate-key", value)]));
    assert_eq!(read(&"x".repeat(TAG_MAX_BYTES)).map(|tags| tags.len()), Ok(1));
    assert_eq!(read(&"x".repeat(TAG_MAX_BYTES + 1)), Err(TagsRefused::TooLong));
    let thousand: Vec<String> = (0..1000).map(|at| format!("{at:064}")).collect();
    assert_eq!(read(&thousand.join(" ")).map(|tags| tags.len()), Ok(1000)); // 64 KB in total.
    let many: Vec<String> = (0..=TAGS_MAX).map(|at| at.to_string()).collect();
    assert_eq!(read(&many.join(" ")), Err(TagsRefused::TooLong));
    let long: Vec<String> = (0..=128).map(|at| format!("{at:01024}")).collect();
    assert_eq!(read(&long.join(" ")), Err(TagsRefused::TooLong));
}

#[test]
fn invalidated_groups() {
    // RFC 9875 §3.
    let read = |lines: &[&str]| {
        let fields: Vec<_> = lines.iter().map(|line| ("cache-group-invalidation", *line)).collect();
        read_invalidated_groups(&headers(&fields))
    };
    let Ok(GroupInvalidation::Groups(tags)) = read(&["\"a\"", "\"b\", \"a\""]) else {
        panic!("readable")
    };
    assert_eq!(list(&tags), ["a", "b"]);
    assert_eq!(read(&["a b"]), Err(TagsRefused::Unreadable));
    assert_eq!(read(&["*"]), Ok(GroupInvalidation::Everything));
    assert_eq!(read(&["\"a\"", "*"]), Ok(GroupInvalidation::Everything));
    // A group whose name is "*" is an ordinary group.
    assert!(matches!(read(&["\"*\""]), Ok(GroupInvalidation::Groups(_))));
    assert_eq!(read(&["**"]), Err(TagsRefused::Unreadable));
}

#[test]
fn each_separator() {
    let lines = headers(&[("surrogate-key", "a, b c")]);
    let read = |separator| {
        let mut tags = Tags::default();
        let dialect = Dialect { field: "surrogate-key", separator };
        read_dialect(&lines, &dialect, &mut tags).expect("readable");
        list(&tags)
    };
    assert_eq!(read(Separator::Space), ["a,", "b", "c"]);
    assert_eq!(read(Separator::Comma), ["a", "b c"]);
    assert_eq!(read(Separator::SpaceOrComma), ["a", "b", "c"]);
}

proptest! {
    #[test]
    fn never_panics_and_stays_bounded(value in "[ -~]{0,200}") {
        let fields = DIALECTS.iter().map(|dialect| dialect.field);
        for name in fields.chain(["cache-group-invalidation"]) {
            let lines = headers(&[(name, &value)]);
            prop_assert!(read_tags(&lines).map_or(0, |tags| tags.len()) <= 200);
            if let Ok(GroupInvalidation::Groups(groups)) = read_invalidated_groups(&lines) {
                prop_assert!(groups.len() <= 200);
            }
        }
    }
}
