//! Properties for arbitrary input of clients and origins: nothing panics, durations stay within limits,
//! forbidden responses are not stored, and fresh responses are reused.
//!
//! Field names are those that this crate reads; values resemble valid ones.

mod exchange;

use exchange::{NOW, after, headers, request, store_for};
use http::Method;
use http_cache::parts::{Part, StoredPart, joined, range_inside, storable_part};
use http_cache::{
    Candidate, Policy, RequestControl, StoredResponse, Verdict, decide, freshen, invalidates,
    make_conditional, not_modified_fields,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Field names that this crate reads, with values that resemble theirs, or arbitrary ones.
fn lines() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop::sample::select(vec![
        "cache-control",
        "cdn-cache-control",
        "pagewell-cache-control",
        "surrogate-control",
        "x-accel-expires",
        "expires",
        "date",
        "age",
        "last-modified",
        "etag",
        "vary",
        "connection",
        "pragma",
        "authorization",
        "range",
        "if-range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "surrogate-key",
        "cache-groups",
        "location",
        "content-location",
        "content-length",
        "accept-language",
    ]);
    let value = prop_oneof![
        "[ -~]{0,40}",
        "(max-age|s-maxage|no-cache|no-store|private|public|stale-if-error|max-stale|vary|foo)(=\"?[0-9a-z*,-]{0,12}\"?)?(, ?(max-age=[0-9]{1,12}|no-cache|public|\\*))?",
        "(W/)?\"[a-z]{0,3}\"(, \"[a-z]{0,3}\")?",
        "(Sun|Mon), [0-3][0-9] (Nov|Feb) (19|20)[0-9]{2} [0-2][0-9]:[0-5][0-9]:[0-5][0-9] GMT",
        "bytes=[0-9]{0,3}-[0-9]{0,3}(,[0-9]{0,3}-[0-9]{0,3})?",
        "(http://|//|/|\\.\\./)?[a-z./?#:]{0,20}",
        "[0-9]{0,20}",
    ];
    vec((name.prop_map(str::to_owned), value), 0..8)
}

fn borrowed(lines: &[(String, String)]) -> Vec<(&str, &str)> {
    lines.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn policies() -> impl Strategy<Value = Policy> {
    (any::<bool>(), prop::option::of(any::<u64>()), 0u32..100).prop_map(|(honour, rule, stale)| {
        let control = if honour { RequestControl::Honour } else { RequestControl::Ignore };
        Policy {
            request_directives: control,
            default_lifetime_ms: rule,
            stale_while_revalidate_seconds: stale,
            stale_if_error_seconds: stale,
            stale_if_disconnected_seconds: stale / 2,
            ..Policy::default()
        }
    })
}

fn check_stored(stored: &StoredResponse, seconds: u64) {
    let most = (1u64 << 31) * 1000;
    assert!(stored.lifetime_ms() <= most && stored.age_ms(after(seconds)) <= most);
    assert!(stored.headers.contains_key("date"));
    for name in ["set-cookie", "connection", "age", "content-length", "surrogate-key"] {
        assert!(!stored.headers.contains_key(name), "{name}");
    }
    assert!(!stored.directives.private());
    assert!({
        let said = stored.directives.unpacked();
        !said.no_store || said.must_understand
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_complete_exchange(
        asked in lines(),
        response in lines(),
        newer in lines(),
        status in 100u16..600,
        seconds in 0u64..100_000,
        marked: bool,
        policy in policies(),
    ) {
        let (asked, response, newer) = (borrowed(&asked), borrowed(&response), borrowed(&newer));
        let Ok(stored) = store_for(&Method::GET, &asked, status, &response, &policy) else {
            return Ok(());
        };
        check_stored(&stored, seconds);
        let facts = request(&Method::GET, &asked);
        let fields = headers(&asked);
        let candidates = [Candidate { stored: &stored, marked: marked.then_some(NOW) }].into_iter();
        let verdict = decide(&facts, &fields, candidates, &policy, after(seconds));
        if let Verdict::Forward { validate, fallback, .. } = verdict {
            prop_assert!(validate.is_none() || (validate == fallback && stored.can_be_validated()));
        }
        let now = decide(
            &facts, &fields, [Candidate { stored: &stored, marked: None }].into_iter(),
            &policy, NOW,
        );
        if stored.may_be_shared(NOW)
            && policy.request_directives == RequestControl::Ignore
            && !facts.authorization
        {
            prop_assert!(matches!(now, Verdict::Reuse { .. }), "what is fresh is reused at once");
        }
        let mut forwarded = fields.clone();
        make_conditional(&mut forwarded, Some(&stored));
        prop_assert!(!forwarded.contains_key("range") && !forwarded.contains_key("if-match"));
        prop_assert!(not_modified_fields(&stored).count() <= stored.headers.len());
        let (sent, came) = (after(seconds), after(seconds));
        let new = freshen(&stored, &facts, &fields, &headers(&newer), sent, came, &policy);
        if let Ok(new) = new {
            check_stored(&new, seconds);
            prop_assert_eq!(new.content_length(), stored.content_length());
            prop_assert!(stored.tags().iter().all(|tag| new.tags().iter().any(|other| other == tag)));
        }
    }

    #[test]
    fn parts_of_anything(
        asked in lines(),
        response in lines(),
        content_range in "bytes [0-9]{1,3}-[0-9]{1,3}/[0-9]{1,3}|[ -~]{0,30}",
        range in "bytes=[0-9]{0,3}-[0-9]{0,3}",
        policy in policies(),
    ) {
        let mut lines = borrowed(&response);
        lines.extend([("content-range", content_range.as_str()), ("etag", "\"1\"")]);
        let asked = borrowed(&asked);
        let (facts, fields) = (request(&Method::GET, &asked), headers(&asked));
        let kept = storable_part(&facts, &fields, &headers(&lines), NOW, NOW, &policy);
        let Ok((stored, part)) = kept else { return Ok(()) };
        check_stored(&stored, 0);
        prop_assert_eq!(Part::of(&stored), Some(part));
        prop_assert!(part.range.last < part.complete_length);
        let asked = [("range", range.as_str())];
        if let Some((range, at)) = range_inside(&request(&Method::GET, &asked), &stored) {
            prop_assert!(part.range.first <= range.first && range.last <= part.range.last);
            prop_assert_eq!(at.len() as u64, range.length());
        }
        let content = vec![b'x'; part.range.length() as usize];
        let held = || StoredPart { stored: &stored, content: &content };
        let (same, bytes) = joined(&held(), &held(), 1 << 20).expect("of one whole");
        prop_assert_eq!(bytes.len() as u64, part.range.length());
        prop_assert_eq!(Part::of(&same).is_none(), part.is_whole());
    }

    #[test]
    fn a_forbidding_directive_is_found_wherever_it_stands(
        before in "[ -~&&[^\"]]{0,30}",
        after in "[ -~]{0,30}",
        forbidding in prop::sample::select(vec!["no-store", "private", "No-Store"]),
    ) {
        let line = format!("max-age=60, {before}, {forbidding}, {after}");
        let lines = [("cache-control", line.as_str())];
        let found = store_for(&Method::GET, &[], 200, &lines, &Policy::default());
        let lifted = before.contains("must-understand") || after.contains("must-understand");
        prop_assert!(found.is_err() || lifted, "{line}");
    }

    #[test]
    fn invalidated_pages_are_paths(response in lines(), path in "/[a-z/.]{0,20}") {
        let target = path.parse().expect("a path");
        let response = headers(&borrowed(&response));
        let method = http_cache::Method::Unsafe;
        let pages = invalidates(method, "example.org", &target, http::StatusCode::OK, &response);
        prop_assert!(pages.len() <= 3 && pages[0] == path);
        prop_assert!(pages.iter().all(|page| page.starts_with('/') && !page.contains('#')));
    }
}
