//! Tests of private copies: which responses are stored for one client, and which are not stored at all.

use super::*;
use crate::headers_tests::headers;
use crate::request::Method;

const NOW: Timestamp = Timestamp::from_seconds(1_000_000);

fn kept(word: PrivateWord, lines: &[(&str, &str)]) -> Result<Option<StoredResponse>, NotStored> {
    let request: &[(&[u8], &[u8])] = &[];
    let facts = RequestFacts::read(&http::Method::GET, request.iter().copied());
    assert_eq!(facts.method, Method::Get);
    let terms =
        OwnedTerms { request_time: NOW, response_time: NOW, word, lifetime_max_ms: 600_000 };
    let policy = Policy { default_lifetime_ms: Some(9_000), ..Policy::default() };
    storable_for_owner(&facts, &request, StatusCode::OK, &headers(lines), terms, &policy)
}

fn by_any_field(lines: &[(&str, &str)]) -> Result<Option<u64>, NotStored> {
    kept(PrivateWord::Anybodys, lines).map(|stored| stored.map(|stored| stored.lifetime_ms()))
}

#[test]
fn a_private_response_with_a_lifetime_is_stored() {
    for (line, ms) in [
        ("private, max-age=60", 60_000),
        ("max-age=60, private", 60_000),
        ("private, max-age=3600", 600_000),
        ("private, max-age=60, s-maxage=5", 60_000),
    ] {
        assert_eq!(by_any_field(&[("cache-control", line)]), Ok(Some(ms)), "{line}");
    }
    // PHP sends this with session_cache_limiter("private").
    let php = [
        ("expires", "Thu, 19 Nov 1981 08:52:00 GMT"),
        ("cache-control", "private, max-age=120"),
        ("last-modified", "Thu, 01 Jan 1970 00:00:01 GMT"),
    ];
    assert_eq!(by_any_field(&php), Ok(Some(120_000)));
}

/// The field is about pages for everybody. A plugin sends it to a visitor who is signed in, too.
#[test]
fn a_private_page_may_be_stored_for_its_owner() {
    let lines = [("cache-control", "private, max-age=60"), ("x-pagewell-refusal", "signed-in")];
    assert_eq!(by_any_field(&lines), Ok(Some(60_000)));
}

#[test]
fn a_response_without_private_is_no_private_copy() {
    for line in ["max-age=60", "public, max-age=60", "private=\"set-cookie\", max-age=60", ""] {
        assert_eq!(by_any_field(&[("cache-control", line)]), Ok(None), "{line}");
    }
    let mixed = [("cache-control", "private"), ("x-litespeed-cache-control", "public,max-age=9")];
    assert_eq!(by_any_field(&mixed), Ok(None));
}

#[test]
fn reasons_against_storing_a_private_copy() {
    let cc = |line: &'static str| ("cache-control", line);
    for (lines, why) in [
        (vec![cc("private")], NotStored::NoLifetime),
        (vec![cc("private, s-maxage=60")], NotStored::NoLifetime),
        (vec![cc("private, max-age=0")], NotStored::NeverReusable),
        (vec![cc("private, max-age=soon")], NotStored::NeverReusable),
        (vec![cc("private, no-store, max-age=60")], NotStored::NoStore),
        (vec![cc("private, no-store, must-understand, max-age=60")], NotStored::NoStore),
        (vec![cc("private, no-cache, max-age=60")], NotStored::NeverReusable),
        (vec![cc("private, max-age=60"), ("set-cookie", "a=1")], NotStored::SetCookie),
        (vec![cc("private, max-age=60"), ("vary", "*")], NotStored::VaryStar),
        (vec![cc("private, max-age=60"), ("cache-groups", "?")], NotStored::TagsUnreadable),
        (
            vec![cc("private"), ("last-modified", "Thu, 01 Jan 1970 00:00:01 GMT")],
            NotStored::NoLifetime,
        ),
    ] {
        assert_eq!(by_any_field(&lines), Err(why), "{lines:?}");
    }
}

#[test]
fn a_response_to_authorization_is_stored_for_no_client() {
    let request: &[(&[u8], &[u8])] = &[(b"authorization", b"Basic eA==")];
    let facts = RequestFacts::read(&http::Method::GET, request.iter().copied());
    let word = PrivateWord::Anybodys;
    let terms = OwnedTerms { request_time: NOW, response_time: NOW, word, lifetime_max_ms: 1_000 };
    let lines = headers(&[("cache-control", "private, must-revalidate, max-age=60")]);
    let found =
        storable_for_owner(&facts, &request, StatusCode::OK, &lines, terms, &Policy::default());
    assert_eq!(found.map(|stored| stored.is_some()), Err(NotStored::Authorization));
}

#[test]
fn only_litespeeds_field_may_count() {
    let private = [("cache-control", "private, max-age=60")];
    assert!(matches!(kept(PrivateWord::LiteSpeeds, &private), Ok(None)));
    for line in ["private,max-age=60", "shared,private,max-age=60"] {
        let litespeed = [("x-litespeed-cache-control", line)];
        let stored = kept(PrivateWord::LiteSpeeds, &litespeed).expect("storable").expect("private");
        assert!(stored.is_private());
        // No downstream cache may store it for others.
        assert_eq!(stored.headers["cache-control"], "private", "{line}");
    }
    let contradicts = [
        ("cache-control", "public, max-age=60"),
        ("x-litespeed-cache-control", "private,max-age=60"),
    ];
    let stored = kept(PrivateWord::LiteSpeeds, &contradicts).expect("storable").expect("private");
    assert_eq!(stored.headers["cache-control"], "private");
    let no_store =
        [("cache-control", "no-store"), ("x-litespeed-cache-control", "private,max-age=60")];
    let stored = kept(PrivateWord::LiteSpeeds, &no_store).expect("storable").expect("private");
    assert_eq!(stored.headers["cache-control"], "no-store");
}

#[test]
fn tags_are_the_owners_or_public() {
    let lines = [
        ("cache-control", "private, max-age=60"),
        ("cache-groups", "\"news\""),
        ("x-litespeed-tag", "mine,public:whole"),
    ];
    let stored = kept(PrivateWord::Anybodys, &lines).expect("storable").expect("private");
    let list =
        |tags: &crate::tags::Tags| -> Vec<Vec<u8>> { tags.iter().map(<[u8]>::to_vec).collect() };
    assert_eq!(list(stored.tags()), [b"news".to_vec(), b"whole".to_vec()]);
    assert_eq!(list(&stored.extras().owner_tags), [b"mine".to_vec()]);
}
