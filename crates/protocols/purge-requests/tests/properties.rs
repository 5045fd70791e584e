//! Properties of every request: nothing panics and everything is bounded. An expression that a program built
//! from a list of tags is converted back to that list. A lookup that replaces an expression selects every page
//! that the expression matches.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use purge_requests::{
    PageProperties, Pattern, Selection, TagPattern, UrlPattern, read, read_get, read_tag_pattern,
    read_url_pattern,
};

/// PHP's `preg_quote`.
fn preg_quote(tag: &str) -> String {
    let special = ".\\+*?[^]$(){}=!<>|:-#/";
    tag.chars().flat_map(|c| special.contains(c).then_some('\\').into_iter().chain([c])).collect()
}

fn tags_of(pattern: &str) -> Vec<String> {
    match read_tag_pattern(pattern) {
        TagPattern::Tags(tags) => {
            tags.into_iter().map(|t| String::from_utf8(t).expect("what was text")).collect()
        }
        other => panic!("{pattern}: {other:?}"),
    }
}

fn fields(lines: &[(&'static str, String)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            fields.append(HeaderName::from_static(name), value);
        }
    }
    fields
}

const FIELDS: &[&str] = &[
    "surrogate-key",
    "xkey",
    "xkey-purge",
    "xkey-softpurge",
    "cache-tag",
    "edge-cache-tag",
    "x-cache-tags",
    "cache-tags",
    "purge-cache-tags",
    "x-magento-tags-pattern",
    "x-host",
    "x-url",
    "x-content-type",
    "x-purge-method",
    "x-ban-regex",
    "fastly-soft-purge",
    "x-pool",
];

proptest! {
    #[test]
    fn lists_of_foshttpcache_and_magento_are_found_again(
        tags in prop::collection::vec("[a-zA-Z0-9_:.+*?$()|\\[\\]{}=!<>#/^-]{1,12}", 1..20),
    ) {
        let quoted: Vec<String> = tags.iter().map(|tag| preg_quote(tag)).collect();
        let fos = format!("(^|,)({})(,|$)", quoted.join("|"));
        prop_assert_eq!(tags_of(&fos), tags.clone());
        let magento: Vec<String> = quoted.iter().map(|tag| format!("((^|,){tag}(,|$))")).collect();
        prop_assert_eq!(tags_of(&magento.join("|")), tags);
    }

    #[test]
    fn lists_of_drupal_are_found_again(
        tags in prop::collection::vec("[a-z0-9_:.]{1,12}", 1..20),
        bar in prop::sample::select(vec!["|", " "]),
    ) {
        let found = tags_of(&tags.join(bar));
        prop_assert!(tags.iter().all(|tag| found.contains(tag)), "{found:?}");
        // With spaces as separators, the whole list may also be one tag.
        prop_assert!(found.len() <= tags.len() + usize::from(bar == " "), "{found:?}");
    }

    /// FOSHttpCache does not escape spaces, and responses separate tags by commas.
    #[test]
    fn tags_with_spaces_are_found_again(
        tags in prop::collection::vec("[a-z]{1,3}( [a-z]{1,3}){0,2}", 1..5),
    ) {
        let found = tags_of(&format!("(^|,)({})(,|$)", tags.join("|")));
        prop_assert!(tags.iter().all(|tag| found.contains(tag)), "{found:?}");
    }

    /// If the expression with boundaries matches a page's list of tags, one of the tags that were converted is
    /// in that list.
    #[test]
    fn the_tags_of_a_pattern_cover_the_expression(
        pattern in "(\\(\\^\\|,\\))?[ab|()\\\\.^$]{0,10}(\\(,\\|\\$\\))?",
        tag in "[ab]{1,3}",
    ) {
        let TagPattern::Tags(tags) = read_tag_pattern(&pattern) else { return Ok(()) };
        let whole = Pattern::read(&format!("^(?:{pattern})$"));
        if let Ok(whole) = whole && whole.is_in(tag.as_bytes()) && !pattern.contains('.') {
            prop_assert!(tags.contains(&tag.clone().into_bytes()), "{pattern:?} {tag} {tags:?}");
        }
    }

    #[test]
    fn a_look_up_takes_every_address_that_the_expression_finds(
        pattern in "\\^?/?[ab/?.*\\\\$]{0,8}",
        url in "/[ab/.?*]{0,6}",
    ) {
        let (Ok(found), Ok(oracle)) = (read_url_pattern(&pattern), Pattern::read(&pattern)) else { return Ok(()) };
        let taken = match &found {
            UrlPattern::Any => true,
            UrlPattern::Exact(one) => *one == url,
            UrlPattern::Below(path) => url.split('?').next().is_some_and(|it| it.starts_with(path.as_str())),
            UrlPattern::Search(pattern) => pattern.is_in(url.as_bytes(), url.as_bytes()),
        };
        prop_assert!(taken || !oracle.is_in(url.as_bytes()), "{pattern} {url} {found:?}");
        // And no other pages, except for a path with an open end that is followed directly by a query.
        prop_assert!(!taken || oracle.is_in(url.as_bytes()), "{pattern} {url} {found:?}");
    }

    #[test]
    fn nothing_panics_and_nothing_is_empty(
        method in prop::sample::select(vec!["PURGE", "REFRESH", "BAN", "URIBAN", "PURGEKEYS", "PURGETAGS", "GET"]),
        path in "/[a-z/.*?()|^$\\\\-]{0,20}",
        lines in prop::collection::vec((prop::sample::select(FIELDS.to_vec()), "[ -~]{0,30}"), 0..4),
    ) {
        let fields = fields(&lines);
        let found = match method {
            "GET" => read_get("/purge", &format!("/purge{path}"), &fields),
            method => read(method, &path, &fields),
        };
        let Some(Ok(purge)) = found else { return Ok(()) };
        // A valid request selects something.
        prop_assert!(!purge.hard.is_empty() || !purge.soft.is_empty(), "{method} {path} {lines:?}");
        for one in purge.hard.iter().chain(&purge.soft) {
            match one {
                Selection::Tag(tag) => prop_assert!(!tag.is_empty()),
                Selection::Url(path) | Selection::Path(path) => prop_assert!(path.starts_with('/')),
                Selection::Below(path) => prop_assert!(path.starts_with('/') && path.ends_with('/') && !path.contains('?')),
                Selection::Where(conditions) => {
                    let page = PageProperties { host: "a", aliases: &[], url: b"/", spelled: b"/", content_type: None };
                    conditions.hold(&page);
                }
                Selection::Everything => {}
            }
        }
    }

    #[test]
    fn other_methods_are_nobodys(method in "[A-Za-z]{1,9}", path in "/[a-z]{0,5}") {
        let known = ["PURGE", "REFRESH", "BAN", "URIBAN", "PURGEKEYS", "PURGETAGS"];
        prop_assert_eq!(read(&method, &path, &HeaderMap::new()).is_some(), known.contains(&&*method));
        prop_assert!(read_get("/purge", &path, &HeaderMap::new()).is_none());
    }
}
