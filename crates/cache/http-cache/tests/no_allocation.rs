//! A hit allocates nothing in this crate: reading the request, deciding, evaluating its preconditions.
//!
//! There is one test in this program, because the allocator counts all allocations of the thread.

mod exchange;

use counting_allocator::{Counting, allocations};
use exchange::{after, stored};
use http_cache::{Answer, Candidate, Fields, Policy, RequestFacts, Reuse, Verdict, decide};

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_hit_allocates_nothing() {
    let response = [("cache-control", "max-age=60"), ("etag", "\"1\""), ("x-a", "1")];
    let page = stored(&response);
    let policy = Policy::default();
    let browser: &[(&[u8], &[u8])] = &[
        (b"Host", b"example.org"),
        (b"User-Agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        (b"Accept", b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        (b"Accept-Language", b"en-US,en;q=0.5"),
        (b"Accept-Encoding", b"gzip, deflate, br, zstd"),
        (b"Cache-Control", b"max-age=0"),
        (b"If-None-Match", b"\"0\", W/\"1\""),
        (b"If-Modified-Since", b"Sun, 06 Nov 1994 08:49:37 GMT"),
        (b"Range", b"bytes=0-9"),
        (b"Cookie", b"a=b; c=d"),
    ];
    let before = allocations();
    let facts = RequestFacts::read(&http::Method::GET, browser.iter().copied());
    let fields: &dyn Fields = &browser;
    let candidates = [Candidate { stored: &page, marked: None }].into_iter();
    let verdict = decide(&facts, fields, candidates, &policy, after(10));
    let allocated = allocations() - before;
    let expected =
        Verdict::Reuse { candidate: 0, state: Reuse::Fresh, answer: Answer::NotModified };
    assert_eq!(verdict, expected);
    assert_eq!(allocated, 0);
    assert!(before > 0, "the allocator counts");
}
