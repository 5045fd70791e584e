//! LiteSpeed's fields within RFC 9111: which field applies, which responses are stored, which variant a
//! request selects, and the effect of a 304.

mod exchange;

use exchange::{Lines, NOW, after, headers, request, reuse, store, store_for, stored};
use http::Method;
use http_cache::litespeed::Scope;
use http_cache::{
    CookieName, FieldUse, ForwardReason, LifetimeSource, NotStored, Policy, Reuse, StoredResponse,
    Verdict, freshen,
};

const LSCACHE: &str = "x-litespeed-cache-control";
const PUBLIC: (&str, &str) = (LSCACHE, "public,max-age=60");

fn source(lines: Lines<'_>) -> Result<(LifetimeSource, u64), NotStored> {
    store(lines).map(|stored| (stored.lifetime_source, stored.lifetime_ms()))
}

#[test]
fn it_replaces_cache_control() {
    let all = [("cache-control", "no-store, private"), ("expires", "0"), PUBLIC];
    assert_eq!(source(&all), Ok((LifetimeSource::LiteSpeed, 60_000)));
    let forbidden = [("cache-control", "max-age=60"), (LSCACHE, "no-cache")];
    assert_eq!(source(&forbidden), Err(NotStored::NoStore));
    // These values do not say whether the page may be stored.
    let esi = [("cache-control", "max-age=5"), (LSCACHE, "esi=on")];
    assert_eq!(source(&esi), Ok((LifetimeSource::MaxAge, 5_000)));
}

#[test]
fn it_comes_after_this_cache_s_own_field_and_before_those_for_caches_elsewhere() {
    let own = [("pagewell-cache-control", "max-age=7"), PUBLIC];
    assert_eq!(source(&own), Ok((LifetimeSource::Targeted, 7_000)));
    let elsewhere = [("cdn-cache-control", "max-age=7"), (LSCACHE, "private,max-age=9")];
    assert_eq!(source(&elsewhere), Err(NotStored::Private));
    let surrogate = [("surrogate-control", "max-age=7"), PUBLIC];
    assert_eq!(source(&surrogate), Ok((LifetimeSource::LiteSpeed, 60_000)));
}

#[test]
fn private_pages_are_not_stored_and_their_field_is_read() {
    for line in ["private,max-age=60", "shared,private,max-age=60", "private"] {
        assert_eq!(source(&[(LSCACHE, line)]), Err(NotStored::Private), "{line}");
    }
    let said = stored(&[PUBLIC]).extras().litespeed.expect("it was said");
    assert_eq!((said.scope, said.lifetime_seconds), (Scope::Public, Some(60)));
}

#[test]
fn public_does_not_concern_authorization() {
    let found = store_for(
        &Method::GET,
        &[("authorization", "Basic eA==")],
        200,
        &[PUBLIC],
        &Policy::default(),
    );
    assert_eq!(found.err(), Some(NotStored::Authorization));
}

#[test]
fn a_site_may_have_it_ignored() {
    let policy = Policy { litespeed: FieldUse::Ignore, ..Policy::default() };
    let lines =
        [("cache-control", "max-age=5"), (LSCACHE, "no-cache,esi=on"), ("lsc-cookie", "a=1")];
    let found = store_for(&Method::GET, &[], 200, &lines, &policy).expect("storable");
    assert_eq!(found.lifetime_source, LifetimeSource::MaxAge);
    assert!(!found.says_esi() && !found.headers.contains_key("set-cookie"));
}

#[test]
fn clients_get_none_of_the_fields() {
    let found = stored(&[
        PUBLIC,
        ("x-litespeed-tag", "a,b"),
        ("x-litespeed-vary", "cookie=a"),
        ("x-litespeed-purge", "c"),
        ("x-litespeed-debug", "x"),
        ("lsc-cookie", "a=1; path=/"),
        ("content-type", "text/html"),
    ]);
    let mut names: Vec<&str> = found.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-type", "date", "set-cookie"]);
    assert_eq!(found.headers["set-cookie"], "a=1; path=/");
    assert_eq!(found.tags().len(), 2);
}

#[test]
fn a_cookie_for_one_visitor_still_forbids_storing() {
    let both = [PUBLIC, ("lsc-cookie", "a=1"), ("set-cookie", "b=2")];
    assert_eq!(store(&both).err(), Some(NotStored::SetCookie));
    assert_eq!(store(&[PUBLIC, ("lsc-cookie", "x")]).err(), Some(NotStored::SharedCookies));
}

fn selects(stored: &StoredResponse, cookies: Lines<'_>) -> bool {
    match reuse(stored, cookies, 1, &Policy::default()) {
        Verdict::Reuse { state: Reuse::Fresh, .. } => true,
        Verdict::Forward { why: ForwardReason::VaryMiss, .. } => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn named_cookies_select_the_copy() {
    let lines = [PUBLIC, ("x-litespeed-vary", "cookie=currency,cookie=lang")];
    let made_for = [("cookie", "x=1; currency=eur")];
    let policy = Policy::default();
    let page = store_for(&Method::GET, &made_for, 200, &lines, &policy).expect("storable");
    assert!(selects(&page, &[("cookie", "currency=eur")]));
    assert!(selects(&page, &[("cookie", "y=2"), ("cookie", "currency=eur")]));
    for others in ["currency=usd", "currency=eur; lang=de", "x=1", "currency=eur; currency=usd"] {
        assert!(!selects(&page, &[("cookie", others)]), "{others}");
    }
    assert!(!selects(&page, &[]));
    // PHP reads the first name as the second.
    let dotted = [PUBLIC, ("x-litespeed-vary", "cookie=a_b")];
    let page = store_for(&Method::GET, &[], 200, &dotted, &policy).expect("storable");
    assert!(!selects(&page, &[("cookie", "a.b=1")]));
    for (name, is_named) in
        [("a_b", true), ("a.b", true), ("a_b[x]", true), ("a", false), ("", false)]
    {
        let name = CookieName::of(name.as_bytes());
        assert_eq!(page.nominated().has_cookie(&name), is_named, "{name:?}");
    }
}

#[test]
fn variants_by_cookies_have_keys_of_their_own() {
    let policy = Policy::default();
    let lines = [PUBLIC, ("x-litespeed-vary", "cookie=a"), ("vary", "accept")];
    let key = |cookie: &str| {
        let request_lines = [("cookie", cookie)];
        let page = store_for(&Method::GET, &request_lines, 200, &lines, &policy).expect("storable");
        let own = page.nominated().variant_key();
        assert_eq!(own, page.nominated().variant_key_for(&headers(&request_lines)));
        own
    };
    assert_eq!(key("a=1"), key("b=2; a=1"));
    assert_ne!(key("a=1"), key("a=2"));
    assert_ne!(key("a="), key("b=1"));
}

#[test]
fn no_vary_and_values() {
    let policy = Policy::default();
    let plain = [(LSCACHE, "public,no-vary,max-age=60"), ("x-litespeed-vary", "cookie=a")];
    let page = store_for(&Method::GET, &[("cookie", "a=1")], 200, &plain, &policy);
    let page = page.expect("storable");
    assert!(page.says_no_vary() && selects(&page, &[("cookie", "a=2")]));
    let valued = [PUBLIC, ("x-litespeed-vary", "cookie=a,value=ismobile")];
    assert_eq!(store(&valued).err(), Some(NotStored::VaryValue));
    let given = [("x-lscache-vary-value", "ismobile")];
    assert!(store_for(&Method::GET, &given, 200, &valued, &policy).is_ok());
    for (line, reason) in
        [("cookies=a", NotStored::VaryUnreadable), ("cookie=", NotStored::VaryUnreadable)]
    {
        assert_eq!(store(&[PUBLIC, ("x-litespeed-vary", line)]).err(), Some(reason));
    }
    let many: String = (0..17).map(|at| format!("cookie=c{at},")).collect();
    let found = store(&[PUBLIC, ("x-litespeed-vary", &many)]);
    assert_eq!(found.err(), Some(NotStored::VaryTooLong));
}

#[test]
fn a_304_keeps_fields_that_it_omits() {
    let page = stored(&[
        PUBLIC,
        ("etag", "\"1\""),
        ("x-litespeed-vary", "cookie=a"),
        ("lsc-cookie", "b=1"),
        ("x-litespeed-purge", "c"),
    ]);
    let facts = request(&Method::GET, &[]);
    let again = freshen(
        &page,
        &facts,
        &headers(&[]),
        &headers(&[("etag", "\"1\"")]),
        after(30),
        after(30),
        &Policy::default(),
    );
    let again = again.expect("freshened");
    assert_eq!(again.lifetime_source, LifetimeSource::LiteSpeed);
    assert_eq!(again.headers.get_all("set-cookie").iter().count(), 1);
    assert!(!selects(&again, &[("cookie", "a=1")]) && again.is_fresh(NOW.plus(80_000)));
}
