//! Tests of LiteSpeed's fields: each header line that the plugins send is read with its intended meaning.
//!
//! The lines are those of the plugins for WordPress, PrestaShop, Joomla, Drupal, Laravel, MediaWiki and
//! Magento. The last tests read arbitrary bytes.

use super::*;
use crate::headers_tests::headers;
use http_fields::CookieName;
use proptest::prelude::*;

fn control(value: &str) -> CacheControl {
    CacheControl::read(&headers(&[(CACHE_CONTROL_FIELD, value)])).expect("it is there")
}

#[test]
fn lines_of_the_plugins() {
    use Scope::{Private, Public, SharedPrivate};
    use StorePermission::{Allowed, Forbidden, Unsaid};
    for (line, scope, keeping, lifetime) in [
        ("public,max-age=604800", Public, Allowed, Some(604_800)),
        ("public,no-vary,max-age=60,esi=on", Public, Allowed, Some(60)),
        ("private,no-vary,max-age=1800", Private, Allowed, Some(1800)),
        ("shared,private,max-age=60", SharedPrivate, Allowed, Some(60)),
        ("no-cache,esi=on", Public, Forbidden, None),
        ("esi=on", Public, Unsaid, None),
        ("esi=on, public, max-age=9", Public, Allowed, Some(9)),
        ("max-age=10, s-maxage=20", Public, Allowed, Some(20)),
        ("s-maxage=20,max-age=10", Public, Allowed, Some(20)),
        ("PUBLIC , Max-Age = \"30\"", Public, Allowed, Some(30)),
        ("public,reload-after=10,max-age=5,must-revalidate", Public, Allowed, Some(5)),
        ("no-cache", Public, Forbidden, None),
        ("no-store, private", Private, Forbidden, None),
        ("", Public, Unsaid, None),
    ] {
        let found = control(line);
        assert_eq!((found.scope, found.keeping), (scope, keeping), "{line}");
        assert_eq!(found.lifetime_seconds, lifetime, "{line}");
    }
    assert_eq!(CacheControl::read(&HeaderMap::new()), None);
}

#[test]
fn words_count_in_their_order() {
    assert_eq!(control("no-cache,max-age=5").keeping, StorePermission::Allowed);
    assert_eq!(control("max-age=5,no-cache").keeping, StorePermission::Forbidden);
    assert_eq!(control("no-cache,public").keeping, StorePermission::Forbidden);
    assert_eq!(control("private,public").scope, Scope::Public);
    assert_eq!(control("public,private").scope, Scope::Private);
    assert_eq!(control("shared").scope, Scope::SharedPrivate);
    assert_eq!(control("shared,max-age=5").scope, Scope::SharedPrivate);
    assert_eq!(control("public,shared,max-age=5").scope, Scope::Public);
    assert_eq!(control("esi=on,esi=off").esi, Switch::Off);
}

#[test]
fn a_value_that_is_not_a_number_gives_no_lifetime() {
    for value in ["max-age", "max-age=", "max-age=x", "max-age=-1", "max-age=1.5"] {
        assert_eq!(control(value).lifetime_seconds, Some(0), "{value}");
    }
    assert_eq!(control("max-age=99999999999999").lifetime_seconds, Some(SECONDS_MAX));
}

#[test]
fn public_does_not_permit_storing_authorized_responses() {
    let directives = control("public,s-maxage=60").directives();
    assert!(!directives.allows_authorization());
    assert_eq!(directives.max_age, Some(60));
    assert!(control("shared,private").directives().private);
    assert!(!control("esi=on").speaks() && control("no-cache").speaks());
}

#[test]
fn esi_is_found_anywhere() {
    assert!(has_esi(b"<p><esi:include src='/x'/>"));
    assert!(has_esi(b"var a = \"<esi_include>\""));
    assert!(!has_esi(b"<p>esi:include <es") && !has_esi(b""));
}

fn purges(lines: &[(&'static str, &str)]) -> Result<Vec<String>, PurgeUnreadable> {
    let written = |purge: &Purge| {
        let what = match &purge.what {
            PurgeTarget::Tag(tag) => format!("tag {}", String::from_utf8_lossy(tag)),
            PurgeTarget::Url(url) => format!("url {url}"),
            PurgeTarget::Everything => "everything".to_owned(),
        };
        let private = if purge.scope == Scope::Private { "private " } else { "" };
        let stale = if purge.staleness == Staleness::Stale { "stale " } else { "" };
        format!("{private}{stale}{what}")
    };
    read_purges(&headers(lines)).map(|all| all.iter().map(written).collect())
}

fn purge(line: &str) -> Vec<String> {
    purges(&[("x-litespeed-purge", line)]).expect("readable")
}

#[test]
fn purges_of_the_plugins() {
    // WordPress: no `tag=`, and a private segment after the public one.
    assert_eq!(
        purge("public,stale,abc_F,abc_Po.12;private,abc_H"),
        ["stale tag abc_F", "stale tag abc_Po.12", "private tag abc_H"]
    );
    assert_eq!(purge("stale,private, tag=users"), ["private stale tag users"]);
    // Laravel: several URLs, and stale marks at single tags.
    assert_eq!(
        purge("stale,/blog,/about-us,/"),
        ["stale url /blog,/about-us,/", "stale url /blog", "stale url /about-us", "stale url /"]
    );
    assert_eq!(
        purge("stale,pubtag1, pubtag2~s; private, *"),
        ["stale tag pubtag1", "stale tag pubtag2", "private everything"]
    );
    // PrestaShop, Drupal, MediaWiki, Joomla.
    assert_eq!(purge("tag=p_a,tag=p_b;private,*"), ["tag p_a", "tag p_b", "private everything"]);
    assert_eq!(purge("private,site"), ["private tag site"]);
    assert_eq!(purge("public,*"), ["everything"]);
    assert_eq!(purge("*"), ["everything"]);
    assert_eq!(purge("/a?b=1"), ["url /a?b=1"]);
    assert_eq!(purge("one~stale,two~S,three"), ["stale tag one", "stale tag two", "tag three"]);
    assert_eq!(purge(" ; a ;; "), ["tag a"]);
}

#[test]
fn both_fields_and_every_line_count() {
    let both = purges(&[
        ("x-litespeed-purge2", "c"),
        ("x-litespeed-purge", "a"),
        ("x-litespeed-purge", "b"),
    ]);
    assert_eq!(both.expect("readable"), ["tag a", "tag b", "tag c"]);
    assert_eq!(purges(&[]), Ok(Vec::new()));
}

#[test]
fn a_purge_that_cannot_be_looked_up_is_everything() {
    for pattern in ["blog_*", "*_blog", "tag=blog_*"] {
        assert_eq!(purge(pattern), ["everything"], "{pattern}");
    }
    assert_eq!(purge("stale,blog_*"), ["stale everything"]);
    assert_eq!(purge("private"), ["private everything"]);
}

#[test]
fn an_unreadable_list_is_refused_as_a_whole() {
    for line in ["stale", "public,", "a,tag=", "a;stale,public", "~s", "a,/\u{e9}"] {
        let found = purges(&[("x-litespeed-purge", line)]);
        let is_text = line.contains('\u{e9}');
        assert!(found.is_err() || is_text, "{line}");
    }
    let long = "x".repeat(TAG_MAX + 1);
    assert_eq!(purges(&[("x-litespeed-purge", &long)]), Err(PurgeUnreadable::TooLong));
    let many = "a,".repeat(PURGE_ITEMS_MAX + 1);
    assert_eq!(purges(&[("x-litespeed-purge2", &many)]), Err(PurgeUnreadable::TooLong));
    let most = "a,".repeat(PURGE_ITEMS_MAX);
    assert_eq!(purge(&most).len(), PURGE_ITEMS_MAX);
}

const TAG_MAX: usize = crate::tags::TAG_MAX_BYTES;

#[test]
fn tags_by_scope_of_the_page() {
    let lines = headers(&[
        ("x-litespeed-tag", "public, a1b2,a1b2node:1"),
        ("x-litespeed-tag", "PRIVATE,public:whole, mine,a1b2"),
    ]);
    let list = |tags: &Tags| -> Vec<String> {
        tags.iter().map(|tag| String::from_utf8_lossy(tag).into_owned()).collect()
    };
    let public = tags_by_scope(&lines, Scope::Public).expect("readable");
    assert_eq!(list(&public.public), ["a1b2", "a1b2node:1", "whole", "mine"]);
    assert!(public.private.is_empty());
    for scope in [Scope::Private, Scope::SharedPrivate] {
        let private = tags_by_scope(&lines, scope).expect("readable");
        assert_eq!(list(&private.public), ["whole"]);
        assert_eq!(list(&private.private), ["a1b2", "a1b2node:1", "mine"]);
    }
}

#[test]
fn names_of_cookies_as_php_reads_them() {
    for name in [
        "_lscache_vary",
        "_lscache_vary_abc",
        "_LSCACHE.vary",
        "X-Magento-Vary",
        "X-Magento-Vary[a]",
    ] {
        assert!(is_vary_cookie(&CookieName::of(name.as_bytes())), "{name}");
    }
    for name in ["_lscache_var", "lscache_vary", "X-Magento-Vary2", "", "x"] {
        assert!(!is_vary_cookie(&CookieName::of(name.as_bytes())), "{name}");
    }
}

#[test]
fn vary_lists() {
    let read = |line: &str| vary_of(&headers(&[(VARY_FIELD, line)]), 2);
    let both = read("cookie=b, Cookie = a,cookie=b,value=guestm").expect("readable");
    assert_eq!(both.cookies, [b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(both.value.as_deref(), Some(&b"guestm"[..]));
    assert_eq!(read("cookie=a,cookie=b,cookie=c"), Err(VaryRefused::TooLong));
    for line in ["cookie", "cookie=", "header=a", "value=a,value=b"] {
        assert_eq!(read(line), Err(VaryRefused::Unreadable), "{line}");
    }
    assert_eq!(read(""), Ok(vary::Vary::default()));
}

#[test]
fn shared_cookies_are_limited() {
    let read = |values: &[&str]| {
        let lines: Vec<_> = values.iter().map(|value| (LSC_COOKIE, *value)).collect();
        shared_cookies(&headers(&lines)).map(|found| found.len())
    };
    assert_eq!(read(&["PrestaShop-lsc=guest; path=/", "b=1"]), Some(2));
    assert_eq!(read(&[]), Some(0));
    assert_eq!(read(&["a"]), None);
    assert_eq!(read(&["=a"]), None);
    assert_eq!(read(&["a=1"; LSC_COOKIES_MAX + 1]), None);
    assert_eq!(read(&[&format!("a={}", "x".repeat(LSC_COOKIES_MAX_BYTES))]), None);
}

proptest! {
    #[test]
    fn anything_is_read_within_bounds(line in "[ -~]{0,300}") {
        let lines = headers(&[
            (CACHE_CONTROL_FIELD, &line),
            (VARY_FIELD, &line),
            (LSC_COOKIE, &line),
            ("x-litespeed-tag", &line),
            ("x-litespeed-purge", &line),
        ]);
        prop_assert!(CacheControl::read(&lines).is_some());
        prop_assert!(vary_of(&lines, 4).map_or(true, |vary| vary.cookies.len() <= 4));
        prop_assert!(read_purges(&lines).map_or(true, |purges| purges.len() <= 600));
        let tags = tags_by_scope(&lines, Scope::Private).expect("within the limits");
        prop_assert!(tags.private.len() + tags.public.len() <= 300);
    }

    /// Every item of a list is found in it, whatever the order of its words and the white space.
    #[test]
    fn every_item_of_a_list_is_purged(
        names in proptest::collection::vec("[a-z][a-z0-9_.:]{0,8}", 1..6),
        words in proptest::sample::subsequence(vec!["private", "stale"], 0..=2).prop_shuffle(),
        space in "[ \t]{0,2}",
    ) {
        prop_assume!(names.iter().all(|n| !matches!(n.as_str(), "private" | "public" | "stale")));
        let comma = format!("{space},{space}");
        let line = [words.iter().map(|w| (*w).to_owned()).collect(), names.clone()].concat();
        let found = read_purges(&headers(&[("x-litespeed-purge", &line.join(&comma))]));
        let found = found.expect("readable");
        prop_assert_eq!(found.len(), names.len());
        for (purge, name) in found.iter().zip(&names) {
            prop_assert_eq!(&purge.what, &PurgeTarget::Tag(name.clone().into_bytes()));
            prop_assert_eq!(purge.scope == Scope::Private, words.contains(&"private"));
            prop_assert_eq!(purge.staleness == Staleness::Stale, words.contains(&"stale"));
        }
    }
}
