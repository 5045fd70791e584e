//! Validation: the request to the origin, and the effect of a 304 or a HEAD (RFC 9111 §4.3, §3.2).
//!
//! The stored response is a hundred seconds old when the origin's response arrives.

mod exchange;

use exchange::{Lines, after, headers, request, store_for, stored};
use http::{Method, StatusCode};
use http_cache::validators::own_etag;
use http_cache::{
    HeadFinding, NotFreshened, NotStored, Policy, StoredResponse, freshen, freshen_by_head,
    make_conditional,
};

const MODIFIED: (&str, &str) = ("last-modified", "Sun, 06 Nov 1994 08:00:00 GMT");

fn freshened(old: &StoredResponse, lines: Lines<'_>) -> Result<StoredResponse, NotFreshened> {
    let facts = request(&Method::GET, &[]);
    let (sent, came) = (after(100), after(100));
    freshen(old, &facts, &headers(&[]), &headers(lines), sent, came, &Policy::default())
}

fn page() -> StoredResponse {
    stored(&[
        ("cache-control", "max-age=60"),
        ("etag", "\"1\""),
        MODIFIED,
        ("content-type", "text/html"),
        ("content-length", "5"),
        ("x-a", "old"),
        ("x-b", "old"),
        ("surrogate-key", "news"),
    ])
}

#[test]
fn the_origin_gets_the_stored_validators() {
    // §4.3.1; the cache evaluates the client's own preconditions and Range.
    let mut fields = headers(&[
        ("if-none-match", "\"x\""),
        ("if-match", "\"x\""),
        ("if-modified-since", "x"),
        ("if-unmodified-since", "x"),
        ("if-range", "\"x\""),
        ("range", "bytes=0-1"),
        ("accept", "*/*"),
    ]);
    make_conditional(&mut fields, Some(&page()));
    let expected = headers(&[
        ("accept", "*/*"),
        ("if-none-match", "\"1\""),
        ("if-modified-since", MODIFIED.1),
    ]);
    assert_eq!(fields, expected);
    make_conditional(&mut fields, None);
    assert_eq!(fields, headers(&[("accept", "*/*")]));
}

#[test]
fn origin_tags_are_returned_unchanged_and_own_tags_never() {
    for tag in ["W/\"1\"", "unquoted", "\"a b\""] {
        let mut fields = headers(&[]);
        make_conditional(
            &mut fields,
            Some(&stored(&[("cache-control", "max-age=1"), ("etag", tag)])),
        );
        assert_eq!(fields["if-none-match"], tag);
    }
    let mut own = stored(&[("cache-control", "max-age=1")]);
    own.set_own_etag(own_etag(1));
    let mut fields = headers(&[]);
    make_conditional(&mut fields, Some(&own));
    assert!(fields.is_empty());
}

#[test]
fn a_304_updates_the_fields_and_restarts_the_lifetime() {
    // §4.3.4, §3.2.
    let lines: Lines<'_> = &[
        ("etag", "\"1\""),
        ("cache-control", "max-age=90"),
        ("x-a", "new"),
        ("x-a", "newer"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
    ];
    let new = freshened(&page(), lines).expect("freshened");
    assert_eq!(new.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["new", "newer"]);
    assert_eq!(new.headers["x-b"], "old");
    assert!(!new.headers.contains_key("x-hop") && !new.headers.contains_key("connection"));
    assert_eq!((new.lifetime_ms(), new.age_seconds(after(100))), (90_000, 0));
    assert_eq!(new.headers["date"], "Sun, 06 Nov 1994 08:51:17 GMT");
    assert_eq!(new.ttl_seconds(after(110)), 80);
}

#[test]
fn fields_that_describe_the_content_never_change() {
    // §3.2.
    let lines: Lines<'_> = &[
        ("etag", "W/\"1\""),
        ("content-length", "0"),
        ("content-type", "text/plain"),
        ("content-encoding", "gzip"),
        ("content-range", "bytes 0-1/2"),
    ];
    let new = freshened(&page(), lines).expect("freshened");
    assert_eq!(new.content_length(), Some(5));
    assert_eq!(new.headers["content-type"], "text/plain");
    assert_eq!(new.headers["etag"], "\"1\"");
    for name in ["content-length", "content-encoding", "content-range"] {
        assert!(!new.headers.contains_key(name), "{name}");
    }
}

#[test]
fn a_304_about_another_response_is_not_used() {
    // §4.3.4.
    for lines in [
        &[("etag", "\"2\"")][..],
        &[("etag", "\"2\""), MODIFIED],
        &[("last-modified", "Sun, 06 Nov 1994 08:00:01 GMT")],
    ] {
        assert_eq!(
            freshened(&page(), lines).err(),
            Some(NotFreshened::OtherValidator),
            "{lines:?}"
        );
    }
    let dated = stored(&[("cache-control", "max-age=60"), MODIFIED]);
    let tag: Lines<'_> = &[("etag", "\"9\"")];
    assert_eq!(freshened(&dated, tag).err(), Some(NotFreshened::OtherValidator));
    let new = freshened(&dated, &[("etag", "\"9\""), MODIFIED]).expect("freshened");
    assert_eq!(new.headers["etag"], "\"9\"");
}

#[test]
fn a_bare_304_is_about_the_one_that_was_validated() {
    let new = freshened(&page(), &[]).expect("freshened");
    assert_eq!((new.lifetime_ms(), new.age_seconds(after(105))), (60_000, 5));
    let tags: Vec<&[u8]> = new.tags().iter().collect();
    assert_eq!(tags, [b"news"]);
}

#[test]
fn a_304_that_forbids_storing_is_not_used() {
    for (line, reason) in [
        (("cache-control", "no-store"), NotStored::NoStore),
        (("cache-control", "private"), NotStored::Private),
        (("set-cookie", "a=b"), NotStored::SetCookie),
        (("vary", "*"), NotStored::VaryStar),
    ] {
        assert_eq!(freshened(&page(), &[line]).err(), Some(NotFreshened::NotStored(reason)));
    }
}

#[test]
fn directives_for_this_cache_alone_outlive_a_304_that_leaves_them_out() {
    let old = stored(&[
        ("pagewell-cache-control", "max-age=600"),
        ("cache-control", "no-store"),
        ("etag", "\"1\""),
    ]);
    assert!(!old.headers.contains_key("pagewell-cache-control"));
    assert_eq!(freshened(&old, &[]).expect("freshened").lifetime_ms(), 600_000);
    let line: Lines<'_> = &[("pagewell-cache-control", "max-age=5")];
    assert_eq!(freshened(&old, line).expect("freshened").lifetime_ms(), 5_000);
}

#[test]
fn tags_are_joined() {
    let new = freshened(&page(), &[("surrogate-key", "authors")]).expect("freshened");
    let tags: Vec<&[u8]> = new.tags().iter().collect();
    assert_eq!(tags, [&b"authors"[..], b"news"]);
}

#[test]
fn variants_and_our_own_tag_stay() {
    let lines = [("cache-control", "max-age=60"), ("vary", "foo"), MODIFIED];
    let fields: Lines<'_> = &[("foo", "1")];
    let mut old =
        store_for(&Method::GET, fields, 200, &lines, &Policy::default()).expect("storable");
    old.set_own_etag(own_etag(3));
    let facts = request(&Method::HEAD, fields);
    let (policy, no_fields) = (Policy::default(), headers(&[]));
    let (sent, came) = (after(9), after(9));
    let new = freshen(&old, &facts, &headers(fields), &no_fields, sent, came, &policy);
    let new = new.expect("freshened");
    assert_eq!(new.nominated(), old.nominated());
    assert_eq!(new.etag, old.etag);
    assert_eq!(new.headers["etag"], old.headers["etag"]);
}

fn head(old: &StoredResponse, status: u16, lines: Lines<'_>) -> HeadFinding {
    let facts = request(&Method::HEAD, &[]);
    let status = StatusCode::from_u16(status).expect("a status");
    let lines = headers(lines);
    let (sent, came) = (after(100), after(100));
    freshen_by_head(old, &facts, &headers(&[]), (status, &lines), sent, came, &Policy::default())
}

#[test]
fn a_head_freshens_or_finds_a_change() {
    // §4.3.5.
    let old = page();
    let same = [("etag", "\"1\""), ("content-length", "5"), ("cache-control", "max-age=7")];
    let HeadFinding::Freshened(new) = head(&old, 200, &same) else { panic!("the same") };
    assert_eq!(new.lifetime_ms(), 7_000);
    for line in [("etag", "\"2\""), ("content-length", "6"), ("last-modified", "x")] {
        assert!(matches!(head(&old, 200, &[line]), HeadFinding::Differs), "{line:?}");
    }
    assert!(matches!(head(&old, 200, &[("x-a", "1")]), HeadFinding::Nothing));
    assert!(matches!(head(&old, 405, &[("etag", "\"2\"")]), HeadFinding::Nothing));
}
