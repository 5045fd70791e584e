//! Stored responses, their stored fields, and the name of each refusal (RFC 9111 §3, §5.2.2).
//!
//! The manual lists the refusals too; the last test compares it with the code.

mod exchange;

use exchange::{Lines, NOW, after, honouring, store, store_for, stored};
use http::Method;
use http_cache::{Heuristic, LifetimeSource, NotStored, Policy, Timestamp};

const FRESH: (&str, &str) = ("cache-control", "max-age=60");

fn refusal(lines: Lines<'_>) -> Option<NotStored> {
    store(lines).err()
}

#[test]
fn only_get_is_stored() {
    for method in [Method::HEAD, Method::POST, Method::OPTIONS, Method::PUT] {
        let found = store_for(&method, &[], 200, &[FRESH], &Policy::default());
        assert_eq!(found.err(), Some(NotStored::Method), "{method}");
    }
}

#[test]
fn any_final_status_with_a_declared_lifetime() {
    // §3; a part and a 304 are not whole responses.
    for status in [200, 201, 204, 299, 302, 303, 400, 404, 418, 500, 503, 599, 999] {
        let found = store_for(&Method::GET, &[], status, &[FRESH], &Policy::default());
        assert!(found.is_ok(), "{status}");
    }
    for (status, reason) in [
        (100, NotStored::Interim),
        (103, NotStored::Interim),
        (206, NotStored::PartialContent),
        (304, NotStored::NotModified),
    ] {
        let found = store_for(&Method::GET, &[], status, &[FRESH], &Policy::default());
        assert_eq!(found.err(), Some(reason));
    }
}

#[test]
fn directives_that_forbid() {
    for (line, reason) in [
        ("no-store, max-age=60", NotStored::NoStore),
        ("max-age=60, NO-STORE", NotStored::NoStore),
        ("private, max-age=60", NotStored::Private),
        ("max-age=60, private=\"\"", NotStored::Private),
        ("a=\"b, no-store, max-age=60", NotStored::NoStore),
        ("max-age=60, x=\"private", NotStored::DirectivesUnreadable),
        ("must-understand, no-store, max-age=60, x=\"a", NotStored::DirectivesUnreadable),
    ] {
        assert_eq!(refusal(&[("cache-control", line)]), Some(reason), "{line}");
    }
    assert!(store(&[("cache-control", "max-age=60, x=\"no-store\"")]).is_ok());
}

#[test]
fn must_understand() {
    // §5.2.2.3.
    let line = ("cache-control", "must-understand, no-store, max-age=60");
    let found = |status| store_for(&Method::GET, &[], status, &[line], &Policy::default()).err();
    assert_eq!(found(200), None);
    assert_eq!(found(404), None);
    assert_eq!(found(299), Some(NotStored::StatusNotUnderstood));
    assert_eq!(found(599), Some(NotStored::StatusNotUnderstood));
}

#[test]
fn cookies_are_never_stored() {
    for line in ["max-age=60", "public, s-maxage=60", "max-age=60, no-cache=\"set-cookie\""] {
        let lines = [("cache-control", line), ("set-cookie", "a=b")];
        assert_eq!(refusal(&lines), Some(NotStored::SetCookie), "{line}");
    }
}

#[test]
fn the_reason_is_the_one_to_act_on_first() {
    let cookie = ("set-cookie", "a=b");
    for line in ["private, max-age=60", "no-store", "no-cache, private"] {
        let lines = [("cache-control", line), cookie];
        assert_eq!(refusal(&lines), Some(NotStored::SetCookie), "{line}");
        let lines = [("cache-control", line), cookie, ("x-pagewell-refusal", "failed")];
        for status in [500, 503] {
            let found = store_for(&Method::GET, &[], status, &lines, &Policy::default());
            assert_eq!(found.err(), Some(NotStored::ServerError), "{status} {line}");
        }
    }
    // As WordPress answers without its database; and a page that the application does not offer.
    let stale = [("cache-control", "no-cache, must-revalidate, max-age=0"), ("expires", "0")];
    for lines in [&stale[..], &[FRESH, ("x-pagewell-refusal", "failed")]] {
        let found = store_for(&Method::GET, &[], 500, lines, &Policy::default());
        assert_eq!(found.err(), Some(NotStored::ServerError), "{lines:?}");
    }
    // A visitor's own word stays the reason: the response says nothing about the page for others.
    let asked: Lines<'_> = &[("cache-control", "no-store")];
    let policy = honouring();
    for status in [200, 500] {
        let found = store_for(&Method::GET, asked, status, &[FRESH, cookie], &policy);
        assert_eq!(found.err(), Some(NotStored::RequestNoStore));
    }
}

#[test]
fn a_page_that_the_application_does_not_offer_is_not_stored() {
    // If in doubt, the page is not stored: an unreadable value is a refusal too.
    for code in ["visitors-cookie", "unknown-to-us", "", "Not A Code"] {
        let field = ("x-pagewell-refusal", code);
        assert_eq!(refusal(&[FRESH, field]), Some(NotStored::NotOffered), "{code}");
        // The other reasons keep their names.
        let private = ("cache-control", "private");
        assert_eq!(refusal(&[private, field]), Some(NotStored::Private), "{code}");
    }
    // A page about which nothing is declared is left to the other fields and to the site's rules.
    let nothing = ("x-pagewell-refusal", "nothing-declared");
    assert_eq!(refusal(&[FRESH, nothing]), None);
    assert_eq!(refusal(&[nothing]), Some(NotStored::NoLifetime));
    let policy = Policy { default_lifetime_ms: Some(60_000), ..Policy::default() };
    let found = store_for(&Method::GET, &[], 200, &[("x-pagewell-refusal", "session")], &policy);
    assert_eq!(found.err(), Some(NotStored::NotOffered));
}

#[test]
fn authorization_needs_a_directive_of_the_origin() {
    // §3.5.
    let authorized: Lines<'_> = &[("authorization", "Basic eA==")];
    let found = |line| {
        let lines = [("cache-control", line)];
        store_for(&Method::GET, authorized, 200, &lines, &Policy::default()).err()
    };
    assert_eq!(found("max-age=60"), Some(NotStored::Authorization));
    for line in ["max-age=60, public", "s-maxage=60", "max-age=60, must-revalidate"] {
        assert_eq!(found(line), None, "{line}");
    }
    assert_eq!(found("max-age=60, proxy-revalidate"), Some(NotStored::Authorization));
}

#[test]
fn a_response_without_caching_headers_is_not_stored() {
    assert_eq!(refusal(&[]), Some(NotStored::NoLifetime));
    assert_eq!(refusal(&[("etag", "\"1\"")]), Some(NotStored::NoLifetime));
    assert_eq!(refusal(&[("cache-control", "public")]), Some(NotStored::NoLifetime));
    let modified = [("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT")];
    assert_eq!(refusal(&modified), Some(NotStored::NoLifetime));
    let policy = Policy { heuristic: Some(Heuristic::default()), ..Policy::default() };
    let guessed = store_for(&Method::GET, &[], 200, &modified, &policy).unwrap();
    assert_eq!(guessed.lifetime_source, LifetimeSource::Heuristic);
}

#[test]
fn a_response_that_can_never_be_reused_is_not_stored() {
    for lines in [
        &[("cache-control", "max-age=0")][..],
        &[("cache-control", "max-age=x")],
        &[("cache-control", "max-age=60"), ("age", "60")],
        &[("expires", "0")],
        &[("cache-control", "no-cache")],
        &[("cache-control", "max-age=60, no-cache")],
        &[("cache-control", "max-age=0, must-revalidate, stale-if-error=60")],
    ] {
        let reason = refusal(lines);
        let useless = [NotStored::NeverReusable, NotStored::NoLifetime];
        assert!(reason.is_some_and(|reason| useless.contains(&reason)), "{lines:?}");
    }
    for lines in [
        &[("cache-control", "no-cache"), ("etag", "\"1\"")][..],
        &[("cache-control", "max-age=0"), ("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT")],
        &[("cache-control", "max-age=0, stale-while-revalidate=5")],
        &[("cache-control", "max-age=0, stale-if-error=5")],
    ] {
        assert!(store(lines).is_ok(), "{lines:?}");
    }
}

#[test]
fn the_request_s_no_store_counts_by_choice() {
    // §5.2.1.5.
    let lines: Lines<'_> = &[("cache-control", "no-store")];
    let found = |policy: &Policy| store_for(&Method::GET, lines, 200, &[FRESH], policy).err();
    assert_eq!(found(&Policy::default()), None);
    assert_eq!(found(&honouring()), Some(NotStored::RequestNoStore));
}

#[test]
fn vary_and_limits() {
    assert_eq!(refusal(&[FRESH, ("vary", "a, *")]), Some(NotStored::VaryStar));
    assert_eq!(refusal(&[FRESH, ("vary", "a b")]), Some(NotStored::VaryUnreadable));
    let policy = Policy { nominated_max: 1, content_max_bytes: 10, ..Policy::default() };
    let found = |line| store_for(&Method::GET, &[], 200, &[FRESH, line], &policy).err();
    assert_eq!(found(("vary", "a, b")), Some(NotStored::VaryTooLong));
    assert_eq!(found(("content-length", "11")), Some(NotStored::TooLarge));
    assert_eq!(found(("content-length", "10")), None);
    let long = "x".repeat(2000);
    assert_eq!(found(("surrogate-key", &long)), Some(NotStored::TagsTooLong));
    assert_eq!(found(("cache-groups", "a b")), Some(NotStored::TagsUnreadable));
}

#[test]
fn the_stored_fields() {
    // §3.1, §5.2.2.4, §5.2.2.7; RFC 9110 §7.6.1.
    let stored = stored(&[
        ("cache-control", "max-age=60, no-cache=\"x-a\", private=\"x-b\""),
        ("connection", "x-hop"),
        ("transfer-encoding", "chunked"),
        ("content-length", "5"),
        ("age", "1"),
        ("warning", "110 - x"),
        ("x-a", "1"),
        ("x-b", "1"),
        ("x-hop", "1"),
        ("x-c", "1"),
        ("x-c", "2"),
        ("surrogate-key", "news"),
        ("cache-groups", "\"authors\""),
        ("pagewell-cache-control", "max-age=90"),
        ("etag", "\"1\""),
    ]);
    let mut names: Vec<&str> = stored.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["cache-control", "cache-groups", "date", "etag", "x-a", "x-b", "x-c"]);
    assert_eq!(stored.headers.get_all("x-c").iter().count(), 2);
    assert_eq!(stored.content_length(), Some(5));
    let tags: Vec<&[u8]> = stored.tags().iter().collect();
    assert_eq!(tags, [&b"authors"[..], b"news"]);
    assert_eq!((stored.lifetime_ms(), stored.age_seconds(NOW)), (90_000, 1));
}

#[test]
fn fields_withheld_by_name() {
    // §5.2.2.4, §5.2.2.7.
    let line = ("cache-control", "max-age=60, no-cache=\"X-A\", private=x-b");
    let stored = stored(&[line, ("x-a", "1"), ("x-b", "1"), ("x-c", "1")]);
    assert!(!stored.headers.contains_key("x-a") && !stored.headers.contains_key("x-b"));
    assert!(stored.headers.contains_key("x-c"));
}

#[test]
fn a_date_is_added_where_there_is_none() {
    // RFC 9110 §6.6.1.
    for lines in [&[FRESH][..], &[FRESH, ("date", "yesterday")]] {
        let found = stored(lines);
        assert_eq!(found.headers["date"], "Sun, 06 Nov 1994 08:49:37 GMT");
    }
    let kept = stored(&[FRESH, ("date", "Sun, 06 Nov 1994 08:49:30 GMT")]);
    assert_eq!(kept.headers["date"], "Sun, 06 Nov 1994 08:49:30 GMT");
    assert_eq!(kept.age_seconds(NOW), 7);
}

#[test]
fn age_grows_and_the_lifetime_runs_out() {
    // §4.2, §4.2.3.
    let stored = stored(&[FRESH, ("age", "10")]);
    assert_eq!((stored.age_seconds(NOW), stored.ttl_seconds(NOW)), (10, 50));
    assert!(stored.is_fresh(Timestamp(after(50).0 - 1)));
    assert!(!stored.is_fresh(after(50)));
    assert_eq!(stored.ttl_seconds(after(53)), -3);
    assert_eq!(stored.staleness_ms(after(53)), 3_000);
    assert_eq!(stored.fresh_until(), after(50));
    let earlier = Timestamp(NOW.0 - 5_000); // A clock set back.
    assert_eq!(stored.age_seconds(earlier), 10);
    assert_eq!(stored.age_seconds(Timestamp(u64::MAX)), 1 << 31);
}

#[test]
fn sharing_with_requests_that_waited() {
    assert!(stored(&[FRESH]).may_be_shared(NOW));
    assert!(!stored(&[FRESH]).may_be_shared(after(60)));
    assert!(
        !stored(&[("cache-control", "max-age=60, no-cache"), ("etag", "\"1\"")]).may_be_shared(NOW)
    );
}

#[test]
fn bytes_are_estimated_for_the_budget() {
    let small = stored(&[FRESH]).heap_bytes();
    let tag = "x".repeat(1_000);
    assert!(stored(&[FRESH, ("surrogate-key", &tag)]).heap_bytes() >= small + 1_000);
    assert!(stored(&[FRESH, ("etag", &tag)]).heap_bytes() >= small + 1_000);
    assert!(stored(&[FRESH, ("vary", "x-a")]).heap_bytes() > small);
}

#[test]
fn the_manual_lists_every_reason() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/operating/errors.md");
    let manual = std::fs::read_to_string(manual).expect("the manual page");
    for reason in NotStored::ALL {
        assert!(
            manual.contains(&format!("`{reason}`")),
            "docs/operating/errors.md lacks: {reason}"
        );
    }
}
